//! What `tensor!` and `einsum!` call besides the public interface. Everything here could be written by hand.

use crate::bind::binder::bind_affine;
use crate::bind::binding::Binding;
use crate::bind::source::{Axes, Source, check_rank};
use crate::brand::Brand;
use crate::dim::{Dim, DimRef};
use crate::elementwise::{BinaryOut, Selected, UnaryOut};
use crate::error::DimError;
use crate::expr::{Binary, Expr, Operand, Scalar, Select, Unary};
use crate::named::Named;
use crate::ops::{Cast, Holds, Index, Left, Map, Pair};
use crate::rank::{Rank, Rank0};
use crate::scalar::{Analytic, CastTo, Element, IndexInt, Num, Real};
use crate::set::{Dims, Union};
use crate::storage::axes::{Axis, AxisBlock};
use crate::storage::view::Leaf;
use crate::tensor::{AsTensor, NamedOf};
use core::marker::PhantomData;
use core::ops::{Range, RangeInclusive};
use core::panic::Location;

pub use crate::error::unwrap;

/// The traits whose methods macros call; nothing in here has a name that could hide one of the user's.
pub mod methods {
    pub use super::Operands as _;
    pub use crate::bind::At as _;
    pub use crate::elementwise::Elementwise as _;
    pub use crate::order::OrderExt as _;
    pub use crate::reduce::Reductions as _;
}

/// A captured integer that meets a loop variable, as an index.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be combined with a loop variable, which is an integer",
    label = "expected an integer",
    note = "cast the loop variable first: `i as {Self}`"
)]
pub trait ToIndex {
    /// The nearest `isize`.
    fn to_index(self) -> isize;
}

#[diagnostic::do_not_recommend]
impl<T: IndexInt> ToIndex for T {
    #[inline(always)]
    fn to_index(self) -> isize {
        self.to_isize()
    }
}

/// A captured integer as an index.
#[inline(always)]
pub fn index<T: ToIndex>(value: T) -> isize {
    value.to_index()
}

/// One position of an axis. As a computed index, it is looked at where an element is read.
#[inline(always)]
pub fn position<T: IndexInt>(value: T) -> Named<isize, (), Rank0, Scalar<isize>> {
    Named::from_expr(Scalar(value.to_isize()))
}

/// Elements that meet a loop variable, as indices.
#[inline(always)]
pub fn indices<A: AsTensor<Elem: LikeIndex<M>>, M>(a: A) -> <A::Elem as LikeIndex<M>>::Indices<A> {
    A::Elem::indices(a)
}

/// Elements that can be computed with or compared to a loop variable: integers.
#[diagnostic::on_unimplemented(
    message = "elements of type `{Self}` cannot be combined with a loop variable, which is an integer",
    label = "expected integers",
    note = "cast the loop variable first: `i as {Self}`"
)]
pub trait LikeIndex<M = Yes>: Sized {
    /// What a tensor of them is as indices. (Of others there is none: one mistake is one error.)
    type Indices<A: AsTensor<Elem = Self>>;
    /// Makes the indices.
    fn indices<A: AsTensor<Elem = Self>>(a: A) -> Self::Indices<A>;
}

#[diagnostic::do_not_recommend]
impl<T: IndexInt> LikeIndex<Yes> for T {
    type Indices<A: AsTensor<Elem = T>> = UnaryOut<Index, A>;

    #[inline(always)]
    fn indices<A: AsTensor<Elem = T>>(a: A) -> UnaryOut<Index, A> {
        Named::from_expr(Unary { op: Index, a: a.into_named().expr })
    }
}

#[diagnostic::do_not_recommend]
impl<T: Never> LikeIndex<No> for T {
    type Indices<A: AsTensor<Elem = T>> = A;

    fn indices<A: AsTensor<Elem = T>>(a: A) -> A {
        a
    }
}

/// Indices in the type of a tensor's elements.
pub type Alike<A, I> = UnaryOut<Cast<<A as AsTensor>::Elem>, I>;

/// A loop variable in the type of the elements that it meets.
#[inline(always)]
pub fn alike<A: AsTensor<Elem: LikeIndex>, I: AsTensor<Elem = isize>>(a: A, index: I) -> (A, Alike<A, I>)
where
    isize: CastTo<A::Elem>,
{
    (a, Named::from_expr(Unary { op: Cast(PhantomData), a: index.into_named().expr }))
}

/// A captured value that meets elements.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no single value, which is what meets elements",
    label = "expected one value; what has elements takes an index for each axis, `a[i, j]`"
)]
pub trait Value<M> {
    /// The value as a tensor without dims. (What is no value has none: one mistake is one error.)
    type Tensor;
    /// Makes the tensor.
    fn tensor(self) -> Self::Tensor;
}

#[diagnostic::do_not_recommend]
impl<T: Element> Value<Yes> for T {
    type Tensor = Named<T, (), Rank0, Scalar<T>>;

    #[inline(always)]
    fn tensor(self) -> Self::Tensor {
        Named::from_expr(Scalar(self))
    }
}

#[diagnostic::do_not_recommend]
impl<T: Never> Value<No> for T {
    type Tensor = Self;

    fn tensor(self) -> Self {
        self
    }
}

/// Holds.
#[derive(Debug)]
pub struct Yes;
/// Does not hold.
#[derive(Debug)]
pub struct No;
/// Does not hold either: where [`Yes`] is implemented for one type alone, it takes two that are not to leave rustc a choice for others.
#[derive(Debug)]
pub struct Other;

/// Holds for nothing. Beside an implementation for all `T: Bound` another one for all `T: Never` makes rustc look at the bounds before it chooses one of
/// them: what a type without the bound yields is unknown then, and no further error follows from it.
pub trait Never {}

/// A captured value as a tensor without dims.
#[inline(always)]
pub fn scalar<T: Value<M>, M>(value: T) -> T::Tensor {
    value.tensor()
}

/// Elements that are indices: integers.
#[diagnostic::on_unimplemented(
    message = "elements of type `{Self}` cannot be indices",
    label = "integers are needed here: these are elements of type `{Self}`"
)]
pub trait Lookup<M> {
    /// The tensor of these elements. (Of others there is none: one mistake is one error.)
    type Of<A>;
    /// Yields the tensor.
    fn of<A>(a: A) -> Self::Of<A>;
}

#[diagnostic::do_not_recommend]
impl<T: IndexInt> Lookup<Yes> for T {
    type Of<A> = A;

    #[inline(always)]
    fn of<A>(a: A) -> A {
        a
    }
}

#[diagnostic::do_not_recommend]
impl<T: Never> Lookup<No> for T {
    type Of<A> = A;

    fn of<A>(a: A) -> A {
        a
    }
}

/// A tensor of indices.
#[inline(always)]
pub fn lookup<A: AsTensor<Elem: Lookup<M>>, M>(a: A) -> <A::Elem as Lookup<M>>::Of<A> {
    A::Elem::of(a)
}

/// What is compared with elements of the type `T`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be compared with elements of type `{T}`",
    label = "expected `{T}`: elements of different types do not mix, cast one of them, `a[i] as {T}`"
)]
pub trait Comparable<T, M> {
    /// The operand itself. (What is none has none: one mistake is one error.)
    type Operand;
    /// Yields the operand.
    fn operand(self) -> Self::Operand;
}

#[diagnostic::do_not_recommend]
impl<T, B: Operand<T>> Comparable<T, Yes> for B {
    type Operand = B;

    #[inline(always)]
    fn operand(self) -> B {
        self
    }
}

#[diagnostic::do_not_recommend]
impl<T, B: Never> Comparable<T, No> for B {
    type Operand = B;

    fn operand(self) -> B {
        self
    }
}

/// Both sides of a comparison.
#[inline(always)]
pub fn compared<A: AsTensor, B: Comparable<A::Elem, M>, M>(a: A, b: B) -> (A, B::Operand) {
    (a, b.operand())
}

/// Elements that are conditions.
#[diagnostic::on_unimplemented(
    message = "`any`, `all` and `count` look at conditions, and not at elements of type `{Self}`",
    label = "expected `bool`: compare the elements, `a[i] > b[i]`"
)]
pub trait Condition<M> {
    /// The tensor of these elements. (Of others there is none: one mistake is one error.)
    type Of<A>;
    /// Yields the tensor.
    fn of<A>(a: A) -> Self::Of<A>;
}

#[diagnostic::do_not_recommend]
impl Condition<Yes> for bool {
    type Of<A> = A;

    #[inline(always)]
    fn of<A>(a: A) -> A {
        a
    }
}

#[diagnostic::do_not_recommend]
impl<T: Never> Condition<No> for T {
    type Of<A> = A;

    fn of<A>(a: A) -> A {
        a
    }
}

#[diagnostic::do_not_recommend]
impl<T: Never> Condition<Other> for T {
    type Of<A> = A;

    fn of<A>(a: A) -> A {
        a
    }
}

/// A tensor of conditions, which is reduced.
#[inline(always)]
pub fn conditions<A: AsTensor<Elem: Condition<M>>, M>(a: A) -> <A::Elem as Condition<M>>::Of<A> {
    A::Elem::of(a)
}

/// Elements that reductions combine.
#[diagnostic::on_unimplemented(
    message = "`sum`, `mean` and the like combine numbers, and not elements of type `{Self}`",
    label = "expected numbers: `count[i](..)` counts conditions, and `(..) as f32` makes numbers of them"
)]
pub trait Summand<M> {
    /// The tensor of these elements. (Of others there is none: one mistake is one error.)
    type Of<A>;
    /// Yields the tensor.
    fn of<A>(a: A) -> Self::Of<A>;
}

#[diagnostic::do_not_recommend]
impl<T: Num> Summand<Yes> for T {
    type Of<A> = A;

    #[inline(always)]
    fn of<A>(a: A) -> A {
        a
    }
}

#[diagnostic::do_not_recommend]
impl<T: Never> Summand<No> for T {
    type Of<A> = A;

    fn of<A>(a: A) -> A {
        a
    }
}

/// A tensor of numbers, which is reduced.
#[inline(always)]
pub fn summands<A: AsTensor<Elem: Summand<M>>, M>(a: A) -> <A::Elem as Summand<M>>::Of<A> {
    A::Elem::of(a)
}

/// Elements of the type `T` that a `let` says.
#[diagnostic::on_unimplemented(
    message = "the elements are of type `{Self}`, and not of type `{T}` as `let` says",
    label = "elements of type `{Self}`; for others cast them: `a[i] as {T}`"
)]
pub trait OfType<T, M> {
    /// The tensor of these elements. (Of others there is none: one mistake is one error.)
    type Of<A>;
    /// Yields the tensor.
    fn typed<A>(a: A) -> Self::Of<A>;
}

#[diagnostic::do_not_recommend]
impl<T> OfType<T, Yes> for T {
    type Of<A> = A;

    #[inline(always)]
    fn typed<A>(a: A) -> A {
        a
    }
}

#[diagnostic::do_not_recommend]
impl<T, U: Never> OfType<T, No> for U {
    type Of<A> = A;

    fn typed<A>(a: A) -> A {
        a
    }
}

#[diagnostic::do_not_recommend]
impl<T, U: Never> OfType<T, Other> for U {
    type Of<A> = A;

    fn typed<A>(a: A) -> A {
        a
    }
}

/// A tensor whose elements have the type that a `let` says.
#[inline(always)]
pub fn typed<T, A: AsTensor<Elem: OfType<T, M>>, M>(a: A) -> <A::Elem as OfType<T, M>>::Of<A> {
    <A::Elem as OfType<T, M>>::typed(a)
}

/// A captured value that meets elements of the type `T`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be combined with elements of type `{T}`",
    label = "expected one value of type `{T}`; what has elements takes an index for each axis, `a[i, j]`"
)]
pub trait Meets<T, M> {
    /// The value as a tensor without dims. (What is no such value has none: one mistake is one error.)
    type Tensor;
    /// Makes the tensor.
    fn tensor(self) -> Self::Tensor;
}

#[diagnostic::do_not_recommend]
impl<T: Element> Meets<T, Yes> for T {
    type Tensor = Named<T, (), Rank0, Scalar<T>>;

    #[inline(always)]
    fn tensor(self) -> Self::Tensor {
        Named::from_expr(Scalar(self))
    }
}

#[diagnostic::do_not_recommend]
impl<T, U: Never> Meets<T, No> for U {
    type Tensor = Self;

    fn tensor(self) -> Self {
        self
    }
}

#[diagnostic::do_not_recommend]
impl<T, U: Never> Meets<T, Other> for U {
    type Tensor = Self;

    fn tensor(self) -> Self {
        self
    }
}

/// Elements and a captured value that meets them, as tensors. (In this order: rustc has to know the elements when it looks at the value.)
#[inline(always)]
pub fn meeting<A: AsTensor, V: Meets<A::Elem, M>, M>(a: A, value: V) -> (A, V::Tensor) {
    (a, value.tensor())
}

/// Elements with functions like `exp`.
#[diagnostic::on_unimplemented(
    message = "elements of type `{Self}` have no `exp`, `sqrt` and the like",
    label = "expected floats or complex numbers: cast the elements first, `(a[i] as f64)`"
)]
pub trait Smooth<M> {
    /// The tensor of these elements. (Of others there is none: one mistake is one error.)
    type Of<A>;
    /// Yields the tensor.
    fn of<A>(a: A) -> Self::Of<A>;
}

#[diagnostic::do_not_recommend]
impl<T: Analytic> Smooth<Yes> for T {
    type Of<A> = A;

    #[inline(always)]
    fn of<A>(a: A) -> A {
        a
    }
}

#[diagnostic::do_not_recommend]
impl<T: Never> Smooth<No> for T {
    type Of<A> = A;

    fn of<A>(a: A) -> A {
        a
    }
}

/// A tensor with functions like `exp`.
#[inline(always)]
pub fn smooth<A: AsTensor<Elem: Smooth<M>>, M>(a: A) -> <A::Elem as Smooth<M>>::Of<A> {
    <A::Elem as Smooth<M>>::of(a)
}

/// Elements that are floats.
#[diagnostic::on_unimplemented(
    message = "elements of type `{Self}` are no floats",
    label = "expected floats: cast the elements first, `(a[i] as f64)`"
)]
pub trait Floating<M> {
    /// The tensor of these elements. (Of others there is none: one mistake is one error.)
    type Of<A>;
    /// Yields the tensor.
    fn of<A>(a: A) -> Self::Of<A>;
}

#[diagnostic::do_not_recommend]
impl<T: Real> Floating<Yes> for T {
    type Of<A> = A;

    #[inline(always)]
    fn of<A>(a: A) -> A {
        a
    }
}

#[diagnostic::do_not_recommend]
impl<T: Never> Floating<No> for T {
    type Of<A> = A;

    fn of<A>(a: A) -> A {
        a
    }
}

/// A tensor of floats.
#[inline(always)]
pub fn floating<A: AsTensor<Elem: Floating<M>>, M>(a: A) -> <A::Elem as Floating<M>>::Of<A> {
    <A::Elem as Floating<M>>::of(a)
}

/// Elements that `as U` casts.
#[diagnostic::on_unimplemented(
    message = "elements of type `{Self}` cannot be cast to `{U}`",
    label = "expected a type of numbers, or `bool`"
)]
pub trait Castable<U: ?Sized, M> {
    /// What a tensor of them becomes. (What cannot be cast becomes nothing: one mistake is one error.)
    type Cast<A: AsTensor<Elem = Self>>;
    /// Casts.
    fn cast<A: AsTensor<Elem = Self>>(a: A) -> Self::Cast<A>;
}

#[diagnostic::do_not_recommend]
impl<T: CastTo<U>, U: Element> Castable<U, Yes> for T {
    type Cast<A: AsTensor<Elem = T>> = UnaryOut<Cast<U>, A>;

    #[inline(always)]
    fn cast<A: AsTensor<Elem = T>>(a: A) -> UnaryOut<Cast<U>, A> {
        Named::from_expr(Unary { op: Cast(PhantomData), a: a.into_named().expr })
    }
}

#[diagnostic::do_not_recommend]
impl<T: Never, U: ?Sized> Castable<U, No> for T {
    type Cast<A: AsTensor<Elem = T>> = A;

    fn cast<A: AsTensor<Elem = T>>(a: A) -> A {
        a
    }
}

/// `as U`
#[inline(always)]
pub fn cast<U: ?Sized, A: AsTensor<Elem: Castable<U, M>>, M>(a: A) -> <A::Elem as Castable<U, M>>::Cast<A> {
    <A::Elem as Castable<U, M>>::cast(a)
}

/// What code that is called for each element yields.
#[diagnostic::on_unimplemented(
    message = "an array of the type `{Self}` cannot be computed",
    label = "this yields `{Self}` in each place, where a plain value is expected: a number, a `bool`, what is `Copy` and `Default`"
)]
pub trait Yielded<M>: Sized {
    /// What a function makes of a tensor. (What yields no elements makes nothing: one mistake is one error.)
    type Mapped<A: AsTensor, F: Fn(A::Elem) -> Self>;
    /// Calls the function.
    fn mapped<A: AsTensor, F: Fn(A::Elem) -> Self>(a: A, f: F) -> Self::Mapped<A, F>;
}

#[diagnostic::do_not_recommend]
impl<U: Element> Yielded<Yes> for U {
    type Mapped<A: AsTensor, F: Fn(A::Elem) -> U> = UnaryOut<Map<F>, A>;

    #[inline(always)]
    fn mapped<A: AsTensor, F: Fn(A::Elem) -> U>(a: A, f: F) -> UnaryOut<Map<F>, A> {
        Named::from_expr(Unary { op: Map(f), a: a.into_named().expr })
    }
}

#[diagnostic::do_not_recommend]
impl<U: Never> Yielded<No> for U {
    type Mapped<A: AsTensor, F: Fn(A::Elem) -> U> = A;

    fn mapped<A: AsTensor, F: Fn(A::Elem) -> U>(a: A, _: F) -> A {
        a
    }
}

/// `f` of each element.
#[inline(always)]
pub fn mapped<A: AsTensor, F: Fn(A::Elem) -> U, U: Yielded<M>, M>(a: A, f: F) -> U::Mapped<A, F> {
    U::mapped(a, f)
}

/// A dim of the surrounding scope.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a dim",
    label = "`$` stands before the name of a dim; a value is named without it"
)]
pub trait Outer<M> {
    /// The dim. (What is no dim has none: one mistake is one error.)
    type Dim: Copy;
    /// Yields the dim.
    fn dim(self) -> Self::Dim;
}

#[diagnostic::do_not_recommend]
impl<D: DimRef> Outer<Yes> for D {
    type Dim = D;

    #[inline(always)]
    fn dim(self) -> D {
        self
    }
}

#[diagnostic::do_not_recommend]
impl<D: Never + Copy> Outer<No> for D {
    type Dim = D;

    fn dim(self) -> D {
        self
    }
}

/// The dim that `$` and a name are.
#[inline(always)]
pub fn outer<D: Outer<M>, M>(dim: D) -> D::Dim {
    dim.dim()
}

/// A tensor that is the same all along a dim that it may lack.
#[inline(always)]
pub fn along<A, D>(a: A, dim: D) -> BinaryOut<Left, A, D, isize>
where
    A: AsTensor<Dims: Union<D::Dims>>,
    D: Operand<isize>,
{
    Named::from_expr(Binary { op: Left, a: a.into_named().expr, b: dim.into_expr() })
}

/// The elements of two tensors at the same position.
pub type Pairs<A, B> = Named<
    (<A as AsTensor>::Elem, <B as AsTensor>::Elem),
    <<A as AsTensor>::Dims as Union<<B as AsTensor>::Dims>>::Out,
    <<A as AsTensor>::Rank as Rank>::Max<<B as AsTensor>::Rank>,
    Binary<Pair, <A as AsTensor>::Expr, <B as AsTensor>::Expr>,
>;

/// Pairs of elements, for closures that take several.
#[inline(always)]
pub fn pairs<A, B>(a: A, b: B) -> Pairs<A, B>
where
    A: AsTensor<Dims: Union<B::Dims>>,
    B: AsTensor,
{
    Named::from_expr(Binary { op: Pair, a: a.into_named().expr, b: b.into_named().expr })
}

/// The tensor where a condition holds, and some value elsewhere, where nothing is read.
#[inline(always)]
pub fn masked<C, A>(cond: C, a: A) -> Selected<A::Elem, C, NamedOf<A>, A::Elem>
where
    C: AsTensor<Elem = bool, Dims: Union<A::Dims, Out: Union<()>>>,
    A: AsTensor,
{
    let other = Scalar(A::Elem::default());
    Named::from_expr(Select { cond: cond.into_named().expr, a: a.into_named().expr, b: other })
}

/// The elements of a condition.
#[diagnostic::on_unimplemented(
    message = "the condition of an `if` is a `bool`, and not of type `{Self}`",
    label = "expected `bool`"
)]
pub trait Truth: Element {}
#[diagnostic::do_not_recommend]
impl Truth for bool {}

/// A condition. Other types are refused here, and nowhere else.
#[inline(always)]
pub fn condition<A: AsTensor<Elem: Truth>>(a: A) -> UnaryOut<Holds, A> {
    Named::from_expr(Unary { op: Holds, a: a.into_named().expr })
}

/// A range of indices.
#[diagnostic::on_unimplemented(
    message = "a loop cannot run over `{Self}`",
    label = "expected a range of integers, like `0..n`"
)]
pub trait Extent {
    /// The first index, and how many there are.
    fn extent(self) -> (isize, usize);
}

#[diagnostic::do_not_recommend]
impl<T: ToIndex> Extent for Range<T> {
    fn extent(self) -> (isize, usize) {
        let (start, end) = (self.start.to_index(), self.end.to_index());
        (start, if start < end { end.abs_diff(start) } else { 0 })
    }
}

#[diagnostic::do_not_recommend]
impl<T: ToIndex> Extent for RangeInclusive<T> {
    fn extent(self) -> (isize, usize) {
        let (start, end) = self.into_inner();
        let (start, end) = (start.to_index(), end.to_index());
        (start, if start <= end { end.abs_diff(start).saturating_add(1) } else { 0 })
    }
}

/// The first index of a range, and how many there are.
#[inline]
pub fn extent<R: Extent>(range: R) -> (isize, usize) {
    range.extent()
}

/// Operands whose axes give loop variables their sizes.
pub trait Operands {
    /// The axes that are to be bound.
    fn open_axes(&self) -> Axes;

    /// The loop variable `dim` runs over axis `at` of all `rank`.
    #[track_caller]
    fn try_size<B: Brand>(&self, at: usize, rank: usize, dim: &Dim<B>) -> Result<(), DimError> {
        let axes = self.open_axes();
        check_rank(axes.len(), rank)?;
        dim.try_set_size(axes[at].size)
    }

    /// As [`try_size`](Operands::try_size), but panics.
    #[track_caller]
    fn size<B: Brand>(&self, at: usize, rank: usize, dim: &Dim<B>) {
        unwrap(self.try_size(at, rank, dim));
    }

    /// The one loop variable of `index` that has no size yet gets the greatest with which `index` stays within axis `at`.
    #[track_caller]
    fn try_fit<S: Dims, E: Expr>(
        &self,
        at: usize,
        rank: usize,
        index: Named<isize, S, Rank0, E>,
    ) -> Result<(), DimError> {
        let axes = self.open_axes();
        check_rank(axes.len(), rank)?;
        if let Some(affine) = index.expr.affine() {
            let origin = Some(Location::caller());
            let mut named = S::Axes::filled(Axis::default());
            let mut binding = Binding::new::<S>(Axes::new(), 0, origin, &mut named, &mut []);
            bind_affine(&affine, axes[at], at, &mut binding)?;
        }
        Ok(())
    }

    /// As [`try_fit`](Operands::try_fit), but panics.
    #[track_caller]
    fn fit<S: Dims, E: Expr>(&self, at: usize, rank: usize, index: Named<isize, S, Rank0, E>) {
        unwrap(self.try_fit(at, rank, index));
    }
}

#[diagnostic::do_not_recommend]
impl<A: Source + ?Sized> Operands for A {
    fn open_axes(&self) -> Axes {
        self.raw().1
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element, S: Dims, R: Rank, E: Leaf<T, S, R>> Operands for Named<T, S, R, E> {
    fn open_axes(&self) -> Axes {
        Axes::from_slice(self.expr.leaf().2.as_slice())
    }
}
