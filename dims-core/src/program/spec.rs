//! Inputs that give a recorded function only sizes.

use super::inputs::{Hand, PartFamily, RecordInputs};
use super::open::{self, InRound};
use crate::creation::create::SizedDims;
use crate::creation::undrawn::{ForSizes, MakingForSizes, without_elements};
use crate::error::unwrap;
use crate::grad::parameters::{Parameters, Path, Walk};
use crate::tensors::named::Named;
use crate::types::set::DimKey;
use alloc::vec::Vec;
use kernels::scalar::Element;
use kernels::trace::ROUNDS;

/// An input that gives only sizes: see [`spec`].
pub struct Spec<P> {
    /// The value, or one for each recording if dims are dynamic.
    values: Vec<ForSizes<P>>,
    open: Vec<DimKey>,
}

/// An input of [`record`](super::record()) that gives only sizes: dims with sizes, or a function
/// that makes the value, such as the parameters of a network.
///
/// Operators that depend on the inputs are not computed while the function is recorded. Only the
/// functions of user-defined operations are called, with zeros. Memory is reserved, but its pages
/// are not touched, so you can record a model whose parameters do not fit into memory. (Some
/// systems, such as Linux by default, refuse to reserve more memory for one tensor than the machine
/// has.)
///
/// Random numbers, from [`randn`](crate::creation::random::randn()) or
/// [`init`](crate::creation::init), are not drawn. The recorded function gets a reference to the
/// value.
///
/// ```
/// use typed_dims::nn::Linear;
/// use typed_dims::prelude::*;
/// use typed_dims::program::{record, spec};
///
/// dims! { pub struct Row; pub struct In; pub struct Out; }
/// type Layer = Linear<(In,), (Out,)>;
/// type Data = Tensor<f32, (Row, In)>;
///
/// let program = record(
///     |(layer, x): (&Layer, &Data)| -> Tensor<f32, (Row, Out)> { layer.apply(x) },
///     (spec(|| Layer::new(In.of(3), Out.of(2), 1)), spec((Row.of(4), In.of(3)))),
/// )?;
/// let (layer, x) = (Layer::new(In.of(3), Out.of(2), 7), ones((Row.of(4), In.of(3))));
/// assert_eq!(program.call((&layer, &x)), layer.apply(&x));
/// # Ok::<(), DimError>(())
/// ```
///
/// # Panics
///
/// Panics if a dim has no size, if its prime has another size, or if the memory cannot be reserved.
#[track_caller]
pub fn spec<P: Parameters, M>(of: impl SpecOf<P, M>) -> Spec<P> {
    drop(open::asked());
    let mut values = vec![MakingForSizes::start().made(of.value())];
    let mut open = open::asked();
    open.extend(of.open());
    if !open.is_empty() {
        for round in 1..ROUNDS {
            let _round = InRound::start(round);
            values.push(MakingForSizes::start().made(of.value()));
        }
    }
    Spec { values, open }
}

/// The argument of [`spec`]: dims with sizes, or a function that makes the value.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say which sizes the input `{P}` has",
    label = "expected dims with sizes, `(Row.of(2), Col.of(3))`, or a function that makes the value, `|| Network::new(..)`"
)]
pub trait SpecOf<P, M> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The value, at the sizes of the current round of recording.
    #[doc(hidden)]
    #[track_caller]
    fn value(&self) -> P;
    /// The dynamic dims among the given ones. (Those that a function uses are found when it runs.)
    #[doc(hidden)]
    fn open(&self) -> Vec<DimKey> {
        Vec::new()
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element, D: SizedDims> SpecOf<Named<T, D::Set>, ()> for D {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;

    #[track_caller]
    fn value(&self) -> Named<T, D::Set> {
        unwrap(without_elements(self, &open::size_now))
    }

    fn open(&self) -> Vec<DimKey> {
        let mut open = Vec::new();
        self.each(|key, size| {
            if size.is_some_and(open::is_open) {
                open.push(key);
            }
        });
        open
    }
}

#[diagnostic::do_not_recommend]
impl<P, F: Fn() -> P> SpecOf<P, fn() -> P> for F {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;

    fn value(&self) -> P {
        self()
    }
}

#[diagnostic::do_not_recommend]
impl<P: Parameters> RecordInputs for Spec<P> {
    type Value = P;
    type Slots = P;
    const SIZES_ALONE: bool = true;

    fn walk<W: Walk<1>>(&self, path: &mut Path, walk: &mut W) -> Result<P, W::Error> {
        let round = open::round().min(self.values.len() - 1);
        P::walk([&self.values[round].value], path, walk)
    }

    fn open(&self, dims: &mut Vec<DimKey>) {
        dims.extend_from_slice(&self.open);
    }

    fn slots(value: P) -> P {
        value
    }

    fn moved(_: &mut Vec<usize>, _: &mut Vec<Vec<usize>>) {}

    type Parts<F: PartFamily> = F::Of<P>;

    fn parts<F: PartFamily>(value: P, family: &mut F) -> F::Of<P> {
        family.part(value)
    }
}

#[diagnostic::do_not_recommend]
impl<'t, P: Parameters + 't> Hand<'t> for Spec<P> {
    type Handed = &'t P;

    fn hand(slots: &'t mut P) -> &'t P {
        slots
    }
}
