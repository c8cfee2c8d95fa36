//! Nested pairs `(A, (B, ()))`, on which operations recurse, and the flat tuples that users write.

use super::keys::Keys;
use super::{Bool, Dims, False, True};
use crate::types::axes::{AxisBlock, Cons};
use crate::types::brand::{Rest, SetElement};
use crate::types::rank::{Rank, Rank0};
use crate::types::tuples::{each_tuple, nested};
use kernels::memory::axes::Axis;

/// Types as nested pairs.
pub trait NestedPairs {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// [`True`] if the list is empty.
    type IsEmpty: Bool;
    /// [`True`] if it has exactly one element.
    type IsOne: Bool;
    /// The number of elements.
    type Count: Rank;
    /// This list followed by the list `T`.
    type Then<T>;
    /// The last element; `E` if there is none.
    type LastOr<E>;
    /// The only element; `E` if there are none or several.
    type OnlyOr<E>;
}

impl NestedPairs for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type IsEmpty = True;
    type IsOne = False;
    type Count = Rank0;
    type Then<T> = T;
    type LastOr<E> = E;
    type OnlyOr<E> = E;
}

#[diagnostic::do_not_recommend]
impl<H, T: NestedPairs> NestedPairs for (H, T) {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type IsEmpty = False;
    type IsOne = T::IsEmpty;
    type Count = <T::Count as Rank>::Succ;
    type Then<U> = (H, T::Then<U>);
    type LastOr<E> = T::LastOr<H>;
    type OnlyOr<E> = <T::IsEmpty as Bool>::If<H, E>;
}

/// The elements of a set as nested pairs.
pub trait List: NestedPairs {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The same elements as a flat tuple.
    type Tuple: Dims<List = Self, Axes = Self::Axes>;
    /// Sizes and strides, in order.
    type Axes: AxisBlock;
}

impl List for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Tuple = ();
    type Axes = [Axis; 0];
}

#[diagnostic::do_not_recommend]
impl Dims for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type List = ();
    type Axes = [Axis; 0];
    type Sealed<B: Dims> = (Rest<B>,);
    const KEYS: &'static Keys = &Keys::EMPTY;
}

macro_rules! lists {
    ($($d:ident $n:tt)*) => {
        #[diagnostic::do_not_recommend]
        impl<$($d: SetElement),*> List for nested![$($d),*] {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Tuple = ($($d,)*);
            type Axes = axes![$($d)*];
        }

        #[diagnostic::do_not_recommend]
        impl<$($d: SetElement),*> Dims for ($($d,)*) {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type List = nested![$($d),*];
            type Axes = axes![$($d)*];
            type Sealed<B: Dims> = sealed![B $($d)*];
            const KEYS: &'static Keys = &Keys::EMPTY$(.join(&$d::KEYS))*.checked(<Self::Axes as AxisBlock>::LEN);
        }
    };
}

macro_rules! axes {
    () => { [Axis; 0] };
    ($head:ident $($tail:ident)*) => { Cons<$head::Axes, axes![$($tail)*]> };
}

/// The longest tuple has no room for a `Rest`. Code that uses `Sealed` rejects this tuple at
/// compile time, in a constant, as `SealedAxes::fits` of `batch` does.
macro_rules! sealed {
    ($b:ident D0 D1 D2 D3 D4 D5 D6 D7 D8 D9 D10 D11 D12 D13 D14 D15 D16 D17 D18 D19 D20 D21 D22 D23 D24 D25) => { Self };
    ($b:ident $($d:ident)*) => { ($($d,)* Rest<$b>,) };
}

each_tuple!(lists);
