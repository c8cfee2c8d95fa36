//! The two functions that a batched function expands to: the caller, which users call, and the
//! inner function, as written for one example.
//!
//! Extra dims come in rows: one for each `B` of a `Rest<B>`, or a single row that the macro adds.

use super::ast::Function;
use super::names::mentions;
use super::valid::{Batched, Output, Param, fresh};
use crate::pattern::plan::own;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use std::mem;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::visit_mut::VisitMut;
use syn::{
    Block, Expr, ExprBreak, ExprForLoop, ExprIf, ExprLoop, ExprMacro, ExprReturn, ExprWhile, GenericParam,
    Label, Macro, Pat, PatIdent, Stmt, StmtMacro, Token, Type, Visibility,
};

/// The path of the module with the traits.
fn krate(span: Span) -> TokenStream {
    quote_spanned!(span=> ::typed_dims::__private::batch)
}

/// The caller, and the function as written.
pub fn function(batched: &Batched) -> TokenStream {
    let Batched { function, .. } = batched;
    let inner = inner(batched);
    if batched.is_method() {
        let caller = caller(batched, &TokenStream::new());
        return match &function.block {
            Some(_) => quote!(#caller #inner),
            // A trait method: the caller is provided, and implementations write the method for one
            // example.
            None => quote!(#inner #caller),
        };
    }
    caller(batched, &inner)
}

impl Batched {
    /// Whether the inner function must be next to its caller, not inside it. It must if it is known
    /// to belong to a trait or an impl, because it may use the generic parameters and the `Self`
    /// of that item.
    fn is_method(&self) -> bool {
        let Function { is_member, sig, block, .. } = &self.function;
        let Some(block) = block else { return true };
        // Items in the body have their own `Self`.
        let stmts = block.stmts.iter().filter(|stmt| !matches!(stmt, Stmt::Item(_)));
        *is_member || self.receiver.is_some() || mentions(quote!(#sig #(#stmts)*), "Self")
    }

    fn inner_name(&self) -> Ident {
        // rustc names it in messages about an `impl` without the attribute.
        format_ident!("__{}_made_by_batched", self.function.sig.ident)
    }

    /// The parameter of the inner function that holds the `Batch` of a row.
    fn batch(&self, row: usize) -> Ident {
        own(&format!("batch{row}"))
    }

    /// A result type of the inner function, whose tensors have a `Rest`.
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

    /// Converts the value of the body, or of a `return`, to the declared results.
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
        let names: Vec<_> = (0..self.results.len()).map(|at| own(&format!("part{at}"))).collect();
        let parts =
            self.results.iter().zip(&names).map(|(output, name)| part(output, name.to_token_stream()));
        quote_spanned!(span=> { let (#(#names,)*) = #value; (#(#parts,)*) })
    }
}

/// The function as written, with a `Rest` in its tensors.
fn inner(batched: &Batched) -> TokenStream {
    let function = &batched.function;
    let (name, mut generics) = (batched.inner_name(), function.sig.generics.clone());
    for row in batched.rows.iter().filter(|row| row.added) {
        let row = &row.name;
        generics.params.push(syn::parse_quote!(#row: ::typed_dims::__private::types::set::Dims));
    }
    let receiver = batched.receiver.iter().map(ToTokens::to_token_stream);
    let mut owned = TokenStream::new();
    let params = batched.params.iter().map(|Param { pat, ty, tensor }| match tensor {
        Some((example, row)) => {
            let span = ty.span();
            let krate = krate(span);
            let rest = row.map_or_else(|| quote!(()), |row| batched.rows[row].name.to_token_stream());
            if let Pat::Ident(PatIdent { mutability: Some(_), ident, .. }) = pat {
                // A `mut` parameter needs its own memory.
                owned.extend(
                    quote_spanned!(span=> let mut #ident = ::typed_dims::__private::execute::reduce::Reductions::eval(#ident);),
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

/// Whether an attribute belongs to the function that users call, not to the inner function.
fn is_of_the_caller(attr: &syn::Attribute) -> bool {
    ["doc", "must_use", "deprecated"].iter().any(|name| attr.path().is_ident(name))
}

/// The body, with its value and each `return` converted to the declared results.
fn finished(batched: &Batched, block: &Block) -> TokenStream {
    struct Returns<'a>(&'a Batched);
    impl VisitMut for Returns<'_> {
        fn visit_expr_mut(&mut self, expr: &mut Expr) {
            match expr {
                // These have their own `return`s.
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

        /// syn takes a macro with braces for a statement, even at the end of a block.
        fn visit_block_mut(&mut self, block: &mut Block) {
            if let Some(Stmt::Macro(StmtMacro { semi_token: None, .. })) = block.stmts.last()
                && let Some(Stmt::Macro(StmtMacro { attrs, mac, .. })) = block.stmts.pop()
            {
                block.stmts.push(Stmt::Expr(Expr::Macro(ExprMacro { attrs, mac }), None));
            }
            syn::visit_mut::visit_block_mut(self, block);
        }

        /// The arguments of most macros are expressions. If a macro puts them into a closure, a
        /// `return` in them is converted to the function's result, although it leaves the closure.
        fn visit_macro_mut(&mut self, call: &mut Macro) {
            if mentions(call.tokens.clone(), "return")
                && let Ok(mut arguments) =
                    call.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated)
            {
                arguments.iter_mut().for_each(|argument| self.visit_expr_mut(argument));
                call.tokens = arguments.into_token_stream();
            }
        }

        fn visit_item_mut(&mut self, _: &mut syn::Item) {}
    }
    let mut block = block.clone();
    Returns(batched).visit_block_mut(&mut block);
    if batched.results.is_empty() {
        return block.to_token_stream();
    }
    if let Some(Stmt::Expr(value, None)) = block.stmts.last()
        && !is_without_value(value)
    {
        // Makes rustc point at the value, not at the braces around it.
        let value = batched.finished(&value.to_token_stream(), value.span());
        let stmts = &block.stmts[..block.stmts.len() - 1];
        return quote!(#(#stmts)* #value);
    }
    // The body has no value at its end, because it returns earlier or never, or the value already
    // has the declared type.
    block.to_token_stream()
}

/// Whether an expression is one of these:
///
/// * `Err(..)`, `None`, `Vec::new()` or `vec![]`;
/// * an expression without a value, such as `todo!()`, `return` or an endless loop;
/// * `Ok` or `Some` of one of these;
/// * a block, `if` or `match` that ends in them.
///
/// They already have the declared type, and rustc could not infer another.
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
        Expr::Macro(call) => {
            let is = |name: &&str| call.mac.path.segments.last().is_some_and(|last| last.ident == name);
            let never = ["panic", "todo", "unimplemented", "unreachable"];
            never.iter().any(is) || is(&"vec") && call.mac.tokens.is_empty()
        }
        Expr::Paren(inner) => is_without_value(&inner.expr),
        Expr::Block(inner) => {
            ends_without_value(&inner.block) && !has_break(&inner.block, inner.label.as_ref())
        }
        Expr::Unsafe(inner) => ends_without_value(&inner.block),
        Expr::If(ExprIf { then_branch, else_branch: Some((_, otherwise)), .. }) => {
            ends_without_value(then_branch) && is_without_value(otherwise)
        }
        Expr::Match(choice) => choice.arms.iter().all(|arm| is_without_value(&arm.body)),
        Expr::Return(_) => true,
        Expr::Loop(endless) => !has_break(&endless.body, endless.label.as_ref()),
        Expr::Path(_) => ends_in(value, &["None"]),
        _ => false,
    }
}

fn ends_without_value(block: &Block) -> bool {
    match block.stmts.last() {
        Some(Stmt::Expr(value, None)) => is_without_value(value),
        // The block may end in `return x;`. If it ends in `x;`, rustc reports the missing value.
        _ => true,
    }
}

/// Whether a `break` leaves a loop or a block with this body and label. Without a label, a `break`
/// leaves the innermost loop.
fn has_break(body: &Block, label: Option<&Label>) -> bool {
    struct Breaks<'a> {
        label: Option<&'a Label>,
        is_in_another_loop: bool,
        found: bool,
    }
    impl Breaks<'_> {
        fn visit_another_loop(&mut self, body: &Block) {
            let is_nested = mem::replace(&mut self.is_in_another_loop, true);
            self.visit_block(body);
            self.is_in_another_loop = is_nested;
        }
    }
    impl Visit<'_> for Breaks<'_> {
        fn visit_expr_break(&mut self, leave: &ExprBreak) {
            self.found |= match &leave.label {
                Some(label) => self.label.is_some_and(|own| own.name == *label),
                None => !self.is_in_another_loop,
            };
            visit::visit_expr_break(self, leave);
        }

        fn visit_macro(&mut self, call: &Macro) {
            let has = |name: &str| mentions(call.tokens.clone(), name);
            let has_label = self.label.is_some_and(|own| has(&own.name.ident.to_string()));
            self.found |= has("break") && (has_label || !self.is_in_another_loop);
        }

        fn visit_expr_loop(&mut self, other: &ExprLoop) {
            self.visit_another_loop(&other.body);
        }

        fn visit_expr_while(&mut self, other: &ExprWhile) {
            self.visit_expr(&other.cond);
            self.visit_another_loop(&other.body);
        }

        fn visit_expr_for_loop(&mut self, other: &ExprForLoop) {
            self.visit_expr(&other.expr);
            self.visit_another_loop(&other.body);
        }
    }
    let mut breaks = Breaks { label, is_in_another_loop: false, found: false };
    breaks.visit_block(body);
    breaks.found
}

/// The function that users call: it seals the arguments, calls the inner function, and unseals the
/// results.
fn caller(batched: &Batched, inner: &TokenStream) -> TokenStream {
    let mut caller = Caller::new(batched);
    caller.take_arguments();
    caller.take_rows();
    caller.seal();
    let results = caller.open();
    caller.written(inner, &results)
}

/// The parts of the caller, collected one after the other.
struct Caller<'b> {
    batched: &'b Batched,
    generics: syn::Generics,
    bounds: Vec<TokenStream>,
    inputs: Vec<TokenStream>,
    /// The arguments of the inner function. Those that are tensors are filled in when they are
    /// sealed.
    arguments: Vec<TokenStream>,
    /// Statements that check the types of parameters, hold the arguments, and declare storage for
    /// the extra dims of each row.
    hold: TokenStream,
    /// Statements that unify the extra dims.
    unify: TokenStream,
    /// The union of the extra dims of each row, as a type.
    united: Vec<TokenStream>,
    /// The variables that hold the extra dims.
    further: Vec<Ident>,
}

/// The unsealed results of the function.
struct Opened {
    /// The result type.
    output: TokenStream,
    /// The pattern that binds the results of the inner function.
    pattern: TokenStream,
    /// The unsealed values.
    value: TokenStream,
}

impl<'b> Caller<'b> {
    fn new(batched: &'b Batched) -> Self {
        let rows = batched.rows.len();
        Caller {
            batched,
            generics: batched.function.sig.generics.clone(),
            bounds: vec![],
            inputs: batched.receiver.iter().map(without_mut).collect(),
            arguments: vec![],
            hold: looks(batched),
            unify: TokenStream::new(),
            united: vec![quote!(()); rows],
            further: (0..rows).map(|row| own(&format!("further{row}"))).collect(),
        }
    }

    fn type_param(&mut self, name: &Ident) {
        self.generics.params.push(syn::parse_quote!(#name));
    }

    /// Declares the parameters. A tensor parameter accepts any type that has the dims of an example
    /// and, if the parameter has a row, extra dims.
    fn take_arguments(&mut self) {
        let batched = self.batched;
        for (at, Param { pat, ty, tensor }) in batched.params.iter().enumerate() {
            let name = name_of(at, pat);
            let Some((example, row)) = tensor else {
                self.inputs.push(quote!(#name: #ty));
                self.arguments.push(name.to_token_stream());
                continue;
            };
            let span = ty.span();
            let krate = krate(span);
            let (argument, dims) = generics_of(at, &batched.function);
            self.inputs.push(quote!(#name: #argument));
            self.type_param(&argument);
            self.type_param(&dims);
            self.bounds.push(quote_spanned!(span=> #dims: ::typed_dims::__private::types::set::Dims));
            let before = row.map_or_else(|| quote!(()), |row| self.united[row].clone());
            self.bounds.push(quote_spanned!(span=> #argument: #krate::Argument<#example, #before, #dims>));
            match row {
                Some(row) => self.united[*row] = dims.to_token_stream(),
                None => self.bounds.push(quote_spanned!(span=> #dims: #krate::NoFurther)),
            }
            self.hold
                .extend(quote_spanned!(span=> let #name = #krate::unwrap(#krate::HeldArgument::new(#name));));
            self.arguments.push(TokenStream::new());
        }
    }

    /// Declares a variable for the extra dims of each row.
    fn take_rows(&mut self) {
        let krate = krate(Span::call_site());
        for (at, row) in self.batched.rows.iter().enumerate() {
            let (further, dims, name) = (&self.further[at], &self.united[at], &row.name);
            if row.added {
                self.generics
                    .params
                    .push(syn::parse_quote!(#name: ::typed_dims::__private::types::set::Dims));
            }
            self.bounds.push(quote!(#dims: #krate::Closes<#name>));
            self.hold.extend(quote!(let mut #further = #krate::Further::<#dims>::new();));
        }
    }

    /// Unifies the extra dims, and seals each tensor with those of its row.
    fn seal(&mut self) {
        let batched = self.batched;
        let krate = krate(Span::call_site());
        let mut before = vec![quote!(()); batched.rows.len()];
        for (at, Param { pat, tensor, .. }) in batched.params.iter().enumerate() {
            let Some((example, row)) = tensor else { continue };
            let name = name_of(at, pat);
            let (argument, dims) = generics_of(at, &batched.function);
            let Some(row) = *row else {
                self.arguments[at] =
                    quote!(<#argument as #krate::Argument<#example, (), #dims>>::alone(&#name));
                continue;
            };
            let (further, all, rest) = (&self.further[row], &self.united[row], &batched.rows[row].name);
            let so_far = &before[row];
            self.unify.extend(quote!(#krate::unwrap(#further.unify::<#example, #argument>(&#name));));
            self.arguments[at] = quote!(
                <#argument as #krate::Argument<#example, #so_far, #dims>>::seal::<#all, #rest>(&#name, &#further)
            );
            before[row] = dims.to_token_stream();
        }
    }

    /// Unseals the results, each with the extra dims of its row.
    fn open(&mut self) -> Opened {
        let batched = self.batched;
        let parts: Vec<Ident> = (0..batched.results.len()).map(|at| own(&format!("part{at}"))).collect();
        let (mut results, mut opened) = (Vec::new(), Vec::new());
        for (at, (output, part)) in batched.results.iter().zip(&parts).enumerate() {
            let Some((example, Some(row))) = &output.tensor else {
                opened.push(part.to_token_stream());
                results.push(output.ty.to_token_stream());
                continue;
            };
            let name = fresh(&format!("Result{at}"), &batched.function);
            let (dims, rest, span) = (&self.united[*row], &batched.rows[*row].name, output.ty.span());
            let krate = krate(span);
            self.bounds.push(quote_spanned!(span=> #example: #krate::Opens<#dims, #rest, #name>));
            let open = quote!(<#example as #krate::Opens<#dims, #rest, #name>>::open(#part));
            opened.push(quote!(#krate::unwrap(#open)));
            results.push(name.to_token_stream());
            self.type_param(&name);
        }
        let (output, pattern, value) = match (batched.tuple, batched.results.is_empty()) {
            (true, true) => (TokenStream::new(), quote!(()), quote!(())),
            (true, false) => (quote!(-> (#(#results,)*)), quote!((#(#parts,)*)), quote!((#(#opened,)*))),
            (false, _) => (quote!(-> #(#results)*), quote!(#(#parts)*), quote!(#(#opened)*)),
        };
        Opened { output, pattern, value }
    }

    fn written(mut self, inner: &TokenStream, Opened { output, pattern, value }: &Opened) -> TokenStream {
        let batched = self.batched;
        let sig = &batched.function.sig;
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
        let batches = self.further.iter().zip(&batched.rows).map(|(further, row)| {
            let name = &row.name;
            quote!(&#further.closed::<#name>())
        });
        let arguments = this.chain(self.arguments).chain(batches);
        let (vis, attrs) = (&batched.function.vis, &batched.function.attrs);
        let where_clause = self.generics.where_clause.take();
        let predicates = where_clause.iter().flat_map(|clause| clause.predicates.iter());
        let (params, bounds, inputs) = (&self.generics.params, &self.bounds, &self.inputs);
        let (hold, unify) = (&self.hold, &self.unify);
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
}

/// The name of the parameter at a position.
fn name_of(at: usize, pat: &Pat) -> Ident {
    match pat {
        Pat::Ident(pat) => pat.ident.clone(),
        _ => own(&format!("arg{at}")),
    }
}

/// The generic parameters for the argument at a position: its type, and the union of its extra dims
/// and those of the arguments before it in the same row.
fn generics_of(at: usize, function: &Function) -> (Ident, Ident) {
    (fresh(&format!("Argument{at}"), function), fresh(&format!("Dims{at}"), function))
}

/// Statements that refuse parameters whose type is an alias of a tensor type.
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

/// Whether a type may be an alias of a tensor type: a path, possibly borrowed, whose last name
/// begins with an uppercase letter.
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

/// The receiver without `mut`, which only matters inside the inner function.
fn without_mut(receiver: &syn::Receiver) -> TokenStream {
    let mut receiver = receiver.clone();
    if receiver.reference.is_none() {
        receiver.mutability = None;
    }
    receiver.to_token_stream()
}

/// The signature as written, for the documentation.
fn written(batched: &Batched) -> String {
    let sig = batched.function.sig.to_token_stream().to_string();
    let sig =
        sig.replace(" < ", "<").replace(" >", ">").replace(" ,", ",").replace(" :", ":").replace("& ", "&");
    let sig = sig.replace(" (", "(").replace("( ", "(").replace(" )", ")");
    let extra = match batched.rows.iter().any(|row| row.added) {
        true => "each tensor can have extra dims, and the result has those of all",
        false => "tensors with a `Rest` can have extra dims",
    };
    format!("\n\nWritten for one example; {extra}:\n\n```text\n{sig}\n```")
}
