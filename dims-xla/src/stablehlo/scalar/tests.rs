//! Each operation in the tables of `typed-dims-kernels` has a StableHLO lowering for each type of
//! register that its operands can have.

use super::super::text::{Body, Precision, Value};
use typed_dims_kernels::program::code::DType;
use typed_dims_kernels::trace::saved::SavedOperation;

/// The types of registers for elements whose type satisfies a trait bound.
macro_rules! registers {
    (Real) => {
        &[DType::F32, DType::F64]
    };
    (Analytic) => {
        &[DType::F32, DType::F64]
    };
    (Integer) => {
        &[DType::I64]
    };
    (Logic) => {
        &[DType::I64, DType::Bool]
    };
    (PartialOrder) => {
        &[DType::F32, DType::F64, DType::I64, DType::Bool]
    };
    (Equality) => {
        &[DType::F32, DType::F64, DType::I64, DType::Bool]
    };
    ($bound:ident) => {
        &[DType::F32, DType::F64, DType::I64]
    };
}

fn operand(name: &str, dtype: DType) -> Value {
    Value { name: name.into(), dtype, shape: [3].into() }
}

fn operation(name: &str, constants: &[f64]) -> SavedOperation {
    SavedOperation(name.into(), constants.iter().map(|c| c.to_bits()).collect())
}

fn has_unary(name: &str, constants: &[f64], registers: &[DType]) -> bool {
    let op = operation(name, constants);
    registers
        .iter()
        .all(|&dtype| Body::new(Precision::Exact).apply_unary(&op, &operand("%x", dtype)).is_some())
}

fn has_binary(name: &str, constants: &[f64], registers: &[DType]) -> bool {
    let op = operation(name, constants);
    registers.iter().all(|&dtype| {
        let (x, y) = (operand("%x", dtype), operand("%y", dtype));
        Body::new(Precision::Exact).apply_binary(&op, &x, &y).is_some()
    })
}

/// Each operation on one operand, and whether it has a lowering.
macro_rules! lowered_unary {
    (operations { $(
        $(#[$doc:meta])* $name:ident $method:ident($x:ident: $bound:ident) -> $out:tt $(, $property:ident)* { $($body:tt)* }
    )* } constants { $(
        $(#[$with_doc:meta])* $with:ident $with_method:ident($with_x:ident: $with_bound:ident, $c:ident = $sample:literal)
            -> T $(, $with_property:ident)* { $($with_body:tt)* }
    )* }) => {
        vec![
            $((stringify!($name), has_unary(stringify!($name), &[], registers!($bound))),)*
            $((stringify!($with), has_unary(stringify!($with), &[$sample], registers!($with_bound))),)*
        ]
    };
}

/// Each operation on two operands, and whether it has a lowering.
macro_rules! lowered_binary {
    (operations { $(
        $(#[$doc:meta])* $name:ident $method:ident($x:ident, $y:ident: $bound:ident) -> $out:tt $(, $property:ident)* { $($body:tt)* }
    )* } constants { $(
        $(#[$with_doc:meta])* $with:ident $with_method:ident($with_x:ident, $with_y:ident: $with_bound:ident, $c:ident = $sample:literal)
            -> T $(, $with_property:ident)* { $($with_body:tt)* }
    )* }) => {
        vec![
            $((stringify!($name), has_binary(stringify!($name), &[], registers!($bound))),)*
            $((stringify!($with), has_binary(stringify!($with), &[$sample], registers!($with_bound))),)*
        ]
    };
}

#[test]
fn each_operation_has_a_lowering() {
    let unary = typed_dims_kernels::unary_operations! { lowered_unary };
    let binary = typed_dims_kernels::binary_operations! { lowered_binary };
    let missing: Vec<&str> =
        unary.into_iter().chain(binary).filter(|(_, has)| !has).map(|(name, _)| name).collect();
    assert!(missing.is_empty(), "`stablehlo/scalar.rs` has no lowering of {missing:?}");
}
