//! Operations return what the reference evaluator returns, for random sizes (including 0 and 1) and
//! layouts, and for many element types.
//!
//! This file is also the root of the fuzz target.

#![cfg_attr(fuzzing, no_main, allow(dead_code, unused_imports))] // The fuzz target has no tests.

#[path = "../reference/mod.rs"]
mod reference;

mod assignment;
mod attention;
mod contractions;
mod elementwise;
#[cfg(fuzzing)]
mod fuzz;
mod indices;
mod layouts;
mod order;
mod reductions;
mod restructure;
mod shown;

use typed_dims::prelude::*;

// The dims of all cases. Their sizes are set at run time.
dims! {
    struct A;
    struct B;
    struct C;
    struct D;
    struct E;
    struct F;
}

/// A view of a buffer with one axis for each listed dim, bound to the dims.
#[macro_export]
macro_rules! bound {
    ($buffer:ident[$($dim:ident)*]) => { bound!(@ $buffer [$($dim)*] [$($dim)*]).at(($($dim,)*)) };
    (@ $b:ident [] [$($d:ident)*]) => { $b.view::<ndarray::Ix0>() };
    (@ $b:ident [$a:ident] [$($d:ident)*]) => { $b.view::<ndarray::Ix1>() };
    (@ $b:ident [$a0:ident $a1:ident] [$($d:ident)*]) => { $b.view::<ndarray::Ix2>() };
    (@ $b:ident [$a0:ident $a1:ident $a2:ident] [$($d:ident)*]) => { $b.view::<ndarray::Ix3>() };
    (@ $b:ident [$a0:ident $a1:ident $a2:ident $a3:ident] [$($d:ident)*]) => { $b.view::<ndarray::Ix4>() };
    (@ $b:ident [$($more:ident)*] [$($d:ident)*]) => { $b.dynamic() };
}

/// A tensor in the order of some dims, as an array of dynamic rank.
#[macro_export]
macro_rules! ordered {
    ($tensor:expr, []) => { ndarray::arr0($tensor.order(())).into_dyn() };
    ($tensor:expr, [$($dim:ident)+]) => { $tensor.order(($($dim,)+)).into_dyn() };
}

/// Asserts that a tensor equals the reference, in the order of some dims.
#[macro_export]
macro_rules! assert_same {
    ($tensor:expr, [$($dim:ident)*], $reference:expr) => {
        assert_eq!($crate::ordered!($tensor, [$($dim)*]), $reference.order(&[$(&[stringify!($dim)]),*]))
    };
}

/// Buffers of random elements, and an array of their references:
/// `inputs!(case, random, f32; x[A B], y[B] => references);`
#[macro_export]
macro_rules! inputs {
    ($case:expr, $random:expr, $t:ty; $($x:ident[$($dim:ident)*]),* => $references:ident) => {
        $(let $x = $case.buffer::<$t>(&mut $random, &[$(stringify!($dim)),*], $crate::reference::input::Sample::sample);)*
        let $references = [$($crate::reference::Reference::bind(&$x.dynamic(), &[$(stringify!($dim)),*])),*];
    };
}

/// One property test for each line, with its number of random cases, in tens.
#[cfg(not(fuzzing))]
#[macro_export]
macro_rules! properties {
    ($($name:ident $count:literal: |$case:ident in $cases:expr, $which:ident| $body:expr;)*) => {$(
        proptest::proptest! {
            #![proptest_config(proptest::prelude::ProptestConfig::with_cases(10 * $count))]
            #[test]
            fn $name($case in $cases, $which in proptest::prelude::any::<usize>()) {
                $body;
            }
        }
    )*};
}

/// The same properties, for the fuzz target.
#[cfg(fuzzing)]
#[macro_export]
macro_rules! properties {
    ($($name:ident $count:literal: |$case:pat_param in $cases:expr, $which:pat_param| $body:expr;)*) => {$(
        inventory::submit!($crate::fuzz::Property(|runner| {
            use proptest::strategy::{Strategy, ValueTree};
            let strategy = ($cases, proptest::prelude::any::<usize>());
            let Ok(tree) = strategy.new_tree(runner) else { return };
            let ($case, $which) = tree.current();
            $body;
        }));
    )*};
}
