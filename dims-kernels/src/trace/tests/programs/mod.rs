//! Programs against the table of operations, and their derivatives against differences.

mod accuracy;
mod derivatives;
mod interpreted;
mod simplified;

use crate::memory::buffer::Buffer;
use crate::program::interpreter::ProgramOutput;
use crate::program::{Builder, Register, ScalarProgram};
use crate::scalar::Element;
use crate::trace::{Field, FieldOperand, FieldSource, Held, StridedPlace, compute::mapped};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The program that `f` writes.
fn written(f: impl FnOnce(&mut Builder) -> Register) -> ScalarProgram {
    let mut build = Builder::new();
    let result = f(&mut build);
    build.finish(result)
}

fn held<T: Element>(data: &[T]) -> Arc<dyn Held> {
    Buffer::from(data.to_vec()).held()
}

/// The program along a line, over operands that are contiguous.
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
