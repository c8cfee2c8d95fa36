//! Ranks: how many positional axes a tensor has.
//!
//! User code writes typenum's `U2`; messages show [`Rank2`]. The prelude exports [`U1`] to [`U4`],
//! and this module exports [`U0`] to [`U26`].

use crate::types::axes::AxisBlock;
use crate::types::condition::{Bool, False, True};
use kernels::memory::axes::Axis;
use ndarray::{Dimension, Ix0, Ix1, Ix2, Ix3, Ix4, Ix5, Ix6, IxDyn};
pub use typenum::{
    U0, U1, U2, U3, U4, U5, U6, U7, U8, U9, U10, U11, U12, U13, U14, U15, U16, U17, U18, U19, U20, U21, U22,
    U23, U24, U25, U26,
};

/// A number of positional axes, as a type.
pub trait Rank: Copy + Default + core::fmt::Debug + Send + Sync + 'static {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The number.
    const N: usize;
    /// One more, but at most `Rank26`.
    type Succ: Rank;
    /// One less, or `Rank0`.
    type Pred: Rank;
    /// Sizes and strides of the axes.
    #[doc(hidden)]
    type Axes: AxisBlock;
    /// The dimension type of an ndarray array of this rank.
    #[doc(hidden)]
    type Nd: Dimension;
    /// [`True`] if there are no axes.
    #[doc(hidden)]
    type IsNone: Bool;
    /// `self + other`, but at most `Rank26`.
    #[doc(hidden)]
    type Plus<O: Rank>: Rank;
    /// The larger of the two: positional axes broadcast to it.
    #[doc(hidden)]
    type Max<O: Rank>: Rank;
    /// `other - self`, or `Rank0` if that is negative.
    #[doc(hidden)]
    type TakenFrom<O: Rank>: Rank;
}

/// The [`Rank`] of a typenum, as user code writes it: `Tensor<f32, (), U2>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a number of positional axes",
    note = "write `U0` to `U26`"
)]
pub trait RankOf: 'static {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The rank.
    type Rank: Rank;
}

macro_rules! ranks {
    ($($name:ident $n:tt $pred:ident $succ:ident $nd:ident $num:ident;)*) => {$(
        #[doc = concat!("Number of positional axes: `", stringify!($n), "`.")]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name;

        impl Rank for $name {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            const N: usize = $n;
            type Succ = $succ;
            type Pred = $pred;
            type Axes = [Axis; $n];
            type Nd = $nd;
            type IsNone = ranks!(@none $n);
            type Plus<O: Rank> = ranks!(@plus $n $pred O);
            type Max<O: Rank> = ranks!(@max $n $pred O);
            type TakenFrom<O: Rank> = ranks!(@taken $n $pred O);
        }

        #[diagnostic::do_not_recommend]
        impl RankOf for typenum::$num {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Rank = $name;
        }
    )*};
    (@none 0) => { True };
    (@none $n:tt) => { False };
    (@plus 0 $pred:ident $o:ident) => { $o };
    (@plus $n:tt $pred:ident $o:ident) => { <$pred as Rank>::Plus<<$o as Rank>::Succ> };
    (@max 0 $pred:ident $o:ident) => { $o };
    (@max $n:tt $pred:ident $o:ident) => { <<$pred as Rank>::Max<<$o as Rank>::Pred> as Rank>::Succ };
    (@taken 0 $pred:ident $o:ident) => { $o };
    (@taken $n:tt $pred:ident $o:ident) => { <$pred as Rank>::TakenFrom<<$o as Rank>::Pred> };
}

ranks! {
    Rank0 0 Rank0 Rank1 Ix0 U0;
    Rank1 1 Rank0 Rank2 Ix1 U1;
    Rank2 2 Rank1 Rank3 Ix2 U2;
    Rank3 3 Rank2 Rank4 Ix3 U3;
    Rank4 4 Rank3 Rank5 Ix4 U4;
    Rank5 5 Rank4 Rank6 Ix5 U5;
    Rank6 6 Rank5 Rank7 Ix6 U6;
    Rank7 7 Rank6 Rank8 IxDyn U7;
    Rank8 8 Rank7 Rank9 IxDyn U8;
    Rank9 9 Rank8 Rank10 IxDyn U9;
    Rank10 10 Rank9 Rank11 IxDyn U10;
    Rank11 11 Rank10 Rank12 IxDyn U11;
    Rank12 12 Rank11 Rank13 IxDyn U12;
    Rank13 13 Rank12 Rank14 IxDyn U13;
    Rank14 14 Rank13 Rank15 IxDyn U14;
    Rank15 15 Rank14 Rank16 IxDyn U15;
    Rank16 16 Rank15 Rank17 IxDyn U16;
    Rank17 17 Rank16 Rank18 IxDyn U17;
    Rank18 18 Rank17 Rank19 IxDyn U18;
    Rank19 19 Rank18 Rank20 IxDyn U19;
    Rank20 20 Rank19 Rank21 IxDyn U20;
    Rank21 21 Rank20 Rank22 IxDyn U21;
    Rank22 22 Rank21 Rank23 IxDyn U22;
    Rank23 23 Rank22 Rank24 IxDyn U23;
    Rank24 24 Rank23 Rank25 IxDyn U24;
    Rank25 25 Rank24 Rank26 IxDyn U25;
    Rank26 26 Rank25 Rank26 IxDyn U26;
}
