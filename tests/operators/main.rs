//! The operator database: entries for the operators of the library, and the tests that run for each
//! entry.
//!
//! An entry says how to create inputs, calls the operator, and computes the expected result with
//! plain loops. `check` runs an entry with all its element types, with every memory layout, and
//! with empty dims where they are allowed. With the first element type, it also adds two extra dims
//! that the entry does not mention: one to the first argument only, and one to all arguments. (Some
//! operators and arguments take no extra dims.) `docs` generates `docs/operators.md` from the same
//! entries.

// Entries are written once for all their element types, and ranges may count from the end.
#![allow(clippy::useless_conversion, clippy::reversed_empty_ranges)]
#![cfg_attr(feature = "pjrt", allow(dead_code, reason = "the page of documentation uses the rest"))]

/// A call as `docs/operators.md` shows it, with code that only its test needs: statements before
/// it, and a conversion of its result.
macro_rules! shown {
    ($call:expr; then |$found:ident| $then:expr) => {{
        let $found = $call;
        $then
    }};
    ($call:expr; where { $($before:tt)* } $(then |$found:ident| $then:expr)?) => {{
        $($before)*
        shown!($call $(; then |$found| $then)?)
    }};
    ($call:expr) => {
        $call
    };
}

mod check;
mod derivatives;
// The documentation page belongs to the library's package.
#[cfg(not(feature = "pjrt"))]
mod docs;
mod loops;
mod table;
mod value;

mod elementwise;
mod factories;
mod linalg;
mod losses;
#[cfg(feature = "linalg")]
mod matrices;
mod moving;
mod nn;
mod recorded;
mod reductions;
mod restructure;
mod selecting;
mod sorting;
#[cfg(feature = "pjrt")]
mod xla;

/// Aborts the test if a recording from sizes reads an element.
#[cfg(all(unix, not(feature = "pjrt")))]
#[path = "../support/guarded.rs"]
mod guarded;

#[cfg(all(unix, not(feature = "pjrt")))]
#[global_allocator]
static ALLOCATOR: guarded::Guarded = guarded::Guarded;

use table::Family;
use typed_dims::prelude::*;

// The extra dims are `Outer`, which sorts before the dims of the entries, and `Inner`, which sorts
// after them.
dims! {
    pub(crate) struct Outer;
    pub(crate) struct I;
    pub(crate) struct J;
    pub(crate) struct K;
    pub(crate) struct L;
    pub(crate) struct B;
    pub(crate) struct C;
    pub(crate) struct G;
    pub(crate) struct O;
    pub(crate) struct H;
    pub(crate) struct W;
    pub(crate) struct D;
    pub(crate) struct P;
    pub(crate) struct Q;
    pub(crate) struct R;
    pub(crate) struct V;
    pub(crate) struct Inner;
    pub(crate) struct Flat;
}

/// The usual sizes of the dims.
const SIZES: &[(&str, usize)] = &[
    ("I", 3),
    ("J", 4),
    ("K", 2),
    ("L", 5),
    ("B", 2),
    ("C", 4),
    ("G", 2),
    ("O", 3),
    ("H", 6),
    ("W", 5),
    ("D", 4),
    ("P", 3),
    ("Q", 2),
    ("R", 2),
    ("V", 7),
    ("Outer", 2),
    ("Inner", 3),
];

/// All entries, family by family.
fn families() -> Vec<Family> {
    vec![
        elementwise::family(),
        elementwise::pairs(),
        reductions::family(),
        sorting::family(),
        restructure::family(),
        moving::family(),
        selecting::family(),
        linalg::family(),
        #[cfg(feature = "linalg")]
        matrices::family(),
        nn::family(),
        losses::family(),
        factories::family(),
    ]
}
