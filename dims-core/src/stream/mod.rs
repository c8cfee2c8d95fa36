//! Streams: tensors with a *data dimension*, for hardware that streams along one dim.
//!
//! This module follows the documentation of Vollo, an inference accelerator. On such hardware,
//! every run-time tensor has one axis that is streamed, the data dimension. This axis determines
//! which operations are possible and what they cost. Each operation has a rule for the data
//! dimension of its result. Here rustc checks the rules: the type
//! [`Stream<T, (A, B, C), B>`](Stream) lists the axes in order, followed by the data dimension.
//! Vollo's notation for this type is `[a b! c]`. Constants, such as weights, are plain tensors
//! without a data dimension.
//!
//! | operation | rule | cost |
//! |---|---|---|
//! | pointwise: `&x + &y`, [`relu`](Stream::relu), [`map`](Stream::map), functions of tensors, applied with [`pointwise`](Stream::pointwise) | `[a b! c] (*) [a b! c] -> [a b! c]` | compute |
//! | [`slice`](Stream::slice) on the data dimension | `[a b c!][:, :, :n] -> [a b n!]` | compute |
//! | `slice` on another dim | `[a b! c][:, :, :n] -> [a b! n]` | free |
//! | [`new_axis_before`](Stream::new_axis_before), [`new_axis_after`](Stream::new_axis_after) | `[a! b] -> [1 a! b]` | free |
//! | [`broadcast`](Stream::broadcast) | `[1 b!] -> [n b!]` | free |
//! | `broadcast` of the data dimension | `[a 1!] -> [a n!]` | close to free |
//! | [`concat`](Stream::concat), [`repeat`](Stream::repeat) along the data dimension | `[a! b c] -> [(a * n)! b c]` | compute |
//! | `concat`, `repeat` along another dim | `[a! b c] -> [a! (b * n) c]` | free |
//! | [`stack_before`](Stream::stack_before), [`stack_after`](Stream::stack_after) | `[a! b] -> [n a! b]` | free |
//! | [`sum_keepdim`](Stream::sum_keepdim) and the like, along the data dimension | `[a! b] -> [1! b]` | compute |
//! | [`sum`](Stream::sum), `sum_keepdim` and the like, along another dim | `[a! b] -> [a!]`, `[a! b] -> [a! 1]` | slower |
//! | [`softmax`](Stream::softmax), [`cumsum`](Stream::cumsum) along the data dimension | `[a! b] -> [a! b]` | compute |
//! | `softmax`, `cumsum` along another dim | `[a! b] -> [a! b]` | slower |
//! | [`contract`](Stream::contract) of the data dimension with a constant | `[b i j] @ [b j! k] -> [b i! k]` | compute |
//! | `contract` of another dim ([`allow_dynamic_weights`](Stream::allow_dynamic_weights)) | `[b i j] @ [b j k!] -> [b i k!]` | slower |
//! | `contract` of two streams (`allow_dynamic_weights`) | `[b! i j] @ [b j! k] -> [b! i k]` | slower |
//! | [`flatten`](Stream::flatten), [`unflatten`](Stream::unflatten), [`reshape`](Stream::reshape) | `[a (n * b)! c] -> [a n b! c]` | free if the data dimension keeps its extent, else compute |
//!
//! All operations run with the kernels of this library, so you can test a model without the
//! hardware. [`ledger()`] runs a closure and returns the cost of each of its operations. Free
//! operations do not copy here either. The exceptions are `concat`, `repeat`, stacking, and
//! reshapes of streams that are not contiguous.
//!
//! Mistakes in sizes are errors in `try_` methods, and panics in the others. It is such a mistake
//! if a dim and its [prime](crate::types::prime) have different sizes in a result, for example
//! after a `slice` of one of them. Constants that cannot be computed, or that a gradient or a
//! recorded function traces, are errors or panics too. Rust's operators, such as `+`, panic; the
//! `try_` form of a binary one is [`try_zip_map`](Stream::try_zip_map).
//!
//! # Example
//!
//! ```
//! use typed_dims::prelude::*;
//! use typed_dims::tensors::stream::ledger;
//!
//! dims! {
//!     pub struct Time;
//!     pub struct Input;
//!     pub struct Output;
//! }
//!
//! /// `[time input!] -> [time output!]`
//! fn layer(
//!     x: &Stream<f32, (Time, Input), Input>,
//!     weight: &Tensor<f32, (Input, Output)>,
//!     bias: &Tensor<f32, (Output,)>,
//! ) -> Stream<f32, (Time, Output), Output> {
//!     (x.contract(weight, Input) + bias).relu()
//! }
//!
//! let x = from_fn((Time.of(2), Input.of(3)), |(time, input)| (time + input) as f32).stream((Time, Input), Input);
//! let weight = from_fn((Input.of(3), Output.of(2)), |(input, output)| if input == output { 1.0 } else { 0.0 });
//! let bias = from_fn(Output.of(2), |_| -0.5);
//! let (y, ledger) = ledger(|| layer(&x, &weight, &bias));
//! assert_eq!(y.to_array(), ndarray::array![[0.0, 0.5], [0.5, 1.5]]);
//! println!("{ledger}");
//! ```

use crate::types::condition::condition;
use alloc::string::String;
use alloc::vec::Vec;
use kernels::loops::axes::Order;
use twins::panicking_twin;

mod axes;
mod axis;
mod contraction;
mod joining;
mod ledger;
mod lines;
mod pointwise;
mod reduction;
mod reshape;
mod slicing;
mod stride;

pub use axes::*;
pub use axis::NameOfAxis;
pub use contraction::*;
#[cfg(feature = "std")]
pub use ledger::ledger;
pub use ledger::{CostClass, Ledger, LedgerEntry, StreamShape};
pub use pointwise::{AllAxes, StreamOperand};
pub use reduction::*;
pub use reshape::*;
pub use stride::*;

use crate::error::{DimError, unwrap};
use crate::execute::order::ArrayRank;
use crate::expr::evaluate::evaluate_for;
use crate::plan::axes::AxisList;
use crate::plan::shape::Shape;
use crate::storage::View;
use crate::storage::shared::SharedElements;
use crate::tensors::named::Named;
use crate::tensors::show::debugged;
use crate::tensors::tensor::Computable;
use crate::types::brand::{Brand, KeyOf};
use crate::types::dim::{DimList, DimRef};
use crate::types::rank::Rank0;
use crate::types::set::Bool;
use crate::types::set::list::{List, NestedPairs};
use crate::types::set::ordered::{AxisOf, DividesInto, NamedTwice, Shares};
use crate::types::set::{Bound, Dims, DimsOf, NoDim, SetOf};
use core::fmt;
use core::marker::PhantomData;
use kernels::scalar::Element;
use ledger::note;

/// A tensor of `T` with ordered axes. The tuple `L` lists the axes, and `D` is the one that is the
/// data dimension: `Stream<f32, (Time, Feat), Feat>` is `[time feat!]`.
///
/// [`stream`](Streamed::stream) makes one from a tensor. Operations run immediately. Most of the
/// operations that are free in the [table](self) share the elements of their operand, as a clone
/// does.
///
/// ```
/// use typed_dims::prelude::*;
///
/// dims! { pub struct Time; pub struct Feat; }
///
/// fn energy(x: &Stream<f32, (Time, Feat), Feat>) -> Stream<f32, (Time, Feat), Feat> {
///     x * x
/// }
///
/// let x = from_vec((Time.of(1), Feat.of(3)), vec![1.0, 2.0, 3.0]).stream((Time, Feat), Feat);
/// assert_eq!(energy(&x).as_tensor().sum(Feat).order(Time), ndarray::array![14.0]);
/// ```
pub struct Stream<T, L, D> {
    data: SharedElements<T>,
    axes: PhantomData<fn() -> (L, D)>,
}

/// A tensor with the ordered axes `L` as dims.
pub(crate) type StreamView<'a, T, L> = Named<T, L, Rank0, View<'a, T, L>>;

impl<T: Element, L: Dims, D: Brand> Stream<T, L, D> {
    /// The position of the data dimension among the axes.
    const DATA: Option<usize> = L::KEYS.position(&D::KEYS.as_slice()[0]);

    /// Returns an error if a dim and its prime have different sizes.
    fn from_shared(data: SharedElements<T>) -> Result<Self, DimError> {
        let axes = data.axes();
        L::KEYS.check_primes(|at| (axes[at].size, None))?;
        Ok(Stream { data, axes: PhantomData })
    }

    /// Contiguous elements in the order of the axes: see [`from_shared`](Stream::from_shared).
    fn from_vec(data: Vec<T>, sizes: &[usize]) -> Result<Self, DimError> {
        Stream::from_shared(SharedElements::contiguous(data, sizes))
    }

    /// Evaluates a tensor whose dims are the axes.
    fn evaluate<A: Computable<Elem = T, Dims = L, Rank = Rank0>>(tensor: A) -> Result<Self, DimError> {
        let tensor = tensor.into_named();
        let mut shape = Shape::new::<L, Rank0>();
        tensor.unify(&mut shape)?;
        let order: Order = (0..shape.sizes().len()).collect();
        let data = evaluate_for::<L, Rank0, _>(tensor.expr, &shape, &order, "a stream")?;
        Stream::from_vec(data, shape.sizes())
    }

    /// The stream as a tensor for this crate's expressions, with its dims in the order of the axes.
    fn in_memory(&self) -> StreamView<'_, T, L> {
        let from: Order = (0..self.data.axes().len()).collect();
        Named::from_expr(self.data.view::<L>(&from))
    }

    fn position<A: DimRef>(axis: A) -> usize {
        L::KEYS.position(&axis.info().key()).expect("the dim is an axis of the stream")
    }

    fn is_data<A: DimRef>(_: A) -> bool {
        KeyOf::<A::Brand>::KEY.id == KeyOf::<D>::KEY.id
    }

    /// Checks that sizes given with the dims are those of the axes.
    fn check_given(&self, dims: &impl DimList) -> Result<(), DimError> {
        self.in_memory().unified_shape()?.check_all_given(dims)
    }

    /// Records the operation whose result this is.
    fn note(
        &self,
        cost: CostClass,
        operation: impl FnOnce() -> String,
        operands: impl FnOnce() -> Vec<StreamShape>,
    ) {
        note(|| LedgerEntry {
            operation: operation(),
            operands: operands(),
            result: self.shape(),
            cost,
            dynamic_weights: false,
        });
    }

    /// The size of an axis.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { pub struct Time; pub struct Feat; }
    /// let x = ones::<f32, _>((Time.of(4), Feat.of(8))).stream((Time, Feat), Time);
    /// assert_eq!((x.size(Feat), x.sizes()), (8, vec![4, 8]));
    /// ```
    ///
    /// # Panics
    ///
    /// If a size given with the dim is not that of the axis.
    #[track_caller]
    pub fn size<A: AxisOf<L>>(&self, axis: A) -> usize {
        unwrap(self.check_given(&axis));
        self.data.axes()[Self::position(axis)].size
    }

    /// The sizes of the axes, in order.
    pub fn sizes(&self) -> Vec<usize> {
        self.data.sizes().collect()
    }

    /// The axes with their sizes, and the data dimension. Prints as `[Time!=4 Feat=8]`.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { pub struct Time; pub struct Feat; }
    /// let x = ones::<f32, _>((Time.of(4), Feat.of(8))).stream((Time, Feat), Time);
    /// assert_eq!(x.shape().to_string(), "[Time!=4 Feat=8]");
    /// ```
    pub fn shape(&self) -> StreamShape {
        Self::shape_of(&self.sizes())
    }

    fn shape_of(sizes: &[usize]) -> StreamShape {
        let names = L::KEYS.as_slice().iter().map(|key| key.name);
        StreamShape { axes: names.zip(sizes.iter().copied()).collect(), data: Self::DATA }
    }

    /// A copy of the elements in this order of the axes.
    fn in_order(&self, order: &[usize]) -> Result<Vec<T>, DimError> {
        let tensor = self.in_memory();
        evaluate_for::<L, Rank0, _>(tensor.expr, &tensor.unified_shape()?, order, "a stream")
    }

    /// A copy of the elements in the order of the axes.
    fn to_vec(&self) -> Result<Vec<T>, DimError> {
        self.in_order(&(0..self.data.axes().len()).collect::<Order>())
    }

    /// A borrowed tensor over the elements, to print them, compare them or write them to files.
    /// Nothing is copied. Tensors count as constants: if you compute a value from this tensor and
    /// use it with a stream, the rules are not checked.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { pub struct Time; pub struct Feat; }
    /// let x = from_vec((Time.of(2), Feat.of(2)), vec![1, 2, 3, 4]).stream((Time, Feat), Time);
    /// assert_eq!(x.as_tensor().order((Feat, Time)), ndarray::array![[1, 3], [2, 4]]);
    /// ```
    pub fn as_tensor(&self) -> Named<T, L::Set, Rank0, View<'_, T, L::Set>>
    where
        L: SetOf,
    {
        let from = const { &AxisList::of(<L as SetOf>::Set::KEYS, L::KEYS) }.as_slice();
        Named::from_expr(self.data.view(from))
    }

    /// A copy of the elements as an ndarray array with the axes in order.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { pub struct Time; pub struct Feat; }
    /// let x = from_vec((Time.of(2), Feat.of(2)), vec![1, 2, 3, 4]).stream((Feat, Time), Time);
    /// assert_eq!(x.to_array(), ndarray::array![[1, 3], [2, 4]]);
    /// ```
    ///
    /// # Panics
    ///
    /// If the elements do not fit into memory, for example after a broadcast.
    #[track_caller]
    pub fn to_array(&self) -> <<L::List as NestedPairs>::Count as ArrayRank>::Array<T>
    where
        L::List: NestedPairs<Count: ArrayRank>,
    {
        <<L::List as NestedPairs>::Count as ArrayRank>::array(unwrap(self.to_vec()), &self.sizes())
    }
}

impl<T: Clone, L, D> Clone for Stream<T, L, D> {
    /// Shares the elements; nothing is copied.
    fn clone(&self) -> Self {
        Stream { data: self.data.clone(), axes: PhantomData }
    }
}

/// The elements, as ndarray shows them, then the axes with their sizes.
impl<T: Element, L: Dims, D: Brand> fmt::Debug for Stream<T, L, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.in_memory().show(f, debugged, |sizes| format!("axes {}", Self::shape_of(sizes)))
    }
}

/// The elements, as ndarray shows them, then the axes with their sizes.
impl<T: Element + fmt::Display, L: Dims, D: Brand> fmt::Display for Stream<T, L, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let axes = |sizes: &[usize]| format!("axes {}", Self::shape_of(sizes));
        self.in_memory().show(f, |view, f| fmt::Display::fmt(view, f), axes)
    }
}

/// Two streams are equal if their sizes and all elements are equal.
impl<T: Element + PartialEq, L: Dims, D: Brand> PartialEq for Stream<T, L, D> {
    fn eq(&self, other: &Self) -> bool {
        self.in_memory() == other.in_memory()
    }
}

/// Converts tensors to streams.
pub trait Streamed: Computable<Rank = Rank0> {
    /// Converts the tensor to a stream. `axes` lists all dims of the tensor, in the order that
    /// the axes of the stream will have. `data` is one of them, the data dimension.
    ///
    /// For `[a b! c]`, write `x.stream((A, B, C), B)`. Use `stream` for the inputs of a streaming
    /// program, and [`as_tensor`](Stream::as_tensor) for its outputs.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { pub struct Time; pub struct Feat; }
    /// let x = ones::<f32, _>((Time.of(4), Feat.of(8)));
    /// let x: Stream<f32, (Time, Feat), Feat> = x.stream((Time, Feat), Feat);
    /// ```
    ///
    /// # Panics
    ///
    /// If the tensor is an expression that cannot be computed, it does not fit into memory, a size
    /// given with a dim is not the size in the tensor, or a gradient or a recorded function traces
    /// the tensor.
    #[panicking_twin]
    fn try_stream<O: DimsOf<Self::Dims, X>, X: StreamedWhole<O>, A: DataOf<O>>(
        self,
        axes: O,
        data: A,
    ) -> Result<Stream<Self::Elem, A::Axes, A::Brand>, DimError> {
        let order = const { &AxisList::of(<O as DimList>::KEYS, Self::Dims::KEYS) }.as_slice();
        let tensor = self.into_named();
        let shape = tensor.unified_shape()?;
        shape.check_all_given(&axes)?;
        shape.check_given(&data.info())?;
        let data = evaluate_for::<Self::Dims, Rank0, _>(tensor.expr, &shape, order, "a stream")?;
        let sizes = shape.sizes_in(order);
        Stream::from_vec(data, &sizes)
    }
}

impl<A: Computable<Rank = Rank0>> Streamed for A {}

/// The set of the dims of a tensor that the axes `O` do not name. It must be empty.
pub trait StreamedWhole<O>: Dims {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}
impl<X, O> StreamedWhole<O> for X
where
    X: Dims,
    O: DimList,
    (): Shares<O::Brands>,
    // If a dim is named twice, only that is reported.
    <NoDim<NamedTwice<O>> as Bool>::Implies<<X::List as NestedPairs>::IsEmpty>: NamesAll<X, O>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

condition! {
    /// The condition that the axes `O` are all dims of a tensor: the set `X` of the remaining dims
    /// is empty.
    #[diagnostic::on_unimplemented(
        message = "the axes `{O}` lack the dims `{X}` of the tensor",
        label = "a stream names all its axes"
    )]
    pub trait NamesAll<X, O> for True;
}

/// One of the dims `O`, as the data dimension.
pub trait DataOf<O>: DimRef {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The dims as a tuple, in order.
    type Axes: Dims;
}
impl<A, O> DataOf<O> for A
where
    A: DimRef,
    O: DimList<Brands: List>,
    O::Brands: DividesInto<A::Brand, (), Holds: Bound<A::Brand, O>>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Axes = <O::Brands as List>::Tuple;
}
