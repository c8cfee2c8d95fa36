//! Checks a batched function, and collects its parameters and results.

use super::ast::Function;
use super::names::{BodyNames, mentions};
use super::tensor::{is_tensor, mentions_tensor, tensor};
use crate::pattern::errors::Errors;
use proc_macro2::{Ident, Span};
use quote::ToTokens;
use std::collections::{HashMap, HashSet};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{
    Block, FnArg, GenericArgument, GenericParam, Item, Pat, PatIdent, PathArguments, Receiver, ReturnType,
    Signature, Stmt, Type, TypePath, TypeReference,
};

/// A function that can be batched.
pub struct Batched {
    pub function: Function,
    pub receiver: Option<Receiver>,
    pub params: Vec<Param>,
    /// The results: a single one, or the parts of a tuple.
    pub results: Vec<Output>,
    /// Whether the results are the parts of a tuple.
    pub tuple: bool,
    /// The rows of extra dims: one that the macro adds, or those that the signature names.
    pub rows: Vec<Row>,
}

/// A parameter other than `self`.
pub struct Param {
    pub pat: Pat,
    pub ty: Type,
    /// If it is a tensor: the type for one example, and the number of its row if it can have extra
    /// dims.
    pub tensor: Option<(Type, Option<usize>)>,
}

/// A result.
pub struct Output {
    pub ty: Type,
    /// If there are tensors in it: the type for one example, and the number of their row if they
    /// can have extra dims.
    pub tensor: Option<(Type, Option<usize>)>,
}

/// A row of extra dims: `B` of `Rest<B>`, or the one that the macro adds.
pub struct Row {
    pub name: Ident,
    /// Whether the macro adds it to the generics.
    pub added: bool,
}

/// Checks a function. It can be batched if `errors` stays empty.
pub fn check(function: Function, errors: &mut Errors) -> Option<Batched> {
    let sig = &function.sig;
    if let Some(token) = &sig.asyncness {
        errors
            .span(token.span, "an `async` function cannot be batched: call a batched function in it instead");
    }
    if let Some(token) = &sig.constness {
        errors.span(token.span, "a `const` function cannot be batched");
    }
    if let Some(token) = &sig.unsafety {
        errors.span(token.span, "an `unsafe` function cannot be batched");
    }
    if let Some(abi) = &sig.abi {
        errors.span(abi.span(), "an `extern` function cannot be batched");
    }
    let named = row_names(sig);
    let explicit = !named.is_empty();
    let rows: Vec<Row> = if explicit {
        named.iter().map(|name| Row { name: name.clone(), added: false }).collect()
    } else {
        vec![Row { name: fresh("Further", &function), added: true }]
    };
    let (mut receiver, mut params) = (None, Vec::new());
    for input in &sig.inputs {
        match input {
            FnArg::Receiver(own) => receiver = Some(own.clone()),
            FnArg::Typed(arg) => {
                params.push(param(&arg.pat, &arg.ty, &named, errors));
            }
        }
    }
    let no_tensor = errors.is_empty() && !params.iter().any(|param| param.tensor.is_some());
    if no_tensor
        && let Some((array, tensor)) = params.iter().find_map(|param| Some((param, as_tensor(&param.ty)?)))
    {
        let (written, pat) = (shown(&array.ty), shown(&array.pat));
        let what = format!(
            "a batched function takes tensors, but `{written}` is an array, which has no dims: write `{pat}: {tensor}`"
        );
        errors.span(array.ty.span(), what);
    } else if no_tensor {
        let what = "a batched function needs a parameter whose type is written as a tensor: `x: Tensor<f32, (Seq,)>`, or `x: &Tensor<..>`";
        errors.span(sig.ident.span(), what);
    }
    if let Some(row) = rows.iter().enumerate().find(|(at, _)| explicit && !in_params(&params, *at)) {
        let what = format!("no parameter has `Rest<{0}>`, so the dims of `{0}` are unknown", row.1.name);
        errors.span(row.1.name.span(), what);
    }
    let (results, tuple) = match &sig.output {
        ReturnType::Default => (Vec::new(), true),
        ReturnType::Type(_, ty) => match &**ty {
            Type::Tuple(tuple) => (tuple.elems.iter().map(|ty| output(ty, &named, errors)).collect(), true),
            ty => (vec![output(ty, &named, errors)], false),
        },
    };
    if let (true, Some(block)) = (errors.is_empty(), &function.block) {
        dims_without_a_tuple(sig, block, errors);
    }
    if errors.is_empty()
        && let [Output { ty, tensor: None }] = &results[..]
        && let Some(tensor) = as_tensor(ty)
    {
        let what = format!(
            "a batched function returns tensors, but `{}` is an array, which cannot have extra dims: write `{tensor}`",
            shown(ty)
        );
        errors.span(ty.span(), what);
    }
    if let (true, Some(block)) = (errors.is_empty(), &function.block) {
        let result = if let ([Output { ty, .. }], false) = (&results[..], tuple) { Some(ty) } else { None };
        check_body(block, result, &params, errors);
    }
    if !errors.is_empty() {
        return None;
    }
    Some(Batched { receiver, params, results, tuple, rows, function })
}

/// Refuses `Tensor<f32, Seq>`, where a tuple of dims is missing, if the body uses a value `Seq`
/// that the function does not declare. Then `Seq` is a dim: an alias of a tuple or a generic
/// parameter is not a value, unless a constant has the same name.
fn dims_without_a_tuple(sig: &Signature, block: &Block, errors: &mut Errors) {
    #[derive(Default)]
    struct Alone<'a>(Vec<&'a Ident>);
    impl<'a> Visit<'a> for Alone<'a> {
        fn visit_type_path(&mut self, ty: &'a TypePath) {
            if let Some(segment) = ty.path.segments.last()
                && is_tensor(segment)
                && let PathArguments::AngleBracketed(arguments) = &segment.arguments
                && let Some(GenericArgument::Type(Type::Path(dims))) = arguments.args.iter().nth(1)
            {
                self.0.extend(dims.path.get_ident());
            }
            visit::visit_type_path(self, ty);
        }
    }
    struct Values<'a>(HashSet<&'a Ident>);
    impl<'a> Visit<'a> for Values<'a> {
        fn visit_expr_path(&mut self, path: &'a syn::ExprPath) {
            self.0.extend(path.path.get_ident());
        }
    }
    let mut alone = Alone::default();
    alone.visit_signature(sig);
    if alone.0.is_empty() {
        return;
    }
    let mut values = Values(HashSet::new());
    values.visit_block(block);
    let mut inputs = HashSet::new();
    for input in &sig.inputs {
        if let FnArg::Typed(arg) = input {
            inputs.extend(BodyNames::in_pattern(&arg.pat));
        }
    }
    let (names, mut known) = (BodyNames::of(block), HashSet::new());
    let declared = |name: &Ident| {
        let is_item = |stmt: &Stmt| match stmt {
            Stmt::Item(Item::Const(item)) => item.ident == *name,
            Stmt::Item(Item::Static(item)) => item.ident == *name,
            _ => false,
        };
        inputs.contains(&name.to_string())
            || names.count(name) > 0
            || block.stmts.iter().any(is_item)
            || sig.generics.type_params().any(|param| param.ident == *name)
    };
    for dim in alone.0 {
        if values.0.contains(dim) && !declared(dim) && known.insert(dim) {
            let what = format!(
                "`{dim}` is used as a value, so it seems to be a dim, and a tuple of dims is expected here: write `({dim},)`"
            );
            errors.span(dim.span(), what);
        }
    }
}

/// Refuses operations of the body that are impossible for tensors with extra dims.
fn check_body(block: &Block, result: Option<&Type>, params: &[Param], errors: &mut Errors) {
    let (mut tensors, mut views, mut others) = (HashSet::new(), HashMap::new(), HashSet::new());
    for param in params {
        match (&param.pat, &param.tensor) {
            (Pat::Ident(pat), Some((_, Some(_)))) => {
                tensors.insert(pat.ident.to_string());
                if pat.mutability.is_none() {
                    let owned = match &param.ty {
                        Type::Reference(reference) => &reference.elem,
                        ty => ty,
                    };
                    views.insert(pat.ident.to_string(), shown(owned));
                }
            }
            (pat, _) => others.extend(BodyNames::in_pattern(pat)),
        }
    }
    let names = BodyNames::of(block);
    super::choices::check(block, result, &names, &tensors, &others, errors);
    super::changes::check(block, &names, &views, errors);
}

/// The tensor type to suggest for an ndarray type, which is recognized by its name. The suggestion
/// contains the rank only for names such as `Array2`.
fn as_tensor(ty: &Type) -> Option<String> {
    match ty {
        Type::Reference(reference) => as_tensor(&reference.elem).map(|tensor| format!("&{tensor}")),
        Type::Group(group) => as_tensor(&group.elem),
        Type::Paren(paren) => as_tensor(&paren.elem),
        Type::Path(path) => {
            let last = path.path.segments.last()?;
            let name = last.ident.to_string();
            let rank = name.chars().last().and_then(|last| last.to_digit(10));
            let kind = name.trim_end_matches(|last: char| last.is_ascii_digit() || last == 'D');
            if !["Array", "ArrayView", "ArrayViewMut", "ArcArray", "ArrayRef", "CowArray", "ArrayBase"]
                .contains(&kind)
            {
                return None;
            }
            let elem = match &last.arguments {
                PathArguments::AngleBracketed(arguments) => {
                    arguments.args.iter().find_map(|argument| match argument {
                        GenericArgument::Type(ty) if kind != "ArrayBase" => Some(shown(ty)),
                        _ => None,
                    })
                }
                _ => None,
            };
            let (elem, rank) = (elem.unwrap_or("f32".to_owned()), rank.filter(|&rank| rank > 0));
            Some(
                rank.map_or_else(
                    || format!("Tensor<{elem}, ()>"),
                    |rank| format!("Tensor<{elem}, (), U{rank}>"),
                ),
            )
        }
        _ => None,
    }
}

/// A type or a name, formatted as usual.
fn shown(tokens: &impl ToTokens) -> String {
    let text = tokens.to_token_stream().to_string();
    text.replace(" < ", "<").replace(" >", ">").replace("& ", "&").replace(" ,", ",").replace(" :: ", "::")
}

/// A name for a new generic parameter. The function does not mention it.
pub fn fresh(name: &str, function: &Function) -> Ident {
    if mentions(function.to_token_stream(), name) {
        return fresh(&format!("{name}_"), function);
    }
    Ident::new(name, Span::call_site())
}

fn in_params(params: &[Param], row: usize) -> bool {
    params.iter().any(|param| matches!(param.tensor, Some((_, Some(at))) if at == row))
}

fn param(pat: &Pat, ty: &Type, named: &[Ident], errors: &mut Errors) -> Param {
    let tensor = match ty {
        Type::Reference(TypeReference { mutability: Some(token), elem, .. }) if mentions_tensor(elem) => {
            let what = "a batched function cannot change its arguments: return the new value instead";
            errors.span(token.span, what);
            None
        }
        ty => match tensor(ty) {
            Some(path) => Some(one_example(path, named)),
            None => {
                if mentions_tensor(ty) {
                    let what = "a batched function takes each tensor as a separate parameter";
                    errors.span(ty.span(), what);
                }
                None
            }
        },
    };
    if tensor.is_some()
        && !matches!(pat, Pat::Ident(PatIdent { by_ref: None, subpat: None, .. }) | Pat::Wild(_))
    {
        errors
            .span(pat.span(), "a tensor parameter of a batched function must be a name, not another pattern");
    }
    Param { pat: pat.clone(), ty: ty.clone(), tensor }
}

fn output(ty: &Type, named: &[Ident], errors: &mut Errors) -> Output {
    if let Type::ImplTrait(_) = ty {
        errors.span(
            ty.span(),
            "a batched function cannot return `impl ..`: write the type, `Tensor<f32, (Seq,)>`",
        );
    }
    if let Type::Reference(_) = ty
        && mentions_tensor(ty)
    {
        errors.span(ty.span(), "a batched function returns an owned tensor, not a reference to one");
    }
    let mut row = if named.is_empty() { Some(0) } else { None };
    let example = replaced(ty, named, &mut row);
    let tensor = example.map(|ty| (ty, row));
    Output { ty: ty.clone(), tensor }
}

/// A result type with each tensor replaced by its type for one example, and other types wrapped in
/// `Plain`. `None` if it contains no tensor.
fn replaced(ty: &Type, named: &[Ident], row: &mut Option<usize>) -> Option<Type> {
    if !mentions_tensor(ty) {
        return None;
    }
    let part = |ty: &Type, row: &mut Option<usize>| -> Type {
        replaced(ty, named, row)
            .unwrap_or_else(|| syn::parse_quote!(::typed_dims::__private::batch::Plain<#ty>))
    };
    match ty {
        Type::Tuple(tuple) => {
            let mut tuple = tuple.clone();
            tuple.elems.iter_mut().for_each(|ty| *ty = part(ty, row));
            Some(Type::Tuple(tuple))
        }
        Type::Array(array) => {
            let mut array = array.clone();
            *array.elem = part(&array.elem, row);
            Some(Type::Array(array))
        }
        Type::Path(path) => {
            if let Some(path) = tensor(ty) {
                let (ty, own) = one_example(path, named);
                if own.is_some() {
                    *row = own;
                }
                return Some(ty);
            }
            let mut path = path.clone();
            // In `Result<Tensor<..>, E>` only the first argument is a result.
            if let Some(GenericArgument::Type(inner)) = arguments(&mut path)?.first_mut() {
                *inner = part(inner, row);
            }
            Some(Type::Path(path))
        }
        other => Some(other.clone()),
    }
}

fn arguments(
    path: &mut TypePath,
) -> Option<&mut syn::punctuated::Punctuated<GenericArgument, syn::Token![,]>> {
    match &mut path.path.segments.last_mut()?.arguments {
        PathArguments::AngleBracketed(arguments) => Some(&mut arguments.args),
        _ => None,
    }
}

/// The tensor type without its `Rest`, and the number of its row.
fn one_example(path: &TypePath, named: &[Ident]) -> (Type, Option<usize>) {
    let mut path = path.clone();
    let mut row = if named.is_empty() { Some(0) } else { None };
    if let Some(arguments) = arguments(&mut path)
        && let Some(GenericArgument::Type(Type::Tuple(dims))) = arguments.iter_mut().nth(1)
    {
        let all = std::mem::take(&mut dims.elems);
        for dim in all {
            match rest(&dim).and_then(|name| named.iter().position(|own| own == name)) {
                Some(at) => row = Some(at),
                None => dims.elems.push(dim),
            }
        }
        if !dims.elems.is_empty() && !dims.elems.trailing_punct() {
            dims.elems.push_punct(syn::token::Comma::default());
        }
    }
    (Type::Path(path), row)
}

/// `B` of `Rest<B>`.
fn rest(ty: &Type) -> Option<&Ident> {
    let Type::Path(path) = ty else { return None };
    let segment = path.path.segments.last()?;
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else { return None };
    match arguments.args.first() {
        Some(GenericArgument::Type(Type::Path(inner))) if segment.ident == "Rest" => inner.path.get_ident(),
        _ => None,
    }
}

/// The generic parameters that occur in a `Rest<..>` of the signature.
fn row_names(sig: &Signature) -> Vec<Ident> {
    struct Finder(Vec<Ident>);
    impl syn::visit::Visit<'_> for Finder {
        fn visit_type(&mut self, ty: &Type) {
            self.0.extend(rest(ty).cloned());
            syn::visit::visit_type(self, ty);
        }
    }
    let mut finder = Finder(Vec::new());
    syn::visit::Visit::visit_signature(&mut finder, sig);
    let own = |param: &GenericParam| match param {
        GenericParam::Type(param) => finder.0.contains(&param.ident).then(|| param.ident.clone()),
        _ => None,
    };
    sig.generics.params.iter().filter_map(own).collect()
}
