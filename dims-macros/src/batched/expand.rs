//! The two functions that a batched one becomes.

use super::ast::Function;
use super::valid::{Batched, Output, Param, fresh};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit_mut::VisitMut;
use syn::{Block, Expr, ExprReturn, GenericParam, Pat, PatIdent, Type, Visibility};

/// Where the traits are.
fn krate(span: Span) -> TokenStream {
    quote_spanned!(span=> ::typed_dims::__private::batch)
}

/// The caller, and the function as it was written.
pub fn function(batched: &Batched) -> TokenStream {
    let Batched { function, .. } = batched;
    let inner = inner(batched);
    if batched.is_method() {
        let caller = caller(batched, &TokenStream::new());
        return match &function.block {
            Some(_) => quote!(#caller #inner),
            // A method of a trait: the caller is provided, what is written for one example is left to the implementations.
            None => quote!(#inner #caller),
        };
    }
    caller(batched, &inner)
}

impl Batched {
    /// Whether the function must stay beside its caller: it mentions `self` or `Self`.
    fn is_method(&self) -> bool {
        if self.receiver.is_some() || self.function.block.is_none() {
            return true;
        }
        struct Finder(bool);
        impl syn::visit::Visit<'_> for Finder {
            fn visit_ident(&mut self, ident: &Ident) {
                self.0 |= ident == "Self";
            }
        }
        let mut finder = Finder(false);
        syn::visit::Visit::visit_signature(&mut finder, &self.function.sig);
        if let Some(block) = &self.function.block {
            syn::visit::Visit::visit_block(&mut finder, block);
        }
        finder.0
    }

    fn inner_name(&self) -> Ident {
        let name = &self.function.sig.ident;
        if self.is_method() { format_ident!("__{name}_of_one") } else { format_ident!("of_one") }
    }

    /// What the batch of a row is called in the inner function.
    fn batch(&self, row: usize) -> Ident {
        Ident::new(&format!("batch{row}"), Span::mixed_site())
    }

    /// A result type with its rest.
    fn result(&self, output: &Output) -> TokenStream {
        let ty = &output.ty;
        match &output.tensor {
            Some((example, Some(row))) => {
                let (krate, name) = (krate(ty.span()), &self.rows[*row].name);
                quote_spanned!(ty.span()=> <#example as #krate::Output>::In<#name>)
            }
            _ => ty.to_token_stream(),
        }
    }

    /// The value of the body, or of a `return`, as the declared results.
    fn finished(&self, value: &TokenStream, span: Span) -> TokenStream {
        let krate = krate(span);
        let part = |output: &Output, value: TokenStream| match &output.tensor {
            Some((example, Some(row))) => {
                let (batch, name) = (self.batch(*row), &self.rows[*row].name);
                quote_spanned!(span=>
                    #krate::unwrap(#krate::Finish::<#example, #name>::finish(#value, &#batch))
                )
            }
            _ => value,
        };
        if !self.tuple {
            return part(&self.results[0], value.clone());
        }
        if self.results.iter().all(|output| output.tensor.is_none()) {
            return value.clone();
        }
        let names: Vec<_> =
            (0..self.results.len()).map(|at| Ident::new(&format!("part{at}"), Span::mixed_site())).collect();
        let parts =
            self.results.iter().zip(&names).map(|(output, name)| part(output, name.to_token_stream()));
        quote_spanned!(span=> { let (#(#names,)*) = #value; (#(#parts,)*) })
    }
}

/// The function as it was written, with a rest in each tensor.
fn inner(batched: &Batched) -> TokenStream {
    let function = &batched.function;
    let (name, mut generics) = (batched.inner_name(), function.sig.generics.clone());
    for row in batched.rows.iter().filter(|row| row.added) {
        let row = &row.name;
        generics.params.push(syn::parse_quote!(#row: ::typed_dims::set::Dims));
    }
    let receiver = batched.receiver.iter().map(ToTokens::to_token_stream);
    let mut owned = TokenStream::new();
    let params = batched.params.iter().map(|Param { pat, ty, tensor }| match tensor {
        Some((example, row)) => {
            let span = ty.span();
            let krate = krate(span);
            let rest = row.map_or_else(|| quote!(()), |row| batched.rows[row].name.to_token_stream());
            if let Pat::Ident(PatIdent { mutability: Some(_), ident, .. }) = pat {
                // What is assigned to has memory of its own.
                owned.extend(
                    quote_spanned!(span=> let mut #ident = ::typed_dims::reduce::Reductions::eval(#ident);),
                );
                return match row {
                    Some(_) => quote_spanned!(span=> #ident: #krate::Param<'_, #example, #rest>),
                    None => quote_spanned!(span=> #ident: #krate::Alone<'_, #example>),
                };
            }
            match row {
                Some(_) => quote_spanned!(span=> #pat: #krate::Param<'_, #example, #rest>),
                None => quote_spanned!(span=> #pat: #krate::Alone<'_, #example>),
            }
        }
        None => quote!(#pat: #ty),
    });
    let batches = batched.rows.iter().enumerate().map(|(at, row)| {
        let (batch, name) = (batched.batch(at), &row.name);
        quote!(#batch: &::typed_dims::__private::batch::Batch<#name>)
    });
    let inputs: Vec<_> = receiver.chain(params).chain(batches).collect();
    let results = batched.results.iter().map(|output| batched.result(output));
    let output = match (batched.tuple, batched.results.is_empty()) {
        (true, true) => TokenStream::new(),
        (true, false) => quote!(-> (#(#results,)*)),
        (false, _) => quote!(-> #(#results)*),
    };
    let body = match &function.block {
        Some(block) => {
            let block = finished(batched, block);
            quote!({ #owned #block })
        }
        None => quote!(;),
    };
    let (params, bounds) = (&generics.params, &generics.where_clause);
    let attrs = function.attrs.iter().filter(|attr| !is_of_the_caller(attr));
    quote! {
        #(#attrs)*
        #[doc(hidden)]
        #[allow(clippy::too_many_arguments, unused_variables)]
        fn #name<#params>(#(#inputs),*) #output #bounds #body
    }
}

/// Whether an attribute is about the function that users call, and not about its body.
fn is_of_the_caller(attr: &syn::Attribute) -> bool {
    ["doc", "must_use", "deprecated"].iter().any(|name| attr.path().is_ident(name))
}

/// The body, whose value and each `return` become the declared results.
fn finished(batched: &Batched, block: &Block) -> TokenStream {
    struct Returns<'a>(&'a Batched);
    impl VisitMut for Returns<'_> {
        fn visit_expr_mut(&mut self, expr: &mut Expr) {
            match expr {
                // These have returns of their own.
                Expr::Closure(_) | Expr::Async(_) => return,
                _ => syn::visit_mut::visit_expr_mut(self, expr),
            }
            if let Expr::Return(ExprReturn { expr: Some(value), .. }) = expr
                && !is_without_value(value)
            {
                let value = self.0.finished(&value.to_token_stream(), value.span());
                *expr = syn::parse_quote!(return #value);
            }
        }

        fn visit_item_mut(&mut self, _: &mut syn::Item) {}
    }
    let mut block = block.clone();
    Returns(batched).visit_block_mut(&mut block);
    if batched.results.is_empty() {
        return block.to_token_stream();
    }
    // rustc is to point at the value, not at the braces around it.
    let span = match block.stmts.last() {
        Some(syn::Stmt::Expr(value, None)) => value.span(),
        _ => block.brace_token.span.close(),
    };
    if let Some(syn::Stmt::Expr(value, None)) = block.stmts.last()
        && !is_without_value(value)
    {
        let value = batched.finished(&value.to_token_stream(), span);
        let stmts = &block.stmts[..block.stmts.len() - 1];
        return quote!(#(#stmts)* #value);
    }
    // Without a last value: it ends in `return` or never.
    block.to_token_stream()
}

/// `Err(..)`, `None`, `Vec::new()`, `vec![]`, and `Ok` or `Some` of these, which have the declared type already: rustc could not infer another.
fn is_without_value(value: &Expr) -> bool {
    let ends_in = |expr: &Expr, names: &[&str]| match expr {
        Expr::Path(path) => {
            path.path.segments.last().is_some_and(|last| names.iter().any(|name| last.ident == name))
        }
        _ => false,
    };
    match value {
        Expr::Call(call) if ends_in(&call.func, &["Ok", "Some"]) => call.args.iter().all(is_without_value),
        Expr::Call(call) => {
            let is_vec = || call.func.to_token_stream().to_string().ends_with("Vec :: new");
            ends_in(&call.func, &["Err"]) || is_vec()
        }
        Expr::Macro(list) => list.mac.path.is_ident("vec") && list.mac.tokens.is_empty(),
        Expr::Path(_) => ends_in(value, &["None"]),
        _ => false,
    }
}

/// The function that users call: it seals the arguments, calls the other one, and opens the results.
fn caller(batched: &Batched, inner: &TokenStream) -> TokenStream {
    let function = &batched.function;
    let sig = &function.sig;
    let (mut generics, mut bounds, mut inputs, mut arguments) =
        (sig.generics.clone(), vec![], vec![], vec![]);
    let (mut hold, mut unify) = (looks(batched), TokenStream::new());
    let type_param = |generics: &mut syn::Generics, name: &Ident| {
        generics.params.push(syn::parse_quote!(#name));
    };
    // The further dims of each row so far.
    let mut united: Vec<TokenStream> = batched.rows.iter().map(|_| quote!(())).collect();
    inputs.extend(batched.receiver.iter().map(without_mut));
    for (at, Param { pat, ty, tensor }) in batched.params.iter().enumerate() {
        let name = match pat {
            Pat::Ident(pat) => pat.ident.clone(),
            _ => format_ident!("arg{at}"),
        };
        let Some((example, row)) = tensor else {
            inputs.push(quote!(#name: #ty));
            arguments.push(name.to_token_stream());
            continue;
        };
        let span = ty.span();
        let krate = krate(span);
        let (argument, dims) = generics_of(at, function);
        inputs.push(quote!(#name: #argument));
        type_param(&mut generics, &argument);
        type_param(&mut generics, &dims);
        bounds.push(quote_spanned!(span=> #dims: ::typed_dims::set::Dims));
        let before = row.map_or_else(|| quote!(()), |row| united[row].clone());
        bounds.push(quote_spanned!(span=> #argument: #krate::Argument<#example, #before, #dims>));
        match row {
            Some(row) => united[*row] = dims.to_token_stream(),
            None => bounds.push(quote_spanned!(span=> #dims: #krate::NoFurther)),
        }
        hold.extend(quote_spanned!(span=> let #name = #krate::unwrap(#krate::Held::new(#name));));
        arguments.push(TokenStream::new());
    }
    let mixed = Span::mixed_site();
    let further: Vec<Ident> =
        (0..batched.rows.len()).map(|row| Ident::new(&format!("further{row}"), mixed)).collect();
    let krate_here = krate(Span::call_site());
    for (at, row) in batched.rows.iter().enumerate() {
        let (further, dims, name) = (&further[at], &united[at], &row.name);
        if row.added {
            generics.params.push(syn::parse_quote!(#name: ::typed_dims::set::Dims));
        }
        bounds.push(quote!(#dims: #krate_here::Closes<#name>));
        hold.extend(quote!(let mut #further = #krate_here::Further::<#dims>::new();));
    }
    let mut before: Vec<TokenStream> = batched.rows.iter().map(|_| quote!(())).collect();
    for (at, Param { pat, tensor, .. }) in batched.params.iter().enumerate() {
        let Some((example, row)) = tensor else { continue };
        let name = match pat {
            Pat::Ident(pat) => pat.ident.clone(),
            _ => format_ident!("arg{at}"),
        };
        let (argument, dims) = generics_of(at, function);
        match row {
            Some(row) => {
                let (further, all, rest) = (&further[*row], &united[*row], &batched.rows[*row].name);
                let so_far = &before[*row];
                unify.extend(quote!(#krate_here::unwrap(#further.unify::<#example, #argument>(&#name));));
                arguments[at] = quote!(
                    <#argument as #krate_here::Argument<#example, #so_far, #dims>>::seal::<#all, #rest>(&#name, &#further)
                );
                before[*row] = dims.to_token_stream();
            }
            None => {
                arguments[at] = quote!(
                    <#argument as #krate_here::Argument<#example, (), #dims>>::alone(&#name)
                );
            }
        }
    }
    let mut results = Vec::new();
    let parts: Vec<Ident> =
        (0..batched.results.len()).map(|at| Ident::new(&format!("part{at}"), mixed)).collect();
    let mut opened = Vec::new();
    for (at, (output, part)) in batched.results.iter().zip(&parts).enumerate() {
        match &output.tensor {
            Some((example, Some(row))) => {
                let name = fresh(&format!("Result{at}"), function);
                let (dims, rest, span) = (&united[*row], &batched.rows[*row].name, output.ty.span());
                let krate = krate(span);
                type_param(&mut generics, &name);
                bounds.push(quote_spanned!(span=> #example: #krate::Opens<#dims, #rest, #name>));
                opened.push(quote!(<#example as #krate::Opens<#dims, #rest, #name>>::open(#part)));
                results.push(name.to_token_stream());
            }
            _ => {
                opened.push(part.to_token_stream());
                results.push(output.ty.to_token_stream());
            }
        }
    }
    let (output, pattern, value) = match (batched.tuple, batched.results.is_empty()) {
        (true, true) => (TokenStream::new(), quote!(()), quote!(())),
        (true, false) => (quote!(-> (#(#results,)*)), quote!((#(#parts,)*)), quote!((#(#opened,)*))),
        (false, _) => (quote!(-> #(#results)*), quote!(#(#parts)*), quote!(#(#opened)*)),
    };
    let own = sig.generics.params.iter().filter_map(|param| match param {
        GenericParam::Type(param) => Some(&param.ident),
        GenericParam::Const(param) => Some(&param.ident),
        GenericParam::Lifetime(_) => None,
    });
    let added = batched.rows.iter().filter(|row| row.added).map(|row| &row.name);
    let (name, inner_name) = (&sig.ident, batched.inner_name());
    let path = match (&batched.receiver, batched.is_method()) {
        (_, true) => quote!(Self::#inner_name),
        (_, false) => quote!(#inner_name),
    };
    let this = batched.receiver.iter().map(|receiver| receiver.self_token.to_token_stream());
    let batches = further.iter().zip(&batched.rows).map(|(further, row)| {
        let name = &row.name;
        quote!(&#further.closed::<#name>())
    });
    let arguments = this.chain(arguments).chain(batches);
    let (vis, attrs) = (&function.vis, &function.attrs);
    let where_clause = generics.where_clause.take();
    let predicates = where_clause.iter().flat_map(|clause| clause.predicates.iter());
    let params = &generics.params;
    let doc = written(batched);
    let vis = if matches!(vis, Visibility::Inherited) { TokenStream::new() } else { quote!(#vis) };
    quote! {
        #(#attrs)*
        #[doc = #doc]
        #[allow(clippy::too_many_arguments)]
        #[track_caller]
        #vis fn #name<#params>(#(#inputs),*) #output
        where
            #(#predicates,)*
            #(#bounds,)*
        {
            #inner
            #hold
            #unify
            let #pattern = #path::<#(#own,)* #(#added,)*>(#(#arguments),*);
            #value
        }
    }
}

/// The generic parameters of the argument at a position: its type, and the further dims up to it.
fn generics_of(at: usize, function: &Function) -> (Ident, Ident) {
    (fresh(&format!("Argument{at}"), function), fresh(&format!("Dims{at}"), function))
}

/// Statements that refuse parameters which are tensors by another name.
fn looks(batched: &Batched) -> TokenStream {
    let others = batched.params.iter().filter(|param| param.tensor.is_none() && can_be_an_alias(&param.ty));
    let looks = others.map(|Param { ty, .. }| {
        let krate = krate(ty.span());
        quote_spanned!(ty.span()=> #krate::Spelling::<#ty>::LOOK.check(());)
    });
    let looks: TokenStream = looks.collect();
    if looks.is_empty() {
        return looks;
    }
    let krate = krate(Span::call_site());
    quote!({
        #[allow(unused_imports)]
        use #krate::NoTensor as _;
        #looks
    })
}

/// Whether a type is written as an alias of a tensor type would be: a path, maybe borrowed, to what is not a primitive type.
fn can_be_an_alias(ty: &Type) -> bool {
    match ty {
        Type::Reference(reference) => can_be_an_alias(&reference.elem),
        Type::Group(group) => can_be_an_alias(&group.elem),
        Type::Paren(paren) => can_be_an_alias(&paren.elem),
        Type::Path(path) => path.path.segments.last().is_some_and(|last| {
            let is_upper = last.ident.to_string().starts_with(char::is_uppercase);
            is_upper && !path.to_token_stream().into_iter().any(|token| token.to_string() == "impl")
        }),
        _ => false,
    }
}

/// `mut self` binds anew in the inner function alone.
fn without_mut(receiver: &syn::Receiver) -> TokenStream {
    let mut receiver = receiver.clone();
    if receiver.reference.is_none() {
        receiver.mutability = None;
    }
    receiver.to_token_stream()
}

/// The signature as it was written, for the documentation.
fn written(batched: &Batched) -> String {
    let sig = batched.function.sig.to_token_stream().to_string();
    let sig =
        sig.replace(" < ", "<").replace(" >", ">").replace(" ,", ",").replace(" :", ":").replace("& ", "&");
    let sig = sig.replace(" (", "(").replace("( ", "(").replace(" )", ")");
    format!(
        "\n\nWritten for one example; each tensor can have further dims, and the result has those of all:\n\n```text\n{sig}\n```"
    )
}
