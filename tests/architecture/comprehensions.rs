//! `tensor!` knows the elementwise methods by name, because a procedural macro sees no types.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Adds to a set the methods of the operations in a table, except those marked `elsewhere`.
macro_rules! methods {
    ($found:ident operations { $($operations:tt)* } constants { $($constants:tt)* }) => {
        methods! { @each $found $($operations)* $($constants)* }
    };
    (@each $found:ident $(
        $(#[$doc:meta])*
        $op:ident $method:ident($($operand:ident),+: $bound:ident $(, $c:ident = $sample:literal)?) -> $out:tt $(, $property:ident)* { $($body:tt)* }
    )*) => {
        $(if ![$(stringify!($property)),*].contains(&"elsewhere") {
            $found.insert(stringify!($method));
        })*
    };
}

#[test]
fn tensor_knows_each_elementwise_method() {
    let mut methods: BTreeSet<&str> = BTreeSet::new();
    typed_dims_kernels::unary_operations! { methods methods }
    typed_dims_kernels::binary_operations! { methods methods }
    assert!(methods.len() > 80 && methods.contains("selu") && methods.contains("lerp"), "{methods:?}");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let calls = fs::read_to_string(root.join("dims-macros/src/comprehension/calls.rs")).unwrap();
    let missing: Vec<&&str> =
        methods.iter().filter(|name| !calls.contains(&format!("(\"{name}\", "))).collect();
    assert!(missing.is_empty(), "missing in `UNARY` or `BINARY` of calls.rs: {missing:?}");
}
