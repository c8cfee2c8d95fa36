//! Compares functions of the crate on elements, sizes and strides with slow, obvious loops.
//!
//! A case takes its [choices](choices::Choices) from bytes. Property tests generate random bytes;
//! if this file is compiled as a fuzz target, libFuzzer generates them.

#![cfg_attr(fuzzing, no_main, allow(dead_code, unused_imports))] // Fuzzing does not compile the tests.

mod choices;
mod contractions;
mod copies;
mod elementwise;
mod lines;
mod placed;
mod products;
mod reductions;

use choices::Choices;

/// A property that holds for all choices, with its name.
type Property = (&'static str, fn(&mut Choices<'_>));

const PROPERTIES: &[Property] = &[
    ("products", products::products),
    ("batches", products::batches),
    ("contractions", contractions::contractions),
    ("reductions", reductions::reductions),
    ("fused_sums", reductions::fused_sums),
    ("copies", copies::copies),
    ("copies_onto", copies::copies_onto),
    ("elementwise", elementwise::elementwise),
    ("updates", elementwise::updates),
    ("lines", lines::lines),
];

/// Tests the property that the first byte selects, with the choices of the other bytes.
#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((&which, bytes)) = data.split_first() else { return };
    PROPERTIES[usize::from(which) % PROPERTIES.len()].1(&mut Choices::new(bytes));
});

#[cfg(not(fuzzing))]
mod properties {
    use super::{Choices, PROPERTIES};
    use proptest::prelude::*;

    fn holds(name: &str, bytes: &[u8]) {
        let (_, property) =
            PROPERTIES.iter().find(|(other, _)| *other == name).expect("the property is listed");
        property(&mut Choices::new(bytes));
    }

    macro_rules! properties {
        ($($name:ident $cases:literal;)*) => {
            $(proptest! {
                #![proptest_config(ProptestConfig::with_cases($cases))]
                #[test]
                fn $name(bytes in proptest::collection::vec(any::<u8>(), 0..96)) {
                    holds(stringify!($name), &bytes);
                }
            })*

            #[test]
            fn each_property_is_a_test() {
                let tests = [$(stringify!($name)),*];
                assert!(PROPERTIES.iter().map(|&(name, _)| name).eq(tests));
            }
        };
    }

    properties! {
        products 400;
        batches 200;
        contractions 400;
        reductions 400;
        fused_sums 200;
        copies 400;
        copies_onto 200;
        elementwise 300;
        updates 300;
        lines 300;
    }
}
