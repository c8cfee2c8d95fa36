//! The operands of a pattern as a list.

use super::arrays::Arrays;
use super::data::{GivenSize, Pattern};
use super::input::{ArrayElements, InMemory, Input, ListItem, Values};
use super::layout::PatternLayout;
use super::operand::OneOperand;
use super::rank::{AnyRank, HasAtLeast, HasExactly};
use super::solve::solve;
use crate::bind::source::RankDyn;
use crate::error::DimError;
use crate::execute::loops::{RunLoops, mapped};
use crate::expr::Factors;
use crate::plan::direct;
use crate::plan::shape::Shape;
use crate::seal::{PRIVATE, Private};
use crate::types::rank::*;
use crate::types::set::{Dims, Union};
use alloc::string::String;
use alloc::vec::Vec;
use core::marker::PhantomData;
use kernels::load::Kernel;
use kernels::load::nodes::{BinaryKernel, Constant};
use kernels::loops::nest::{Nest, OperandRows};
use kernels::loops::rows::Rows;
use kernels::memory::axes::{Axis, row_major};
use kernels::memory::elements::Elements;
use kernels::ops::Mul;
#[cfg(feature = "std")]
use kernels::program::{
    Register,
    code::{BinaryOpcode, Code},
};
use kernels::scalar::{Element, Num};
#[cfg(feature = "std")]
use kernels::trace::record::Writer;
use smallvec::SmallVec;

/// The elements `V` of an operand whose number of axes matches its part of the pattern. `S` are its
/// dims, and `Rest` is the number of axes of `...`.
pub struct Arg<V, S, Rest> {
    pub(super) values: V,
    marker: PhantomData<fn() -> (S, Rest)>,
}

/// Makes arguments from operands that have `N` axes in the pattern, not counting `...`.
pub struct Taking<N>(PhantomData<N>);

impl<N> Taking<N> {
    /// An operand whose part of the pattern has no `...`.
    #[inline]
    pub fn exactly<A: Input<Rank: HasExactly<N>> + ?Sized>(
        operand: &A,
    ) -> Arg<A::Values<'_>, A::Dims, Rank0> {
        Arg { values: operand.values(), marker: PhantomData }
    }

    /// An operand whose part of the pattern has `...`.
    #[inline]
    pub fn at_least<A: Input<Rank: HasAtLeast<N>> + ?Sized>(
        operand: &A,
    ) -> Arg<A::Values<'_>, A::Dims, <A::Rank as HasAtLeast<N>>::Rest> {
        Arg { values: operand.values(), marker: PhantomData }
    }

    /// Like [`exactly`](Self::exactly), for an operand in memory.
    #[rustfmt::skip] // rustc quotes the next line in errors
    pub fn exactly_in_memory<'a, A: Input<Rank: HasExactly<N>, Values<'a>: InMemory<'a, Elem = A::Elem>> + ?Sized>(operand: &'a A) -> Arg<ArrayElements<'a, A::Elem>, (), Rank0> {
        Arg { values: operand.values().into_memory(), marker: PhantomData }
    }

    /// Like [`at_least`](Self::at_least), for an operand in memory.
    #[rustfmt::skip] // rustc quotes the next line in errors
    pub fn at_least_in_memory<'a, A: Input<Rank: HasAtLeast<N>, Values<'a>: InMemory<'a, Elem = A::Elem>> + ?Sized>(operand: &'a A) -> Arg<ArrayElements<'a, A::Elem>, (), <A::Rank as HasAtLeast<N>>::Rest> {
        Arg { values: operand.values().into_memory(), marker: PhantomData }
    }
}

macro_rules! taking {
    ($($name:ident $rank:ident)*) => {$(
        #[doc = concat!("[`Taking<", stringify!($rank), ">`](Taking), as macros write it.")]
        pub type $name = Taking<$rank>;
    )*};
}

taking! {
    Taking0 Rank0 Taking1 Rank1 Taking2 Rank2 Taking3 Rank3 Taking4 Rank4 Taking5 Rank5 Taking6 Rank6
    Taking7 Rank7 Taking8 Rank8 Taking9 Rank9 Taking10 Rank10 Taking11 Rank11 Taking12 Rank12
    Taking13 Rank13 Taking14 Rank14 Taking15 Rank15 Taking16 Rank16 Taking17 Rank17 Taking18 Rank18
    Taking19 Rank19 Taking20 Rank20 Taking21 Rank21 Taking22 Rank22 Taking23 Rank23 Taking24 Rank24
    Taking25 Rank25 Taking26 Rank26 TakingDyn RankDyn
}

/// The end of a list of operands.
#[derive(Clone, Copy, Debug)]
pub struct End;

/// All operands, as nested pairs.
#[diagnostic::on_unimplemented(
    message = "all operands of a pattern need elements of one type, here `{T}`",
    label = "the first operand has elements of type `{T}`, another one does not",
    note = "convert an array with `a.mapv(|x| x as f64)`, a tensor with `x.cast::<f64>()`"
)]
pub trait Args<T: Element> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The dims of all operands.
    type Dims: Dims;
    /// The number of axes of `...` after broadcasting.
    type Rest: AnyRank;
    #[doc(hidden)]
    type Values: ValueList<T>;
    #[doc(hidden)]
    fn values(self) -> Self::Values;
}

#[diagnostic::do_not_recommend]
impl<T: Element> Args<T> for End {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Dims = ();
    type Rest = Rank0;
    type Values = End;

    #[inline]
    fn values(self) -> End {
        self
    }
}

#[diagnostic::do_not_recommend]
impl<T, V, S, Rest, L> Args<T> for (Arg<V, S, Rest>, L)
where
    T: Element,
    V: Values<Elem = T>,
    S: Dims + Union<L::Dims>,
    Rest: AnyRank,
    L: Args<T>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Dims = <S as Union<L::Dims>>::Out;
    type Rest = Rest::Or<L::Rest>;
    type Values = (V, L::Values);

    #[inline]
    fn values(self) -> Self::Values {
        (self.0.values, self.1.values())
    }
}

/// The shapes of the operands.
pub type Shapes = SmallVec<[Shape; 2]>;

/// The elements of all operands.
#[doc(hidden)]
pub trait ValueList<T: Element> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The shape of each operand, in order.
    fn shapes<U: Dims>(&self, shapes: &mut Shapes, private: Private) -> Result<(), DimError>;

    /// The strides of each operand along the dims `U` and the operand's own axes.
    fn rows<U: Dims>(&self, shapes: &[Shape], each: &mut dyn FnMut(&Shape, &Rows));

    /// Appends the factors of each operand, with strides as in [`rows`](ValueList::rows). After the
    /// factors of each operand, calls `each` with the number of factors before them, the operand's
    /// shape, and all factors so far.
    fn factors<'s, U: Dims>(
        &'s self,
        shapes: &[Shape],
        factors: &mut Factors<'s, T>,
        each: &mut dyn FnMut(usize, &Shape, &mut Factors<'s, T>),
    ) -> Result<(), DimError>
    where
        T: Num;

    /// Copies each list into one array.
    fn settle(&mut self) -> Result<(), DimError>;

    /// The first two operands, if both meet the conditions of [`lent`](ValueList::lent).
    fn pair(&self) -> Option<(direct::ElementsAlong<'_, T>, direct::ElementsAlong<'_, T>)> {
        None
    }

    /// The first operand, if it is one borrowed array, without dims, whose axes need no allocation.
    fn lent(&self) -> Option<direct::ElementsAlong<'_, T>> {
        None
    }

    /// The first operand, if it is one array in memory, without dims.
    fn first(&self) -> Option<direct::ElementsAlong<'_, T>> {
        None
    }

    /// Appends the operands to `memories`. Returns false if one of them is not a single array in
    /// memory, without dims.
    fn memories<'s>(&'s self, memories: &mut OperandsInMemory<'s, T>) -> bool;

    /// The elements of the first operand in the order of a loop nest.
    fn collect_first(&self, nest: &Nest, len: usize, private: Private) -> Result<Vec<T>, DimError>;

    /// The axes and the arrays of the first operand, if it is a list that is not one array in
    /// memory.
    fn first_list(&self) -> Option<(&[Axis], &[ListItem<'_, T>])>;

    /// Calls `each` with the position and the arrays of each operand. A tensor is first copied to
    /// one array.
    fn arrays<U: Dims>(
        &self,
        shapes: &[Shape],
        each: &mut dyn FnMut(usize, &Arrays<'_, T>) -> Result<(), DimError>,
    ) -> Result<(), DimError>;

    /// A description for plans.
    fn describe(&self) -> String;

    /// The product of `left` and all operands as a program, for operands in the order of their
    /// [`rows`](ValueList::rows).
    #[cfg(feature = "std")]
    fn write<'s>(&'s self, left: Option<Register>, writer: &mut Writer<'s>) -> Register;

    /// The kernel that reads the product of `K` and all operands.
    type Times<'k, K: Kernel<Elem = T>>: Kernel<Elem = T>
    where
        Self: 'k,
        T: Num;

    /// The kernel that reads the product of all operands, which is 1 if there are none.
    type Product<'k>: Kernel<Elem = T>
    where
        Self: 'k,
        T: Num;

    /// The kernel that reads the product of `left` and all operands.
    fn times<'k, K: Kernel<Elem = T>>(
        &'k self,
        left: K,
        operands: &mut OperandRows<'k>,
    ) -> Self::Times<'k, K>
    where
        T: Num;

    /// The kernel that reads the product of all operands.
    fn product<'k>(&'k self, operands: &mut OperandRows<'k>) -> Self::Product<'k>
    where
        T: Num;
}

pub(super) type OperandsInMemory<'s, T> = SmallVec<[direct::ElementsAlong<'s, T>; 4]>;

impl<T: Element> ValueList<T> for End {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    #[inline]
    fn memories<'s>(&'s self, _: &mut OperandsInMemory<'s, T>) -> bool {
        true
    }

    fn collect_first(&self, _: &Nest, _: usize, _: Private) -> Result<Vec<T>, DimError> {
        unreachable!("there is no operand")
    }

    fn first_list(&self) -> Option<(&[Axis], &[ListItem<'_, T>])> {
        None
    }

    fn arrays<U: Dims>(
        &self,
        _: &[Shape],
        _: &mut dyn FnMut(usize, &Arrays<'_, T>) -> Result<(), DimError>,
    ) -> Result<(), DimError> {
        Ok(())
    }

    fn shapes<U: Dims>(&self, _: &mut Shapes, _: Private) -> Result<(), DimError> {
        Ok(())
    }

    fn rows<U: Dims>(&self, _: &[Shape], _: &mut dyn FnMut(&Shape, &Rows)) {}

    fn factors<'s, U: Dims>(
        &'s self,
        _: &[Shape],
        _: &mut Factors<'s, T>,
        _: &mut dyn FnMut(usize, &Shape, &mut Factors<'s, T>),
    ) -> Result<(), DimError>
    where
        T: Num,
    {
        Ok(())
    }

    fn settle(&mut self) -> Result<(), DimError> {
        Ok(())
    }

    fn describe(&self) -> String {
        String::new()
    }

    #[cfg(feature = "std")]
    fn write<'s>(&'s self, left: Option<Register>, writer: &mut Writer<'s>) -> Register {
        left.unwrap_or_else(|| writer.opaque("a pattern without operands"))
    }

    type Times<'k, K: Kernel<Elem = T>>
        = K
    where
        T: Num;
    type Product<'k>
        = Constant<T>
    where
        T: Num;

    #[inline]
    fn times<'k, K: Kernel<Elem = T>>(&'k self, left: K, _: &mut OperandRows<'k>) -> K
    where
        T: Num,
    {
        left
    }

    #[inline]
    fn product<'k>(&'k self, _: &mut OperandRows<'k>) -> Constant<T>
    where
        T: Num,
    {
        Constant(T::ONE)
    }
}

impl<T: Element, V: Values<Elem = T>, L: ValueList<T>> ValueList<T> for (V, L) {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    #[inline]
    fn shapes<U: Dims>(&self, shapes: &mut Shapes, private: Private) -> Result<(), DimError> {
        shapes.push(self.0.shape::<U>(private)?);
        self.1.shapes::<U>(shapes, private)
    }

    #[inline]
    fn rows<U: Dims>(&self, shapes: &[Shape], each: &mut dyn FnMut(&Shape, &Rows)) {
        let mut own = Rows::new(shapes[0].sizes().len());
        self.0.rows::<U>(&shapes[0], &mut own);
        each(&shapes[0], &own);
        self.1.rows::<U>(&shapes[1..], each);
    }

    fn factors<'s, U: Dims>(
        &'s self,
        shapes: &[Shape],
        factors: &mut Factors<'s, T>,
        each: &mut dyn FnMut(usize, &Shape, &mut Factors<'s, T>),
    ) -> Result<(), DimError>
    where
        T: Num,
    {
        let before = factors.operands.len();
        self.0.factors::<U>(&shapes[0], factors)?;
        each(before, &shapes[0], factors);
        self.1.factors::<U>(&shapes[1..], factors, each)
    }

    #[inline]
    fn settle(&mut self) -> Result<(), DimError> {
        self.0.settle()?;
        self.1.settle()
    }

    #[inline]
    fn pair(&self) -> Option<(direct::ElementsAlong<'_, T>, direct::ElementsAlong<'_, T>)> {
        Some((self.lent()?, self.1.lent()?))
    }

    #[inline]
    fn lent(&self) -> Option<direct::ElementsAlong<'_, T>> {
        let memory = self.0.memory().filter(|memory| memory.is_lent())?;
        Some((memory.elements(), &memory.axes))
    }

    #[inline]
    fn first(&self) -> Option<direct::ElementsAlong<'_, T>> {
        let memory = self.0.memory().filter(|memory| memory.list.is_none())?;
        Some((memory.elements(), &memory.axes))
    }

    #[inline]
    fn memories<'s>(&'s self, memories: &mut OperandsInMemory<'s, T>) -> bool {
        let Some(first) = self.first() else { return false };
        memories.push(first);
        self.1.memories(memories)
    }

    #[inline]
    fn collect_first(&self, nest: &Nest, len: usize, private: Private) -> Result<Vec<T>, DimError> {
        self.0.collect(nest, len, private)
    }

    #[inline]
    fn first_list(&self) -> Option<(&[Axis], &[ListItem<'_, T>])> {
        let memory = self.0.memory()?;
        // (In a list with a fault, some arrays may lack their elements.)
        let list = memory.list.as_deref().filter(|_| memory.fault.is_none())?;
        Some((&memory.axes, list))
    }

    fn arrays<U: Dims>(
        &self,
        shapes: &[Shape],
        each: &mut dyn FnMut(usize, &Arrays<'_, T>) -> Result<(), DimError>,
    ) -> Result<(), DimError> {
        let shape = &shapes[0];
        let named = shape.named_len();
        match self.0.memory() {
            Some(ArrayElements { list: Some(items), .. }) => {
                each(0, &Arrays::list(items.iter().map(|(held, axes)| (held.elements(), &axes[..])), named))?;
            }
            Some(memory) => each(0, &Arrays::one(memory.elements(), named, &memory.axes))?,
            None => {
                let sizes = shape.sizes();
                let order: SmallVec<[usize; 8]> = (0..sizes.len()).collect();
                let len = shape.volume(&order, size_of::<T>())?;
                let mut rows = Rows::new(sizes.len());
                self.0.rows::<U>(shape, &mut rows);
                let data = mapped(&OneOperand(&self.0), RunLoops { sizes, rows: &rows }, &order, len)?;
                let items = [(Elements::of_slice(&data), row_major(sizes))].into_iter().collect();
                each(0, &Arrays { items, is_list: false })?;
            }
        }
        self.1.arrays::<U>(&shapes[1..], &mut |operand, arrays| each(operand + 1, arrays))
    }

    fn describe(&self) -> String {
        let rest = self.1.describe();
        if rest.is_empty() { self.0.describe() } else { format!("{}, {rest}", self.0.describe()) }
    }

    #[cfg(feature = "std")]
    fn write<'s>(&'s self, left: Option<Register>, writer: &mut Writer<'s>) -> Register {
        let own = self.0.write(writer);
        let product = match left {
            Some(left) => writer.operation(Code::Binary(BinaryOpcode::Mul), "*", &[left, own]),
            None => own,
        };
        self.1.write(Some(product), writer)
    }

    type Times<'k, K: Kernel<Elem = T>>
        = L::Times<'k, BinaryKernel<'k, Mul, K, V::Kernel<'k>>>
    where
        Self: 'k,
        T: Num;
    type Product<'k>
        = L::Times<'k, V::Kernel<'k>>
    where
        Self: 'k,
        T: Num;

    #[inline]
    fn times<'k, K: Kernel<Elem = T>>(&'k self, left: K, operands: &mut OperandRows<'k>) -> Self::Times<'k, K>
    where
        T: Num,
    {
        let product = BinaryKernel { op: &Mul, a: left, b: self.0.kernel(operands) };
        self.1.times(product, operands)
    }

    #[inline]
    fn product<'k>(&'k self, operands: &mut OperandRows<'k>) -> Self::Product<'k>
    where
        T: Num,
    {
        let first = self.0.kernel(operands);
        self.1.times(first, operands)
    }
}

/// Unifies the sizes of the operands. Returns their shapes and the loops of the pattern.
pub(super) fn unify<T: Element, U: Dims>(
    pattern: &'static Pattern,
    given: &[GivenSize],
    values: &impl ValueList<T>,
) -> Result<(Shapes, PatternLayout), DimError> {
    let mut shapes = Shapes::new();
    values.shapes::<U>(&mut shapes, PRIVATE)?;
    if U::KEYS.as_slice().is_empty() {
        let layout = unified(pattern, given, &shapes, &[])?;
        return Ok((shapes, layout));
    }
    let mut dims = Shape::of_axes::<U>(&[]);
    for shape in &shapes {
        for at in 0..dims.named_len() {
            let (size, origin) = shape.known(at);
            dims.unify(at, size, origin)?;
        }
    }
    dims.finish()?;
    for shape in &mut shapes {
        for at in 0..dims.named_len() {
            let (size, origin) = dims.known(at);
            shape.unify(at, size, origin)?;
        }
    }
    let layout = unified(pattern, given, &shapes, dims.sizes())?;
    Ok((shapes, layout))
}

/// The loops of a pattern for operands of these shapes, whose dims have the sizes `named`.
#[inline]
fn unified(
    pattern: &'static Pattern,
    given: &[GivenSize],
    shapes: &[Shape],
    named: &[usize],
) -> Result<PatternLayout, DimError> {
    if let [shape] = shapes {
        return Ok(PatternLayout::new(pattern, solve(pattern, given, &[shape.positional()])?, named));
    }
    let positional: SmallVec<[&[usize]; 4]> = shapes.iter().map(Shape::positional).collect();
    Ok(PatternLayout::new(pattern, solve(pattern, given, &positional)?, named))
}

/// The strides of all operands along the loops of a pattern.
pub(super) fn lay_out<T: Element, U: Dims>(
    layout: &PatternLayout,
    shapes: &[Shape],
    values: &impl ValueList<T>,
) -> Result<Rows, DimError> {
    let mut rows = Rows::new(layout.sizes.len());
    let mut operand = 0;
    let mut result = Ok(());
    values.rows::<U>(shapes, &mut |shape, own| {
        let slots = layout.pattern.inputs[operand];
        for (strides, &offset) in own.iter().zip(own.offsets()) {
            let row = rows.push_at(offset);
            if let Err(error) = layout.spread(slots, &[], shape.positional(), strides, row) {
                result = Err(error);
            }
        }
        operand += 1;
    });
    result.map(|()| rows)
}
