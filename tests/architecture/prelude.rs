//! The number of names in the prelude.

use crate::source::used;
use std::collections::BTreeSet;

/// The most names that `use typed_dims::prelude::*;` may bring, without those of optional features.
/// Traits imported `as _` do not count, and a function and a macro with the same name count once.
const NAMES_IN_THE_PRELUDE: usize = 96;

#[test]
fn the_prelude_is_short() {
    let file = syn::parse_file(include_str!("../../src/lib.rs")).expect("Rust");
    let prelude = file.items.iter().find_map(|item| match item {
        syn::Item::Mod(module) if module.ident == "prelude" => module.content.as_ref(),
        _ => None,
    });
    let mut names = BTreeSet::new();
    for item in &prelude.expect("there is a prelude").1 {
        let syn::Item::Use(item) = item else { panic!("the prelude has nothing but `use` lines") };
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

/// Whether the item needs a feature other than `std`.
fn is_optional(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(cfg) if cfg.path.is_ident("cfg") => {
            cfg.tokens.to_string().replace(' ', "") != r#"feature="std""#
        }
        _ => false,
    })
}
