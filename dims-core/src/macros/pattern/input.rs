//! The operands of patterns: arrays of any rank and storage, slices and fixed-size arrays of
//! numbers, single numbers, lists of arrays, and tensors.

use super::rank::AnyRank;
use crate::bind::source::{Axes, Nested};
use crate::error::DimError;
use crate::execute::loops::check_elements_taken;
use crate::execute::parts::chained;
use crate::expr::{Expr, Factors};
use crate::plan::shape::Shape;
use crate::seal::{PRIVATE, Private};
use crate::storage::source::{elements, elements_of_nested};
use crate::storage::unchecked::{collect_memory, factor, strided};
use crate::tensors::named::Named;
use crate::types::rank::{Rank, Rank0};
use crate::types::set::Dims;
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Deref;
use kernels::load::Kernel;
use kernels::load::strided::Strided;
use kernels::loops::nest::{Nest, OperandRows};
use kernels::loops::rows::Rows;
use kernels::loops::stride::AnyStride;
use kernels::memory::axes::{Axis, row_major};
use kernels::memory::destination::Destination;
use kernels::memory::elements::Elements;
#[cfg(feature = "std")]
use kernels::program::Register;
use kernels::scalar::{Element, Num};
#[cfg(feature = "std")]
use kernels::trace::record::Writer;
use ndarray::{ArrayBase, Data};
use smallvec::SmallVec;

/// An operand of a pattern.
///
/// | operand | its axes |
/// |---|---|
/// | an ndarray array, owned or a view, or a reference, a `Box`, `Rc` or `Arc` to one | its own; the rank may be dynamic |
/// | a slice or vector of numbers, a nested fixed-size array | its own |
/// | a number | none |
/// | a slice, vector or fixed-size array of arrays, or of pointers to arrays or numbers | the list is the first axis |
/// | a tensor, lazy or not | its positional axes; the pattern is applied for each position of its dims |
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an operand of a pattern",
    label = "expected an array, a list of arrays, a number, or a tensor; a generic element type needs `T: Num`"
)]
pub trait Input {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The type of the elements.
    type Elem: Element;
    /// The dims over which the pattern is batched.
    type Dims: Dims;
    /// The number of axes.
    type Rank: AnyRank;
    #[doc(hidden)]
    type Values<'a>: Values<Elem = Self::Elem>
    where
        Self: 'a;
    #[doc(hidden)]
    fn values(&self) -> Self::Values<'_>;
}

/// The elements of an operand, without its rank in the type.
#[doc(hidden)]
pub trait Values {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The type of the elements.
    type Elem: Element;
    /// The kernel that reads the elements.
    type Kernel<'k>: Kernel<Elem = Self::Elem>
    where
        Self: 'k;

    /// The sizes along the dims `U` and the positional axes.
    fn shape<U: Dims>(&self, private: Private) -> Result<Shape, DimError>;

    /// The strides along the dims `U` and the positional axes: one row for each array that is read.
    fn rows<U: Dims>(&self, shape: &Shape, rows: &mut Rows);

    /// The kernel, which reads each array with its row of a loop nest.
    fn kernel<'k>(&'k self, operands: &mut OperandRows<'k>) -> Self::Kernel<'k>;

    /// The elements in the order of a loop nest.
    fn collect(&self, nest: &Nest, len: usize, private: Private) -> Result<Vec<Self::Elem>, DimError>;

    /// Appends factors whose product is these elements, with strides along the dims `U` and the
    /// positional axes.
    fn factors<'s, U: Dims>(
        &'s self,
        shape: &Shape,
        factors: &mut Factors<'s, Self::Elem>,
    ) -> Result<(), DimError>
    where
        Self::Elem: Num;

    /// A description for plans.
    fn describe(&self) -> String;

    /// The elements as a program, with operands in the order of their [`rows`](Values::rows).
    #[cfg(feature = "std")]
    fn write<'w>(&'w self, writer: &mut Writer<'w>) -> Register;

    /// Copies the arrays of a list into one, for operations that read all of them at once.
    fn settle(&mut self) -> Result<(), DimError> {
        Ok(())
    }

    /// The elements in memory, if the operand is not a tensor.
    fn memory(&self) -> Option<&ArrayElements<'_, Self::Elem>> {
        None
    }
}

/// Elements in memory, without dims: an array, or a list of arrays.
#[doc(hidden)]
#[derive(Debug)]
pub struct ArrayElements<'a, T> {
    /// The elements along the axes. Empty if `list` is set.
    pub(super) held: BorrowedOrOwned<'a, T>,
    /// The axes. The first axis of a list runs along the list.
    pub(super) axes: Axes,
    /// The arrays of a list, if the list is not one array in memory.
    pub(super) list: Option<ListItems<'a, T>>,
    /// The error of an inner list whose arrays could not be combined.
    pub(super) fault: Option<Box<DimError>>,
}

/// Elements that are borrowed, or were copied from a list.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub enum BorrowedOrOwned<'a, T> {
    Borrowed(Elements<'a, T>),
    Owned(Vec<T>),
}

impl<T> BorrowedOrOwned<'_, T> {
    #[inline]
    pub(super) fn elements(&self) -> Elements<'_, T> {
        match self {
            BorrowedOrOwned::Borrowed(elements) => *elements,
            BorrowedOrOwned::Owned(data) => Elements::of_slice(data),
        }
    }
}

/// An array of a list, with its axes.
pub(super) type ListItem<'a, T> = (BorrowedOrOwned<'a, T>, Axes);

/// The arrays of a list.
#[doc(hidden)]
#[derive(Debug)]
pub enum ListItems<'a, T> {
    Lent(&'a [ListItem<'a, T>]),
    Own(Vec<ListItem<'a, T>>),
}

impl<'a, T> Deref for ListItems<'a, T> {
    type Target = [ListItem<'a, T>];

    #[inline]
    fn deref(&self) -> &[ListItem<'a, T>] {
        match self {
            ListItems::Lent(items) => items,
            ListItems::Own(items) => items,
        }
    }
}

impl<'a, T> ArrayElements<'a, T> {
    #[inline]
    pub(super) fn new((elements, axes): (Elements<'a, T>, Axes)) -> Self {
        ArrayElements { held: BorrowedOrOwned::Borrowed(elements), axes, list: None, fault: None }
    }

    pub(super) fn list(items: ListItems<'a, T>) -> Self {
        // The stride along the list is 0. The other strides are those of the first array.
        let mut axes = Axes::from_slice(&[Axis::new(items.len(), 0)]);
        if let Some((_, own)) = items.first() {
            axes.extend_from_slice(own);
        }
        ArrayElements {
            held: BorrowedOrOwned::Borrowed(Elements::of_slice(&[])),
            axes,
            list: Some(items),
            fault: None,
        }
    }

    /// Whether this is one borrowed array whose axes need no allocation, so that it owns nothing.
    #[inline]
    pub(super) fn is_lent(&self) -> bool {
        matches!(self.held, BorrowedOrOwned::Borrowed(_))
            && self.list.is_none()
            && self.fault.is_none()
            && !self.axes.spilled()
    }

    #[inline]
    pub(super) fn elements(&self) -> Elements<'_, T> {
        self.held.elements()
    }

    /// Checks that a list is not empty, and that its arrays have the same sizes.
    pub(super) fn check_list(&self) -> Result<(), DimError> {
        if let Some(fault) = &self.fault {
            return Err((**fault).clone());
        }
        let Some(items) = &self.list else { return Ok(()) };
        let Some((_, first)) = items.first() else {
            return Err(DimError::Shape { what: "an empty list of arrays has no sizes".into() });
        };
        let differs = |axes: &Axes| !axes.iter().map(|axis| axis.size).eq(first.iter().map(|axis| axis.size));
        let sizes = |axes: &Axes| axes.iter().map(|axis| axis.size).collect::<Vec<_>>();
        match items.iter().position(|(_, axes)| differs(axes)) {
            None => Ok(()),
            Some(at) => Err(DimError::Shape {
                what: format!(
                    "the arrays of a list differ: the first has the sizes {:?}, number {} has {:?}",
                    sizes(first),
                    at + 1,
                    sizes(&items[at].1)
                ),
            }),
        }
    }

    fn row(&self, rows: &mut Rows) {
        let row = rows.push();
        let named = row.len() - self.axes.len();
        for (step, axis) in row[named..].iter_mut().zip(&self.axes) {
            *step = axis.stride;
        }
    }
}

impl<T: Element> Values for ArrayElements<'_, T> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Elem = T;
    type Kernel<'k>
        = Strided<'k, T, ()>
    where
        Self: 'k;

    #[inline]
    fn shape<U: Dims>(&self, _: Private) -> Result<Shape, DimError> {
        self.check_list()?;
        let sizes: SmallVec<[usize; 8]> = self.axes.iter().map(|axis| axis.size).collect();
        Ok(Shape::of_axes::<U>(&sizes))
    }

    #[inline]
    fn rows<U: Dims>(&self, _: &Shape, rows: &mut Rows) {
        self.row(rows);
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn kernel<'k>(&'k self, operands: &mut OperandRows<'k>) -> Strided<'k, T, ()> {
        strided(self.elements(), operands.next_row(), ())
    }

    #[inline]
    fn collect(&self, nest: &Nest, len: usize, _: Private) -> Result<Vec<T>, DimError> {
        Ok(collect_memory(self.elements(), nest, Destination::of_step(len), "order of the result")?)
    }

    fn factors<'s, U: Dims>(&'s self, shape: &Shape, factors: &mut Factors<'s, T>) -> Result<(), DimError>
    where
        T: Num,
    {
        let mut row: SmallVec<[isize; 8]> = SmallVec::from_elem(0, shape.named_len());
        row.extend(self.axes.iter().map(|axis| axis.stride));
        factors.operands.push(factor(self.elements(), row));
        Ok(())
    }

    fn describe(&self) -> String {
        "array".into()
    }

    #[cfg(feature = "std")]
    fn write<'w>(&'w self, writer: &mut Writer<'w>) -> Register {
        // (A list is copied array by array. This only records that its arrays are read.)
        if let Some(items) = &self.list {
            items.iter().for_each(|(held, _)| {
                writer.elements(held.elements(), None);
            });
        }
        writer.elements(self.elements(), None)
    }

    #[inline]
    fn settle(&mut self) -> Result<(), DimError> {
        if self.list.is_none() && self.fault.is_none() {
            return Ok(());
        }
        self.put_together()
    }

    #[inline]
    fn memory(&self) -> Option<&ArrayElements<'_, T>> {
        Some(self)
    }
}

impl<T: Element> ArrayElements<'_, T> {
    /// Copies the arrays of a list into one.
    #[cold]
    fn put_together(&mut self) -> Result<(), DimError> {
        self.check_list()?;
        let Some(items) = self.list.take() else { return Ok(()) };
        let sizes: SmallVec<[usize; 6]> = self.axes.iter().map(|axis| axis.size).collect();
        let shape = Shape::of_axes::<()>(&sizes);
        let len = shape.volume(&shape.all_axes(), size_of::<T>())?;
        let part = |(held, axes): &ListItem<'_, T>| {
            check_elements_taken(held.elements(), "a list of arrays")?;
            let item = ArrayElements::new((held.elements(), axes.clone()));
            let mut rows = Rows::new(axes.len());
            item.row(&mut rows);
            let order: SmallVec<[usize; 8]> = (0..axes.len()).collect();
            item.collect(&Nest::map(&sizes[1..], &order, &rows), len / items.len(), PRIVATE)
        };
        let parts = items.iter().filter(|_| len > 0).map(part);
        let data = chained(len, parts)?;
        self.axes.iter_mut().zip(row_major(&sizes)).for_each(|(axis, stride)| axis.stride = stride);
        self.held = BorrowedOrOwned::Owned(data);
        Ok(())
    }
}

/// Elements in memory, as required by lists, views, `pack!` and `unpack!`.
#[diagnostic::on_unimplemented(
    message = "expected an array: a tensor's elements may not be computed yet",
    label = "expected an array",
    note = "`x.order((i, j))` makes an array of a tensor"
)]
pub trait InMemory<'a> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The type of the elements.
    type Elem;
    #[doc(hidden)]
    fn into_memory(self) -> ArrayElements<'a, Self::Elem>;
}

#[diagnostic::do_not_recommend]
impl<'a, T> InMemory<'a> for ArrayElements<'a, T> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Elem = T;

    #[inline]
    fn into_memory(self) -> ArrayElements<'a, T> {
        self
    }
}

/// Arrays that are joined must have the same element type.
#[diagnostic::on_unimplemented(
    message = "the arrays of a list need elements of one type: the first has `{T}`, this one `{Self}`",
    label = "elements of type `{Self}`, but the first array has `{T}`",
    note = "convert an array with `a.mapv(|x| x as f64)`"
)]
pub trait SameElem<T>: Sized {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    #[doc(hidden)]
    fn same(memory: ArrayElements<'_, Self>) -> ArrayElements<'_, T>;
}

#[diagnostic::do_not_recommend]
impl<T> SameElem<T> for T {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    fn same(memory: ArrayElements<'_, T>) -> ArrayElements<'_, T> {
        memory
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element, S: Dims, R: Rank, E: Expr<Elem = T>> Values for &Named<T, S, R, E> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Elem = T;
    type Kernel<'k>
        = E::Kernel<'k, AnyStride>
    where
        Self: 'k;

    fn shape<U: Dims>(&self, _: Private) -> Result<Shape, DimError> {
        let mut shape = Shape::new::<U, R>();
        self.expr.unify::<U, R>(&mut shape)?;
        Ok(shape)
    }

    fn rows<U: Dims>(&self, shape: &Shape, rows: &mut Rows) {
        self.expr.rows::<U, R>(shape, rows);
    }

    fn kernel<'k>(&'k self, operands: &mut OperandRows<'k>) -> E::Kernel<'k, AnyStride> {
        self.expr.kernel::<AnyStride>(operands)
    }

    fn collect(&self, nest: &Nest, len: usize, private: Private) -> Result<Vec<T>, DimError> {
        self.expr.collect(nest, Destination::of_step(len), private)
    }

    fn factors<'s, U: Dims>(&'s self, shape: &Shape, factors: &mut Factors<'s, T>) -> Result<(), DimError>
    where
        T: Num,
    {
        self.expr.factors::<U, R>(shape, factors)
    }

    fn describe(&self) -> String {
        self.expr.describe()
    }

    #[cfg(feature = "std")]
    fn write<'w>(&'w self, writer: &mut Writer<'w>) -> Register {
        self.expr.write(writer)
    }
}

/// An array as the item of a list.
fn lone<A: Item>(array: &A) -> ListItem<'_, A::Elem> {
    // Make a list with one item, and drop the list's axis.
    let ArrayElements { held, axes, list, .. } = A::list(core::slice::from_ref(array));
    match list {
        Some(own) => own[0].clone(),
        None => (held, axes[1..].into()),
    }
}

macro_rules! pointers {
    ($($pointer:ty),*) => {$(
        #[diagnostic::do_not_recommend]
        impl<A: Input + ?Sized> Input for $pointer {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Elem = A::Elem;
            type Dims = A::Dims;
            type Rank = A::Rank;
            type Values<'a>
                = A::Values<'a>
            where
                Self: 'a;

            #[inline]
            fn values(&self) -> Self::Values<'_> {
                (**self).values()
            }
        }

        #[diagnostic::do_not_recommend]
        impl<A: Item> Item for $pointer {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            fn list(items: &[Self]) -> ArrayElements<'_, A::Elem> {
                ArrayElements::list(ListItems::Own(items.iter().map(|item| lone(&**item)).collect()))
            }
        }
    )*};
}

pointers!(&A, &mut A, Box<A>, Rc<A>, Arc<A>);

#[diagnostic::do_not_recommend]
impl<T: Element, S: Dims, R: Rank, E: Expr<Elem = T>> Input for Named<T, S, R, E> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Elem = T;
    type Dims = S;
    type Rank = R;
    type Values<'a>
        = &'a Self
    where
        Self: 'a;

    #[inline]
    fn values(&self) -> &Self {
        self
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element, S: Data<Elem = T>, D: crate::bind::source::NdRank<Rank: AnyRank>> Input for ArrayBase<S, D> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Elem = T;
    type Dims = ();
    type Rank = D::Rank;
    type Values<'a>
        = ArrayElements<'a, T>
    where
        Self: 'a;

    #[inline]
    fn values(&self) -> ArrayElements<'_, T> {
        ArrayElements::new(elements(self))
    }
}

/// Items of lists: arrays, fixed-size arrays of numbers, numbers, and pointers to these.
#[diagnostic::on_unimplemented(
    message = "a list of `{Self}` cannot be an operand of a pattern",
    label = "expected a list of arrays, or of numbers"
)]
pub trait Item: Input<Dims = ()> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    #[doc(hidden)]
    fn list(items: &[Self]) -> ArrayElements<'_, Self::Elem>
    where
        Self: Sized;
}

#[diagnostic::do_not_recommend]
impl<T: Element, S: Data<Elem = T>, D: crate::bind::source::NdRank<Rank: AnyRank>> Item for ArrayBase<S, D> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    fn list(items: &[Self]) -> ArrayElements<'_, T> {
        let item = |item| {
            let (elements, axes) = elements(item);
            (BorrowedOrOwned::Borrowed(elements), axes)
        };
        ArrayElements::list(ListItems::Own(items.iter().map(item).collect()))
    }
}

macro_rules! numbers {
    ($($t:ty),*) => {$(
        #[diagnostic::do_not_recommend]
        impl Input for $t {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Elem = $t;
            type Dims = ();
            type Rank = Rank0;
            type Values<'a> = ArrayElements<'a, $t>;

            #[inline]
            fn values(&self) -> ArrayElements<'_, $t> {
                ArrayElements::new((Elements::of_slice(core::slice::from_ref(self)), Axes::new()))
            }
        }

        #[diagnostic::do_not_recommend]
        impl Item for $t {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            fn list(items: &[Self]) -> ArrayElements<'_, $t> {
                ArrayElements::new(elements(items))
            }
        }
    )*};
}

numbers!(i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize, f32, f64, bool);
numbers!(num_complex::Complex32, num_complex::Complex64);
#[cfg(feature = "half")]
numbers!(half::f16, half::bf16);

#[diagnostic::do_not_recommend]
impl<X: Nested + Item, const N: usize> Item for [X; N]
where
    [X; N]: Nested<Elem = <X as Input>::Elem>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    fn list(items: &[Self]) -> ArrayElements<'_, <X as Input>::Elem> {
        ArrayElements::new(elements_of_nested(items))
    }
}

macro_rules! lists {
    ($(($($params:tt)*) $list:ty;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<X: Item, $($params)*> Input for $list {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Elem = X::Elem;
            type Dims = ();
            type Rank = <X::Rank as AnyRank>::Next;
            type Values<'a>
                = ArrayElements<'a, X::Elem>
            where
                Self: 'a;

            #[inline]
            fn values(&self) -> ArrayElements<'_, X::Elem> {
                X::list(&self[..])
            }
        }
    )*};
}

lists! {
    () [X];
    () Vec<X>;
    (const N: usize) [X; N];
}
