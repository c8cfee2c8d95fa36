//! Initialization of parameters, from a seed.
//!
//! The *fan-in* of a weight is its number of inputs: the product of the sizes of the dims that the
//! layer sums over. The *fan-out* is its number of outputs: the product of the sizes of the dims
//! that the layer makes. You name these dims in the call.
//!
//! ```
//! use typed_dims::init::{he_normal, xavier_uniform};
//! use typed_dims::prelude::*;
//! use typed_dims::creation::random::split;
//!
//! dims! { struct Channel; struct Filter; struct Kh = 3; struct Kw = 3; struct Hidden; }
//!
//! #[derive(Parameters)]
//! struct Network {
//!     conv: Tensor<f32, (Channel, Filter, Kh, Kw)>,
//!     out: Tensor<f32, (Filter, Hidden)>,
//! }
//!
//! let seed = 1;
//! let network = Network {
//!     conv: he_normal((Channel.of(8), Filter.of(16), Kh, Kw), (Channel, Kh, Kw), split(seed, 0)),
//!     out: xavier_uniform((Filter.of(16), Hidden.of(4)), Filter, Hidden, split(seed, 1)),
//! };
//! assert!(network.out.abs().max((Filter, Hidden)).order(()) <= (6.0_f32 / 20.0).sqrt());
//! ```
//!
//! The same seed gives the same numbers, in the order of the dims as written. Give each parameter
//! its own seed with [`split`](crate::creation::random::split).

#[cfg(feature = "std")]
use super::undrawn::undrawn;
use crate::creation::create::{Chained, SizedDims, Written, sizes, volume};
use crate::creation::random::drawn;
use crate::error::DimError;
use crate::plan::shape::Shape;
use crate::tensors::named::Named;
use crate::types::dim::DimList;
use crate::types::rank::Rank0;
use crate::types::set::{DimKey, Dims, DimsOf, Union};
use core::panic::Location;
use kernels::memory::destination::Destination;
use kernels::random::{RandomStream, unit};
use kernels::scalar::Real;
use kernels::step::draw::{deviate, rounded};
use num_traits::Float;
use twins::panicking_twin;

/// Checks that sizes given with the dims `some`, which are among the dims `D`, agree with `sizes`.
#[track_caller]
fn check_given<D: SizedDims>(sizes: &[(DimKey, usize)], some: &impl DimList) -> Result<(), DimError> {
    let mut shape = Shape::new::<D::Set, Rank0>();
    for (key, size) in sizes {
        let at = shape.position(key).expect("the dim is in the set");
        shape.unify(at, *size, Some(Location::caller()))?;
    }
    shape.check_all_given(some)
}

/// The product of the sizes of the dims `F`, which are among the dims `D`.
#[track_caller]
fn fan<D: SizedDims, F: DimList>(dims: &D, fan: &F) -> Result<f64, DimError> {
    let sizes = sizes(dims)?;
    check_given::<D>(&sizes, fan)?;
    let of = |key| sizes.iter().find(|(own, _)| own.same(key)).map_or(1, |&(_, size)| size);
    Ok(F::KEYS.as_slice().iter().map(|key| of(key) as f64).product())
}

/// Normally distributed numbers with mean 0 and the given standard deviation: `normal(dims, 0.02,
/// seed)`.
#[panicking_twin("so is a deviation that is negative, infinite or NaN")]
pub fn try_normal<T: Real, D: SizedDims>(
    dims: D,
    deviation: f64,
    seed: u64,
) -> Result<Named<T, D::Set>, DimError> {
    check_deviation("normal", deviation)?;
    normally(dims, deviation, seed)
}

fn check_deviation(name: &str, deviation: f64) -> Result<(), DimError> {
    if deviation >= 0.0 && deviation.is_finite() {
        return Ok(());
    }
    let what = format!("`{name}` with the deviation {deviation}: it must be finite and 0 or more");
    Err(DimError::Shape { what })
}

#[track_caller]
fn normally<T: Real, D: Written>(dims: D, deviation: f64, seed: u64) -> Result<Named<T, D::Set>, DimError> {
    drawn(dims, |at| rounded(deviation * deviate(RandomStream::Normal, seed, at)))
}

/// Uniformly distributed numbers between `-most` and `most`.
#[track_caller]
fn uniform<T: Real, D: SizedDims>(dims: D, most: f64, seed: u64) -> Result<Named<T, D::Set>, DimError> {
    drawn(dims, |at| rounded(most * (2.0 * unit(RandomStream::Uniform, seed, at) - 1.0)))
}

/// The weights of a map from the dims `inputs` to the dims `outputs`, drawn as by [`lecun_normal`].
/// The fan-in is the product of the sizes of `inputs`.
#[track_caller]
pub(crate) fn of_map<T: Real, A: Written, B: Written<Set: Union<A::Set>>>(
    inputs: A,
    outputs: B,
    seed: u64,
) -> Result<Named<T, <B::Set as Union<A::Set>>::Out>, DimError> {
    let fan_in: f64 = sizes(&inputs)?.iter().map(|&(_, size)| size as f64).product();
    normally(Chained(inputs, outputs), Float::sqrt(1.0 / fan_in), seed)
}

// The bounds are written on the line that has the name, because rustc quotes that line.
macro_rules! by_fan_in {
    ($($(#[$doc:meta])* $try_name:ident $draw:ident $gain:literal [$($bounds:tt)*];)*) => {$(
        $(#[$doc])*
        ///
        /// # Panics
        ///
        /// If a dim has no size or is given two sizes, its prime has another size, or the tensor
        /// does not fit into memory.
        #[panicking_twin]
        pub fn $try_name<$($bounds)*>(dims: D, fan_in: F, seed: u64) -> Result<Named<T, D::Set>, DimError> {
            let scale = Float::sqrt($gain / fan(&dims, &fan_in)?);
            $draw(dims, scale, seed)
        }
    )*};
}

by_fan_in! {
    /// Normally distributed numbers with mean 0 and variance `2 / fan_in`, for layers followed by a
    /// `relu`.
    ///
    /// (K. He and others, 2015, "Delving deep into rectifiers".)
    try_he_normal normally 2.0 [T: Real, D: SizedDims, F: DimList + DimsOf<D::Set, X>, X: Dims];
    /// Uniformly distributed numbers between `-sqrt(6 / fan_in)` and `sqrt(6 / fan_in)`, with the
    /// variance of [`he_normal`].
    try_he_uniform uniform 6.0 [T: Real, D: SizedDims, F: DimList + DimsOf<D::Set, X>, X: Dims];
    /// Normally distributed numbers with mean 0 and variance `1 / fan_in`.
    ///
    /// (Y. LeCun and others, 1998, "Efficient backprop".)
    try_lecun_normal normally 1.0 [T: Real, D: SizedDims, F: DimList + DimsOf<D::Set, X>, X: Dims];
    /// Uniformly distributed numbers between `-sqrt(3 / fan_in)` and `sqrt(3 / fan_in)`, with the
    /// variance of [`lecun_normal`].
    try_lecun_uniform uniform 3.0 [T: Real, D: SizedDims, F: DimList + DimsOf<D::Set, X>, X: Dims];
}

macro_rules! by_both {
    ($($(#[$doc:meta])* $try_name:ident $draw:ident $gain:literal [$($bounds:tt)*];)*) => {$(
        $(#[$doc])*
        ///
        /// # Panics
        ///
        /// If a dim has no size or is given two sizes, its prime has another size, or the tensor
        /// does not fit into memory.
        #[panicking_twin]
        pub fn $try_name<$($bounds)*>(
            dims: D,
            fan_in: I,
            fan_out: O,
            seed: u64,
        ) -> Result<Named<T, D::Set>, DimError> {
            let scale = Float::sqrt($gain / (fan(&dims, &fan_in)? + fan(&dims, &fan_out)?));
            $draw(dims, scale, seed)
        }
    )*};
}

by_both! {
    /// Normally distributed numbers with mean 0 and variance `2 / (fan_in + fan_out)`.
    ///
    /// (X. Glorot, Y. Bengio, 2010, "Understanding the difficulty of training deep feedforward
    /// neural networks".)
    try_xavier_normal normally 2.0 [T: Real, D: SizedDims, I: DimList + DimsOf<D::Set, X>, O: DimList + DimsOf<D::Set, Y>, X: Dims, Y: Dims];
    /// Uniformly distributed numbers between `-a` and `a`, where
    /// `a = sqrt(6 / (fan_in + fan_out))`, with the variance of [`xavier_normal`].
    try_xavier_uniform uniform 6.0 [T: Real, D: SizedDims, I: DimList + DimsOf<D::Set, X>, O: DimList + DimsOf<D::Set, Y>, X: Dims, Y: Dims];
}

/// Normally distributed numbers with mean 0 and the given standard deviation. Each is drawn again
/// while it is more than two deviations from 0.
///
/// (The standard deviation of the result is 0.88 times the given one.)
///
/// ```
/// use typed_dims::init::truncated_normal;
/// use typed_dims::prelude::*;
///
/// dims! { struct Token; struct Feat; }
/// let embedding = truncated_normal::<f32, _>((Token.of(50), Feat.of(8)), 0.02, 1);
/// assert!(embedding.abs().max((Token, Feat)).order(()) <= 0.04);
/// ```
#[panicking_twin("so is a deviation that is negative, infinite or NaN")]
pub fn try_truncated_normal<T: Real, D: SizedDims>(
    dims: D,
    deviation: f64,
    seed: u64,
) -> Result<Named<T, D::Set>, DimError> {
    check_deviation("truncated_normal", deviation)?;
    drawn(dims, |at| {
        let mut tries = (0..)
            .map(|tried| deviate(RandomStream::Truncated, crate::creation::random::split(seed, tried), at));
        rounded(deviation * tries.find(|value| Float::abs(*value) <= 2.0).expect("a try succeeds in the end"))
    })
}

/// A uniformly distributed matrix with orthonormal rows or columns, whichever are fewer. Its rows
/// are the positions of the dims `rows`, its columns those of all other dims.
///
/// (A. M. Saxe, J. L. McClelland, S. Ganguli, 2014, "Exact solutions to the nonlinear dynamics of
/// learning in deep linear neural networks".)
///
/// ```
/// use typed_dims::init::orthogonal;
/// use typed_dims::prelude::*;
///
/// dims! { struct In; struct Out; struct Other; }
/// let w = orthogonal::<f64, _, _, _>((In.of(5), Out.of(3)), In, 1);
/// let products = (&w * w.view().rename(Out, Other)).sum(In).order((Out, Other));
/// assert!(products.iter().zip(&Array2::<f64>::eye(3)).all(|(a, b)| (a - b).abs() < 1e-12));
/// ```
///
/// # Panics
///
/// If a dim has no size or is given two sizes, its prime has another size, or the tensor does not
/// fit into memory.
#[panicking_twin]
#[rustfmt::skip] // rustc quotes the next line in errors
pub fn try_orthogonal<T: Real, D: SizedDims, F: DimList + DimsOf<D::Set, X>, X: Dims>(dims: D, rows: F, seed: u64)
-> Result<Named<T, D::Set>, DimError> {
    let sizes = sizes(&dims)?;
    check_given::<D>(&sizes, &rows)?;
    #[cfg(feature = "std")]
    if let Some(undrawn) = undrawn(&dims)? {
        return Ok(undrawn);
    }
    // Checks that the products below do not overflow.
    volume::<T>(&sizes)?;
    let is_row = |at: usize| F::KEYS.as_slice().iter().any(|key| key.same(&sizes[at].0));
    let count = |row: bool| (0..sizes.len()).filter(|&at| is_row(at) == row).map(|at| sizes[at].1).product();
    let (rows, columns): (usize, usize) = (count(true), count(false));
    let (number, len) = (rows.min(columns), rows.max(columns));
    let draw = |at: usize| deviate(RandomStream::Normal, seed, at as u64);
    let mut vectors = Destination::New(number * len).from_fn(draw)?;
    for at in 0..number {
        let (done, rest) = vectors.split_at_mut(at * len);
        let vector = &mut rest[..len];
        // Gram-Schmidt. The second pass removes rounding errors.
        for _ in 0..2 {
            for other in done.chunks_exact(len) {
                let along: f64 = vector.iter().zip(other).map(|(a, b)| a * b).sum();
                vector.iter_mut().zip(other).for_each(|(a, b)| *a -= along * b);
            }
        }
        let norm = Float::sqrt(vector.iter().map(|a| a * a).sum::<f64>());
        vector.iter_mut().for_each(|a| *a /= norm);
    }
    drawn(dims, |at| {
        // The position as a row and a column, with the dim written last counted fastest.
        let (mut at, mut row, mut column, mut step) = (at as usize, 0, 0, (1, 1));
        for (axis, &(_, size)) in sizes.iter().enumerate().rev() {
            let (place, step) =
                if is_row(axis) { (&mut row, &mut step.0) } else { (&mut column, &mut step.1) };
            *place += at % size * *step;
            *step *= size;
            at /= size;
        }
        let (vector, element) = if rows <= columns { (row, column) } else { (column, row) };
        rounded(vectors[vector * len + element])
    })
}
