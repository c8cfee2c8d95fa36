//! Nested pairs `(A, (B, ()))`, on which the operations recurse, and the flat tuples that people read.

use super::Dims;
use super::keys::Keys;
use crate::brand::Element;
use crate::storage::axes::{Axis, AxisBlock, Cons};
use crate::tuples::{each_tuple, nested};

/// The elements of a set as nested pairs.
pub trait List {
    /// The same elements as a flat tuple.
    type Tuple: Dims<List = Self, Axes = Self::Axes>;
    /// Sizes and strides, in order.
    type Axes: AxisBlock;
}

impl List for () {
    type Tuple = ();
    type Axes = [Axis; 0];
}

#[diagnostic::do_not_recommend]
impl Dims for () {
    type List = ();
    type Axes = [Axis; 0];
    const KEYS: &'static Keys = &Keys::EMPTY;
}

macro_rules! lists {
    ($($d:ident $n:tt)*) => {
        #[diagnostic::do_not_recommend]
        impl<$($d: Element),*> List for nested![$($d),*] {
            type Tuple = ($($d,)*);
            type Axes = axes![$($d)*];
        }

        #[diagnostic::do_not_recommend]
        impl<$($d: Element),*> Dims for ($($d,)*) {
            type List = nested![$($d),*];
            type Axes = axes![$($d)*];
            const KEYS: &'static Keys = &Keys::EMPTY$(.join(&$d::KEYS))*;
        }
    };
}

macro_rules! axes {
    () => { [Axis; 0] };
    ($head:ident $($tail:ident)*) => { Cons<$head::Axes, axes![$($tail)*]> };
}

each_tuple!(lists);
