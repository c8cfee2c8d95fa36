//! Results that consist of parts: each part is computed or copied directly into the result. Also
//! the reverse of a view, which adds elements to a result.

use crate::error::{DimError, list_sizes};
use crate::execute::step::execute;
use crate::expr::Expr;
use crate::expr::evaluate::evaluate;
use crate::expr::lowered::{LOWERS, lowered_for_places};
use crate::expr::remap::{Along, Changes, spread};
#[cfg(feature = "std")]
use crate::expr::step::is_heard;
use crate::expr::step::{ExprStep, Part, StepOfPlaces};
use crate::plan::axes::AxisList;
use crate::plan::shape::{Shape, volume};
use crate::storage::Evaluated;
use crate::storage::unchecked::{copy_row, finish_parts, write_lowered};
use crate::tensors::named::Named;
use crate::tensors::tensor::Computable;
use crate::types::rank::Rank;
use crate::types::set::{DimKey, Dims, Keys};
use alloc::string::String;
use alloc::vec::Vec;
use core::marker::PhantomData;
use kernels::loops::axes::Sizes;
use kernels::loops::nest::{Nest, NestParts};
use kernels::loops::rows::Rows;
use kernels::loops::steps::{Loops, PlanStep, note};
use kernels::loops::stride::AnyStride;
use kernels::map::update::write;
use kernels::memory::allocate::{InParts, repeated, reserve};
use kernels::memory::axes::{Axis, contiguous};
use kernels::memory::buffer::Buffer;
use kernels::memory::elements::OutputSlots;
use kernels::scalar::{Element, Num};
use kernels::step::places::{AddAtPlaces, OperandPlaces};
use smallvec::SmallVec;

/// Sizes of the dims of a set, then of positional axes, for messages.
pub(crate) fn describe(keys: &Keys, sizes: &[usize]) -> String {
    let names = keys.as_slice().iter().map(|key| key.name);
    list_sizes(names.chain(core::iter::repeat("positional axis")).zip(sizes.iter().copied()))
}

/// The number of elements of a result with the dims `S`. `sizes` are those of the dims, in the
/// order of the set, then those of the positional axes.
pub(crate) fn count<T, S: Dims>(sizes: &[usize]) -> Result<usize, DimError> {
    volume(sizes.iter().copied(), size_of::<T>()).ok_or_else(|| too_large::<S>(sizes))
}

#[cold]
fn too_large<S: Dims>(sizes: &[usize]) -> DimError {
    DimError::TooLarge { dims: describe(S::KEYS, sizes) }
}

/// Memory for a result with the dims `S`, with all elements `fill`.
pub(crate) fn filled<T: Element, S: Dims>(sizes: &[usize], fill: T) -> Result<Vec<T>, DimError> {
    repeated(fill, count::<T, S>(sizes)?).map_err(|_| too_large::<S>(sizes))
}

/// A result under construction from parts.
pub(crate) struct PlacedResult<T> {
    memory: PartMemory<T>,
    sizes: Sizes,
    strides: Strides,
    step: StepOfPlaces,
}

/// A stride along each axis.
pub(crate) type Strides = SmallVec<[isize; 8]>;

enum PartMemory<T> {
    /// New memory: the parts fill it, and each position is written once.
    New(InParts<T>),
    /// Existing elements, some of which are replaced by parts.
    Filled(Vec<T>),
    /// Copies of an element. While recording from sizes, they need no memory unless a constant part
    /// is written.
    #[cfg(feature = "std")]
    Equal(T),
    /// Recording from sizes: only constant parts are written. Holds the elements around the parts
    /// that are not written, or a single element if all are equal.
    #[cfg(feature = "std")]
    Hollow(Vec<T>),
}

impl<T: Element> PlacedResult<T> {
    /// A result with the dims `S` and the positional axes `R`; `sizes` are those of the dims, in
    /// the order of the set, then those of the positional axes. Elements outside the parts are
    /// `around`; if that is `None`, the parts must fill the result.
    pub(crate) fn of<S: Dims, R: Rank>(sizes: Sizes, around: Option<T>) -> Result<Self, DimError> {
        S::KEYS.check_primes(|at| (sizes[at], None))?;
        Self::padded_copy::<S, R>(sizes, around)
    }

    /// Like [`of`](PlacedResult::of), for a copy that only windows read. Here a dim and its prime
    /// can have different sizes, because it is possible that only one of them is padded.
    pub(crate) fn padded_copy<S: Dims, R: Rank>(sizes: Sizes, around: Option<T>) -> Result<Self, DimError> {
        let memory = match around {
            // Recording from sizes keeps the constant parts, which may be written before a part
            // turns out to be hollow.
            #[cfg(feature = "std")]
            _ if is_heard() && kernels::memory::hollow::may_exist() => {
                count::<T, S>(&sizes)?;
                PartMemory::Equal(around.unwrap_or_default())
            }
            None => {
                let parts = InParts::of(count::<T, S>(&sizes)?);
                PartMemory::New(parts.map_err(|_| too_large::<S>(&sizes))?)
            }
            Some(around) => PartMemory::Filled(filled::<T, S>(&sizes, around)?),
        };
        let strides = contiguous(AxisList::in_memory_of::<S, R>().as_slice(), &sizes);
        Ok(PlacedResult { memory, sizes, strides, step: StepOfPlaces::default() })
    }

    /// The stride along each axis, in the order of the sizes.
    pub(crate) fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// Computes an expression directly into the result. The expression has the dims `S` and the
    /// positional axes `R`, and its operands are unified. Its first element goes to `start`, and
    /// `strides` are the strides of its axes in the result. Parts must be disjoint.
    ///
    /// # Panics
    ///
    /// If a position is outside the result.
    #[track_caller]
    pub(crate) fn put<S: Dims, R: Rank, E: Expr<Elem = T>>(
        &mut self,
        expr: &E,
        shape: &Shape,
        start: usize,
        strides: &[isize],
    ) -> Result<(), DimError> {
        if shape.sizes().contains(&0) {
            return Ok(());
        }
        let step = ExprStep::of::<T, S, R, E>(expr, shape)?;
        #[cfg(feature = "std")]
        if step.scope().is_some() {
            match &mut self.memory {
                PartMemory::Equal(around) => self.memory = PartMemory::Hollow(alloc::vec![*around]),
                PartMemory::Filled(around) => self.memory = PartMemory::Hollow(core::mem::take(around)),
                PartMemory::New(_) | PartMemory::Hollow(_) => {}
            }
            self.step.add(step.part_at(start, strides));
            return Ok(());
        }
        #[cfg(feature = "std")]
        match &mut self.memory {
            PartMemory::Equal(around) => {
                self.memory = PartMemory::Filled(filled::<T, S>(&self.sizes, *around)?);
            }
            PartMemory::Hollow(around) if around.len() == 1 => {
                *around = filled::<T, S>(&self.sizes, around[0])?;
            }
            _ => {}
        }
        let places = match &mut self.memory {
            PartMemory::New(parts) => parts.places(),
            PartMemory::Filled(data) => data[..].as_mut().into(),
            #[cfg(feature = "std")]
            PartMemory::Equal(_) => unreachable!("the elements were allocated"),
            #[cfg(feature = "std")]
            PartMemory::Hollow(around) => around[..].as_mut().into(),
        };
        self.step.add(write_into::<S, R, E>(expr, shape, step, places, start, strides)?);
        Ok(())
    }

    /// The result.
    ///
    /// # Panics
    ///
    /// If there are no elements around the parts, and the parts do not fill the result.
    #[track_caller]
    pub(crate) fn finish<S: Dims, R: Rank>(self) -> Result<Named<T, S, R>, DimError> {
        let (data, sizes) = self.elements()?;
        Ok(Named::from_expr(Evaluated::of_sizes(data, &sizes)))
    }

    /// The elements of the result, and its axes.
    #[track_caller]
    pub(crate) fn finish_with_axes(self) -> Result<(Buffer<T>, SmallVec<[Axis; 8]>), DimError> {
        let axes =
            self.sizes.iter().zip(&self.strides).map(|(&size, &stride)| Axis::new(size, stride)).collect();
        Ok((self.elements()?.0, axes))
    }

    #[track_caller]
    fn elements(self) -> Result<(Buffer<T>, Sizes), DimError> {
        let data = match self.memory {
            PartMemory::New(parts) => finish_parts(parts),
            PartMemory::Filled(data) => data,
            #[cfg(feature = "std")]
            PartMemory::Equal(around) => repeated(around, self.sizes.iter().product())?,
            #[cfg(feature = "std")]
            PartMemory::Hollow(around) => {
                let len = self.sizes.iter().product();
                return Ok((self.step.finish_hollow(len, around)?, self.sizes));
            }
        };
        Ok((self.step.finish(data), self.sizes))
    }
}

/// Writes the elements of an expression, whose operands are unified, to `out`: each element at
/// `offset` plus its position times `strides`. Returns the part for the step of the result, if one is recorded.
#[track_caller]
fn write_into<S: Dims, R: Rank, E: Expr>(
    expr: &E,
    shape: &Shape,
    step: ExprStep,
    out: OutputSlots<'_, E::Elem>,
    offset: usize,
    strides: &[isize],
) -> Result<Option<Part>, DimError> {
    let sizes = shape.sizes();
    let part = step.part_at(offset, strides);
    let order = AxisList::in_memory_of::<S, R>().as_slice();
    let mut rows = Rows::new(sizes.len());
    rows.push().copy_from_slice(strides);
    if let Some(raw) = expr.in_memory::<S>() {
        let axes = raw.named.iter().chain(&raw.positional);
        axes.zip(rows.push()).for_each(|(axis, stride)| *stride = axis.stride);
        let nest = Nest::map(sizes, order, &rows);
        let len = nest.positions();
        note(|| PlanStep::Copy { reason: "part of the result", loops: Loops::new::<E::Elem>(&nest, len, 1) });
        let mut operands = nest.operands();
        let to = operands.next_row();
        copy_row(raw.elements, operands.next_row(), out, offset, (to.strides, &nest.sizes));
        return Ok(part);
    }
    expr.rows::<S, R>(shape, &mut rows);
    let nest = Nest::map(sizes, order, &rows);
    let len = nest.positions();
    note(|| PlanStep::Elementwise {
        expression: expr.describe(),
        loops: Loops::new::<E::Elem>(&nest, len, 1),
    });
    if LOWERS && let Some(program) = lowered_for_places(expr, len) {
        write_lowered(&program, &nest, out, offset);
        return Ok(part);
    }
    write(&nest, &mut NestParts::new(), out, offset, |operands| expr.kernel::<AnyStride>(operands))?;
    Ok(part)
}

/// Reverses a view, for `fold`: adds the elements of a tensor to zeros, at the positions that a view
/// along `changes` reads. Along each changed dim of the result:
/// `out[offset + sum of step * position] += x[position]`. The result has the dims `Y`. `changes`
/// contains the sizes of the changed dims; the other dims keep their sizes.
#[track_caller]
pub(crate) fn added_up<A: Computable<Elem: Num>, Y: Dims>(
    name: &'static str,
    tensor: A,
    changes: impl IntoIterator<Item = (DimKey, Along)>,
) -> Result<Named<A::Elem, Y, A::Rank>, DimError> {
    let (tensor, changes) = (tensor.into_named(), Changes::from_iter(changes));
    let shape = tensor.unified_shape()?;
    let keys = Y::KEYS.as_slice();
    let size = |key: &DimKey| match changes.iter().find(|(changed, _)| changed.same(key)) {
        Some((_, along)) => along.inner.expect("a dim that changes has a size"),
        None => shape.size(shape.position(key).expect("the dim is one of the tensor's")),
    };
    let sizes: Sizes = keys.iter().map(size).chain(shape.positional().iter().copied()).collect();
    Y::KEYS.check_primes(|at| (sizes[at], None))?;
    let len = count::<A::Elem, Y>(&sizes)?;
    let steps = contiguous(AxisList::in_memory_of::<Y, A::Rank>().as_slice(), &sizes);
    let mut strides = Strides::from_elem(0, shape.sizes().len());
    let start = spread(&changes, keys, &steps, &shape, &mut strides) as usize;
    let order = AxisList::in_memory_of::<A::Dims, A::Rank>().as_slice();
    let places = OperandPlaces {
        start,
        sizes: shape.sizes_in(order),
        strides: order.iter().map(|&axis| strides[axis]).collect(),
    };
    let kind =
        AddAtPlaces::<A::Elem> { name, len, operands: SmallVec::from_iter([places]), element: PhantomData };
    let mut data = evaluate::<A::Dims, A::Rank, _>(tensor.expr, &shape, order)?;
    let sums = match execute(&kind, &mut [&mut data]) {
        Err(DimError::TooLarge { .. }) => return Err(too_large::<Y>(&sizes)),
        sums => sums?.next::<A::Elem>(),
    };
    Ok(Named::from_expr(Evaluated::of_sizes(sums, &sizes)))
}

/// Memory for this many results of a function of numbers.
pub(crate) fn memory_of_numbers<T>(count: usize) -> Result<Vec<T>, DimError> {
    Ok(reserve(count)?)
}

/// A sequence of results, concatenated.
pub(crate) struct ResultsInSequence<T> {
    data: Vec<T>,
    step: StepOfPlaces,
}

impl<T: Element> ResultsInSequence<T> {
    pub(crate) fn new() -> Self {
        ResultsInSequence { data: Vec::new(), step: StepOfPlaces::default() }
    }

    /// Adds a result with the sizes `shape`.
    pub(crate) fn push(&mut self, result: &Buffer<T>, shape: &Shape) -> Result<(), DimError> {
        let too_large = |_| DimError::TooLarge { dims: shape.describe(&shape.all_axes()) };
        self.data.try_reserve(result.len()).map_err(too_large)?;
        self.step.add_whole(result, self.data.len());
        self.data.extend_from_slice(result);
        Ok(())
    }

    /// The size of the results in bytes.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.data[..])
    }

    #[track_caller]
    pub(crate) fn finish(self) -> Buffer<T> {
        self.step.finish(self.data)
    }
}
