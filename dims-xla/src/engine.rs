//! Typed programs on devices: values, compiled programs and calls.

mod checks;
mod compare;
mod inputs;
mod run;
mod value;

pub use compare::{ComparedCollectives, Comparison};
pub use inputs::{DeviceInputs, Given};
pub use run::{DeviceParts, Run, RunOptions};
pub use value::OnDevice;

use crate::pjrt::ElementType;
use typed_dims_kernels::program::code::DType;

fn element_type(dtype: DType) -> ElementType {
    match dtype {
        DType::F16 => ElementType::F16,
        DType::Bf16 => ElementType::Bf16,
        DType::F32 => ElementType::F32,
        DType::F64 => ElementType::F64,
        DType::Bool => ElementType::Bool,
        DType::I8 => ElementType::I8,
        DType::I16 => ElementType::I16,
        DType::I32 => ElementType::I32,
        DType::I64 | DType::Isize => ElementType::I64,
        DType::U8 => ElementType::U8,
        DType::U16 => ElementType::U16,
        DType::U32 => ElementType::U32,
        DType::U64 | DType::Usize => ElementType::U64,
    }
}
