//! The name of the library in the calling crate: `typed_dims`, unless the crate's `Cargo.toml`
//! renames the library (`td = { package = "typed-dims" }`).

use proc_macro_crate::{FoundCrate, crate_name};
use proc_macro2::{Group, Ident, Spacing, TokenStream, TokenTree};
use std::cell::RefCell;
use std::ffi::OsString;
use std::path::Path;

/// The name in expansions, `::typed_dims::..`.
const NAME: &str = "typed_dims";

const PACKAGE: &str = "typed-dims";

/// Rewrites paths that start with `::typed_dims` to use the calling crate's name for the library.
pub fn found(expansion: TokenStream) -> TokenStream {
    thread_local! {
        /// The directory of a package, and its name for the library unless that is `typed_dims`. A
        /// compiler works on one package; an editor may expand macros for several.
        static FOUND: RefCell<Option<(OsString, Option<String>)>> = const { RefCell::new(None) };
    }
    let Some(directory) = std::env::var_os("CARGO_MANIFEST_DIR") else { return expansion };
    FOUND.with_borrow_mut(|found| {
        if found.as_ref().is_none_or(|(of, _)| *of != directory) {
            let name = other_name(&directory);
            *found = Some((directory, name));
        }
        match found {
            Some((_, Some(name))) => renamed(expansion, name),
            _ => expansion,
        }
    })
}

/// The name that a package gives to the library, unless that is `typed_dims`. A package that
/// depends on the library only through another crate keeps `typed_dims`, and must add a dependency
/// for the name to resolve.
fn other_name(directory: &OsString) -> Option<String> {
    let manifest = std::fs::read_to_string(Path::new(directory).join("Cargo.toml")).ok()?;
    // `crate_name` runs cargo to find the workspace's manifest. For most packages, this is not
    // needed.
    if is_key(&manifest) {
        return None;
    }
    match crate_name(PACKAGE) {
        Ok(FoundCrate::Name(name)) if name != NAME => Some(name),
        _ => None,
    }
}

/// Whether `typed-dims` is a key in a manifest, as it is if the dependency is not renamed.
fn is_key(manifest: &str) -> bool {
    manifest.lines().any(|line| {
        let line = line.trim_start();
        let key = match line.strip_prefix('[') {
            Some(table) => {
                table.trim_end().trim_end_matches(']').rsplit("dependencies.").next().unwrap_or(table)
            }
            None => line.split(['=', '.']).next().unwrap_or(line),
        };
        key.trim().trim_matches(['"', '\'']) == PACKAGE
    })
}

/// `::name::..` instead of `::typed_dims::..`.
fn renamed(tokens: TokenStream, name: &str) -> TokenStream {
    // The number of colons before a token, whether a path segment precedes these colons, and
    // whether the token is the name of a lifetime.
    let (mut colons, mut in_path, mut tick) = (0, false, false);
    let rename = |token: TokenTree| match token {
        TokenTree::Group(group) => {
            (colons, in_path) = (0, false);
            let mut new = Group::new(group.delimiter(), renamed(group.stream(), name));
            new.set_span(group.span());
            TokenTree::Group(new)
        }
        TokenTree::Ident(ident) => {
            let from_root = colons == 2 && !in_path;
            // Of all keywords, a path can continue only after these four.
            let text = ident.to_string();
            let segment = !std::mem::take(&mut tick) && syn::parse_str::<Ident>(&text).is_ok();
            (colons, in_path) = (0, segment || ["crate", "self", "super", "Self"].contains(&&*text));
            TokenTree::Ident(if from_root && text == NAME { Ident::new(name, ident.span()) } else { ident })
        }
        TokenTree::Punct(punct) => {
            match (punct.as_char(), punct.spacing()) {
                (':', _) if colons == 1 => colons = 2,
                (':', Spacing::Joint) => colons = 1,
                // A single colon ends a path: in `a: ::b`, `::b` starts at the root. After `>`, a
                // path counts as one from the root, as in `impl<A> ::b`. It cannot be the rest of
                // `<A>::b`, because no associated item has the library's name.
                _ => (colons, in_path) = (0, false),
            }
            tick = punct.as_char() == '\'';
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
    use super::{is_key, renamed};
    use quote::quote;

    #[test]
    fn a_dependency_by_its_own_name_is_seen_at_once() {
        for plain in [
            "[dependencies]\ntyped-dims = \"1\"",
            "[dependencies]\n  typed-dims.workspace = true",
            "[target.'cfg(unix)'.dependencies.typed-dims]\nversion = \"1\"",
            "[dependencies.typed-dims] \n",
            "[dependencies]\n\"typed-dims\" = \"1\"",
        ] {
            assert!(is_key(plain), "{plain}");
        }
        for other in [
            "[dependencies]\ntd = { package = \"typed-dims\", version = \"1\" }",
            "[dependencies.td]\npackage = \"typed-dims\"",
            "[dependencies]\ntd.workspace = true",
            "[dependencies]\ntyped-dims-core = \"1\" # typed-dims",
        ] {
            assert!(!is_key(other), "{other}");
        }
    }

    #[test]
    fn paths_from_the_root_are_renamed_wherever_they_stand() {
        let code = quote! {
            match ::typed_dims::f(&[::typed_dims::Dim], crate::typed_dims::g(), typed_dims) {
                x if x => <::typed_dims::Y as ::typed_dims::Z>::g(|x: &'a ::typed_dims::V| -> ::typed_dims::W { x }),
            }
        };
        let expected = quote! {
            match ::td::f(&[::td::Dim], crate::typed_dims::g(), typed_dims) {
                x if x => <::td::Y as ::td::Z>::g(|x: &'a ::td::V| -> ::td::W { x }),
            }
        };
        assert_eq!(renamed(code, "td").to_string(), expected.to_string());
    }
}
