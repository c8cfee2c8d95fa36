//! Tensors of random elements, from a seed. With the feature `rand`, `random` draws from a
//! distribution of the crate `rand` with a generator.
//!
//! A [`Seed`] is a number or a tensor without dims: `rand(dims, 7)`, `rand(dims, &seed)`.
//!
//! The number that a seed gives at a position is a hash of both: it is the same on every machine
//! and for any number of threads, and there is no generator state. (Normally distributed numbers
//! and [`categorical`] use functions such as `ln`, whose last bit may differ between platforms.)
//!
//! [`rand()`], [`randn`] and [`permutation`] count positions in the order of the dims as written.
//! Functions that draw for the elements of a tensor ([`rand_like`], [`randn_like`], [`bernoulli`],
//! [`categorical`] and [`dropout`](crate::operators::nn::dropout::Dropout::dropout)) use the names
//! of the dims and the indices along all axes. So every way of batching a function draws the same
//! numbers: bound dims, `#[batched]`, [`batched`](crate::batch::batched),
//! [`vmap`](crate::batch::vmap()) and [`map_each`](crate::batch::map_each). (Loops over examples,
//! such as `map_each`, need the feature `std` for this.) The hash is splitmix64:
//! G. L. Steele, D. Lea, C. H. Flood, 2014, "Fast splittable pseudorandom number generators".

pub use crate::creation::seed::{IntoSeed, Seed};
use twins::panicking_twin;

#[cfg(feature = "std")]
use super::undrawn::undrawn;
use crate::creation::create::{
    SizedDims, Written, build, each_position, sizes, try_from_fn, try_from_vec, volume,
};
use crate::creation::positions::draw_numbers;
use crate::creation::seed::DrawnSeed;
use crate::error::DimError;
use crate::execute::reduce::{Empty, TensorOf, reduce};
use crate::execute::step::execute;
use crate::expr::evaluate::{evaluate, evaluate_unrecorded};
use crate::expr::step::reads_recorded;
use crate::expr::{Binary, Unary};
use crate::plan::axes::AxisList;
use crate::storage::Evaluated;
use crate::tensors::named::Named;
use crate::tensors::tensor::{AsTensor, Computable, checked};
use crate::types::brand::AnyDim;
use crate::types::dim::{DimOf as _, DimRef, Of};
use crate::types::set::{Dims, DimsOf};
use crate::types::size::Resizable;
use core::marker::PhantomData;
use kernels::memory::buffer::Buffer;
use kernels::memory::destination::Destination;
use kernels::ops;
use kernels::random::DrawNumbers;
use kernels::reduce::reducers;
#[cfg(feature = "rand")]
use kernels::scalar::Element;
use kernels::scalar::Real;
use kernels::step::draw::{self, Distribution, DrawElements, DrawOrder, DrawTruths, Gumbel, Normal, Uniform};

/// Uniformly distributed numbers in `0.0..1.0`:
/// `rand::<f32, _>((Batch.of(2), Seq.of(3)), seed)`.
///
/// The same seed gives the same numbers, in the order of the dims as written, the last one fastest.
///
/// # Panics
///
/// If a dim has no size, its prime has another size, or the tensor does not fit into memory.
#[panicking_twin]
pub fn try_rand<T: Real, D: SizedDims>(dims: D, seed: impl IntoSeed) -> Result<Named<T, D::Set>, DimError> {
    drawn_from::<T, D, Uniform>(dims, &seed.into())
}

/// Normally distributed numbers with mean 0 and variance 1, otherwise like [`rand()`].
///
/// # Panics
///
/// If a dim has no size, its prime has another size, or the tensor does not fit into memory.
#[panicking_twin]
pub fn try_randn<T: Real, D: SizedDims>(dims: D, seed: impl IntoSeed) -> Result<Named<T, D::Set>, DimError> {
    drawn_from::<T, D, Normal>(dims, &seed.into())
}

/// A tensor whose elements are drawn in the order of the dims as written.
#[track_caller]
pub(super) fn drawn<T: Real, D: Written>(
    dims: D,
    draw: impl Fn(u64) -> T,
) -> Result<Named<T, D::Set>, DimError> {
    #[cfg(feature = "std")]
    if let Some(undrawn) = undrawn(&dims)? {
        return Ok(undrawn);
    }
    let mut numbers = 0..;
    each_position(&dims, |_| {
        draw(numbers.next().expect("a tensor has fewer elements than there are numbers"))
    })
}

/// Draws from a distribution. The seed may be an input of a recorded function.
#[track_caller]
fn drawn_from<T: Real, D: Written, Q: Distribution>(
    dims: D,
    seed: &Seed,
) -> Result<Named<T, D::Set>, DimError> {
    let mut seed = match seed.drawn()? {
        DrawnSeed::Number(seed) => return drawn(dims, draws::<T, Q>(seed)),
        DrawnSeed::Operand(seed) => seed,
    };
    let sizes = sizes(&dims)?;
    let count = volume::<T>(&sizes)?;
    let numbers = DrawNumbers::new(0, [(count, 1)]);
    let kind = DrawElements { count, numbers, from: PhantomData::<(T, Q)> };
    let data: Buffer<T> = execute(&kind, &mut [&mut seed])?.next();
    Ok(build::<T, D>(&sizes, data))
}

/// Returns a closure that draws the element at a position. (The closure is made in a function, so
/// that its type does not depend on dims.)
fn draws<T: Real, Q: Distribution>(seed: u64) -> impl Fn(u64) -> T {
    move |at| Q::draw(seed, at)
}

/// Derives the `at`th seed from a seed, for example one for each parameter of a network or each
/// training step. For seeds that may be tensors, see [`Seed::split`].
///
/// ```
/// use typed_dims::creation::random::split;
///
/// let seeds = [0, 1, 2].map(|at| split(7, at));
/// assert!(seeds[0] != seeds[1] && seeds[1] != seeds[2]);
/// assert_eq!(split(7, 2), seeds[2]);
/// ```
pub fn split(seed: u64, at: u64) -> u64 {
    draw::split(seed, at)
}

/// Elements drawn from a distribution with a generator of the crate `rand`, in the order of the
/// dims as written, the last one fastest.
///
/// Takes any distribution of `rand` or `rand_distr`:
/// `random(Batch.of(8), &StandardUniform, &mut rng)`. Each call advances the generator.
///
/// # Panics
///
/// If a dim has no size, its prime has another size, or the tensor does not fit into memory.
#[cfg(feature = "rand")]
#[track_caller]
pub fn random<T, D, S, G>(dims: D, distribution: &S, rng: &mut G) -> Named<T, D::Set>
where
    T: Element,
    D: SizedDims,
    S: rand::distr::Distribution<T>,
    G: rand::Rng + ?Sized,
{
    crate::error::unwrap(try_from_fn(dims, |_| distribution.sample(rng)))
}

/// Like [`rand()`], with the dims and sizes of another tensor, including extra dims of the caller
/// (`Rest<B>`).
///
/// The numbers depend on the seed, the names of the dims and the indices along all axes, so each
/// example of a batch draws its own numbers, however the function is batched.
///
/// ```
/// use typed_dims::creation::random::randn_like;
/// use typed_dims::prelude::*;
///
/// dims! { struct Batch; struct Feat; }
/// fn noisy<B: Dims>(x: &Tensor<f32, (Feat, Rest<B>)>, seed: u64) -> Tensor<f32, (Feat, Rest<B>)> {
///     (x + randn_like(x, seed) * 0.1).eval()
/// }
/// let x = zeros::<f32, _>((Batch.of(2), Feat.of(3)));
/// let y = noisy(&x.seal(Feat), 7).unseal();
/// assert_eq!(y.dims(), [("Batch", 2), ("Feat", 3)]);
/// ```
///
/// # Panics
///
/// If the sizes of the tensor's operands conflict, a dim has no size, or the result does not fit
/// into memory.
#[panicking_twin]
pub fn try_rand_like<A: Computable<Elem: Real>>(
    tensor: A,
    seed: impl IntoSeed,
) -> Result<TensorOf<A>, DimError> {
    drawn_like::<A::Elem, A, Uniform>(tensor, &seed.into())
}

/// Like [`rand_like`], but with normally distributed numbers, as from [`randn`].
///
/// # Panics
///
/// If the sizes of the tensor's operands conflict, a dim has no size, or the result does not fit
/// into memory.
#[panicking_twin]
pub fn try_randn_like<A: Computable<Elem: Real>>(
    tensor: A,
    seed: impl IntoSeed,
) -> Result<TensorOf<A>, DimError> {
    drawn_like::<A::Elem, A, Normal>(tensor, &seed.into())
}

/// A tensor with the dims and sizes of `tensor`, whose elements are drawn by position.
#[track_caller]
fn drawn_like<T: Real, A: Computable, Q: Distribution>(
    tensor: A,
    seed: &Seed,
) -> Result<Named<T, A::Dims, A::Rank>, DimError> {
    let shape = tensor.into_named().unified_shape()?;
    let order = AxisList::in_memory_of::<A::Dims, A::Rank>().as_slice();
    let count = shape.volume(order, size_of::<T>())?;
    let numbers = draw_numbers(A::Dims::KEYS, &shape, order);
    let data: Result<Buffer<T>, DimError> = match seed.drawn()? {
        DrawnSeed::Number(seed) => {
            let data = Destination::New(count).from_fn(|at| Q::draw(seed, numbers.at(at)));
            data.map(Buffer::from).map_err(DimError::from)
        }
        DrawnSeed::Operand(mut seed) => {
            let kind = DrawElements { count, numbers, from: PhantomData::<(T, Q)> };
            execute(&kind, &mut [&mut seed]).map(|mut results| results.next())
        }
    };
    let data = data.map_err(|error| shape.name_dims(error, order))?;
    Ok(Named::from_expr(Evaluated::laid_out(data, &shape.sizes_in(order))))
}

/// Draws an index along a dim for each position of the other dims, with probabilities proportional
/// to `e^logits`: `out[..] = argmax over dim of logits[.., dim] - ln(-ln(u[.., dim]))`, where the
/// `u` are uniformly distributed between 0 and 1.
///
/// Use it to sample the next token from the scores of a model. Divide the logits by a temperature
/// to make the draw more or less random. An index whose logit is minus infinity is drawn only if
/// all logits are. (The method is Gumbel's: E. J. Gumbel, 1954, "Statistical theory of extreme
/// values".)
///
/// ```
/// use typed_dims::creation::random::categorical;
/// use typed_dims::prelude::*;
///
/// dims! { struct Batch; struct Token; }
/// let logits = from_fn((Batch.of(2), Token.of(3)), |(batch, token)| if batch == token { 0.0 } else { f32::NEG_INFINITY });
/// assert_eq!(categorical(&logits, Token, 1).order(Batch), ndarray::array![0, 1]);
/// ```
#[panicking_twin("so is drawing from a dim of size 0")]
pub fn try_categorical<A, D, X>(
    logits: A,
    dim: D,
    seed: impl IntoSeed,
) -> Result<Named<usize, X, A::Rank>, DimError>
where
    A: Computable<Elem: Real>,
    D: DimRef + DimsOf<A::Dims, X>,
    X: Dims,
{
    let tensor = checked(logits, &dim)?;
    // (The noise has the wide type, because in half precision, many of the sums would be equal.)
    let noise = drawn_like::<<A::Elem as Real>::Wide, _, Gumbel>(&tensor, &seed.into())?;
    let scores = Binary { op: ops::Add, a: Unary { op: ops::Widen, a: &tensor.expr }, b: &noise.expr };
    let (reducer, empty) = (reducers::ArgExtremum::<true>, Empty::Refused("argmax"));
    if !reads_recorded(&scores) {
        return reduce::<Noisy<'_, A>, D, X, _>(&scores, reducer, empty);
    }
    // (The scores are stored, to round them to their type: programs compute intermediate values
    // more precisely.)
    let scores = Noisy::<'_, A>::from_expr(scores);
    let shape = scores.unified_shape()?;
    let order = AxisList::in_memory_of::<A::Dims, A::Rank>().as_slice();
    let data = evaluate::<A::Dims, A::Rank, _>(scores.expr, &shape, order)?;
    let scores: Scores<A> = Named::from_expr(Evaluated::laid_out(data, &shape.sizes_in(order)));
    reduce::<Scores<A>, D, X, _>(&scores.expr, reducer, empty)
}

type Scores<A> = Named<<<A as AsTensor>::Elem as Real>::Wide, <A as AsTensor>::Dims, <A as AsTensor>::Rank>;

type Noisy<'a, A> = Named<
    <<A as AsTensor>::Elem as Real>::Wide,
    <A as AsTensor>::Dims,
    <A as AsTensor>::Rank,
    Binary<ops::Add, Unary<ops::Widen, &'a <A as AsTensor>::Expr>, &'a <Scores<A> as AsTensor>::Expr>,
>;

/// `true` with the probability `p` at each position, otherwise `false`.
///
/// Besides `p`, the result depends on the seed, the names of the dims and the indices along all
/// axes, including extra dims of the caller (`Rest<B>`).
///
/// ```
/// use typed_dims::creation::random::bernoulli;
/// use typed_dims::prelude::*;
///
/// dims! { struct Feat; }
/// let p = from_vec(Feat.of(3), vec![0.0, 1.0, 0.0]);
/// assert_eq!(bernoulli(&p, 7).order(Feat), ndarray::array![false, true, false]);
/// ```
#[panicking_twin("so is a probability that is not between 0 and 1")]
pub fn try_bernoulli<A: Computable<Elem: Real>>(
    p: A,
    seed: impl IntoSeed,
) -> Result<Named<bool, A::Dims, A::Rank>, DimError> {
    let tensor = p.into_named();
    let shape = tensor.unified_shape()?;
    let order = AxisList::in_memory_of::<A::Dims, A::Rank>().as_slice();
    let count = shape.volume(order, size_of::<A::Elem>())?;
    let numbers = draw_numbers(A::Dims::KEYS, &shape, order);
    let kind = DrawTruths { count, numbers, element: PhantomData::<A::Elem> };
    let data: Result<Buffer<bool>, DimError> = match seed.into().drawn()? {
        DrawnSeed::Number(seed) if !reads_recorded(&tensor.expr) => {
            // (No step is recorded for gradients, because a `bool` has no derivative.)
            let p = evaluate_unrecorded::<A::Dims, A::Rank, _>(tensor.expr, &shape, order)?;
            kind.draw(&p, seed).map(Buffer::from).map_err(DimError::from)
        }
        seed => {
            let mut p = evaluate::<A::Dims, A::Rank, _>(tensor.expr, &shape, order)?;
            let mut seed = seed.into_operand();
            execute(&kind, &mut [&mut p, &mut seed]).map(|mut results| results.next())
        }
    };
    let data = data.map_err(|error| shape.name_dims(error, order))?;
    Ok(Named::from_expr(Evaluated::laid_out(data, &shape.sizes_in(order))))
}

/// The indices of a dim in uniformly random order: `permutation(Example.of(100), seed)`.
///
/// (R. Durstenfeld, 1964, "Algorithm 235: Random permutation".) For a separate order at each
/// position of other dims, including extra dims of the caller (`Rest<B>`), use
/// `rand_like(&x, seed).argsort(Feat)`.
///
/// ```
/// use typed_dims::creation::random::permutation;
/// use typed_dims::prelude::*;
///
/// dims! { struct Example; struct Feat; }
/// let x = from_fn((Example.of(3), Feat.of(2)), |(example, _)| example as f32);
/// let shuffled = x.take(Example, permutation(Example.of(3), 1)).eval();
/// assert_eq!(shuffled.sum((Example, Feat)).order(()), 6.0);
/// ```
///
/// # Panics
///
/// If the dim has no size, or the tensor does not fit into memory.
#[panicking_twin]
pub fn try_permutation<D: SizedDims + Written<Index = usize>>(
    dim: D,
    seed: impl IntoSeed,
) -> Result<Named<usize, D::Set>, DimError> {
    match seed.into().drawn()? {
        DrawnSeed::Number(seed) => {
            let mut permutation = try_from_fn(dim, |at| at)?;
            draw::shuffle(permutation.expr.all_mut(), seed);
            Ok(permutation)
        }
        DrawnSeed::Operand(mut seed) => {
            let sizes = sizes(&dim)?;
            let size = volume::<usize>(&sizes)?;
            let data: Buffer<usize> = execute(&DrawOrder { size }, &mut [&mut seed])?.next();
            Ok(build::<usize, D>(&sizes, data))
        }
    }
}

/// The mini-batches of an epoch: the indices of a dim in random order, in parts of `size`. The last
/// part has the remaining indices.
///
/// ```
/// use typed_dims::creation::random::{batches, split};
/// use typed_dims::prelude::*;
///
/// dims! { struct Example; struct Feat; }
/// let x: Tensor<f32, (Example, Feat)> = randn((Example.of(10), Feat.of(2)), 1);
/// for epoch in 0..3 {
///     for rows in batches(Example.of(10), 4, split(7, epoch)) {
///         let batch: Tensor<f32, (Example, Feat)> = (&x).take(Example, &rows).eval();
///         assert!(batch.size(Example) == 4 || batch.size(Example) == 2);
///     }
/// }
/// ```
///
/// # Panics
///
/// If `size` is 0, or the indices do not fit into memory.
#[track_caller]
pub fn batches<B: AnyDim + Resizable>(
    dim: Of<B>,
    size: usize,
    seed: u64,
) -> impl Iterator<Item = Named<usize, (B,)>> {
    assert!(size > 0, "the batch size along dim `{}` is 0", B::NAME);
    let count = dim.size();
    let order = permutation(dim, seed).expr.all().to_vec();
    (0..count).step_by(size).map(move |start| {
        let rows = order[start..count.min(start + size)].to_vec();
        crate::error::unwrap(try_from_vec(B::default().of(rows.len()), rows))
    })
}
