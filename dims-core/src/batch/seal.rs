//! `seal` packs the caller's dims into a `Rest`, and `unseal` unpacks them.

use super::argument::SealedAxes;
use super::closed::{Apart, EndsInRest};
use super::result::OpenedAxes;
use crate::error::{Origin, unwrap};
use crate::storage::axes::AxisBlock;
use crate::storage::{Evaluated, View};
use crate::tensors::named::Named;
use crate::types::dim::DimList;
use crate::types::rank::Rank;
use crate::types::set::distinct::SortOnce;
use crate::types::set::list::List;
use crate::types::set::remove::Within;
use crate::types::set::union::SetNamed;
use crate::types::set::{Dims, DimsOf, FirstWith, MAX_DIMS, MaybeDim, Union};
use kernels::memory::axes::Axis;
use kernels::scalar::Element;

/// Elements in memory whose dims can be sealed and unsealed.
#[diagnostic::on_unimplemented(
    message = "only tensors in memory can be sealed",
    label = "this is an expression that has not been evaluated: call `.eval()` first"
)]
pub trait Sealable<S: Dims, X: Dims> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The same elements with the dims `X`.
    type Out;

    /// The axes of the dims, and where they were bound.
    #[doc(hidden)]
    fn axes(&self) -> (&[Axis], Origin);

    /// The elements with other dims: the new axis `at` is the old axis `from[at]`, or a broadcast
    /// axis of size `sizes(at)`. Each old axis is used once.
    #[doc(hidden)]
    fn with_dims(self, from: &[usize; MAX_DIMS], sizes: impl Fn(usize) -> usize) -> Self::Out;
}

#[diagnostic::do_not_recommend]
impl<T, S: Dims, R: Rank, X: Dims> Sealable<S, X> for Evaluated<T, S, R> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = Evaluated<T, X, R>;

    fn axes(&self) -> (&[Axis], Origin) {
        (self.named().as_slice(), self.origin())
    }

    fn with_dims(self, from: &[usize; MAX_DIMS], sizes: impl Fn(usize) -> usize) -> Evaluated<T, X, R> {
        Evaluated::with_dims(self, from, sizes)
    }
}

#[diagnostic::do_not_recommend]
impl<'a, T, S: Dims, R: Rank, X: Dims> Sealable<S, X> for &'a Evaluated<T, S, R> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = View<'a, T, X, R>;

    fn axes(&self) -> (&[Axis], Origin) {
        (self.named().as_slice(), self.origin())
    }

    fn with_dims(self, from: &[usize; MAX_DIMS], sizes: impl Fn(usize) -> usize) -> View<'a, T, X, R> {
        self.view().with_dims(from, sizes)
    }
}

#[diagnostic::do_not_recommend]
impl<'a, T, S: Dims, R: Rank, X: Dims> Sealable<S, X> for View<'a, T, S, R> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = View<'a, T, X, R>;

    fn axes(&self) -> (&[Axis], Origin) {
        (self.named().as_slice(), self.origin())
    }

    fn with_dims(self, from: &[usize; MAX_DIMS], sizes: impl Fn(usize) -> usize) -> View<'a, T, X, R> {
        View::with_dims(&self, from, sizes)
    }
}

#[diagnostic::do_not_recommend]
impl<'a, T, S: Dims, R: Rank, X: Dims> Sealable<S, X> for &View<'a, T, S, R> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = View<'a, T, X, R>;

    fn axes(&self) -> (&[Axis], Origin) {
        (self.named().as_slice(), self.origin())
    }

    fn with_dims(self, from: &[usize; MAX_DIMS], sizes: impl Fn(usize) -> usize) -> View<'a, T, X, R> {
        View::with_dims(self, from, sizes)
    }
}

/// The dims in `D` as a set.
pub(super) type Visible<D> = SetNamed<D>;

impl<T: Element, S: Dims, R: Rank, E> Named<T, S, R, E> {
    /// The tensor with the dims `visible`, and all others packed into a `Rest`. Pass it to a
    /// function that is generic over its caller's dims.
    ///
    /// ```text
    /// (Batch, Seq, Feat)  .seal((Seq, Feat))  (Seq, Feat, Rest<(Batch,)>)
    /// ```
    ///
    /// Nothing is copied. [`unseal`](Named::unseal) is the inverse. A function with `#[batched]`
    /// seals its arguments and unseals its result itself.
    ///
    /// # Panics
    ///
    /// If a dim is given with a size that it does not have, as in `Seq.of(7)`.
    #[inline]
    #[track_caller]
    pub fn seal<D, B, Y>(self, visible: D) -> Named<T, <Visible<D> as Dims>::Sealed<B>, R, Y>
    where
        D: DimsOf<S, B> + DimList<Brands: SortOnce>,
        B: Dims,
        // The result is a parameter: with a projection, rustc would report that there is no such
        // method.
        E: Sealable<S, <Visible<D> as Dims>::Sealed<B>, Out = Y>,
    {
        const { SealedAxes::<S, Visible<D>, B>::fits::<<Visible<D> as Dims>::Sealed<B>>() };
        if D::GIVES_SIZE {
            let (axes, origin) = self.expr.axes();
            visible.each(|dim| {
                let at = S::KEYS.position(&dim.key()).expect("the dim is one of the tensor's");
                if dim.given.is_some() {
                    unwrap(dim.unify(axes[at].size, origin));
                }
            });
        }
        Named::from_expr(self.expr.with_dims(&SealedAxes::<S, Visible<D>, B>::FROM, |_| 0))
    }

    /// The tensor with its `Rest` unpacked into the dims that it stands for.
    ///
    /// ```text
    /// (Seq, Rest<(Batch,)>)  .unseal()  (Batch, Seq)
    /// ```
    ///
    /// Nothing is copied. A tensor without a `Rest` is returned unchanged.
    ///
    /// # Panics
    ///
    /// If a dim and its prime have different sizes, one of them in the `Rest`.
    #[inline]
    #[track_caller]
    pub fn unseal<X: Dims, Y>(self) -> Named<T, X, R, Y>
    where
        S: Opened<All = X, Clash: MaybeDim<IsMissing: Apart<S::Clash>>>,
        E: Sealable<S, X, Out = Y>,
    {
        let (axes, origin) = self.expr.axes();
        unwrap(X::KEYS.check_primes(|at| (axes[S::FROM[at]].size, origin)));
        Named::from_expr(self.expr.with_dims(S::FROM, |_| 0))
    }
}

/// A set whose rest, if any, can be unpacked.
pub trait Opened: Dims {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// All dims.
    type All: Dims;
    /// A dim that is also in the rest, or [`Nothing`](crate::types::set::Nothing).
    type Clash: MaybeDim;
    /// For each axis of `All`, its position among the axes of the set.
    #[doc(hidden)]
    const FROM: &'static [usize; MAX_DIMS];
}

impl<S, X, V, B> Opened for S
where
    S: Dims<List: EndsInRest<Visible = V, Behind = B>>,
    V: List<Tuple: Union<B, Out = X>> + FirstWith<Within<B::List>>,
    B: Dims,
    X: Dims,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type All = X;
    type Clash = V::Found;
    const FROM: &'static [usize; MAX_DIMS] = &OpenedAxes::<V::Tuple, B, X>::FROM;
}
