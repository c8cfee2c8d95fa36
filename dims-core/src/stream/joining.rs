//! Concatenation, stacking and repetition.

use super::Stream;
use super::axes::{Beside, NoAxisYet};
use super::ledger::{CostClass, StreamShape};
use crate::error::DimError;
use crate::plan::shape::volume;
use crate::storage::shared::SharedElements;
use crate::storage::source::Axes;
use crate::types::brand::Brand;
use crate::types::dim::DimRef;
use crate::types::set::Dims;
use crate::types::set::ordered::AxisOf;
use alloc::string::ToString;
use alloc::vec::Vec;
use kernels::loops::axes::Order;
use kernels::memory::allocate::reserve;
use kernels::scalar::Element;
use twins::panicking_twin;

impl<T: Element, L: Dims, D: Brand> Stream<T, L, D> {
    /// Concatenates the parts along `axis`. The size of `axis` in the result is the sum of the
    /// parts' sizes. All parts must have the same axes, the same data dimension, and the same sizes
    /// along all other axes.
    ///
    /// Along the data dimension this costs compute. Along another axis it is free on the hardware;
    /// this library copies the parts.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { pub struct A; pub struct B; }
    /// let x = from_vec((A.of(2), B.of(1)), vec![1, 2]).stream((A, B), B);
    /// let y: Stream<i32, (A, B), B> = Stream::concat(A, [&x, &(&x * 10)]);
    /// assert_eq!(y.to_array(), ndarray::array![[1], [2], [10], [20]]);
    /// ```
    ///
    /// # Panics
    ///
    /// If sizes along other axes differ, there are no parts, a static or given size of `axis` is
    /// not the sum of the parts' sizes, or the result does not fit into memory.
    #[panicking_twin]
    pub fn try_concat<'a, A: AxisOf<L>>(
        axis: A,
        parts: impl IntoIterator<Item = &'a Self>,
    ) -> Result<Self, DimError>
    where
        Self: 'a,
    {
        let mut parts = parts.into_iter().peekable();
        let first = parts.peek().map(|part| part.shape());
        let out = Self::joined(axis, parts, 1)?;
        out.note(
            Self::cost_of_joining(axis),
            || format!("concat({})", axis.info().name),
            || first.into_iter().collect(),
        );
        Ok(out)
    }

    /// Stacks the parts along a new axis `new` before `axis`. This is free on the hardware, because
    /// the new axis is not the data dimension.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { pub struct A; pub struct B; pub struct Part; }
    /// let x = from_vec((A.of(2), B.of(2)), vec![1, 2, 3, 4]).stream((A, B), B);
    /// let y: Stream<i32, (A, Part, B), B> = Stream::stack_before(B, Part, [&x, &(&x * 10)]);
    /// assert_eq!(y.to_array(), ndarray::array![[[1, 2], [10, 20]], [[3, 4], [30, 40]]]);
    /// ```
    ///
    /// # Panics
    ///
    /// If the parts' sizes differ, there are no parts, `new` already has a size other than the
    /// number of parts, a size given with `axis` is not its size, or the result does not fit into
    /// memory.
    #[panicking_twin]
    pub fn try_stack_before<'a, A: AxisOf<L>, N: NoAxisYet<L> + Beside<A, L>>(
        axis: A,
        new: N,
        parts: impl IntoIterator<Item = &'a Self>,
    ) -> Result<Stream<T, N::Before, D>, DimError>
    where
        Self: 'a,
    {
        Self::stacked(axis, Self::position(axis), new, parts)
    }

    /// Like [`stack_before`](Stream::stack_before), but after `axis`.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { pub struct A; pub struct Part; }
    /// let x = from_vec(A.of(2), vec![1, 2]).stream(A, A);
    /// let y: Stream<i32, (A, Part), A> = Stream::stack_after(A, Part, [&x, &(&x * 10)]);
    /// assert_eq!(y.to_array(), ndarray::array![[1, 10], [2, 20]]);
    /// ```
    ///
    /// # Panics
    ///
    /// See [`stack_before`](Stream::stack_before).
    #[panicking_twin]
    pub fn try_stack_after<'a, A: AxisOf<L>, N: NoAxisYet<L> + Beside<A, L>>(
        axis: A,
        new: N,
        parts: impl IntoIterator<Item = &'a Self>,
    ) -> Result<Stream<T, N::Behind, D>, DimError>
    where
        Self: 'a,
    {
        Self::stacked(axis, Self::position(axis) + 1, new, parts)
    }

    /// Repeats the elements `times` times along `axis`. The result equals the concatenation of
    /// `times` copies.
    ///
    /// ```text
    /// [a! b c].repeat(n, dim=0) -> [(a * n)! b c]     compute
    /// [a! b c].repeat(n, dim=1) -> [a! (b * n) c]     free
    /// ```
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { pub struct A; pub struct B; }
    /// let x = from_vec((A.of(2), B.of(2)), vec![1, 2, 3, 4]).stream((A, B), A);
    /// assert_eq!(x.repeat(B, 2).to_array(), ndarray::array![[1, 2, 1, 2], [3, 4, 3, 4]]);
    /// ```
    ///
    /// # Panics
    ///
    /// If the result does not fit into memory, or a static or given size of `axis` is not its size
    /// in the result.
    #[panicking_twin]
    pub fn try_repeat<A: AxisOf<L>>(&self, axis: A, times: usize) -> Result<Self, DimError> {
        let out = Self::joined(axis, core::iter::once(self), times)?;
        out.note(
            Self::cost_of_joining(axis),
            || format!("repeat({}, {times})", axis.info().name),
            || vec![self.shape()],
        );
        Ok(out)
    }

    fn cost_of_joining<A: DimRef>(axis: A) -> CostClass {
        if Self::is_data(axis) { CostClass::Compute } else { CostClass::Free }
    }

    /// The concatenation of the parts along `axis`, repeated `times` times.
    fn joined<'a, A: DimRef>(
        axis: A,
        parts: impl IntoIterator<Item = &'a Self>,
        times: usize,
    ) -> Result<Self, DimError>
    where
        Self: 'a,
    {
        let (info, at) = (axis.info(), Self::position(axis));
        let (mut data, mut total, mut first) = (Vec::new(), 0_usize, None::<Vec<usize>>);
        for part in parts {
            let own = part.sizes();
            let first = first.get_or_insert_with(|| own.clone());
            if (0..own.len()).any(|other| other != at && own[other] != first[other]) {
                return Err(differ("concatenation", info.name, &Self::shape_of(first), &part.shape()));
            }
            total = total.checked_add(own[at]).ok_or_else(|| too_large(&part.shape(), times))?;
            // With the axis outermost, the result is the concatenation of the parts' memory.
            part.append_to(
                &mut data,
                core::iter::once(at).chain((0..own.len()).filter(|&other| other != at)),
            )?;
        }
        let Some(mut sizes) = first else {
            return Err(DimError::Shape { what: format!("nothing to concatenate along `{}`", info.name) });
        };
        sizes[at] = total;
        let len = volume(sizes.iter().copied().chain([times]), size_of::<T>());
        let len = len.ok_or_else(|| too_large(&Self::shape_of(&sizes), times))?;
        let total = sizes[at].checked_mul(times).ok_or_else(|| too_large(&Self::shape_of(&sizes), times))?;
        // (Without elements, `times` can be so large that the loop would hardly end.)
        if times != 1 && !data.is_empty() {
            let mut all = reserve(len).map_err(|_| too_large(&Self::shape_of(&sizes), times))?;
            (0..times).for_each(|_| all.extend_from_slice(&data));
            data = all;
        }
        sizes[at] = total;
        info.resized().unify(total, None)?;
        Stream::from_shared(outermost(data, at, sizes))
    }

    fn append_to(&self, data: &mut Vec<T>, order: impl Iterator<Item = usize>) -> Result<(), DimError> {
        let part = self.in_order(&order.collect::<Order>())?;
        data.try_reserve(part.len()).map_err(|_| too_large(&self.shape(), 1))?;
        data.extend_from_slice(&part);
        Ok(())
    }

    fn stacked<'a, M: Dims, A: DimRef, N: DimRef>(
        axis: A,
        at: usize,
        new: N,
        parts: impl IntoIterator<Item = &'a Self>,
    ) -> Result<Stream<T, M, D>, DimError>
    where
        Self: 'a,
    {
        let info = new.info();
        let (mut data, mut first, mut count) = (Vec::new(), None::<StreamShape>, 0);
        for part in parts {
            part.check_given(&axis)?;
            let shape = part.shape();
            let first = first.get_or_insert_with(|| shape.clone());
            if *first != shape {
                return Err(differ("stack", info.name, first, &shape));
            }
            part.append_to(&mut data, 0..shape.axes.len())?;
            count += 1;
        }
        let Some(first) = first else {
            return Err(DimError::Shape { what: format!("nothing to stack along `{}`", info.name) });
        };
        info.unify(count, None)?;
        let mut sizes: Vec<usize> = first.axes.iter().map(|axis| axis.1).collect();
        sizes.insert(at, count);
        let out = Stream::<T, M, D>::from_shared(outermost(data, at, sizes))?;
        out.note(CostClass::Free, || format!("stack({})", info.name), || vec![first]);
        Ok(out)
    }
}

#[cold]
fn differ(what: &str, dim: &str, first: &StreamShape, other: &StreamShape) -> DimError {
    DimError::Shape { what: format!("parts of a {what} along `{dim}` differ: {first} and {other}") }
}

/// The elements `data`, which are stored with the axis `at` outermost. `sizes` are in the order of
/// the axes.
fn outermost<T>(data: Vec<T>, at: usize, mut sizes: Vec<usize>) -> SharedElements<T> {
    let size = sizes.remove(at);
    sizes.insert(0, size);
    let shared = SharedElements::contiguous(data, &sizes);
    let mut axes: Axes = shared.axes().into();
    let axis = axes.remove(0);
    axes.insert(at, axis);
    shared.with_axes(0, axes)
}

#[cold]
fn too_large(shape: &StreamShape, times: usize) -> DimError {
    let dims = if times == 1 { shape.to_string() } else { format!("{times} times {shape}") };
    DimError::TooLarge { dims }
}
