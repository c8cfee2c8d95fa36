//! Each operation of the table of `typed-dims-kernels` has its StableHLO, for all registers that
//! hold its operands.

use super::super::text::{Body, Precision, Value};
use typed_dims_kernels::program::code::DType;
use typed_dims_kernels::trace::saved::SavedOperation;

/// The registers for elements with a bound.
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

fn assert_unary(name: &str, constants: &[f64], registers: &[DType]) {
    let op = SavedOperation(name.into(), constants.iter().map(|c| c.to_bits()).collect());
    for &dtype in registers {
        let value = Body::new(Precision::Exact).apply_unary(&op, &operand("%x", dtype));
        assert!(value.is_some(), "`{name}` of {dtype:?} has no lowering");
    }
}

fn assert_binary(name: &str, constants: &[f64], registers: &[DType]) {
    let op = SavedOperation(name.into(), constants.iter().map(|c| c.to_bits()).collect());
    for &dtype in registers {
        let body = Body::new(Precision::Exact);
        let value = body.apply_binary(&op, &operand("%x", dtype), &operand("%y", dtype));
        assert!(value.is_some(), "`{name}` of {dtype:?} has no lowering");
    }
}

macro_rules! assert_all_unary {
    (operations { $(
        $(#[$doc:meta])* $name:ident $method:ident($x:ident: $bound:ident) -> $out:tt $(, $property:ident)* { $($body:tt)* }
    )* } constants { $(
        $(#[$with_doc:meta])* $with:ident $with_method:ident($with_x:ident: $with_bound:ident, $c:ident = $sample:literal)
            -> T $(, $with_property:ident)* { $($with_body:tt)* }
    )* }) => {
        $(assert_unary(stringify!($name), &[], registers!($bound));)*
        $(assert_unary(stringify!($with), &[$sample], registers!($with_bound));)*
    };
}

macro_rules! assert_all_binary {
    (operations { $(
        $(#[$doc:meta])* $name:ident $method:ident($x:ident, $y:ident: $bound:ident) -> $out:tt $(, $property:ident)* { $($body:tt)* }
    )* } constants { $(
        $(#[$with_doc:meta])* $with:ident $with_method:ident($with_x:ident, $with_y:ident: $with_bound:ident, $c:ident = $sample:literal)
            -> T $(, $with_property:ident)* { $($with_body:tt)* }
    )* }) => {
        $(assert_binary(stringify!($name), &[], registers!($bound));)*
        $(assert_binary(stringify!($with), &[$sample], registers!($with_bound));)*
    };
}

#[test]
fn each_operation_has_a_lowering() {
    typed_dims_kernels::unary_operations!(assert_all_unary);
    typed_dims_kernels::binary_operations!(assert_all_binary);
}
