//! `order`: dims become positional axes again.

use crate::brand::DimInfo;
use crate::dim::DimRef;
use crate::error::{DimError, unwrap};
use crate::named::{Named, position};
use crate::plan::shape::Shape;
use crate::rank::*;
use crate::reduce::evaluate_in;
use crate::set::list::List;
use crate::set::remove::RemoveAll;
use crate::set::{Bound, Dims, NamedOnce, Verdict};
use crate::storage::Owned;
use crate::tensor::AsTensor;
use ndarray::{Array, ArrayD};
use smallvec::SmallVec;

/// The axes that `order` makes: each a dim, or a tuple of dims that are flattened into one axis, the last one fastest.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an order of dims",
    label = "expected a dim, or a tuple of dims and of tuples of dims: `(b, (h, h2), w)`"
)]
pub trait OrderList {
    /// All brands as nested pairs.
    #[doc(hidden)]
    type Brands;
    /// How many axes there will be.
    #[doc(hidden)]
    type Count: Rank;
    /// Calls `visit` with each dim, and whether it begins an axis.
    #[doc(hidden)]
    fn each(&self, visit: &mut dyn FnMut(DimInfo<'_>, bool));
}

/// One axis of an order.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an axis of an order",
    label = "expected a dim, or a tuple of dims to flatten"
)]
pub trait OrderAxis {
    /// `Tail` with the brands of this axis in front, as nested pairs.
    #[doc(hidden)]
    type Before<Tail>;
    #[doc(hidden)]
    fn each(&self, visit: &mut dyn FnMut(DimInfo<'_>, bool));
}

#[diagnostic::do_not_recommend]
impl<D: DimRef> OrderAxis for D {
    type Before<Tail> = (D::Brand, Tail);

    #[inline(always)]
    fn each(&self, visit: &mut dyn FnMut(DimInfo<'_>, bool)) {
        visit(self.info(), true);
    }
}

macro_rules! groups {
    ($(($first:ident $n0:tt $($d:ident $n:tt)*) $nested:ty;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<$first: DimRef, $($d: DimRef),*> OrderAxis for ($first, $($d,)*) {
            type Before<Tail> = $nested;

            #[inline(always)]
            fn each(&self, visit: &mut dyn FnMut(DimInfo<'_>, bool)) {
                visit(self.$n0.info(), true);
                $(visit(self.$n.info(), false);)*
            }
        }
    )*};
}

groups! {
    (D0 0) (D0::Brand, Tail);
    (D0 0 D1 1) (D0::Brand, (D1::Brand, Tail));
    (D0 0 D1 1 D2 2) (D0::Brand, (D1::Brand, (D2::Brand, Tail)));
    (D0 0 D1 1 D2 2 D3 3) (D0::Brand, (D1::Brand, (D2::Brand, (D3::Brand, Tail))));
    (D0 0 D1 1 D2 2 D3 3 D4 4) (D0::Brand, (D1::Brand, (D2::Brand, (D3::Brand, (D4::Brand, Tail)))));
    (D0 0 D1 1 D2 2 D3 3 D4 4 D5 5) (D0::Brand, (D1::Brand, (D2::Brand, (D3::Brand, (D4::Brand, (D5::Brand, Tail))))));
    (D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6) (D0::Brand, (D1::Brand, (D2::Brand, (D3::Brand, (D4::Brand, (D5::Brand, (D6::Brand, Tail)))))));
    (D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7) (D0::Brand, (D1::Brand, (D2::Brand, (D3::Brand, (D4::Brand, (D5::Brand, (D6::Brand, (D7::Brand, Tail))))))));
    (D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7 D8 8) (D0::Brand, (D1::Brand, (D2::Brand, (D3::Brand, (D4::Brand, (D5::Brand, (D6::Brand, (D7::Brand, (D8::Brand, Tail)))))))));
    (D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7 D8 8 D9 9) (D0::Brand, (D1::Brand, (D2::Brand, (D3::Brand, (D4::Brand, (D5::Brand, (D6::Brand, (D7::Brand, (D8::Brand, (D9::Brand, Tail))))))))));
    (D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7 D8 8 D9 9 D10 10) (D0::Brand, (D1::Brand, (D2::Brand, (D3::Brand, (D4::Brand, (D5::Brand, (D6::Brand, (D7::Brand, (D8::Brand, (D9::Brand, (D10::Brand, Tail)))))))))));
    (D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7 D8 8 D9 9 D10 10 D11 11) (D0::Brand, (D1::Brand, (D2::Brand, (D3::Brand, (D4::Brand, (D5::Brand, (D6::Brand, (D7::Brand, (D8::Brand, (D9::Brand, (D10::Brand, (D11::Brand, Tail))))))))))));
}

#[diagnostic::do_not_recommend]
impl<D: DimRef> OrderList for D {
    type Brands = (D::Brand, ());
    type Count = Rank1;

    #[inline(always)]
    fn each(&self, visit: &mut dyn FnMut(DimInfo<'_>, bool)) {
        visit(self.info(), true);
    }
}

#[diagnostic::do_not_recommend]
impl OrderList for () {
    type Brands = ();
    type Count = Rank0;

    #[inline(always)]
    fn each(&self, _: &mut dyn FnMut(DimInfo<'_>, bool)) {}
}

macro_rules! lists {
    ($($count:ident ($($d:ident $n:tt)*) $nested:ty;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<$($d: OrderAxis),*> OrderList for ($($d,)*) {
            type Brands = $nested;
            type Count = $count;

            #[inline(always)]
            fn each(&self, visit: &mut dyn FnMut(DimInfo<'_>, bool)) {
                $(self.$n.each(visit);)*
            }
        }
    )*};
}

lists! {
    Rank1 (D0 0) D0::Before<()>;
    Rank2 (D0 0 D1 1) D0::Before<D1::Before<()>>;
    Rank3 (D0 0 D1 1 D2 2) D0::Before<D1::Before<D2::Before<()>>>;
    Rank4 (D0 0 D1 1 D2 2 D3 3) D0::Before<D1::Before<D2::Before<D3::Before<()>>>>;
    Rank5 (D0 0 D1 1 D2 2 D3 3 D4 4) D0::Before<D1::Before<D2::Before<D3::Before<D4::Before<()>>>>>;
    Rank6 (D0 0 D1 1 D2 2 D3 3 D4 4 D5 5) D0::Before<D1::Before<D2::Before<D3::Before<D4::Before<D5::Before<()>>>>>>;
    Rank7 (D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6) D0::Before<D1::Before<D2::Before<D3::Before<D4::Before<D5::Before<D6::Before<()>>>>>>>;
    Rank8 (D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7) D0::Before<D1::Before<D2::Before<D3::Before<D4::Before<D5::Before<D6::Before<D7::Before<()>>>>>>>>;
    Rank9 (D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7 D8 8) D0::Before<D1::Before<D2::Before<D3::Before<D4::Before<D5::Before<D6::Before<D7::Before<D8::Before<()>>>>>>>>>;
    Rank10 (D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7 D8 8 D9 9) D0::Before<D1::Before<D2::Before<D3::Before<D4::Before<D5::Before<D6::Before<D7::Before<D8::Before<D9::Before<()>>>>>>>>>>;
    Rank11 (D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7 D8 8 D9 9 D10 10) D0::Before<D1::Before<D2::Before<D3::Before<D4::Before<D5::Before<D6::Before<D7::Before<D8::Before<D9::Before<D10::Before<()>>>>>>>>>>>;
    Rank12 (D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7 D8 8 D9 9 D10 10 D11 11) D0::Before<D1::Before<D2::Before<D3::Before<D4::Before<D5::Before<D6::Before<D7::Before<D8::Before<D9::Before<D10::Before<D11::Before<()>>>>>>>>>>>>;
    Rank13 (D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7 D8 8 D9 9 D10 10 D11 11 D12 12) D0::Before<D1::Before<D2::Before<D3::Before<D4::Before<D5::Before<D6::Before<D7::Before<D8::Before<D9::Before<D10::Before<D11::Before<D12::Before<()>>>>>>>>>>>>>;
    Rank14 (D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7 D8 8 D9 9 D10 10 D11 11 D12 12 D13 13) D0::Before<D1::Before<D2::Before<D3::Before<D4::Before<D5::Before<D6::Before<D7::Before<D8::Before<D9::Before<D10::Before<D11::Before<D12::Before<D13::Before<()>>>>>>>>>>>>>>;
    Rank15 (D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7 D8 8 D9 9 D10 10 D11 11 D12 12 D13 13 D14 14) D0::Before<D1::Before<D2::Before<D3::Before<D4::Before<D5::Before<D6::Before<D7::Before<D8::Before<D9::Before<D10::Before<D11::Before<D12::Before<D13::Before<D14::Before<()>>>>>>>>>>>>>>>;
    Rank16 (D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7 D8 8 D9 9 D10 10 D11 11 D12 12 D13 13 D14 14 D15 15) D0::Before<D1::Before<D2::Before<D3::Before<D4::Before<D5::Before<D6::Before<D7::Before<D8::Before<D9::Before<D10::Before<D11::Before<D12::Before<D13::Before<D14::Before<D15::Before<()>>>>>>>>>>>>>>>>;
    Rank17 (D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7 D8 8 D9 9 D10 10 D11 11 D12 12 D13 13 D14 14 D15 15 D16 16) D0::Before<D1::Before<D2::Before<D3::Before<D4::Before<D5::Before<D6::Before<D7::Before<D8::Before<D9::Before<D10::Before<D11::Before<D12::Before<D13::Before<D14::Before<D15::Before<D16::Before<()>>>>>>>>>>>>>>>>>;
    Rank18 (D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7 D8 8 D9 9 D10 10 D11 11 D12 12 D13 13 D14 14 D15 15 D16 16 D17 17) D0::Before<D1::Before<D2::Before<D3::Before<D4::Before<D5::Before<D6::Before<D7::Before<D8::Before<D9::Before<D10::Before<D11::Before<D12::Before<D13::Before<D14::Before<D15::Before<D16::Before<D17::Before<()>>>>>>>>>>>>>>>>>>;
    Rank19 (D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7 D8 8 D9 9 D10 10 D11 11 D12 12 D13 13 D14 14 D15 15 D16 16 D17 17 D18 18) D0::Before<D1::Before<D2::Before<D3::Before<D4::Before<D5::Before<D6::Before<D7::Before<D8::Before<D9::Before<D10::Before<D11::Before<D12::Before<D13::Before<D14::Before<D15::Before<D16::Before<D17::Before<D18::Before<()>>>>>>>>>>>>>>>>>>>;
    Rank20 (D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7 D8 8 D9 9 D10 10 D11 11 D12 12 D13 13 D14 14 D15 15 D16 16 D17 17 D18 18 D19 19) D0::Before<D1::Before<D2::Before<D3::Before<D4::Before<D5::Before<D6::Before<D7::Before<D8::Before<D9::Before<D10::Before<D11::Before<D12::Before<D13::Before<D14::Before<D15::Before<D16::Before<D17::Before<D18::Before<D19::Before<()>>>>>>>>>>>>>>>>>>>>;
    Rank21 (D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7 D8 8 D9 9 D10 10 D11 11 D12 12 D13 13 D14 14 D15 15 D16 16 D17 17 D18 18 D19 19 D20 20) D0::Before<D1::Before<D2::Before<D3::Before<D4::Before<D5::Before<D6::Before<D7::Before<D8::Before<D9::Before<D10::Before<D11::Before<D12::Before<D13::Before<D14::Before<D15::Before<D16::Before<D17::Before<D18::Before<D19::Before<D20::Before<()>>>>>>>>>>>>>>>>>>>>>;
    Rank22 (D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7 D8 8 D9 9 D10 10 D11 11 D12 12 D13 13 D14 14 D15 15 D16 16 D17 17 D18 18 D19 19 D20 20 D21 21) D0::Before<D1::Before<D2::Before<D3::Before<D4::Before<D5::Before<D6::Before<D7::Before<D8::Before<D9::Before<D10::Before<D11::Before<D12::Before<D13::Before<D14::Before<D15::Before<D16::Before<D17::Before<D18::Before<D19::Before<D20::Before<D21::Before<()>>>>>>>>>>>>>>>>>>>>>>;
    Rank23 (D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7 D8 8 D9 9 D10 10 D11 11 D12 12 D13 13 D14 14 D15 15 D16 16 D17 17 D18 18 D19 19 D20 20 D21 21 D22 22) D0::Before<D1::Before<D2::Before<D3::Before<D4::Before<D5::Before<D6::Before<D7::Before<D8::Before<D9::Before<D10::Before<D11::Before<D12::Before<D13::Before<D14::Before<D15::Before<D16::Before<D17::Before<D18::Before<D19::Before<D20::Before<D21::Before<D22::Before<()>>>>>>>>>>>>>>>>>>>>>>>;
    Rank24 (D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7 D8 8 D9 9 D10 10 D11 11 D12 12 D13 13 D14 14 D15 15 D16 16 D17 17 D18 18 D19 19 D20 20 D21 21 D22 22 D23 23) D0::Before<D1::Before<D2::Before<D3::Before<D4::Before<D5::Before<D6::Before<D7::Before<D8::Before<D9::Before<D10::Before<D11::Before<D12::Before<D13::Before<D14::Before<D15::Before<D16::Before<D17::Before<D18::Before<D19::Before<D20::Before<D21::Before<D22::Before<D23::Before<()>>>>>>>>>>>>>>>>>>>>>>>>;
    Rank25 (D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7 D8 8 D9 9 D10 10 D11 11 D12 12 D13 13 D14 14 D15 15 D16 16 D17 17 D18 18 D19 19 D20 20 D21 21 D22 22 D23 23 D24 24) D0::Before<D1::Before<D2::Before<D3::Before<D4::Before<D5::Before<D6::Before<D7::Before<D8::Before<D9::Before<D10::Before<D11::Before<D12::Before<D13::Before<D14::Before<D15::Before<D16::Before<D17::Before<D18::Before<D19::Before<D20::Before<D21::Before<D22::Before<D23::Before<D24::Before<()>>>>>>>>>>>>>>>>>>>>>>>>>;
    Rank26 (D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7 D8 8 D9 9 D10 10 D11 11 D12 12 D13 13 D14 14 D15 15 D16 16 D17 17 D18 18 D19 19 D20 20 D21 21 D22 22 D23 23 D24 24 D25 25) D0::Before<D1::Before<D2::Before<D3::Before<D4::Before<D5::Before<D6::Before<D7::Before<D8::Before<D9::Before<D10::Before<D11::Before<D12::Before<D13::Before<D14::Before<D15::Before<D16::Before<D17::Before<D18::Before<D19::Before<D20::Before<D21::Before<D22::Before<D23::Before<D24::Before<D25::Before<()>>>>>>>>>>>>>>>>>>>>>>>>>>;
}

/// A set of dims that can be ordered as `L` says: every dim named is bound, and named once.
pub trait OrderBy<L: OrderList>: Dims {
    /// The dims that are left.
    type Rest: Dims;
}

impl<S: Dims, L: OrderList> OrderBy<L> for S
where
    S::List: RemoveAll<L::Brands, S>,
    Verdict<<S::List as RemoveAll<L::Brands, S>>::Missing>:
        Bound<<S::List as RemoveAll<L::Brands, S>>::Missing, S>,
    Verdict<<S::List as RemoveAll<L::Brands, S>>::Twice>:
        NamedOnce<<S::List as RemoveAll<L::Brands, S>>::Twice, L>,
{
    type Rest = <<S::List as RemoveAll<L::Brands, S>>::Out as List>::Tuple;
}

/// What `order` yields, by the dims that are left: without any, an array (a single element if it has no axes); else a
/// tensor whose new positional axes stand on the left.
pub trait Ordered<T, R: Rank>: Dims {
    /// The result.
    type Out;
    #[doc(hidden)]
    fn build(data: Vec<T>, sizes: &[usize]) -> Self::Out;
}

#[diagnostic::do_not_recommend]
impl<T, R: ArrayRank> Ordered<T, R> for () {
    type Out = R::Array<T>;

    #[inline]
    fn build(data: Vec<T>, sizes: &[usize]) -> R::Array<T> {
        R::array(data, sizes)
    }
}

/// What array a tensor without dims is.
pub trait ArrayRank: Rank {
    /// An ndarray array; for rank 0 the element itself.
    type Array<T>;
    #[doc(hidden)]
    fn array<T>(data: Vec<T>, sizes: &[usize]) -> Self::Array<T>;
}

impl ArrayRank for Rank0 {
    type Array<T> = T;

    #[inline]
    fn array<T>(data: Vec<T>, _: &[usize]) -> T {
        data.into_iter().next().expect("a tensor without axes has one element")
    }
}

macro_rules! arrays {
    ($($rank:ident $n:literal;)*) => {$(
        impl ArrayRank for $rank {
            type Array<T> = Array<T, <$rank as Rank>::Nd>;

            #[inline]
            fn array<T>(data: Vec<T>, sizes: &[usize]) -> Self::Array<T> {
                let sizes: [usize; $n] = sizes.try_into().expect("one size for each axis");
                Array::from_shape_vec(sizes, data).expect("the sizes are the shape of the data")
            }
        }
    )*};
}

arrays! { Rank1 1; Rank2 2; Rank3 3; Rank4 4; Rank5 5; Rank6 6; }

macro_rules! dynamic_arrays {
    ($($rank:ident)*) => {$(
        impl ArrayRank for $rank {
            type Array<T> = ArrayD<T>;

            #[inline]
            fn array<T>(data: Vec<T>, sizes: &[usize]) -> ArrayD<T> {
                ArrayD::from_shape_vec(sizes, data).expect("the sizes are the shape of the data")
            }
        }
    )*};
}

dynamic_arrays! {
    Rank7 Rank8 Rank9 Rank10 Rank11 Rank12 Rank13 Rank14 Rank15 Rank16 Rank17 Rank18 Rank19 Rank20 Rank21 Rank22 Rank23
    Rank24 Rank25 Rank26
}

macro_rules! left_over {
    ($(($($d:ident)*))*) => {$(
        #[diagnostic::do_not_recommend]
        impl<T, R: Rank, $($d: crate::brand::Element),*> Ordered<T, R> for ($($d,)*) {
            type Out = Named<T, Self, R>;

            #[inline]
            fn build(data: Vec<T>, sizes: &[usize]) -> Self::Out {
                Named::from_expr(Owned::contiguous(data, sizes))
            }
        }
    )*};
}

left_over! {
    (D0)
    (D0 D1)
    (D0 D1 D2)
    (D0 D1 D2 D3)
    (D0 D1 D2 D3 D4)
    (D0 D1 D2 D3 D4 D5)
    (D0 D1 D2 D3 D4 D5 D6)
    (D0 D1 D2 D3 D4 D5 D6 D7)
    (D0 D1 D2 D3 D4 D5 D6 D7 D8)
    (D0 D1 D2 D3 D4 D5 D6 D7 D8 D9)
    (D0 D1 D2 D3 D4 D5 D6 D7 D8 D9 D10)
    (D0 D1 D2 D3 D4 D5 D6 D7 D8 D9 D10 D11)
    (D0 D1 D2 D3 D4 D5 D6 D7 D8 D9 D10 D11 D12)
    (D0 D1 D2 D3 D4 D5 D6 D7 D8 D9 D10 D11 D12 D13)
    (D0 D1 D2 D3 D4 D5 D6 D7 D8 D9 D10 D11 D12 D13 D14)
    (D0 D1 D2 D3 D4 D5 D6 D7 D8 D9 D10 D11 D12 D13 D14 D15)
    (D0 D1 D2 D3 D4 D5 D6 D7 D8 D9 D10 D11 D12 D13 D14 D15 D16)
    (D0 D1 D2 D3 D4 D5 D6 D7 D8 D9 D10 D11 D12 D13 D14 D15 D16 D17)
    (D0 D1 D2 D3 D4 D5 D6 D7 D8 D9 D10 D11 D12 D13 D14 D15 D16 D17 D18)
    (D0 D1 D2 D3 D4 D5 D6 D7 D8 D9 D10 D11 D12 D13 D14 D15 D16 D17 D18 D19)
    (D0 D1 D2 D3 D4 D5 D6 D7 D8 D9 D10 D11 D12 D13 D14 D15 D16 D17 D18 D19 D20)
    (D0 D1 D2 D3 D4 D5 D6 D7 D8 D9 D10 D11 D12 D13 D14 D15 D16 D17 D18 D19 D20 D21)
    (D0 D1 D2 D3 D4 D5 D6 D7 D8 D9 D10 D11 D12 D13 D14 D15 D16 D17 D18 D19 D20 D21 D22)
    (D0 D1 D2 D3 D4 D5 D6 D7 D8 D9 D10 D11 D12 D13 D14 D15 D16 D17 D18 D19 D20 D21 D22 D23)
    (D0 D1 D2 D3 D4 D5 D6 D7 D8 D9 D10 D11 D12 D13 D14 D15 D16 D17 D18 D19 D20 D21 D22 D23 D24)
    (D0 D1 D2 D3 D4 D5 D6 D7 D8 D9 D10 D11 D12 D13 D14 D15 D16 D17 D18 D19 D20 D21 D22 D23 D24 D25)
}

/// The type that ordering a tensor `A` as `L` says yields.
pub type OrderOut<A, L> = <<<A as AsTensor>::Dims as OrderBy<L>>::Rest as Ordered<
    <A as AsTensor>::Elem,
    <<L as OrderList>::Count as Rank>::Plus<<A as AsTensor>::Rank>,
>>::Out;

/// The loop axes in the order of the result, and the sizes of its axes.
pub(crate) type Plan = (SmallVec<[usize; 8]>, SmallVec<[usize; 8]>);

#[inline]
pub(crate) fn plan<L: OrderList>(shape: &Shape, list: &L) -> Result<Plan, DimError> {
    let loops = shape.sizes();
    let mut named: SmallVec<[usize; 8]> = SmallVec::new();
    let mut made: SmallVec<[usize; 8]> = SmallVec::new();
    let mut overflow = false;
    list.each(&mut |dim, begins| {
        let at = position(shape, dim);
        named.push(at);
        if begins {
            made.push(loops[at]);
        } else if let Some(last) = made.last_mut() {
            match last.checked_mul(loops[at]) {
                Some(size) => *last = size,
                None => overflow = true,
            }
        }
    });
    if overflow {
        return Err(DimError::TooLarge { dims: shape.describe(named) });
    }
    let left = (0..shape.named_len()).filter(|at| !named.contains(at));
    let mut order: SmallVec<[usize; 8]> = left.collect();
    let mut sizes: SmallVec<[usize; 8]> = order.iter().map(|&at| loops[at]).collect();
    order.extend(named);
    sizes.extend(made);
    order.extend(shape.named_len()..loops.len());
    sizes.extend(loops[shape.named_len()..].iter().copied());
    Ok((order, sizes))
}

/// Turns dims back into positional axes.
pub trait OrderExt: AsTensor {
    /// The tensor with the named dims as axes, in the order given; a tuple of dims becomes one axis.
    ///
    /// Where no dim is left, the result is an ndarray array (`order(())` of a single element is that element); else it is
    /// a tensor with the new axes on the left of its positional ones. The elements are computed in one pass, and lie contiguously in
    /// the order asked for.
    ///
    /// # Panics
    ///
    /// If operands have different sizes for one dim, an index is out of range, or the result does not fit into memory.
    #[track_caller]
    #[inline]
    fn order<L: OrderList>(self, dims: L) -> OrderOut<Self, L>
    where
        Self::Dims: OrderBy<L, Rest: Ordered<Self::Elem, <L::Count as Rank>::Plus<Self::Rank>>>,
    {
        unwrap(self.try_order(dims))
    }

    /// As [`order`](OrderExt::order), but what sizes decide is an error.
    #[inline]
    fn try_order<L: OrderList>(self, dims: L) -> Result<OrderOut<Self, L>, DimError>
    where
        Self::Dims: OrderBy<L, Rest: Ordered<Self::Elem, <L::Count as Rank>::Plus<Self::Rank>>>,
    {
        let tensor = self.into_named();
        let shape = tensor.shape()?;
        let (order, sizes) = plan(&shape, &dims)?;
        let data = evaluate_in::<Self::Dims, Self::Rank, _>(tensor.expr, &shape, &order)?;
        Ok(<<Self::Dims as OrderBy<L>>::Rest as Ordered<_, _>>::build(data, &sizes))
    }
}

impl<A: AsTensor> OrderExt for A {}
