//! Compares programs with the table of operations, and their derivatives with finite differences.

mod accuracy;
mod derivatives;
mod interpreted;
mod simplified;

use crate::memory::buffer::Buffer;
use crate::ops::code::{BinaryOpcode, UnaryOpcode};
use crate::program::builder::Builder;
use crate::program::interpreter::ProgramOutput;
use crate::program::{Register, ScalarProgram};
use crate::scalar::Element;
use crate::trace::{Field, FieldOperand, FieldSource, Held, StridedPlace, compute::mapped};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

/// The operations of the table, with the ranges on which their derivatives, if any, are compared
/// with finite differences.
macro_rules! unary_table {
    (operations { $(
        $(#[$doc:meta])* $name:ident $method:ident($x:ident: $bound:ident) -> $out:tt $(, $property:ident)* {
            value: $value:expr $(, slope($y:tt): $slope:expr, on: $on:expr)?
        }
    )* } constants { $(
        $(#[$with_doc:meta])* $with:ident $with_method:ident($with_x:ident: $with_bound:ident, $c:ident = $sample:literal)
            -> T $(, $with_property:ident)*
        { value: $with_value:expr, slope($with_y:tt): $with_slope:expr, on: $with_on:expr }
    )* }) => {
        const UNARY: &[(UnaryOpcode, &[Range<f64>])] = &[
            $((UnaryOpcode::$name, &[$($on)?]),)*
            $((UnaryOpcode::$with($sample), &[$with_on]),)*
        ];

        /// Operations outside the table are written out in `derivatives` or `interpreted`: new ones
        /// must be added there.
        #[allow(dead_code)]
        fn is_tested(op: UnaryOpcode) {
            match op {
                $(UnaryOpcode::$name => {})*
                $(UnaryOpcode::$with(_) => {})*
                UnaryOpcode::Powi(_) | UnaryOpcode::Clamp(..) | UnaryOpcode::FromEnd(_) => {}
                UnaryOpcode::Polygamma(_) | UnaryOpcode::SincSlope(_) | UnaryOpcode::SigmoidSlope => {}
                UnaryOpcode::NormalBelow | UnaryOpcode::Bell(_) => {}
            }
        }
    };
}

crate::unary_operations!(unary_table);

macro_rules! binary_table {
    (operations { $(
        $(#[$doc:meta])* $name:ident $method:ident($x:ident, $y:ident: $bound:ident) -> $out:tt $(, $property:ident)* {
            value: $value:expr $(, slopes($z:tt): $slopes:expr, on: $on:expr)?
        }
    )* } constants { $(
        $(#[$with_doc:meta])* $with:ident $with_method:ident($with_x:ident, $with_y:ident: Real, $c:ident = $sample:literal)
            -> T $(, $with_property:ident)*
        { value: $with_value:expr, slopes($with_z:tt): $with_slopes:expr, on: $with_on:expr }
    )* }) => {
        const BINARY: &[(BinaryOpcode, &[[Range<f64>; 2]])] = &[
            $((BinaryOpcode::$name, &[$($on)?]),)*
            $((BinaryOpcode::$with($sample), &[$with_on]),)*
        ];

        /// See `is_tested`.
        #[allow(dead_code)]
        fn are_tested(op: BinaryOpcode) {
            match op {
                $(BinaryOpcode::$name => {})*
                $(BinaryOpcode::$with(_) => {})*
                BinaryOpcode::UnsignedDiv | BinaryOpcode::UnsignedRem | BinaryOpcode::Chain => {}
            }
        }
    };
}

crate::binary_operations!(binary_table);

fn written(f: impl FnOnce(&mut Builder) -> Register) -> ScalarProgram {
    let mut build = Builder::new();
    let result = f(&mut build);
    build.finish(result)
}

fn held<T: Element>(data: &[T]) -> Arc<dyn Held> {
    Buffer::from(data.to_vec()).held()
}

/// The results of the program along a line of contiguous operands.
fn run<T: ProgramOutput>(program: &ScalarProgram, operands: &[Arc<dyn Held>], len: usize) -> Vec<T> {
    let operand = |memory: &Arc<dyn Held>| FieldOperand {
        source: FieldSource::Memory(Arc::clone(memory)),
        place: StridedPlace::strided(0, [1]),
    };
    let operands = operands.iter().map(operand).collect();
    let field = Field {
        sizes: [len].into_iter().collect(),
        program: Arc::new(program.clone()),
        operands,
        names: None,
    };
    mapped::<T>(&field, &[0]).expect("there is memory")
}

/// Pseudo-random numbers (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn float(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}
