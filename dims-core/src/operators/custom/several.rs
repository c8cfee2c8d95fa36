//! Operations of users on the arrays of several tensors.

use super::calls::{self, ArrayCalls, ArrayResults};
use super::{AxesOf, NdOf};
use crate::error::{DimError, unwrap};
use crate::execute::lines::arranged;
use crate::expr::evaluate::evaluate;
use crate::plan::axes::AxisList;
use crate::plan::shape::{Shape, volume};
use crate::tensors::named::Named;
use crate::tensors::tensor::{AsTensor, Computable};
use crate::types::rank::{Rank, Rank0, RankOf};
use crate::types::set::list::List;
use crate::types::set::union::MergeAll;
use crate::types::set::{Dims, Keys};
use crate::types::tuples::nested;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::marker::PhantomData;
use kernels::error::Error;
use kernels::loops::axes::{Order, Sizes};
use kernels::loops::nest::Odometer;
use kernels::memory::buffer::Buffer;
use kernels::scalar::Element;
#[cfg(feature = "std")]
use kernels::step::StepDerivative;
use kernels::step::{AnyBuffer, StepOperands};
#[cfg(feature = "std")]
use kernels::trace::{Field, Held};
use ndarray::{Array, ArrayD, ArrayView, ArrayViewD, CowArray, IxDyn};
use smallvec::SmallVec;

/// An operation on the arrays of several tensors: a function of 2 to 6 ndarray arrays, for tensors with any dims besides its axes.
///
/// As [`ArrayOp`](super::ArrayOp), with a tuple in the place of one array: `Args` are the types of the elements, `In` the numbers of axes. It is called by
/// [`apply_arrays`].
///
/// ```
/// use typed_dims::ndarray::{Array1, ArrayView1, ArrayView2, array};
/// use typed_dims::operators::custom::apply_arrays;
/// use typed_dims::prelude::*;
///
/// /// Solves `a x = b` for a triangular `a`, whose elements above the diagonal are not read.
/// struct SolveLower;
///
/// impl ArraysOp<(f64, f64)> for SolveLower {
///     type In = (U2, U1);
///     type Out = U1;
///     type Elem = f64;
///     const NAME: &'static str = "solve_lower";
///
///     fn one(&self, (a, b): (ArrayView2<'_, f64>, ArrayView1<'_, f64>)) -> Array1<f64> {
///         let mut x = b.to_owned();
///         for i in 0..x.len() {
///             let known: f64 = (0..i).map(|j| a[[i, j]] * x[j]).sum();
///             x[i] = (x[i] - known) / a[[i, i]];
///         }
///         x
///     }
/// }
///
/// let (a, b) = (array![[2.0, 0.0], [1.0, 4.0]], array![[2.0, 9.0], [4.0, 2.0], [0.0, 4.0]]);
/// dims!(n);
/// let x = apply_arrays((a.at((.., ..)), b.at((n, ..))), SolveLower); // one matrix, several right sides
/// assert_eq!(x.order(n), array![[1.0, 2.0], [2.0, 0.0], [0.0, 1.0]]);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an operation on arrays of `{Args}`",
    label = "no such operation for elements of these types",
    note = "write `impl ArraysOp<{Args}> for {Self}`"
)]
pub trait ArraysOp<Args: Arguments> {
    /// How many positional axes of each tensor it takes: `(U2, U1)` for a matrix and a vector.
    type In: Takes<Args>;
    /// How many it yields.
    type Out: RankOf;
    /// The type of the elements that it yields.
    type Elem: Element;
    /// The name in plans.
    const NAME: &'static str;

    /// The operation on one example. All results of one call must have the same shape.
    fn one(&self, arrays: <Self::In as Takes<Args>>::Views<'_>) -> Array<Self::Elem, NdOf<Self::Out>>;

    /// The operation on many examples at once, one behind the other along axis 0 of the result; `None` where there is no rule for that.
    ///
    /// There are as many examples as [`Examples::count`] of any argument says.
    fn batch(&self, _arrays: <Args as Arguments>::Examples<'_>) -> Option<ArrayD<Self::Elem>> {
        None
    }

    /// How gradients go through the operation: as [`ArrayOp::pull_back`](super::ArrayOp::pull_back), with a tuple of arrays in the place of one. Without it, a
    /// gradient through the operation is an error. It is for first derivatives in reverse mode.
    ///
    /// The gradient of an array of integers or truth values is not looked at.
    fn pull_back(&self) -> Option<PullBacksOf<Self, Args>>
    where
        Self: Sized,
    {
        None
    }
}

/// The pull-back of an operation on several arrays, for one example: of the arrays, the result `y`, and its cotangent `dy` it makes the cotangents of the arrays,
/// which have their shapes. [`ArraysOp::pull_back`] returns it.
pub struct PullBacks<Args: Arguments, In: Takes<Args>, E: Element, Out: RankOf> {
    // (Nothing is recorded without the standard library.)
    #[cfg_attr(not(feature = "std"), allow(dead_code))]
    function: Pulls<Args, E>,
    marker: PhantomData<fn() -> (In, Out)>,
}

/// The pull-back of the operation `O` on arrays of `Args`.
pub type PullBacksOf<O, Args> =
    PullBacks<Args, <O as ArraysOp<Args>>::In, <O as ArraysOp<Args>>::Elem, <O as ArraysOp<Args>>::Out>;

/// The same, of arrays whose ranks are not in the type: of all tensors and how they lie, the position of an example, its result, and the cotangent. The gradients go
/// to the end of those of other examples, and the result says whether they have the shapes of the arrays.
type Pulls<Args, E> = Arc<
    dyn Fn(
            &StepOperands<'_, '_>,
            &[ArrayLayout],
            &[usize],
            ArrayViewD<'_, E>,
            ArrayViewD<'_, E>,
            &mut <Args as Arguments>::Flat,
        ) -> bool
        + Send
        + Sync,
>;

impl<Args: Arguments, In: Takes<Args> + 'static, E: Element, Out: RankOf + 'static>
    PullBacks<Args, In, E, Out>
{
    /// The pull-back that this function computes.
    pub fn new<F>(f: F) -> Self
    where
        F: Fn(In::Views<'_>, ArrayView<'_, E, NdOf<Out>>, ArrayView<'_, E, NdOf<Out>>) -> In::Arrays
            + Send
            + Sync
            + 'static,
    {
        let same = "the ranks are the same";
        let function: Pulls<Args, E> = Arc::new(move |tensors, layouts, at, y, dy, flat| {
            let (y, dy) = (y.into_dimensionality().expect(same), dy.into_dimensionality().expect(same));
            In::flatten(f(In::views(tensors, layouts, at), y, dy), layouts, flat)
        });
        PullBacks { function, marker: PhantomData }
    }
}

/// One argument of [`ArraysOp::batch`]: the arrays of all examples.
pub struct Examples<'a, T> {
    data: &'a [T],
    layout: &'a ArrayLayout,
    counts: &'a [usize],
}

impl<'a, T: Element> Examples<'a, T> {
    /// How many examples there are.
    pub fn count(&self) -> usize {
        self.counts.iter().product()
    }

    /// The array, if it is the same for all examples.
    pub fn same(&self) -> Option<ArrayViewD<'a, T>> {
        let varies = self.layout.strides.iter().any(|&stride| stride != ABSENT);
        (!varies).then(|| view(&self.layout.axes, self.data))
    }

    /// The arrays of all examples, one behind the other along axis 0. They are copied if the tensor lacks a dim that another one has.
    pub fn stacked(&self) -> CowArray<'a, T, IxDyn> {
        let mut shape = vec![self.count()];
        shape.extend(&self.layout.axes);
        if self.layout.strides.iter().all(|&stride| stride != ABSENT) {
            return view(&shape, self.data).into();
        }
        let mut data = Vec::new();
        let Ok(()) = each(self.counts, |at| -> Result<(), Infallible> {
            data.extend_from_slice(self.layout.one(self.data, at));
            Ok(())
        });
        ArrayD::from_shape_vec(IxDyn(&shape), data).expect("one array for each example").into()
    }
}

fn view<'a, T>(shape: &[usize], data: &'a [T]) -> ArrayViewD<'a, T> {
    ArrayViewD::from_shape(IxDyn(shape), data).expect("the sizes are the shape of the data")
}

/// Calls `f` with each position of axes of these sizes, until it fails.
fn each<F>(counts: &[usize], mut f: impl FnMut(&[usize]) -> Result<(), F>) -> Result<(), F> {
    let mut at: Sizes = counts.iter().map(|_| 0).collect();
    let mut odometer = Odometer::new(counts);
    while !odometer.is_done() {
        f(&at)?;
        odometer.advance(&mut at);
    }
    Ok(())
}

/// The stride of a tensor along a dim that it lacks.
const ABSENT: usize = 0;

/// How a tensor lies in memory, its positional axes innermost: the arrays of all positions of its dims.
#[derive(Clone)]
pub struct ArrayLayout {
    /// How far apart, in arrays, those of neighbours along each dim of all tensors are: at least 1, or [`ABSENT`].
    strides: Sizes,
    /// The sizes of the positional axes.
    axes: Sizes,
}

/// Those of all tensors.
type Layouts = SmallVec<[ArrayLayout; 6]>;

/// A tensor in memory. `order` are the axes of all dims of all tensors, with the keys `all`.
fn in_memory<A: Computable>(
    tensor: Named<A::Elem, A::Dims, A::Rank, A::Expr>,
    all: &Keys,
    order: &[usize],
) -> Result<(Buffer<A::Elem>, ArrayLayout), DimError> {
    let shape = tensor.unified_shape()?;
    let keys = A::Dims::KEYS;
    // Dims in the order of the calls, so that arrays of one tensor lie as they are used.
    let own: Order = order.iter().filter_map(|&axis| keys.position(&all.as_slice()[axis])).collect();
    let named = own.len();
    let in_memory: Order = own.iter().copied().chain(named..named + <A::Rank as Rank>::N).collect();
    let sizes = shape.sizes_in(&in_memory);
    let data = evaluate::<A::Dims, A::Rank, _>(tensor.expr, &shape, &in_memory)?;
    let mut strides: Sizes = order.iter().map(|_| ABSENT).collect();
    let mut step: usize = 1;
    for (&axis, &size) in own.iter().zip(&sizes).rev() {
        let at = order.iter().position(|&at| all.as_slice()[at].same(&keys.as_slice()[axis]));
        strides[at.expect("the dims of a tensor are among those of all")] = step;
        step = step.saturating_mul(size.max(1));
    }
    Ok((data, ArrayLayout { strides, axes: sizes[named..].into() }))
}

impl ArrayLayout {
    /// The elements of the array at one position of all dims.
    fn one<'a, T>(&self, data: &'a [T], at: &[usize]) -> &'a [T] {
        let len: usize = self.axes.iter().product();
        let first: usize = at.iter().zip(&self.strides).map(|(at, stride)| at * stride).sum();
        &data[first * len..(first + 1) * len]
    }
}

/// The types of the elements of 2 to 6 tensors, as a tuple.
pub trait Arguments: 'static {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// What [`ArraysOp::batch`] gets: [`Examples`] of each tensor.
    type Examples<'a>;
    /// The elements of the tensors.
    #[doc(hidden)]
    type Buffers;
    /// Elements for each tensor.
    #[doc(hidden)]
    type Flat: Default;
    #[doc(hidden)]
    fn operands(buffers: &mut Self::Buffers) -> SmallVec<[&mut dyn AnyBuffer; 6]>;
    #[doc(hidden)]
    fn examples<'a>(
        tensors: &'a StepOperands<'_, '_>,
        layouts: &'a [ArrayLayout],
        counts: &'a [usize],
    ) -> Self::Examples<'a>;
    /// The operands of a step.
    #[cfg(feature = "std")]
    #[doc(hidden)]
    fn of_fields(operands: &[Field]) -> Self::Buffers;
    /// The elements for each tensor, in memory.
    #[cfg(feature = "std")]
    #[doc(hidden)]
    fn in_memory(flat: Self::Flat) -> SmallVec<[Arc<dyn Held>; 6]>;
}

/// Numbers of positional axes, for tensors with elements of the types `Args`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say how many axes arrays of `{Args}` have",
    label = "expected a tuple of `U0` to `U26`, one for each tensor"
)]
pub trait Takes<Args: Arguments> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The arrays of one example, as a tuple of `ArrayView`s.
    type Views<'a>;
    /// The same, owned.
    type Arrays;
    #[doc(hidden)]
    fn views<'a>(
        tensors: &'a StepOperands<'_, '_>,
        layouts: &'a [ArrayLayout],
        at: &[usize],
    ) -> Self::Views<'a>;
    /// Appends the elements of each array to those of its tensor; whether the shapes are those of its arrays.
    #[doc(hidden)]
    fn flatten(arrays: Self::Arrays, layouts: &[ArrayLayout], flat: &mut Args::Flat) -> bool;
}

/// 2 to 6 tensors, as a tuple.
#[diagnostic::on_unimplemented(
    message = "`{Self}` are not arguments of an operation on several arrays",
    label = "a tuple of 2 to 6 tensors is expected here",
    note = "an array becomes a tensor when it is bound: `(a.at((n, .., ..)), b.at((n, ..)))`; an operation on one tensor is `x.apply_array(..)`"
)]
pub trait Tensors {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The types of the elements.
    type Elems: Arguments;
    /// The dims of all.
    type Dims: Dims;
    #[doc(hidden)]
    fn hold(
        self,
        shape: &mut Shape,
        order: &[usize],
    ) -> Result<(<Self::Elems as Arguments>::Buffers, Layouts), DimError>;
}

/// Tensors with as many positional axes as an operation takes, which the tuple `N` says.
#[diagnostic::on_unimplemented(
    message = "an operation on arrays of `{N}` cannot be applied to `{Self}`",
    label = "the operation takes another number of tensors"
)]
pub trait WithAxes<N> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

/// The result of [`apply_arrays`].
pub type ArraysOut<O, X> = Named<
    <O as ArraysOp<<X as Tensors>::Elems>>::Elem,
    <X as Tensors>::Dims,
    <<O as ArraysOp<<X as Tensors>::Elems>>::Out as RankOf>::Rank,
>;

/// The operation of the arrays that the tensors' positional axes are, for each position of all their dims. It runs at once.
///
/// ```text
/// out at (n, m, ..) = op(a at (n, m, ..), b at (n, m, ..), ..)
/// ```
///
/// Each tensor can have dims of its own. One that lacks a dim of another one is the same all along it, and is not copied for that.
/// [`ArraysOp`] has an example.
///
/// # Panics
///
/// Where [`try_apply_arrays`] returns an error, and if the operation panics.
#[track_caller]
pub fn apply_arrays<X: Tensors + WithAxes<O::In>, O: ArraysOp<X::Elems>>(
    tensors: X,
    op: O,
) -> ArraysOut<O, X> {
    unwrap(try_apply_arrays(tensors, op))
}

/// As [`apply_arrays`], but what sizes decide is an error.
///
/// # Errors
///
/// If the tensors have different sizes for a dim, if the results of single examples have different shapes, or if there is no example and
/// no rule for batches, so that nothing says how large results are.
#[track_caller]
pub fn try_apply_arrays<X: Tensors + WithAxes<O::In>, O: ArraysOp<X::Elems>>(
    tensors: X,
    op: O,
) -> Result<ArraysOut<O, X>, DimError> {
    let named = X::Dims::KEYS.as_slice().len();
    let order = AxisList::in_memory_of::<X::Dims, <O::Out as RankOf>::Rank>().as_slice();
    let dims: Order = order.iter().copied().filter(|&axis| axis < named).collect();
    let mut shape = Shape::new::<X::Dims, Rank0>();
    let (mut tensors, layouts) = tensors.hold(&mut shape, &dims)?;
    shape.finish()?;
    let counts = shape.sizes_in(&dims);
    let too_large = || DimError::TooLarge { dims: shape.describe(&shape.all_axes()[..named]) };
    let count = volume(counts.iter().copied(), 1).ok_or_else(too_large)?;
    let calls =
        CallsOfSeveral { op: &op, count, counts: &counts, layouts, elements: PhantomData::<X::Elems> };
    let (out, found) = calls::run(calls, &mut X::Elems::operands(&mut tensors))?;
    let sizes: Sizes = counts.iter().chain(&found).copied().collect();
    let order: Order = dims.iter().copied().chain(named..named + found.len()).collect();
    arranged(out, &order, &sizes)
}

/// An operation on several arrays, for each position of all dims.
struct CallsOfSeveral<'a, O, Args> {
    op: &'a O,
    count: usize,
    /// The sizes of all dims.
    counts: &'a [usize],
    layouts: Layouts,
    elements: PhantomData<Args>,
}

impl<Args: Arguments, O: ArraysOp<Args>> ArrayCalls for CallsOfSeveral<'_, O, Args> {
    const NAME: &'static str = O::NAME;
    const RANK: usize = <<O::Out as RankOf>::Rank as Rank>::N;
    #[cfg(feature = "std")]
    const REMEDY: &'static str = "give the operation a pull-back, as `fn pull_back` of its `ArraysOp`";
    type Elem = O::Elem;

    fn count(&self) -> usize {
        self.count
    }

    fn batch(&self, operands: &StepOperands<'_, '_>) -> Option<ArrayD<O::Elem>> {
        self.op.batch(Args::examples(operands, &self.layouts, self.counts))
    }

    fn each(
        &self,
        operands: &StepOperands<'_, '_>,
        results: &mut ArrayResults<O::Elem>,
    ) -> Result<(), Error> {
        each(self.counts, |at| results.push(&self.op.one(O::In::views(operands, &self.layouts, at))))
    }

    #[cfg(feature = "std")]
    fn pull_back(&self) -> Option<Arc<dyn StepDerivative>> {
        let function = self.op.pull_back()?.function;
        let (counts, layouts) = (self.counts.into(), self.layouts.clone());
        Some(Arc::new(derivative::PullOfSeveral::<Args, O::Elem> {
            name: O::NAME,
            counts,
            layouts,
            function,
        }))
    }
}

#[cfg(feature = "std")]
mod derivative {
    use super::super::calls::sizes_of_result;
    use super::super::pull_back::{failed, in_type};
    use super::*;
    use kernels::step::Pulled;
    use kernels::trace::{Node, Part, StridedPlace};

    /// The derivative of an operation on several arrays.
    pub(super) struct PullOfSeveral<Args: Arguments, E: Element> {
        pub name: &'static str,
        /// The sizes of all dims.
        pub counts: Sizes,
        pub layouts: Layouts,
        pub function: Pulls<Args, E>,
    }

    impl<Args: Arguments, E: Element> StepDerivative for PullOfSeveral<Args, E> {
        fn name(&self) -> &'static str {
            self.name
        }

        fn pull(&self, step: &Pulled<'_>) -> Result<Vec<(Arc<Node>, Part)>, Error> {
            let PullOfSeveral { name, counts, layouts, function } = self;
            if step.recorded {
                return Err(failed(format!(
                    "the pull-back of `{name}` is not made of tensor operations, so it has only first derivatives in reverse mode; for others, use `custom_vjp`"
                )));
            }
            let (y, dy) = (in_type::<E>(step.value), in_type::<E>(step.cotangent));
            let shape = &sizes_of_result(step)[..];
            let mut tensors = Args::of_fields(step.operands);
            let mut operands = Args::operands(&mut tensors);
            let operands = StepOperands::new(&mut operands, false);
            let len: usize = shape.iter().product();
            let (mut flat, mut call) = (Args::Flat::default(), 0);
            each(counts, |at| {
                let own = call * len..(call + 1) * len;
                let (y, dy) = (view(shape, &y[own.clone()]), view(shape, &dy[own]));
                call += 1;
                if function(&operands, layouts, at, y, dy, &mut flat) {
                    return Ok(());
                }
                Err(failed(format!(
                    "the pull-back of `{name}` must yield arrays of the shapes that the operation takes"
                )))
            })?;
            let gradients = Args::in_memory(flat);
            let parts = gradients.iter().zip(layouts).enumerate().filter_map(|(number, (held, layout))| {
                let node = step.asked_operand(number)?;
                Some((Arc::clone(node), self.part(held, layout)))
            });
            Ok(parts.collect())
        }
    }

    impl<Args: Arguments, E: Element> PullOfSeveral<Args, E> {
        /// The gradients of all examples by a tensor: where it lacks a dim, those along the dim are added.
        fn part(&self, gradients: &Arc<dyn Held>, layout: &ArrayLayout) -> Part {
            let len: usize = layout.axes.iter().product();
            let sizes: Sizes = self.counts.iter().copied().chain([len]).collect();
            let order: Order = (0..sizes.len()).collect();
            let strides = layout.strides.iter().map(|&stride| (stride * len) as isize).chain([1]);
            let strides = sizes.iter().zip(strides).map(|(&size, stride)| if size == 1 { 0 } else { stride });
            let field = Field::held(&sizes, gradients, StridedPlace::contiguous(&sizes, &order));
            Part { field, place: StridedPlace::strided(0, strides) }
        }
    }
}

macro_rules! tuples {
    ($($a:ident $n:ident $at:tt)*) => {
        impl<$($a: Element),*> Arguments for ($($a,)*) {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Examples<'a> = ($(Examples<'a, $a>,)*);
            type Buffers = ($(Buffer<$a>,)*);
            type Flat = ($(Vec<$a>,)*);

            fn operands(buffers: &mut Self::Buffers) -> SmallVec<[&mut dyn AnyBuffer; 6]> {
                let mut operands = SmallVec::new();
                $(operands.push(&mut buffers.$at as &mut dyn AnyBuffer);)*
                operands
            }

            fn examples<'a>(
                tensors: &'a StepOperands<'_, '_>,
                layouts: &'a [ArrayLayout],
                counts: &'a [usize],
            ) -> Self::Examples<'a> {
                ($(Examples { data: tensors.of($at), layout: &layouts[$at], counts },)*)
            }

            #[cfg(feature = "std")]
            fn of_fields(operands: &[Field]) -> Self::Buffers {
                ($(operands[$at].buffer().expect("the elements are of this type"),)*)
            }

            #[cfg(feature = "std")]
            fn in_memory(flat: Self::Flat) -> SmallVec<[Arc<dyn Held>; 6]> {
                let mut memory = SmallVec::new();
                $(memory.push(Buffer::from(flat.$at).held());)*
                memory
            }
        }

        #[diagnostic::do_not_recommend]
        impl<$($a: Element, $n: RankOf),*> Takes<($($a,)*)> for ($($n,)*) {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Views<'a> = ($(ArrayView<'a, $a, NdOf<$n>>,)*);
            type Arrays = ($(Array<$a, NdOf<$n>>,)*);

            fn views<'a>(
                tensors: &'a StepOperands<'_, '_>,
                layouts: &'a [ArrayLayout],
                at: &[usize],
            ) -> Self::Views<'a> {
                ($({
                    let layout = &layouts[$at];
                    let array = view(&layout.axes, layout.one(tensors.of($at), at));
                    array.into_dimensionality().expect("the ranks are the same")
                },)*)
            }

            fn flatten(arrays: Self::Arrays, layouts: &[ArrayLayout], flat: &mut ($(Vec<$a>,)*)) -> bool {
                let mut same = true;
                $({
                    same &= arrays.$at.shape() == &layouts[$at].axes[..];
                    flat.$at.extend(arrays.$at.iter().copied());
                })*
                same
            }
        }

        #[diagnostic::do_not_recommend]
        impl<$($a: Computable),*> Tensors for ($($a,)*)
        where
            nested![$(<$a::Dims as Dims>::List),*]: MergeAll<Out: List>,
        {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Elems = ($($a::Elem,)*);
            type Dims = <<nested![$(<$a::Dims as Dims>::List),*] as MergeAll>::Out as List>::Tuple;

            fn hold(
                self,
                shape: &mut Shape,
                order: &[usize],
            ) -> Result<(($(Buffer<$a::Elem>,)*), Layouts), DimError> {
                let tensors = ($(self.$at.into_named(),)*);
                $(unify::<Self::Dims, $a>(&tensors.$at.unified_shape()?, shape)?;)*
                let mut layouts = Layouts::new();
                let buffers = ($({
                    let (data, layout) = in_memory::<$a>(tensors.$at, Self::Dims::KEYS, order)?;
                    layouts.push(layout);
                    data
                },)*);
                Ok((buffers, layouts))
            }
        }

        #[diagnostic::do_not_recommend]
        impl<$($a: AsTensor, $n: RankOf<Rank: AxesOf<$a::Rank>>),*> WithAxes<($($n,)*)> for ($($a,)*) {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
}
    };
}

/// Unifies the dims of one tensor with those of all, `U`.
fn unify<U: Dims, A: AsTensor>(own: &Shape, all: &mut Shape) -> Result<(), DimError> {
    for (axis, key) in A::Dims::KEYS.as_slice().iter().enumerate() {
        let at = U::KEYS.position(key).expect("the dims of a tensor are among those of all");
        let (size, origin) = own.known(axis);
        all.unify(at, size, origin)?;
    }
    Ok(())
}

tuples!(A M 0 B N 1);
tuples!(A M 0 B N 1 C O 2);
tuples!(A M 0 B N 1 C O 2 D P 3);
tuples!(A M 0 B N 1 C O 2 D P 3 E Q 4);
tuples!(A M 0 B N 1 C O 2 D P 3 E Q 4 F R 5);
