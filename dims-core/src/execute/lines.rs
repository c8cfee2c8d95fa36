//! Lines: the elements of a tensor along some of its dims, one line for each position of the other
//! dims.
//!
//! Sorting, normalizing and similar operations need a whole line at a time. So the elements are
//! computed with the dims of a line innermost. Then the lines are processed, on several threads if
//! that pays off. Finally the result is put into the order in which results are stored ("the order
//! of results").

use crate::error::DimError;
use crate::execute::reduce::{TensorOf, along_axes};
use crate::execute::step::execute;
use crate::expr::evaluate::{evaluate, evaluate_tensor};
use crate::expr::step::{ExprStep, check_buffer_unrecorded, taken};
use crate::expr::{Binary, Expr, Operand};
use crate::plan::axes::AxisList;
use crate::plan::shape::{Shape, volume};
use crate::seal::PRIVATE;
use crate::storage::Evaluated;
use crate::tensors::named::Named;
use crate::tensors::tensor::Computable;
use crate::types::dim::DimList;
use crate::types::rank::{Rank, Rank0};
use crate::types::set::{Dims, Keys};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::marker::PhantomData;
use kernels::loops::axes::{Order, Sizes};
use kernels::loops::nest::Nest;
use kernels::loops::rows::Rows;
use kernels::loops::steps::ran;
use kernels::memory::buffer::Buffer;
use kernels::memory::destination::Destination;
use kernels::ops;
use kernels::scalar::{Element, Real};
use kernels::scan::LineOp;
use kernels::scan::norm::{Standardize, StandardizeAffine};
use kernels::step::lines::{StandardizeAffineLines, WorkLines};
use kernels::step::{Executed, StepKind};
use smallvec::SmallVec;

/// The elements of a tensor, line by line.
pub(crate) struct Lines<T> {
    /// The elements, contiguous in `order`.
    pub data: Buffer<T>,
    /// The sizes of all loop axes.
    pub shape: Shape,
    /// The loop axes: first those that number the lines, then those along a line.
    pub order: Order,
    /// The number of axes that number the lines.
    pub kept: usize,
}

/// The loop axes of a tensor with the dims `S` and the positional axes `R`: those not in `D`, in
/// the order of results, and those of `D`.
struct LineAxes<S, R, D>(PhantomData<(S, R, D)>);

impl<S: Dims, R: Rank, D: DimList> LineAxes<S, R, D> {
    const ALONG: &'static AxisList = &AxisList::of(D::KEYS, S::KEYS);
    const KEPT: &'static AxisList = &AxisList::in_memory(S::KEYS, R::N).without(Self::ALONG);
}

impl<T: Element> Lines<T> {
    /// Computes a tensor with its dims `D` innermost, for operations without a derivative.
    /// Returns an error if an operand is traced.
    #[track_caller]
    pub(crate) fn of<A: Computable<Elem = T>, D: DimList>(
        tensor: A,
        operation: &'static str,
    ) -> Result<Self, DimError> {
        let mut lines = Lines::recorded::<A, D>(tensor)?;
        lines.data = taken(lines.data, operation)?.into();
        Ok(lines)
    }

    /// Computes a tensor with its dims `D` innermost.
    #[track_caller]
    pub(crate) fn recorded<A: Computable<Elem = T>, D: DimList>(tensor: A) -> Result<Self, DimError> {
        let tensor = tensor.into_named();
        let shape = tensor.unified_shape()?;
        let kept = LineAxes::<A::Dims, A::Rank, D>::KEPT.as_slice();
        let along = LineAxes::<A::Dims, A::Rank, D>::ALONG.as_slice();
        let order: Order = kept.iter().chain(along).copied().collect();
        let data = evaluate::<A::Dims, A::Rank, _>(tensor.expr, &shape, &order)?;
        Ok(Lines { data, shape, order, kept: kept.len() })
    }

    /// The number of elements of a line.
    pub(crate) fn len(&self) -> usize {
        self.order[self.kept..].iter().map(|&axis| self.shape.size(axis)).product()
    }

    /// The number of lines.
    pub(crate) fn count(&self) -> usize {
        self.order[..self.kept].iter().map(|&axis| self.shape.size(axis)).product()
    }

    /// The dims along a line, with their sizes, for messages.
    pub(crate) fn describe(&self) -> String {
        self.shape.describe(&self.order[self.kept..])
    }

    /// Runs a step on the lines. It may overwrite them, so they must not be read afterwards.
    #[track_caller]
    pub(crate) fn execute<K: StepKind + Clone>(&mut self, kind: &K) -> Result<Executed, DimError> {
        execute(kind, &mut [&mut self.data]).map_err(|error| match error {
            DimError::TooLarge { .. } => DimError::TooLarge { dims: self.shape.describe(&self.order) },
            error => error,
        })
    }

    /// A result of `len` elements for each line, as a tensor with the dims `S`. The lines must run
    /// along a single axis.
    #[track_caller]
    pub(crate) fn tensor<U: Element, S: Dims, R: Rank>(
        &self,
        data: Buffer<U>,
        len: usize,
    ) -> Result<Named<U, S, R>, DimError> {
        arranged(data, &self.order, &self.sizes(&[len]))
    }

    /// Fails if the elements depend on inputs of a recorded function, because the operation reads
    /// them.
    #[track_caller]
    pub(crate) fn check_unrecorded(&self, operation: &'static str) -> Result<(), DimError> {
        check_buffer_unrecorded(&self.data, operation)
    }

    /// Fails if the size in bytes of a result of `len` elements for each line overflows.
    pub(crate) fn check_volume<U>(&self, len: usize) -> Result<(), DimError> {
        match volume(self.sizes(&[len]).into_iter(), size_of::<U>()) {
            Some(_) => Ok(()),
            None => Err(DimError::TooLarge { dims: format!("{} lines of {len} elements", self.count()) }),
        }
    }

    /// Applies the work to each piece of `len` elements. Pieces are lines, or equal parts of lines.
    #[track_caller]
    pub(crate) fn along<S: Dims, R: Rank, W: LineOp<T> + 'static>(
        mut self,
        len: usize,
        work: W,
    ) -> Result<Named<T, S, R>, DimError> {
        let lines = self.data.len().checked_div(len).unwrap_or(0);
        let data = self.execute(&WorkLines { lines, len, work, element: PhantomData::<T> })?.next();
        self.alike(data)
    }

    /// A result with as many elements for each line as the line has, as a tensor with the dims `S`.
    #[track_caller]
    pub(crate) fn alike<S: Dims, R: Rank>(&self, data: Buffer<T>) -> Result<Named<T, S, R>, DimError> {
        arranged(data, &self.order, &self.shape.sizes_in(&self.order))
    }

    /// One element for each line, as a tensor with the dims `X`: the dims of `S` except those along
    /// a line.
    #[track_caller]
    pub(crate) fn reduced<U: Element, X: Dims, R: Rank, S: Dims>(
        &self,
        data: impl Into<Buffer<U>>,
    ) -> Result<Named<U, X, R>, DimError> {
        let axes = axes_in::<X, S>(self.order[..self.kept].iter().copied());
        arranged(data, &axes, &self.sizes(&[]))
    }

    /// The sizes of the loop axes in `order`, with those along a line replaced by `along`.
    pub(crate) fn sizes(&self, along: &[usize]) -> Sizes {
        let kept = self.order[..self.kept].iter().map(|&axis| self.shape.size(axis));
        kept.chain(along.iter().copied()).collect()
    }
}

/// The loop axes along a line over the dims `D` of a tensor with the dims `S`, in the order in
/// which [`along_lines`] passes the elements of the line.
fn line_axes<S: Dims, R: Rank, D: DimList>() -> &'static [usize] {
    let along = LineAxes::<S, R, D>::ALONG.as_slice();
    let order = AxisList::in_memory_of::<S, R>().as_slice();
    let last = &order[order.len() - along.len()..];
    if last.iter().all(|axis| along.contains(axis)) { last } else { along }
}

/// The elements of an expression that varies only along a line over the dims `D` of a tensor with
/// the dims `S`: one for each element of a line, in the order of [`along_lines`]. In every call
/// that runs, `U` and `S` are the same set. (They are two parameters because other calls are
/// compiled but never run, and there `U` has more dims.)
fn beside_lines<U: Dims, S: Dims, D: DimList, E: Expr>(
    expr: &E,
    shape: &Shape,
) -> Result<Vec<E::Elem>, DimError> {
    let axes = line_axes::<S, Rank0, D>();
    let len = shape.volume(axes, size_of::<E::Elem>())?;
    let mut rows = Rows::new(shape.sizes().len());
    expr.rows::<U, Rank0>(shape, &mut rows);
    expr.collect(&Nest::map(shape.sizes(), axes, &rows), Destination::New(len), PRIVATE)
        .inspect(|_| ran())
        .map_err(|error| shape.name_dims(error, axes))
}

/// Computes a tensor and applies `work` along each line over the dims `D`. If the elements of a
/// line are contiguous in results, each line is processed while it is in the cache.
#[track_caller]
pub(crate) fn along_lines<A: Computable, D: DimList, W: LineOp<A::Elem> + 'static>(
    tensor: A,
    work: W,
) -> Result<TensorOf<A>, DimError> {
    let along = line_axes::<A::Dims, A::Rank, D>();
    let order = AxisList::in_memory_of::<A::Dims, A::Rank>().as_slice();
    if order.ends_with(along) {
        return along_axes(tensor, order, along, work);
    }
    let lines = Lines::recorded::<A, D>(tensor)?;
    let len = lines.len();
    lines.along(len, work)
}

/// Standardizes each line over the dims `D` of a tensor, then multiplies by a gain and adds a bias.
/// The result has the dims `U`: those of the tensor, the gain and the bias.
///
/// If gain and bias only have dims of a line, and neither they nor the tensor are traced, this is
/// one pass over the lines. Otherwise one pass standardizes the lines, and a second one applies
/// gain and bias. Both passes have derivatives.
#[track_caller]
pub(crate) fn standardized_affine<A, D, G, B, U>(
    tensor: A,
    eps: A::Elem,
    gain: G,
    bias: B,
) -> Result<Named<A::Elem, U>, DimError>
where
    A: Computable<Elem: Real, Rank = Rank0>,
    D: DimList,
    G: Operand<A::Elem, Rank = Rank0, Expr: Expr<Elem = A::Elem>>,
    B: Operand<A::Elem, Rank = Rank0, Expr: Expr<Elem = A::Elem>>,
    U: Dims,
{
    let (tensor, gain, bias) = (tensor.into_named(), gain.into_expr(), bias.into_expr());
    let mut shape = Shape::new::<U, Rank0>();
    tensor.expr.unify::<U, Rank0>(&mut shape)?;
    gain.unify::<U, Rank0>(&mut shape)?;
    bias.unify::<U, Rank0>(&mut shape)?;
    shape.finish()?;
    if const { D::KEYS.has(G::Dims::KEYS) && D::KEYS.has(B::Dims::KEYS) }
        && !ExprStep::of::<A::Elem, U, Rank0, _>(&gain, &shape)?.is_some()
        && !ExprStep::of::<A::Elem, U, Rank0, _>(&bias, &shape)?.is_some()
        && !ExprStep::of::<A::Elem, U, Rank0, _>(&tensor.expr, &shape)?.is_some()
    {
        // Gain and bias add no dims to those of the tensor.
        let gain = beside_lines::<U, A::Dims, D, _>(&gain, &shape)?;
        let bias = beside_lines::<U, A::Dims, D, _>(&bias, &shape)?;
        let owned = standardized_affine_lines::<_, D>(tensor, eps, gain, bias)?.expr;
        let axes: SmallVec<[usize; 8]> = (0..shape.sizes().len()).collect();
        return Ok(Named::from_expr(owned.with_dims(&axes, |_| 1)));
    }
    let normal = along_lines::<_, D, _>(tensor, Standardize(eps))?.expr;
    let scaled = Binary { op: ops::Mul, a: normal, b: gain };
    let expr = Binary { op: ops::Add, a: scaled, b: bias };
    Ok(Named::from_expr(evaluate_tensor::<U, Rank0, _>(expr, &shape)?))
}

/// [`standardized_affine`] in one pass over the lines, with a gain and a bias for each element of a
/// line.
#[track_caller]
fn standardized_affine_lines<A: Computable<Elem: Real>, D: DimList>(
    tensor: A,
    eps: A::Elem,
    gain: Vec<A::Elem>,
    bias: Vec<A::Elem>,
) -> Result<TensorOf<A>, DimError> {
    let along = line_axes::<A::Dims, A::Rank, D>();
    let order = AxisList::in_memory_of::<A::Dims, A::Rank>().as_slice();
    if order.ends_with(along) {
        return along_axes(tensor, order, along, StandardizeAffine { eps, gain: &gain, bias: &bias });
    }
    let mut lines = Lines::recorded::<A, D>(tensor)?;
    let kind = StandardizeAffineLines { lines: lines.count(), len: lines.len(), eps };
    let (mut gain, mut bias) = (Buffer::from(gain), Buffer::from(bias));
    let data = execute(&kind, &mut [&mut lines.data, &mut gain, &mut bias])?.next();
    lines.alike(data)
}

/// Contiguous elements in an order of all axes, rearranged into the order of results.
#[track_caller]
pub(crate) fn arranged<T: Element, S: Dims, R: Rank>(
    data: impl Into<Buffer<T>>,
    order: &[usize],
    sizes: &[usize],
) -> Result<Named<T, S, R>, DimError> {
    check_primes_in(S::KEYS, order, sizes)?;
    let data: Buffer<T> = data.into();
    let owned = Evaluated::<T, S, R>::in_order(data, order, sizes);
    if order == AxisList::in_memory_of::<S, R>().as_slice() {
        return Ok(Named::from_expr(owned));
    }
    let tensor = Named::<T, S, R>::from_expr(owned);
    let shape = tensor.unified_shape()?;
    Ok(Named::from_expr(evaluate_tensor::<S, R, _>(tensor.expr, &shape)?))
}

/// Checks that dims and their primes have the same size. `sizes` is in an order of all axes.
fn check_primes_in(keys: &Keys, order: &[usize], sizes: &[usize]) -> Result<(), DimError> {
    let axis_of = |at| order.iter().position(|&axis| axis == at).expect("each axis is in the order");
    keys.check_primes(|at| (sizes[axis_of(at)], None))
}

/// For axes of a tensor with the dims `S`, their numbers in a tensor with the dims `Y`.
pub(crate) fn axes_in<Y: Dims, S: Dims>(axes: impl Iterator<Item = usize>) -> Order {
    let (old, new) = (S::KEYS.as_slice(), Y::KEYS.as_slice());
    axes.map(|axis| match old.get(axis) {
        Some(key) => Y::KEYS.position(key).expect("the dim is one of the result's"),
        None => axis - old.len() + new.len(),
    })
    .collect()
}
