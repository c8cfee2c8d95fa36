//! Seeds: numbers, and tensors of one number.

use crate::error::{DimError, unwrap};
use crate::execute::step::execute;
use crate::expr::evaluate::evaluate;
use crate::expr::step::is_recorded;
use crate::named::Named;
use crate::rank::Rank0;
use crate::storage::Evaluated;
use alloc::vec;
use kernels::memory::buffer::Buffer;
use kernels::step::draw::{SplitSeed, split};

/// What random numbers follow from: a number, or a tensor without dims.
///
/// Whatever draws takes `impl Into<Seed>`: `rand(dims, 7)`, `rand(dims, &seed)`. A tensor counts as the number that it has, so both draw the same.
///
/// The difference is in functions that are [recorded](crate::program): a number belongs to the program, and each call draws the same again. A tensor that is
/// an input, or is computed from inputs, is another one in each call.
///
/// ```
/// use typed_dims::prelude::*;
/// use typed_dims::program::record;
///
/// dims! { struct Feat; }
/// type Row = Tensor<f32, (Feat,)>;
/// type SeedTensor = Tensor<u64, ()>;
///
/// fn noisy(x: &Row, seed: &SeedTensor) -> (Row, SeedTensor) {
///     ((x + randn(Feat.of(4), seed)).eval(), (seed + 1).eval())   // with the seed of the next call
/// }
///
/// let x = zeros(Feat.of(4));
/// let program = record(|(x, seed)| noisy(x, seed), (&x, &full((), 1))).unwrap();
/// let (first, seed) = program.call((&x, &full((), 7)));
/// let (second, _) = program.call((&x, &seed));
/// assert_eq!(first, noisy(&x, &full((), 7)).0);
/// assert_eq!(second, noisy(&x, &full((), 8)).0);
/// ```
#[derive(Clone, Debug)]
pub struct Seed(SeedSource);

#[derive(Clone, Debug)]
enum SeedSource {
    Number(u64),
    /// A tensor that depends on inputs of a function which is recorded.
    Tensor(Named<u64, ()>),
}

/// A seed where numbers are drawn.
pub(crate) enum DrawnSeed {
    Number(u64),
    /// One that is to be the operand of a step.
    Operand(Buffer<u64>),
}

impl Seed {
    /// The `at`th of many seeds that this one stands for, as [`split`](crate::random::split) has it: one for each place of a function that draws.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    /// use typed_dims::random::{Seed, split};
    ///
    /// dims! { struct Feat; }
    /// fn noisy(x: &Tensor<f32, (Feat,)>, seed: impl Into<Seed>) -> Tensor<f32, (Feat,)> {
    ///     let seed = seed.into();
    ///     (x.dropout(0.5, seed.split(0)) + rand(Feat.of(3), seed.split(1))).eval()
    /// }
    /// let x = &ones(Feat.of(3));
    /// let expected = (x.dropout(0.5, split(7, 0)) + rand(Feat.of(3), split(7, 1))).eval();
    /// assert_eq!(noisy(x, 7), expected);
    /// assert_eq!(noisy(x, &full((), 7)), expected);
    /// ```
    #[track_caller]
    pub fn split(&self, at: u64) -> Seed {
        match unwrap(self.drawn()) {
            DrawnSeed::Number(seed) => split(seed, at).into(),
            DrawnSeed::Operand(seed) => unwrap(split_step(seed, at)).into(),
        }
    }

    /// The seed as a tensor: for instance as a result of a recorded function, or to compute with.
    pub fn to_tensor(&self) -> Named<u64, ()> {
        match &self.0 {
            SeedSource::Number(seed) => Named::from_expr(Evaluated::laid_out(vec![*seed], &[])),
            SeedSource::Tensor(seed) => seed.clone(),
        }
    }

    /// The number, unless a function is recorded that the seed is an input of.
    #[track_caller]
    pub(crate) fn drawn(&self) -> Result<DrawnSeed, DimError> {
        match &self.0 {
            SeedSource::Number(seed) => Ok(DrawnSeed::Number(*seed)),
            SeedSource::Tensor(tensor) if is_recorded(tensor.expr.buffer()) => {
                if let [_] = tensor.expr.all() {
                    return Ok(DrawnSeed::Operand(tensor.expr.buffer().clone()));
                }
                // One of many elements in memory.
                let shape = tensor.unified_shape()?;
                Ok(DrawnSeed::Operand(evaluate::<(), Rank0, _>(&tensor.expr, &shape, &[])?))
            }
            SeedSource::Tensor(tensor) => Ok(DrawnSeed::Number(number(tensor))),
        }
    }
}

#[track_caller]
fn split_step(mut seed: Buffer<u64>, at: u64) -> Result<Named<u64, ()>, DimError> {
    let seed: Buffer<u64> = execute(&SplitSeed { at }, &mut [&mut seed])?.next();
    Ok(Named::from_expr(Evaluated::laid_out(seed, &[])))
}

impl DrawnSeed {
    /// The seed as an operand.
    pub(crate) fn into_operand(self) -> Buffer<u64> {
        match self {
            DrawnSeed::Number(seed) => vec![seed].into(),
            DrawnSeed::Operand(seed) => seed,
        }
    }
}

/// The element of a tensor without dims.
fn number(tensor: &Named<u64, ()>) -> u64 {
    tensor.expr.all()[tensor.expr.start()]
}

impl From<u64> for Seed {
    fn from(seed: u64) -> Self {
        Seed(SeedSource::Number(seed))
    }
}

impl From<Named<u64, ()>> for Seed {
    fn from(seed: Named<u64, ()>) -> Self {
        if is_recorded(seed.expr.buffer()) { Seed(SeedSource::Tensor(seed)) } else { number(&seed).into() }
    }
}

impl From<&Named<u64, ()>> for Seed {
    fn from(seed: &Named<u64, ()>) -> Self {
        if is_recorded(seed.expr.buffer()) { seed.clone().into() } else { number(seed).into() }
    }
}

impl From<&Seed> for Seed {
    fn from(seed: &Seed) -> Self {
        seed.clone()
    }
}
