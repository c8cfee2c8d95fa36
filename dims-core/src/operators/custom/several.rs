//! Operations of users on the arrays of several tensors.

use super::{AxesOf, NdOf};
use crate::error::{DimError, unwrap};
use crate::execute::lines::arranged;
use crate::expr::evaluate::evaluate;
use crate::named::Named;
use crate::plan::axes::AxisList;
use crate::plan::shape::{Shape, volume};
use crate::rank::{Rank, Rank0, RankOf};
use crate::set::list::List;
use crate::set::union::MergeAll;
use crate::set::{Dims, Keys};
use crate::tensor::{AsTensor, Computable};
use crate::types::tuples::nested;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::marker::PhantomData;
use kernels::loops::axes::{Order, Sizes};
use kernels::loops::nest::Odometer;
use kernels::loops::steps::{PlanStep, note};
use kernels::memory::buffer::Buffer;
use kernels::scalar::Element;
use ndarray::{Array, ArrayD, ArrayView, ArrayViewD, Axis, CowArray, IxDyn};

/// An operation on the arrays of several tensors: a function of 2 to 6 ndarray arrays, for tensors with any dims besides its axes.
///
/// As [`ArrayOp`](super::ArrayOp), with a tuple in the place of one array: `Args` are the types of the elements, `In` the numbers of axes. It is called by
/// [`apply_arrays`].
///
/// ```
/// use typed_dims::ndarray::{Array1, ArrayView1, ArrayView2, array};
/// use typed_dims::custom::apply_arrays;
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

/// The same, of arrays whose ranks are not in the type: of all tensors, the position of an example, its result, and the cotangent. The gradients go to the end of
/// those of other examples, and the result says whether they have the shapes of the arrays.
type Pulls<Args, E> = Arc<
    dyn Fn(
            &<Args as Arguments>::Held,
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
        let function: Pulls<Args, E> = Arc::new(move |held, at, y, dy, flat| {
            let y = y.into_dimensionality().expect(same);
            In::flatten(f(In::views(held, at), y, dy.into_dimensionality().expect(same)), held, flat)
        });
        PullBacks { function, marker: PhantomData }
    }
}

/// One argument of [`ArraysOp::batch`]: the arrays of all examples.
pub struct Examples<'a, T> {
    whole: &'a WholeTensor<T>,
    counts: &'a [usize],
}

impl<'a, T: Element> Examples<'a, T> {
    /// How many examples there are.
    pub fn count(&self) -> usize {
        self.counts.iter().product()
    }

    /// The array, if it is the same for all examples.
    pub fn same(&self) -> Option<ArrayViewD<'a, T>> {
        let varies = self.whole.strides.iter().any(|&stride| stride != ABSENT);
        (!varies).then(|| view(self.whole.axes.as_slice(), &self.whole.data))
    }

    /// The arrays of all examples, one behind the other along axis 0. They are copied if the tensor lacks a dim that another one has.
    pub fn stacked(&self) -> CowArray<'a, T, IxDyn> {
        let mut shape = vec![self.count()];
        shape.extend(&self.whole.axes);
        if self.whole.strides.iter().all(|&stride| stride != ABSENT) {
            return view(&shape, &self.whole.data).into();
        }
        let mut data = Vec::new();
        each(self.counts, |at| data.extend_from_slice(self.whole.one(at)));
        ArrayD::from_shape_vec(IxDyn(&shape), data).expect("one array for each example").into()
    }
}

fn view<'a, T>(shape: &[usize], data: &'a [T]) -> ArrayViewD<'a, T> {
    ArrayViewD::from_shape(IxDyn(shape), data).expect("the sizes are the shape of the data")
}

/// Calls `f` with each position of axes of these sizes.
fn each(counts: &[usize], mut f: impl FnMut(&[usize])) {
    let mut at: Sizes = counts.iter().map(|_| 0).collect();
    let mut odometer = Odometer::new(counts);
    while !odometer.is_done() {
        f(&at);
        odometer.advance(&mut at);
    }
}

/// The stride of a tensor along a dim that it lacks.
const ABSENT: usize = 0;

/// A tensor in memory, its positional axes innermost: the arrays of all positions of its dims.
pub struct WholeTensor<T> {
    data: Buffer<T>,
    /// How far apart, in arrays, those of neighbours along each dim of all tensors are: at least 1, or [`ABSENT`].
    strides: Sizes,
    /// The sizes of the positional axes.
    axes: Sizes,
}

impl<T: Element> WholeTensor<T> {
    /// `order` are the axes of all dims of all tensors, with the keys `all`.
    fn new<A: Computable<Elem = T>>(
        tensor: Named<T, A::Dims, A::Rank, A::Expr>,
        all: &Keys,
        order: &[usize],
    ) -> Result<Self, DimError> {
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
        Ok(WholeTensor { data, strides, axes: sizes[named..].into() })
    }

    /// The array at one position of all dims.
    fn one(&self, at: &[usize]) -> &[T] {
        let len: usize = self.axes.iter().product();
        let first: usize = at.iter().zip(&self.strides).map(|(at, stride)| at * stride).sum();
        &self.data[first * len..(first + 1) * len]
    }
}

/// The types of the elements of 2 to 6 tensors, as a tuple.
pub trait Arguments: 'static {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// What [`ArraysOp::batch`] gets: [`Examples`] of each tensor.
    type Examples<'a>;
    /// The tensors in memory.
    #[doc(hidden)]
    type Held: Send + Sync;
    /// Elements for each tensor.
    #[doc(hidden)]
    type Flat: Default;
    /// Calls a function with each tensor, and its elements.
    #[doc(hidden)]
    fn each<V: Visit>(held: &Self::Held, flat: Self::Flat, visit: &mut V);
    #[doc(hidden)]
    fn examples<'a>(held: &'a Self::Held, counts: &'a [usize]) -> Self::Examples<'a>;
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
    fn views<'a>(held: &'a Args::Held, at: &[usize]) -> Self::Views<'a>;
    /// Appends the elements of each array to those of its tensor; whether the shapes are those of its arrays.
    #[doc(hidden)]
    fn flatten(arrays: Self::Arrays, held: &Args::Held, flat: &mut Args::Flat) -> bool;
}

/// What is done with each of several tensors.
#[doc(hidden)]
pub trait Visit {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// With one tensor, and elements that belong to it.
    fn visit<T: Element>(&mut self, whole: &WholeTensor<T>, elements: Vec<T>);
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
    fn hold(self, shape: &mut Shape, order: &[usize]) -> Result<<Self::Elems as Arguments>::Held, DimError>;
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
    let rank = <<O::Out as RankOf>::Rank as Rank>::N;
    let named = X::Dims::KEYS.as_slice().len();
    let order = AxisList::in_memory_of::<X::Dims, <O::Out as RankOf>::Rank>().as_slice();
    let dims: Order = order.iter().copied().filter(|&axis| axis < named).collect();
    let mut shape = Shape::new::<X::Dims, Rank0>();
    let held = tensors.hold(&mut shape, &dims)?;
    shape.finish()?;
    let counts = shape.sizes_in(&dims);
    let too_large = || DimError::TooLarge { dims: shape.describe(&shape.all_axes()[..named]) };
    let calls = volume(counts.iter().copied(), 1).ok_or_else(too_large)?;
    let fail = |what: String| Err(DimError::Shape { what: format!("the operation `{}`: {what}", O::NAME) });
    let (out, found) = match op.batch(X::Elems::examples(&held, &counts)) {
        Some(results) => {
            if results.ndim() != rank + 1 || results.len_of(Axis(0)) != calls {
                let shape = results.shape();
                return fail(format!("it yields an array of shape {shape:?} for {calls} examples"));
            }
            (results.iter().copied().collect(), Sizes::from_slice(&results.shape()[1..]))
        }
        None if calls == 0 => {
            return fail("without examples, the sizes of its results are unknown".into());
        }
        None => {
            let (mut out, mut found) = (Vec::new(), None);
            let mut differing = None;
            each(&counts, |at| {
                if differing.is_some() {
                    return;
                }
                let result = op.one(O::In::views(&held, at));
                let first = found.get_or_insert_with(|| Sizes::from_slice(result.shape()));
                if first[..] != *result.shape() {
                    differing =
                        Some(format!("its results have the shapes {first:?} and {:?}", result.shape()));
                }
                out.extend(result.iter().copied());
            });
            if let Some(what) = differing {
                return fail(what);
            }
            let bytes = size_of_val(&out[..]);
            note(|| PlanStep::Calls { function: O::NAME, calls, steps: Vec::new(), bytes });
            (out, found.unwrap_or_default())
        }
    };
    #[cfg(feature = "std")]
    let out = recorded::result::<X::Elems, O::Elem>(
        O::NAME,
        (held, &counts),
        (out, &found),
        op.pull_back().map(|own| own.function),
    )?;
    let sizes: Sizes = counts.iter().chain(&found).copied().collect();
    let order: Order = dims.iter().copied().chain(named..named + rank).collect();
    arranged(out, &order, &sizes)
}

#[cfg(feature = "std")]
mod recorded {
    use super::super::pull_back::{failed, whole};
    use super::*;
    use crate::expr::record::{FunctionRule, is_active, ruled, underivable};
    use kernels::program::code::DType;
    use kernels::trace::{Field, Held, Node, Part, StridedPlace, names_of_variables};

    /// Which tensors are traced.
    #[derive(Default)]
    struct TracedFields {
        operands: Vec<Field>,
    }

    impl Visit for TracedFields {
        const SEAL: crate::seal::Seal = crate::seal::SEAL;
        fn visit<T: Element>(&mut self, tensor: &WholeTensor<T>, _: Vec<T>) {
            if tensor.data.is_traced() && DType::of::<T>().is_some_and(DType::is_float) {
                self.operands.push(whole(&tensor.data));
            }
        }
    }

    /// The gradients by traced tensors: where one lacks a dim, those of all examples along it are added.
    struct GradientsOfTraced<'a> {
        counts: &'a [usize],
        parts: Vec<(Arc<Node>, Part)>,
    }

    impl Visit for GradientsOfTraced<'_> {
        const SEAL: crate::seal::Seal = crate::seal::SEAL;
        fn visit<T: Element>(&mut self, tensor: &WholeTensor<T>, elements: Vec<T>) {
            let (Some(node), true) = (tensor.data.node(), DType::of::<T>().is_some_and(DType::is_float))
            else {
                return;
            };
            let len: usize = tensor.axes.iter().product();
            let sizes: Sizes = self.counts.iter().copied().chain([len]).collect();
            let order: Order = (0..sizes.len()).collect();
            let strides = tensor.strides.iter().map(|&stride| (stride * len) as isize).chain([1]);
            let strides = sizes.iter().zip(strides).map(|(&size, stride)| if size == 1 { 0 } else { stride });
            let held = Buffer::from(elements).held();
            let field = Field::held(&sizes, &held, StridedPlace::contiguous(&sizes, &order));
            let place = StridedPlace::strided(0, strides);
            self.parts.push((Arc::clone(node), Part { field, place }));
        }
    }

    /// The results, as a step of the program if a tensor is traced.
    #[track_caller]
    pub(super) fn result<Args: Arguments, E: Element>(
        name: &'static str,
        (held, counts): (Args::Held, &[usize]),
        (out, shape): (Vec<E>, &[usize]),
        pull: Option<Pulls<Args, E>>,
    ) -> Result<Buffer<E>, DimError> {
        if !is_active() || DType::of::<E>().is_some_and(|dtype| !dtype.is_float()) {
            return Ok(out.into());
        }
        let mut traced = TracedFields::default();
        Args::each(&held, Args::Flat::default(), &mut traced);
        if traced.operands.is_empty() {
            return Ok(out.into());
        }
        let (Some(pull), Some(_)) = (pull, DType::of::<E>()) else {
            let remedy = "give the operation a pull-back, as `fn pull_back` of its `ArraysOp`";
            let names = names_of_variables(traced.operands.iter().flat_map(Field::nodes));
            return Err(underivable(name, remedy, names));
        };
        let (counts, shape) = (Sizes::from_slice(counts), Sizes::from_slice(shape));
        let pull = move |value: &Arc<dyn Held>,
                         cotangent: &Arc<dyn Held>,
                         recorded: bool,
                         _: &dyn Fn(u64) -> bool| {
            if recorded {
                return Err(failed(format!(
                    "the pull-back of `{name}` is not made of tensor operations, so it has only first derivatives in reverse mode; for others, use `custom_vjp`"
                )));
            }
            let known = "the elements are of this type";
            let y = Buffer::<E>::of_held(value).expect(known);
            let dy = Buffer::<E>::of_held(cotangent).expect(known);
            let len: usize = shape.iter().product();
            let (mut flat, mut call, mut fits) = (Args::Flat::default(), 0, true);
            each(&counts, |at| {
                let own = call * len..(call + 1) * len;
                let (y, dy) = (view(&shape, &y[own.clone()]), view(&shape, &dy[own]));
                fits &= pull(&held, at, y, dy, &mut flat);
                call += 1;
            });
            if !fits {
                return Err(failed(format!(
                    "the pull-back of `{name}` must yield arrays of the shapes that the operation takes"
                )));
            }
            let mut parts = GradientsOfTraced { counts: &counts, parts: Vec::new() };
            Args::each(&held, flat, &mut parts);
            Ok(parts.parts)
        };
        Ok(ruled(out, FunctionRule { name: "an operation on arrays", operands: traced.operands, pull }))
    }
}

macro_rules! tuples {
    ($($a:ident $n:ident $at:tt)*) => {
        impl<$($a: Element),*> Arguments for ($($a,)*) {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Examples<'a> = ($(Examples<'a, $a>,)*);
            type Held = ($(WholeTensor<$a>,)*);
            type Flat = ($(Vec<$a>,)*);

            fn each<V: Visit>(held: &Self::Held, flat: Self::Flat, visit: &mut V) {
                $(visit.visit(&held.$at, flat.$at);)*
            }

            fn examples<'a>(held: &'a Self::Held, counts: &'a [usize]) -> Self::Examples<'a> {
                ($(Examples { whole: &held.$at, counts },)*)
            }
        }

        #[diagnostic::do_not_recommend]
        impl<$($a: Element, $n: RankOf),*> Takes<($($a,)*)> for ($($n,)*) {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Views<'a> = ($(ArrayView<'a, $a, NdOf<$n>>,)*);
            type Arrays = ($(Array<$a, NdOf<$n>>,)*);

            fn flatten(arrays: Self::Arrays, held: &($(WholeTensor<$a>,)*), flat: &mut ($(Vec<$a>,)*)) -> bool {
                let mut same = true;
                $({
                    same &= arrays.$at.shape() == &held.$at.axes[..];
                    flat.$at.extend(arrays.$at.iter().copied());
                })*
                same
            }

            fn views<'a>(held: &'a ($(WholeTensor<$a>,)*), at: &[usize]) -> Self::Views<'a> {
                ($({
                    let whole = &held.$at;
                    view(&whole.axes, whole.one(at)).into_dimensionality().expect("the ranks are the same")
                },)*)
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

            fn hold(self, shape: &mut Shape, order: &[usize]) -> Result<($(WholeTensor<$a::Elem>,)*), DimError> {
                let tensors = ($(self.$at.into_named(),)*);
                $(unify::<Self::Dims, $a>(&tensors.$at.unified_shape()?, shape)?;)*
                Ok(($(WholeTensor::new::<$a>(tensors.$at, Self::Dims::KEYS, order)?,)*))
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
