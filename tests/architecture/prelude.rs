//! The number of names in the prelude, and of modules at the root.

use crate::source::used;
use std::collections::BTreeSet;

/// The maximum number of names that `use typed_dims::prelude::*;` may bring into scope, without
/// those of optional features. Traits imported `as _` do not count, and a function and a macro with
/// the same name count once.
const NAMES_IN_THE_PRELUDE: usize = 96;

/// The maximum number of modules that the root may show, not counting those of optional features.
const MODULES_AT_THE_ROOT: usize = 15;

#[test]
fn the_prelude_is_short() {
    let file = syn::parse_file(include_str!("../../src/lib.rs")).expect("the file is valid Rust");
    let prelude = file.items.iter().find_map(|item| match item {
        syn::Item::Mod(module) if module.ident == "prelude" => module.content.as_ref(),
        _ => None,
    });
    let mut names = BTreeSet::new();
    for item in &prelude.expect("there is a prelude").1 {
        let syn::Item::Use(item) = item else { panic!("an item of the prelude is not a `use`") };
        if !is_optional(&item.attrs) {
            names.extend(used(&item.tree).into_iter().map(|used| used.name).filter(|name| name != "_"));
        }
    }
    assert!(!names.contains("*"), "the names that a `*` stands for are not counted");
    assert!(
        names.len() <= NAMES_IN_THE_PRELUDE,
        "the prelude has {} names, more than {NAMES_IN_THE_PRELUDE}: {names:?}",
        names.len()
    );
}

#[test]
fn the_root_is_short() {
    let file = syn::parse_file(include_str!("../../src/lib.rs")).expect("the file is valid Rust");
    let mut modules = BTreeSet::new();
    for item in &file.items {
        let (attributes, names) = match item {
            syn::Item::Mod(module) if matches!(module.vis, syn::Visibility::Public(_)) => {
                (&module.attrs, vec![module.ident.to_string()])
            }
            syn::Item::Use(item) if matches!(item.vis, syn::Visibility::Public(_)) => {
                (&item.attrs, used(&item.tree).into_iter().map(|used| used.name).collect())
            }
            _ => continue,
        };
        assert!(!names.contains(&"*".to_owned()), "the root lists what it exports");
        let is_shown = !is_optional(attributes) && !attributes.iter().any(is_doc_hidden);
        let comes_from_macros = |item: &syn::Item| {
            let syn::Item::Use(item) = item else { return false };
            matches!(&item.tree, syn::UseTree::Path(path) if path.ident == "typed_dims_macros")
        };
        if is_shown && !comes_from_macros(item) {
            modules.extend(names.into_iter().filter(|name| !name.starts_with(char::is_uppercase)));
        }
    }
    modules.remove("ndarray"); // a crate
    assert!(
        modules.len() <= MODULES_AT_THE_ROOT,
        "the root has {} modules, more than {MODULES_AT_THE_ROOT}: {modules:?}",
        modules.len()
    );
}

fn is_doc_hidden(attribute: &syn::Attribute) -> bool {
    matches!(&attribute.meta, syn::Meta::List(list) if list.path.is_ident("doc") && list.tokens.to_string() == "hidden")
}

/// Whether an item with these attributes needs a feature other than `std`.
fn is_optional(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(cfg) if cfg.path.is_ident("cfg") => {
            cfg.tokens.to_string().replace(' ', "") != r#"feature="std""#
        }
        _ => false,
    })
}
