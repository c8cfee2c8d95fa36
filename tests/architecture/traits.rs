//! The public traits that are neither sealed nor `unsafe`.

use crate::source::files;
use std::collections::BTreeSet;
use std::fmt::Write;
use syn::visit::Visit;

/// The public traits of `dims-core` that are neither sealed nor `unsafe`. Code may only rely on
/// properties of their impls that it checks: see `docs/dev/trust.md`.
const OPEN_TRAITS: [&[&str]; 3] = [
    // Traits that users and macros implement.
    &[
        "PartFamily",
        "ArrayOp",
        "AsPackedShape",
        "Brand",
        "Declared",
        "DeclaredRole",
        "DerivedLoad",
        "DerivedParameters",
        "Lend",
        "Load",
        "Optimizer",
        "Hand",
        "Parameters",
        "RecordInputs",
        "Referring",
        "Role",
        "SetElement",
        "Stored",
        "Visitor",
        "Walk",
    ],
    // Methods of types that implement `Source`, which is `unsafe`, and of types of other crates.
    &["At", "IntoTensor", "IntoLaid", "ToTensor"],
    // Methods of tensors. The supertraits of these traits are sealed.
    &[
        "ApplyOp",
        "Decompositions",
        "Draw",
        "Dropout",
        "Elementwise",
        "IntoForeign",
        "Lay",
        "LinearAlgebra",
        "LinearSystems",
        "Losses",
        "MatrixFunctions",
        "Normalization",
        "OrderExt",
        "Pooling",
        "Priming",
        "Rearranging",
        "Reductions",
        "Restructure",
        "Selecting",
        "Sorting",
        "Streamed",
    ],
];

#[test]
fn traits_are_sealed() {
    let mut wrong = String::new();
    let mut open: BTreeSet<&str> = OPEN_TRAITS.iter().copied().flatten().copied().collect();
    for (file, text) in files("dims-core") {
        let mut traits = Traits::default();
        traits.visit_file(&syn::parse_file(&text).expect("the file is valid Rust"));
        for name in traits.open {
            if !open.remove(name.as_str()) {
                writeln!(wrong, "dims-core/src/{file}: `{name}` is not sealed, but is not listed as open")
                    .unwrap();
            }
        }
    }
    for name in open {
        writeln!(wrong, "`{name}` is listed as open, but does not exist or is sealed").unwrap();
    }
    assert!(
        wrong.is_empty(),
        "the traits that are not sealed are listed at the top of tests/architecture/traits.rs\n{wrong}"
    );
}

/// The public traits of a file that other crates can implement without `unsafe`: those without an
/// item whose type only `dims-core` can name. Traits written by `condition!` are sealed.
#[derive(Default)]
struct Traits {
    open: Vec<String>,
}

impl Visit<'_> for Traits {
    fn visit_item_trait(&mut self, item: &syn::ItemTrait) {
        let mut names = Names::default();
        item.items.iter().for_each(|item| names.visit_trait_item(item));
        if matches!(item.vis, syn::Visibility::Public(_))
            && item.unsafety.is_none()
            && !names.0.contains("Seal")
        {
            self.open.push(item.ident.to_string());
        }
    }
}

/// All names in a piece of code.
#[derive(Default)]
struct Names(BTreeSet<String>);

impl Visit<'_> for Names {
    fn visit_ident(&mut self, name: &syn::Ident) {
        self.0.insert(name.to_string());
    }
}
