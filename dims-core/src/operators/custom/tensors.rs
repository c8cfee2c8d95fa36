//! The arguments of a user's operation on arrays: one tensor, or several.

use super::arrays::{ABSENT, ArrayLayout, Layouts, WrongShape, each, view};
#[cfg(feature = "std")]
use super::pulled::PulledExamples;
use super::{AxesOf, NdOf};
use crate::error::DimError;
use crate::expr::evaluate::evaluate;
use crate::plan::shape::Shape;
use crate::seal::Private;
use crate::tensors::named::Named;
use crate::tensors::tensor::{AsTensor, Computable};
use crate::types::rank::{Rank, RankOf};
use crate::types::set::list::List;
use crate::types::set::union::MergeAll;
use crate::types::set::{Dims, Keys};
use crate::types::tuples::nested;
use alloc::boxed::Box;
#[cfg(feature = "std")]
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::convert::Infallible;
use kernels::loops::axes::{Order, Sizes};
use kernels::memory::buffer::Buffer;
use kernels::scalar::Element;
use kernels::step::{AnyBuffer, StepOperands};
#[cfg(feature = "std")]
use kernels::trace::{Field, Node, Part};
use ndarray::{Array, ArrayD, ArrayView, ArrayViewD, CowArray, IxDyn};
use smallvec::smallvec;

/// The arrays of all examples for one argument of an operation on several arrays: see
/// [`ArrayOp::batch`](super::ArrayOp::batch).
pub struct Examples<'a, T> {
    data: &'a [T],
    layout: &'a ArrayLayout,
    counts: &'a [usize],
}

impl<'a, T: Element> Examples<'a, T> {
    /// The number of examples.
    pub fn count(&self) -> usize {
        self.counts.iter().product()
    }

    /// The array that all examples share, if all axes of the tensor are positional. `None` if the
    /// tensor has dims.
    pub fn same(&self) -> Option<ArrayViewD<'a, T>> {
        let varies = self.layout.strides.iter().any(|&stride| stride != ABSENT);
        (!varies).then(|| view(&self.layout.axes, self.data))
    }

    /// The arrays of all examples, stacked along axis 0. They are copied if the tensor lacks a dim
    /// that another tensor has.
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

/// Evaluates a tensor. `all` are the keys of the dims of all tensors. `order` lists their positions
/// in `all`, the outermost loop of the calls first.
fn in_memory<A: Computable>(
    tensor: Named<A::Elem, A::Dims, A::Rank, A::Expr>,
    all: &Keys,
    order: &[usize],
) -> Result<(Buffer<A::Elem>, ArrayLayout), DimError> {
    let shape = tensor.unified_shape()?;
    let keys = A::Dims::KEYS;
    // Dims in the order of the calls, so that each tensor's arrays are read sequentially.
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

/// Tensors in memory as the operands of a step, and their layouts.
pub(super) type HeldTensors = (Vec<Box<dyn AnyBuffer>>, Layouts);

/// Numbers of positional axes, for tensors with elements of the types `Args`: a number such as `U1`
/// for one tensor, a tuple such as `(U2, U1)` for several.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say how many axes arrays of `{Args}` have",
    label = "expected `U0` to `U26` for one tensor, and a tuple of these for several"
)]
pub trait Takes<Args: 'static>: 'static {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The arrays of one example: an `ArrayView`, or a tuple of them.
    type Views<'a>;
    /// The arrays of one example, owned.
    type Arrays;
    /// The arrays of all examples: an `ArrayViewD` with the examples along axis 0, or a tuple of
    /// [`Examples`].
    type Examples<'a>;
    /// A vector of elements for each tensor.
    #[doc(hidden)]
    type Flat: Default + 'static;
    #[doc(hidden)]
    fn views<'a>(
        tensors: &'a StepOperands<'_, '_>,
        layouts: &'a [ArrayLayout],
        at: &[usize],
    ) -> Self::Views<'a>;
    #[doc(hidden)]
    fn examples<'a>(
        tensors: &'a StepOperands<'_, '_>,
        layouts: &'a [ArrayLayout],
        counts: &'a [usize],
    ) -> Self::Examples<'a>;
    /// Appends the elements of each array to the vector of its tensor.
    #[doc(hidden)]
    fn flatten(
        arrays: Self::Arrays,
        layouts: &[ArrayLayout],
        flat: &mut Self::Flat,
    ) -> Result<(), WrongShape>;
    /// The operands of a step, as buffers.
    #[cfg(feature = "std")]
    #[doc(hidden)]
    fn of_fields(operands: &[Field]) -> Vec<Box<dyn AnyBuffer>>;
    /// The gradients with respect to the tensors for which they are needed.
    #[cfg(feature = "std")]
    #[doc(hidden)]
    fn parts<E: Element>(
        flat: Self::Flat,
        examples: &PulledExamples<'_, Self::Flat, E>,
    ) -> Vec<(Arc<Node>, Part)>;
}

/// A tensor, or 2 to 6 tensors as a tuple.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an argument of an operation on arrays",
    label = "a tensor, or a tuple of 2 to 6 tensors, is expected here",
    note = "an array becomes a tensor when it is bound: `(a.at((n, .., ..)), b.at((n, ..)))`"
)]
pub trait Tensors {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The type of the elements, or a tuple of types.
    type Elems: 'static;
    /// The dims of all tensors.
    type Dims: Dims;
    #[doc(hidden)]
    fn hold(self, shape: &mut Shape, order: &[usize], private: Private) -> Result<HeldTensors, DimError>;
}

/// Tensors with the numbers of positional axes `N` that an operation takes.
#[diagnostic::on_unimplemented(
    message = "an operation on arrays of `{N}` cannot be applied to `{Self}`",
    label = "the operation takes a different number of tensors"
)]
pub trait WithAxes<N> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

#[diagnostic::do_not_recommend]
impl<A: Computable> Tensors for A {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Elems = A::Elem;
    type Dims = A::Dims;

    fn hold(self, shape: &mut Shape, order: &[usize], _: Private) -> Result<HeldTensors, DimError> {
        let tensor = self.into_named();
        unify::<A::Dims, A>(&tensor.unified_shape()?, shape)?;
        let (data, layout) = in_memory::<A>(tensor, A::Dims::KEYS, order)?;
        Ok((vec![Box::new(data)], smallvec![layout]))
    }
}

macro_rules! several {
    ($($a:ident $at:tt)*) => {
        #[diagnostic::do_not_recommend]
        impl<$($a: Computable),*> Tensors for ($($a),*)
        where
            nested![$(<$a::Dims as Dims>::List),*]: MergeAll<Out: List>,
        {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Elems = ($($a::Elem),*);
            type Dims = <<nested![$(<$a::Dims as Dims>::List),*] as MergeAll>::Out as List>::Tuple;

            fn hold(
                self,
                shape: &mut Shape,
                order: &[usize],
                _: Private,
            ) -> Result<HeldTensors, DimError> {
                let tensors = ($(self.$at.into_named()),*);
                $(unify::<Self::Dims, $a>(&tensors.$at.unified_shape()?, shape)?;)*
                let (mut buffers, mut layouts) = (Vec::<Box<dyn AnyBuffer>>::new(), Layouts::new());
                $({
                    let (data, layout) = in_memory::<$a>(tensors.$at, Self::Dims::KEYS, order)?;
                    buffers.push(Box::new(data));
                    layouts.push(layout);
                })*
                Ok((buffers, layouts))
            }
        }
    };
}

several!(A 0 B 1);
several!(A 0 B 1 C 2);
several!(A 0 B 1 C 2 D 3);
several!(A 0 B 1 C 2 D 3 E 4);
several!(A 0 B 1 C 2 D 3 E 4 F 5);

/// Unifies the sizes of one tensor's dims with those of all dims, `U`.
fn unify<U: Dims, A: AsTensor>(own: &Shape, all: &mut Shape) -> Result<(), DimError> {
    for (axis, key) in A::Dims::KEYS.as_slice().iter().enumerate() {
        let at = U::KEYS.position(key).expect("the dims of a tensor are among those of all");
        let (size, origin) = own.known(axis);
        all.unify(at, size, origin)?;
    }
    Ok(())
}

// One type in parentheses is the type itself, so a single array is not wrapped in a tuple.
// `$examples` is the type that `batch` gets for each tensor.
macro_rules! takes {
    ([$examples:ident $as_given:path] $($a:ident $n:ident $x:ident $at:tt)*) => {
        #[allow(unused_parens)]
        #[diagnostic::do_not_recommend]
        impl<$($a: Element, $n: RankOf),*> Takes<($($a),*)> for ($($n),*) {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Views<'a> = ($(ArrayView<'a, $a, NdOf<$n>>),*);
            type Arrays = ($(Array<$a, NdOf<$n>>),*);
            type Examples<'a> = ($($examples<'a, $a>),*);
            type Flat = ($(Vec<$a>,)*);

            fn views<'a>(
                tensors: &'a StepOperands<'_, '_>,
                layouts: &'a [ArrayLayout],
                at: &[usize],
            ) -> Self::Views<'a> {
                ($({
                    let layout = &layouts[$at];
                    let array = view(&layout.axes, layout.one(tensors.of($at), at));
                    array.into_dimensionality().expect("the ranks are the same")
                }),*)
            }

            fn examples<'a>(
                tensors: &'a StepOperands<'_, '_>,
                layouts: &'a [ArrayLayout],
                counts: &'a [usize],
            ) -> Self::Examples<'a> {
                ($($as_given(Examples { data: tensors.of($at), layout: &layouts[$at], counts })),*)
            }

            fn flatten(
                arrays: Self::Arrays,
                layouts: &[ArrayLayout],
                flat: &mut Self::Flat,
            ) -> Result<(), WrongShape> {
                let ($($x),*) = arrays;
                $(append(&$x, &layouts[$at], &mut flat.$at)?;)*
                Ok(())
            }

            #[cfg(feature = "std")]
            fn of_fields(operands: &[Field]) -> Vec<Box<dyn AnyBuffer>> {
                let same = "the elements are of this type";
                vec![$(Box::new(operands[$at].buffer::<$a>().expect(same))),*]
            }

            #[cfg(feature = "std")]
            fn parts<Y: Element>(
                flat: Self::Flat,
                examples: &PulledExamples<'_, Self::Flat, Y>,
            ) -> Vec<(Arc<Node>, Part)> {
                [$(examples.by($at, flat.$at, |flat| &flat.$at[..])),*].into_iter().flatten().collect()
            }
        }

        #[allow(unused_parens)]
        #[diagnostic::do_not_recommend]
        impl<$($a: AsTensor, $n: RankOf<Rank: AxesOf<$a::Rank>>),*> WithAxes<($($n),*)> for ($($a),*) {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
        }
    };
}

/// Appends the elements of an array, whose shape must be that of its tensor's arrays.
fn append<T: Element, D: ndarray::Dimension>(
    array: &Array<T, D>,
    layout: &ArrayLayout,
    flat: &mut Vec<T>,
) -> Result<(), WrongShape> {
    if *array.shape() != layout.axes[..] {
        return Err(WrongShape { found: array.shape().to_vec(), expected: layout.axes.to_vec() });
    }
    flat.extend(array.iter().copied());
    Ok(())
}

/// The arrays of all examples of the only tensor, which has all dims.
fn stacked<'a, T>(examples: Examples<'a, T>) -> ArrayViewD<'a, T> {
    let count = examples.counts.iter().product();
    let shape: Sizes = [count].into_iter().chain(examples.layout.axes.iter().copied()).collect();
    view(&shape, examples.data)
}

takes!([ArrayViewD stacked] A M a 0);
takes!([Examples core::convert::identity] A M a 0 B N b 1);
takes!([Examples core::convert::identity] A M a 0 B N b 1 C O c 2);
takes!([Examples core::convert::identity] A M a 0 B N b 1 C O c 2 D P d 3);
takes!([Examples core::convert::identity] A M a 0 B N b 1 C O c 2 D P d 3 E Q e 4);
takes!([Examples core::convert::identity] A M a 0 B N b 1 C O c 2 D P d 3 E Q e 4 F R f 5);
