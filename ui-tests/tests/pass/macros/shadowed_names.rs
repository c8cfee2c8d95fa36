//! The names of primitive types and of prelude items have other meanings here.
#![allow(non_camel_case_types, dead_code)]

use typed_dims::einsum_path;
use typed_dims::prelude::*;

macro_rules! shadows {
    ($($name:ident)*) => { $(struct $name;)* };
}
shadows! {
    bool char f32 f64 i8 i16 i32 i64 i128 isize str u8 u16 u32 u64 u128 usize
    Box Option String Vec Result Some None Ok Err
    Pattern Slot Axis Group Sum Term Piece Loops Roles Given
    Shape Batch Further Argument0 Dims0 Result0 Argument Output Finish Param
    LoopVar Keys Id Element Brand Static Dyn B0 B1 UInt UTerm PhantomData Role Undenoted
}
trait Clone {}
trait Copy {}
trait Debug {}
trait Default {}
trait PartialEq {}
trait Eq {}
trait Drop {}
trait Fn {}
trait FnMut {}
trait FnOnce {}
trait From {}
trait Into {}
trait Iterator {}
trait Send {}
trait Sized {}
trait Sync {}
trait ToString {}
trait ToOwned {}
mod core {}
mod std {}

roles! {
    pub struct Pixel: DataFeature;
    pub struct Sensor;
}

dims! {
    /// Words.
    pub struct Seq: DataTime;
    /// Heads of attention.
    pub struct Heads: Sensor = 2;
    pub struct Many = 2 + 2;
}

typed_dims::onnx_dims!("../tests/onnx/models/classifier.onnx");

type Float = ::core::primitive::f32;

#[batched]
fn double(x: Tensor<Float, (Seq,)>, by: &Tensor<Float, ()>) -> Tensor<Float, (Seq,)> {
    x * by
}

#[batched]
fn parts(x: Tensor<Float, (Seq,)>) -> (Tensor<Float, (Seq,)>, Tensor<Float, ()>) {
    let names: (Further, Argument0, Dims0, Result0) = (Further, Argument0, Dims0, Result0);
    let _ = names;
    let half = &x * 0.5;
    let total = x.sum(Seq);
    (half, total)
}

#[derive(Load)]
struct Weights {
    a: Tensor<Float, (Heads,)>,
    #[load(default)]
    b: ::core::primitive::usize,
}

#[test]
fn compiles_and_runs() {
    let size = 3;
    dims!(i, j = size, k: DataFeature = 2);
    ::std::assert_eq!((j.size(), k.size(), Heads::SIZE, Many::SIZE), (3, 2, 2, 4));
    let a = Array2::<Float>::from_elem((2, 3), 1.0);
    ::std::assert_eq!(a.at((i, j)).sum((i, j)).order(()), 6.0);
    ::std::assert_eq!((1 + Seq.of(2)).order(Seq).len(), 2);

    ::std::assert_eq!(tensor!([i, j] => if i <= j { a[i, j] } else { 0.0 }).sum(), 5.0);
    ::std::assert_eq!(try_tensor!([i] => sum[j](a[i, j] * a[i, (j + 1) % 3])).unwrap().sum(), 6.0);
    ::std::assert_eq!(tensor!([i in 0..2] => let x = a[i, 0]; x.max(0.5) + i as Float).sum(), 3.0);
    ::std::assert_eq!(einsum!("ij,kj->ik", a, a).sum(), 12.0);
    ::std::assert_eq!(einsum!(a[i, k] * a[j, k] => [i, j]).sum(), 12.0);
    ::std::assert!(try_einsum!("ij,jk->ik", a, a).is_err());
    ::std::assert_eq!(einsum_path!("ij,kj->ik", a, a).steps.len(), 1);
    ::std::assert_eq!(rearrange!(a, h w -> (w h)).len(), 6);
    ::std::assert_eq!(rearrange!([a, a], n h w -> h (n w)).len(), 12);
    let (left, _) = rearrange!(a, h (w + 1) -> h w, h);
    ::std::assert_eq!(try_rearrange!(a, "h (w c) -> h w c", c = 3).unwrap().len(), 6);
    ::std::assert_eq!(rearrange_view!(left, h w -> w h).dim(), (2, 2));
    ::std::assert!(try_rearrange_view!(a.t(), h w -> (h w)).is_err());
    ::std::assert_eq!(reduce!(a, h w -> h, max).len(), 2);
    ::std::assert_eq!(reduce!(a, h w -> h, |part: &[Float]| part[0]).len(), 2);
    ::std::assert_eq!(try_reduce!(a, h w -> h, mean).unwrap().len(), 2);
    ::std::assert_eq!(repeat!(a, h w -> h (w r), r = 2).len(), 12);
    ::std::assert_eq!(try_repeat!(a, h w -> h w 1).unwrap().len(), 6);
    let (packed, shape) = pack!([a, left], h *);
    let [first, _] = unpack!(packed, shape, h *);
    ::std::assert_eq!(first.len(), 6);
    ::std::assert_eq!(unpack!(packed, [[3], [-1]], h *).len(), 2);
    ::std::assert!(try_pack!([a, a.t()], h *).is_err());
    ::std::assert!(try_unpack!(packed, [[1], [2]], h *).is_err());
    ::std::assert_eq!(parse_shape!(a, h _).h, 2);
    ::std::assert_eq!(try_parse_shape!(a, "h w").unwrap().w, 3);
    ::std::assert_eq!(gather!(a[_ w], [1_usize, 0, 1][k] => k w).len(), 9);
    ::std::assert!(try_gather!(a[_ w], [7][k] => k w).is_err());

    dims!(n);
    let x = full::<Float, _>((Seq.of(3),), 2.0);
    ::std::assert_eq!(double(&x, a.at((n, 0))).sum((Seq, n)).order(()), 12.0_f32);
    let (half, total) = parts(&x);
    ::std::assert_eq!((half.sum(Seq).order(()), total.order(())), (3.0, 6.0));
}
