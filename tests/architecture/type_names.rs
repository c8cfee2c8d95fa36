//! Each type has a unique name.

use crate::source::{StandIns, files, is_stand_in, module_of};
use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use syn::visit::{self, Visit};

/// Groups of crates. A group must not have two types with the same name, so that a name stands for
/// one concept. The macros and the ONNX models have their own notions of tensors and axes.
const NAMESPACES: [&[&str]; 5] =
    [&["dims-kernels", "dims-core", "."], &["dims-macros"], &["dims-twins"], &["dims-onnx"], &["dims-xla"]];

#[test]
fn types_have_names_of_their_own() {
    let mut wrong = String::new();
    for crates in NAMESPACES {
        let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for name in crates {
            let files: Vec<_> = files(name)
                .into_iter()
                .map(|(file, text)| (file, syn::parse_file(&text).expect("the file is valid Rust")))
                .collect();
            let mut stand_ins = BTreeSet::new();
            for (file, parsed) in &files {
                StandIns { module: module_of(file), into: &mut stand_ins }.visit_file(parsed);
            }
            for (file, parsed) in &files {
                let module = module_of(file);
                if (1..=module.len()).any(|len| stand_ins.contains(&module[..len])) {
                    continue;
                }
                let mut types = TypeNames::default();
                types.visit_file(parsed);
                for declared in types.0 {
                    places.entry(declared).or_default().push(format!("{name}/src/{file}"));
                }
            }
        }
        for (name, files) in places {
            if files.len() > 1 {
                writeln!(wrong, "`{name}` is a type of {}", files.join(" and of ")).unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "a name tells which concept a type is: rename or join these types\n{wrong}");
}

/// The types and traits that a file declares, including those in rules and calls of macros.
/// Excludes associated types, types inside functions and constants, and [stand-ins](is_stand_in).
#[derive(Default)]
struct TypeNames(Vec<String>);

impl TypeNames {
    fn note(&mut self, name: &syn::Ident, attributes: &[syn::Attribute]) {
        if !is_stand_in(attributes) {
            self.0.push(name.to_string());
        }
    }

    /// Aliases in tokens do not count: they may be associated types.
    fn note_tokens(&mut self, tokens: TokenStream) {
        let mut declares = false;
        for token in tokens {
            match token {
                TokenTree::Ident(name) if declares => self.0.push(name.to_string()),
                TokenTree::Group(group) => self.note_tokens(group.stream()),
                TokenTree::Ident(word) => {
                    declares = ["struct", "enum", "union", "trait"].iter().any(|keyword| word == keyword);
                    continue;
                }
                _ => {}
            }
            declares = false;
        }
    }
}

impl<'ast> Visit<'ast> for TypeNames {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_stand_in(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, _: &'ast syn::ItemFn) {}

    fn visit_item_impl(&mut self, _: &'ast syn::ItemImpl) {}

    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.note(&item.ident, &item.attrs);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.note(&item.ident, &item.attrs);
    }

    fn visit_item_union(&mut self, item: &'ast syn::ItemUnion) {
        self.note(&item.ident, &item.attrs);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.note(&item.ident, &item.attrs);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.note(&item.ident, &item.attrs);
    }

    fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
        self.note_tokens(item.mac.tokens.clone());
    }
}
