//! The expansion of `dims!`.

use super::ast::{Declared, DimsInput, Local, Several, cfgs};
use crate::key::Key;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Expr, ExprLit, Lit};

/// The dims as types and values.
pub fn expand(input: &DimsInput) -> TokenStream {
    let krate = quote!(::typed_dims::__private);
    match input {
        DimsInput::Declared(dims) => {
            dims.iter().enumerate().map(|(position, dim)| declared(dim, position, &krate)).collect()
        }
        DimsInput::Local(dims, lists) => {
            // Outside of functions, rustc's error quotes the first token that begins no item, so
            // the hint comes first.
            let hint = "local dims belong in a function: outside, declare `dims! { struct I; struct J; }`";
            let hint = (!dims.is_empty()).then(|| quote!(#hint;));
            let dims = dims.iter().enumerate().map(|(position, dim)| local(dim, position, &krate));
            hint.into_iter().chain(dims).chain(lists.iter().map(list)).collect()
        }
    }
}

/// A unit struct that implements `Brand`. It has the spans of the user's tokens, so that rustc
/// points at the declaration.
fn declared(dim: &Declared, position: usize, krate: &TokenStream) -> TokenStream {
    let Declared { attrs, vis, token, name, role, size, end } = dim;
    let (cfgs, role) = (cfgs(attrs), role_or_none(role.as_ref(), krate));
    let key = Key::of_struct(name, position);
    let (digits, id, text) = (key.digits(krate), key.id(), name.to_string());
    let (size_type, num, constant) = match size {
        Some(size) => {
            let size = without_braces(size);
            let num = number(name, size, krate);
            let constant = quote! {
                #(#cfgs)*
                impl #name {
                    /// The static size.
                    #vis const SIZE: ::core::primitive::usize = #size;
                }
            };
            (quote!(#krate::Static<{ #size }>), num, constant)
        }
        None => (quote!(#krate::Dyn), quote!(#krate::Dyn), TokenStream::new()),
    };
    quote! {
        #(#attrs)*
        #[derive(::core::clone::Clone, ::core::marker::Copy, ::core::fmt::Debug, ::core::default::Default)]
        #vis #token #name #end
        #constant
        #(#cfgs)*
        impl #krate::SetElement for #name {
            type Key = #digits;
            type Axes = #krate::OneAxis;
            const KEYS: #krate::Keys = #krate::keys_of::<#size_type>(#id, #text, #krate::role_names::<#role>());
        }
        #(#cfgs)*
        impl #krate::Brand for #name {
            type Size = #size_type;
            type Num = #num;
            type Role = #role;
            type Anchor = ();
        }
        #(#cfgs)*
        impl #krate::Declared for #name {}
        #(#cfgs)*
        #krate::declared_dim_operators!(#name);
    }
}

fn role_or_none(role: Option<&syn::Path>, krate: &TokenStream) -> TokenStream {
    role.map_or_else(|| quote!(#krate::Undenoted), |role| quote!(#role))
}

/// Removes braces around a single expression, because rustc warns about them.
fn without_braces(size: &Expr) -> &Expr {
    match size {
        Expr::Block(braced) if braced.label.is_none() && braced.attrs.is_empty() => {
            match &braced.block.stmts[..] {
                [syn::Stmt::Expr(inner, None)] => inner,
                _ => size,
            }
        }
        _ => size,
    }
}

/// The static size of the dim `name` as a typenum type. A literal is written out bit by bit, because
/// `typenum::U` supports only some numbers, among them all below 1024. Other expressions are computed
/// from their digits to the base 1024.
fn number(name: &Ident, size: &Expr, krate: &TokenStream) -> TokenStream {
    if let Expr::Paren(inner) = size {
        return number(name, &inner.expr, krate);
    }
    if let Expr::Lit(ExprLit { lit: Lit::Int(literal), .. }) = size
        && let Ok(value) = literal.base10_parse::<u64>()
    {
        let mut num = quote!(#krate::typenum::UTerm);
        for bit in (0..u64::BITS - value.leading_zeros()).rev() {
            let digit = if value >> bit & 1 == 1 { quote!(B1) } else { quote!(B0) };
            num = quote!(#krate::typenum::UInt<#num, #krate::typenum::#digit>);
        }
        return num;
    }
    (0..u64::BITS).step_by(10).rev().fold(quote!(#krate::typenum::UTerm), |higher, shift| {
        let digit = quote! {
            #krate::typenum::U<{
                (#name::SIZE as ::core::primitive::u64 >> #shift) as ::core::primitive::usize % 1024
            }>
        };
        quote!(#krate::typenum::Sum<#krate::typenum::Prod<#higher, #krate::typenum::U1024>, #digit>)
    })
}

/// A type with an invariant lifetime, and a reference to the dim's only value.
///
/// The value and the reference both have the dim's name (the reference shadows the value), so that
/// rustc's messages about a dim that leaves its scope mention the dim. To rustc, a variable with
/// the macro's hygiene is a nameless temporary.
fn local(dim: &Local, position: usize, krate: &TokenStream) -> TokenStream {
    let name = &dim.name;
    let role = role_or_none(dim.role.as_ref(), krate);
    let key = Key::of_local(name, position);
    let (digits, id, text) = (key.digits(krate), key.id(), name.to_string());
    let span = Span::mixed_site().located_at(name.span());
    let (tie, size) = (Ident::new("_tie", span), Ident::new("size", span));
    // If two types have the same name, rustc prints paths. The path of a dim contains its line.
    let line = Ident::new(&format!("line_{}", name.span().unwrap().line()), span);
    let anchor = quote_spanned!(span=> &#name);
    // Evaluate the size first: it may mention a variable with the dim's name.
    let (given, mint) = match &dim.size {
        Some(value) => (
            quote_spanned!(span=> let #size: ::core::primitive::usize = #value;),
            quote_spanned!(span=> minted_with(::typed_dims::__private::anchor(), #size)),
        ),
        None => (TokenStream::new(), quote!(minted(#krate::anchor()))),
    };
    quote! {
        #given
        #[allow(non_snake_case)]
        let #name = {
            mod #line {
                #[allow(non_camel_case_types)]
                pub(super) struct #name<'id> {
                    _id: ::core::marker::PhantomData<::typed_dims::__private::Id<'id>>,
                }
            }
            impl<'id> #krate::SetElement for #line::#name<'id> {
                type Key = #digits;
                type Axes = #krate::OneAxis;
                const KEYS: #krate::Keys = #krate::keys_of::<#krate::Dyn>(#id, #text, #krate::role_names::<#role>());
            }
            impl<'id> #krate::Brand for #line::#name<'id> {
                type Size = #krate::Dyn;
                type Num = #krate::Dyn;
                type Role = #role;
                type Anchor = #krate::Id<'id>;
            }
            #krate::Dim::<#line::#name<'_>>::#mint
        };
        #[allow(unused_variables, non_snake_case)]
        let #name = #anchor;
        let #tie = #krate::tie(#name);
    }
}

/// The dims of a list as one value.
fn list(list: &Several) -> TokenStream {
    let Several { name, dims } = list;
    quote! {
        #[allow(unused_variables, non_snake_case)]
        let #name = ::typed_dims::__private::types::dim::Each((#(#dims,)*));
    }
}
