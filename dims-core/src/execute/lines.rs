//! Lines: what a tensor has along some of its dims, one line for each position of the others.
//!
//! Sorting, normalising and the like need a whole line at a time. So the elements are computed with those dims innermost, each line
//! is worked on, on several threads if that is worth it, and the result is put into the order in which results lie.

use crate::dim::DimList;
use crate::error::DimError;
use crate::execute::step::execute;
use crate::expr::Expr;
use crate::expr::evaluate::{evaluate, laid_out};
use crate::expr::record::{along_lines as recorded_lines, held_if_traced, reduced_lines, untraced};
use crate::named::Named;
use crate::plan::axes::AxisList;
use crate::plan::shape::{Shape, volume};
use crate::rank::{Rank, Rank0};
use crate::reduce::{TensorOf, along_axes};
use crate::set::Dims;
use crate::storage::Evaluated;
use crate::tensor::Computable;
use alloc::string::String;
use alloc::vec::Vec;
use core::marker::PhantomData;
use kernels::loops::axes::{Order, Sizes};
use kernels::loops::nest::Nest;
use kernels::loops::rows::Rows;
use kernels::loops::steps::{PlanStep, note};
use kernels::machine::threads;
use kernels::memory::buffer::Buffer;
use kernels::memory::destination::Destination;
use kernels::ops::code::ReductionKind;
use kernels::scalar::Element;
use kernels::scan::{self, LineOp};
use kernels::step::{Executed, StepKind};

/// The elements of a tensor, line by line.
pub(crate) struct Lines<T> {
    /// The elements, contiguous in `order`.
    pub data: Buffer<T>,
    /// The sizes of all loop axes, by number.
    pub shape: Shape,
    /// The loop axes: those of the positions of lines, then those along a line.
    pub order: Order,
    /// How many of them are those of the positions.
    pub kept: usize,
}

/// The loop axes of a tensor with the dims `S` and the positional axes `R`: those that are not in `D`, as results lie, and those of `D`.
struct LineAxes<S, R, D>(PhantomData<(S, R, D)>);

impl<S: Dims, R: Rank, D: DimList> LineAxes<S, R, D> {
    const ALONG: &'static AxisList = &AxisList::of(D::KEYS, S::KEYS);
    const KEPT: &'static AxisList = &AxisList::in_memory(S::KEYS, R::N).without(Self::ALONG);
}

impl<T: Element> Lines<T> {
    /// Computes a tensor with the dims `D` innermost, which it must have, for what has no derivative: it is an error if it is traced.
    #[track_caller]
    pub(crate) fn of<A: Computable<Elem = T>, D: DimList>(tensor: A) -> Result<Self, DimError> {
        let mut lines = Lines::recorded::<A, D>(tensor)?;
        lines.data = untraced(lines.data, "lines")?.into();
        Ok(lines)
    }

    /// Computes a tensor with the dims `D` innermost, which it must have.
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

    /// How many elements a line has.
    pub(crate) fn len(&self) -> usize {
        self.order[self.kept..].iter().map(|&axis| self.shape.size(axis)).product()
    }

    /// How many lines there are.
    pub(crate) fn count(&self) -> usize {
        self.order[..self.kept].iter().map(|&axis| self.shape.size(axis)).product()
    }

    /// The dims along a line, with their sizes, for messages.
    pub(crate) fn describe(&self) -> String {
        self.shape.describe(&self.order[self.kept..])
    }

    /// Runs a step whose operand the lines are. It may write over them: they are not to be read afterwards.
    #[track_caller]
    pub(crate) fn execute<K: StepKind + Clone>(&mut self, kind: &K) -> Result<Executed, DimError> {
        execute(kind, &mut [&mut self.data])
    }

    /// A result of `len` elements for each line, as a tensor with the dims `S` again.
    #[track_caller]
    pub(crate) fn tensor<U: Element, S: Dims, R: Rank>(
        &self,
        data: Buffer<U>,
        len: usize,
    ) -> Result<Named<U, S, R>, DimError> {
        arranged(data, &self.order, &self.sizes(&[len]))
    }

    /// Fails if `len` elements for each line cannot be counted.
    pub(crate) fn check_volume<U>(&self, len: usize) -> Result<(), DimError> {
        match volume(self.sizes(&[len]).into_iter(), size_of::<U>()) {
            Some(_) => Ok(()),
            None => Err(DimError::TooLarge { dims: self.shape.describe(&self.order) }),
        }
    }

    /// Works on each piece of `len` elements by a kernel, and puts the result into order. Pieces are lines, or equal parts of them.
    #[track_caller]
    pub(crate) fn along<S: Dims, R: Rank, W: LineOp<T>>(
        self,
        len: usize,
        work: W,
    ) -> Result<Named<T, S, R>, DimError> {
        let traced = held_if_traced(&self.data);
        let mut data = self.data.into_vec();
        if !data.is_empty() {
            let (lines, bytes) = (data.len() / len, data.len() * size_of::<T>());
            let threads = threads::parts(data.len());
            note(|| PlanStep::Lines { work: W::NAME, lines, len, bytes, threads });
            scan::in_place(&mut data, len, 1, threads, work);
        }
        let sizes = self.shape.sizes_in(&self.order);
        let data = recorded_lines(data, traced, len, work.derivative(), W::NAME)?;
        arranged(data, &self.order, &sizes)
    }

    /// Makes `len` elements of each line.
    pub(crate) fn map<U: Element>(
        &self,
        name: &'static str,
        len: usize,
        work: impl Fn(&[T], &mut [U]) + Send + Sync,
    ) -> Result<Vec<U>, DimError> {
        let (count, line) = (self.count(), self.len());
        let too_large = || DimError::TooLarge { dims: self.shape.describe(&self.order) };
        let total = count.checked_mul(len).ok_or_else(too_large)?;
        let mut out = kernels::memory::allocate::reserve(total).map_err(|_| too_large())?;
        out.resize(total, U::default());
        if total > 0 {
            let threads = threads::parts(self.data.len().max(total));
            let bytes = total * size_of::<U>();
            note(|| PlanStep::Lines { work: name, lines: count, len: line, bytes, threads });
            let each = count.div_ceil(threads);
            let parts: Vec<_> = out.chunks_mut(each * len).enumerate().collect();
            threads::each(parts, |(part, out)| {
                for (at, out) in out.chunks_exact_mut(len).enumerate() {
                    let start = (part * each + at) * line;
                    work(&self.data[start..start + line], out);
                }
            });
        }
        Ok(out)
    }

    /// What a reduction made of each line, as a step of the program if the lines are traced.
    #[track_caller]
    pub(crate) fn recorded_reduction(
        &self,
        data: Vec<T>,
        reduction: ReductionKind,
    ) -> Result<Buffer<T>, DimError> {
        reduced_lines(data, held_if_traced(&self.data), self.len(), reduction, "lines")
    }

    /// One element for each line, as a tensor with the dims `X`, which are those of `S` but for the lines'.
    #[track_caller]
    pub(crate) fn reduced<U: Element, X: Dims, R: Rank, S: Dims>(
        &self,
        data: impl Into<Buffer<U>>,
    ) -> Result<Named<U, X, R>, DimError> {
        let axes = axes_in::<X, S>(self.order[..self.kept].iter().copied());
        arranged(data, &axes, &self.sizes(&[]))
    }

    /// The sizes of the loop axes in `order`, where those along a line are replaced by `along`.
    pub(crate) fn sizes(&self, along: &[usize]) -> Sizes {
        let kept = self.order[..self.kept].iter().map(|&axis| self.shape.size(axis));
        kept.chain(along.iter().copied()).collect()
    }
}

/// The loop axes of a tensor with the dims `S` along a line over the dims `D`, in the order in which [`along_lines`] has its elements.
fn line_axes<S: Dims, R: Rank, D: DimList>() -> &'static [usize] {
    let along = LineAxes::<S, R, D>::ALONG.as_slice();
    let order = AxisList::in_memory_of::<S, R>().as_slice();
    let last = &order[order.len() - along.len()..];
    if last.iter().all(|axis| along.contains(axis)) { last } else { along }
}

/// The elements of an expression that does not vary but along a line over the dims `D` of a tensor with the dims `S`, one for each element
/// of a line, in the order of [`along_lines`]. `U` are the dims of `S`. (They are a type of their own for calls that never run, where `U` has more.)
pub(crate) fn beside_lines<U: Dims, S: Dims, D: DimList, E: Expr>(
    expr: &E,
    shape: &Shape,
) -> Result<Vec<E::Elem>, DimError> {
    let axes = line_axes::<S, Rank0, D>();
    let len = shape.volume(axes, size_of::<E::Elem>())?;
    let mut rows = Rows::new(shape.sizes().len());
    expr.rows::<U, Rank0>(shape, &mut rows);
    expr.collect(&Nest::map(shape.sizes(), axes, &rows), Destination::New(len))
        .map_err(|error| shape.name_dims(error, axes))
}

/// Computes a tensor, and works along each line over the dims `D` by a kernel: line by line while it is in the cache, if results lie so that
/// the elements of a line are neighbours.
#[track_caller]
pub(crate) fn along_lines<A: Computable, D: DimList, W: LineOp<A::Elem>>(
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

/// Elements that lie contiguously in an order of all axes, put into the order in which results lie.
#[track_caller]
pub(crate) fn arranged<T: Element, S: Dims, R: Rank>(
    data: impl Into<Buffer<T>>,
    order: &[usize],
    sizes: &[usize],
) -> Result<Named<T, S, R>, DimError> {
    let owned = Evaluated::<T, S, R>::in_order(data, order, sizes);
    if order == AxisList::in_memory_of::<S, R>().as_slice() {
        return Ok(Named::from_expr(owned));
    }
    let tensor = Named::<T, S, R>::from_expr(owned);
    let shape = tensor.unified_shape()?;
    Ok(Named::from_expr(laid_out::<S, R, _>(tensor.expr, &shape)?))
}

/// The axes of some dims and positional axes among those of a tensor with the dims `Y`: the dims by their keys.
pub(crate) fn axes_in<Y: Dims, S: Dims>(axes: impl Iterator<Item = usize>) -> Order {
    let (old, new) = (S::KEYS.as_slice(), Y::KEYS.as_slice());
    axes.map(|axis| match old.get(axis) {
        Some(key) => Y::KEYS.position(key).expect("the dim is one of the result's"),
        None => axis - old.len() + new.len(),
    })
    .collect()
}
