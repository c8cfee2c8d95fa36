//! Seeds: numbers, and tensors of one number.

use crate::error::{DimError, unwrap};
use crate::execute::step::execute;
use crate::expr::evaluate::evaluate;
use crate::expr::step::is_recorded;
use crate::storage::Evaluated;
use crate::tensors::named::Named;
use crate::types::rank::Rank0;
use alloc::vec;
use kernels::memory::buffer::Buffer;
use kernels::step::draw::{SplitSeed, split};

/// The seed of random numbers: a number, or a tensor without dims.
///
/// Most functions that draw take [`impl IntoSeed`](IntoSeed): `rand(dims, 7)`, `rand(dims, &seed)`.
/// A number and a tensor that holds it draw the same elements.
/// [`batches`](super::random::batches), the functions in [`init`](super::init) and the constructors
/// of layers take only numbers.
///
/// Numbers and tensors differ in [recorded](crate::program) functions. A number is a constant of
/// the program, so every call draws the same elements. A tensor that is an input, or is computed
/// from inputs, gives each call its own seed.
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
    /// A tensor that depends on inputs of a recorded function.
    Tensor(Named<u64, ()>),
}

/// What a [`Seed`] can be made from: a number, a tensor of `u64` without dims, or another seed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a seed",
    label = "expected a number of type `u64`, or a `Tensor<u64, ()>`"
)]
pub trait IntoSeed: Into<Seed> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}
#[diagnostic::do_not_recommend]
impl<S: Into<Seed>> IntoSeed for S {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// A seed in the form that kernels take.
pub(crate) enum DrawnSeed {
    Number(u64),
    /// The memory of a recorded seed, as the operand of a step.
    Operand(Buffer<u64>),
}

impl Seed {
    /// Derives the `at`th seed from this one, as [`split`](crate::creation::random::split) does. A
    /// function that draws several times derives one seed for each draw.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    /// use typed_dims::creation::random::{IntoSeed, split};
    ///
    /// dims! { struct Feat; }
    /// fn noisy(x: &Tensor<f32, (Feat,)>, seed: impl IntoSeed) -> Tensor<f32, (Feat,)> {
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

    /// Converts the seed to a tensor, for example to return it from a recorded function.
    pub fn to_tensor(&self) -> Named<u64, ()> {
        match &self.0 {
            SeedSource::Number(seed) => Named::from_expr(Evaluated::laid_out(vec![*seed], &[])),
            SeedSource::Tensor(seed) => seed.clone(),
        }
    }

    /// The number, or the memory of a seed that depends on inputs of a recorded function.
    #[track_caller]
    pub(crate) fn drawn(&self) -> Result<DrawnSeed, DimError> {
        match &self.0 {
            SeedSource::Number(seed) => Ok(DrawnSeed::Number(*seed)),
            SeedSource::Tensor(tensor) if is_recorded(tensor.expr.buffer()) => {
                if let [_] = tensor.expr.all() {
                    return Ok(DrawnSeed::Operand(tensor.expr.buffer().clone()));
                }
                // The seed is one of several elements in its memory.
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
    pub(crate) fn into_operand(self) -> Buffer<u64> {
        match self {
            DrawnSeed::Number(seed) => vec![seed].into(),
            DrawnSeed::Operand(seed) => seed,
        }
    }
}

/// Reads the element of a tensor without dims.
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
