//! What the calling crate calls the library: `typed_dims`, unless its `Cargo.toml` says otherwise (`td = { package = "typed-dims" }`).

use proc_macro_crate::{FoundCrate, crate_name};
use proc_macro2::{Group, Ident, Spacing, TokenStream, TokenTree};

/// The name that expansions are written with, `::typed_dims::..`.
const NAME: &str = "typed_dims";

/// An expansion, with the paths into the library as the calling crate has to write them.
pub fn found(expansion: TokenStream) -> TokenStream {
    match crate_name("typed-dims") {
        Ok(FoundCrate::Name(name)) if name != NAME => renamed(expansion, &name),
        // Within the library's own package, and where there is no manifest or it does not name the library, because another crate
        // hands it on: then `extern crate .. as typed_dims;` is the way to say what it is.
        _ => expansion,
    }
}

/// `::name::..` instead of `::typed_dims::..`.
fn renamed(tokens: TokenStream, name: &str) -> TokenStream {
    // How much of `::` stands before a token, and whether a path goes on there that began before.
    let (mut colons, mut in_path, mut dash) = (0, false, false);
    let rename = |token: TokenTree| match token {
        TokenTree::Group(group) => {
            (colons, in_path) = (0, false);
            let mut new = Group::new(group.delimiter(), renamed(group.stream(), name));
            new.set_span(group.span());
            TokenTree::Group(new)
        }
        TokenTree::Ident(ident) => {
            let from_root = colons == 2 && !in_path;
            // (A keyword is no part of a path that `::` could follow, but for these.)
            let text = ident.to_string();
            let segment = syn::parse_str::<Ident>(&text).is_ok();
            (colons, in_path) = (0, segment || ["crate", "self", "super", "Self"].contains(&&*text));
            TokenTree::Ident(if from_root && text == NAME { Ident::new(name, ident.span()) } else { ident })
        }
        TokenTree::Punct(punct) => {
            match (punct.as_char(), punct.spacing()) {
                (':', Spacing::Joint) => colons = 1,
                (':', Spacing::Alone) if colons == 1 => colons = 2,
                // `<A as B>::c` goes on, `-> ::c` begins.
                (other, _) => (colons, in_path) = (0, other == '>' && !dash),
            }
            dash = punct.as_char() == '-';
            TokenTree::Punct(punct)
        }
        TokenTree::Literal(literal) => {
            (colons, in_path) = (0, false);
            TokenTree::Literal(literal)
        }
    };
    tokens.into_iter().map(rename).collect()
}

#[cfg(test)]
mod tests {
    use super::renamed;
    use quote::quote;

    #[test]
    fn paths_from_the_root_are_renamed_wherever_they_stand() {
        let code = quote! {
            match ::typed_dims::f(&[::typed_dims::Dim], crate::typed_dims::g(), typed_dims) {
                x if x => <::typed_dims::Y as ::typed_dims::Z>::typed_dims(|| -> ::typed_dims::W { x }),
            }
        };
        let expected = quote! {
            match ::td::f(&[::td::Dim], crate::typed_dims::g(), typed_dims) {
                x if x => <::td::Y as ::td::Z>::typed_dims(|| -> ::td::W { x }),
            }
        };
        assert_eq!(renamed(code, "td").to_string(), expected.to_string());
    }
}
