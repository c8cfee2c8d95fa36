//! Users' items may have the names that macros use, or those of the standard library; a module may
//! have no prelude; axes may be named like keywords.

#![deny(warnings, clippy::pedantic)]
#![forbid(unsafe_code)]
#![allow(clippy::many_single_char_names, clippy::cast_precision_loss)]

mod shadowed {
    // Names that a macro could depend on have other meanings here.
    #![allow(dead_code, non_camel_case_types, non_upper_case_globals, clippy::upper_case_acronyms)]
    use ::typed_dims::ndarray::{Array1, Array2};
    use ::typed_dims::{
        dims, einsum, einsum_path, gather, pack, parse_shape, rearrange, rearrange_view, reduce, repeat,
        tensor, try_einsum, try_gather, try_rearrange, try_tensor, unpack,
    };
    pub mod typed_dims {}
    pub mod std {}
    pub mod core {}
    pub mod ndarray {}
    pub struct Some;
    pub struct None;
    pub struct Ok;
    pub struct Err;
    pub enum Result {}
    pub enum Option {}
    pub struct Vec;
    pub struct Pattern;
    pub struct Axis;
    pub struct Group;
    pub struct Rest;
    pub struct Sum;
    pub struct Roles;
    pub struct Row;
    pub struct Column;
    pub struct Nothing;
    pub struct Term;
    pub struct Piece;
    pub struct Shape;
    pub struct T;
    pub struct Loop;
    pub struct Dim;
    pub const value: u8 = 0;
    pub const error: u8 = 0;
    pub const operand0: u8 = 0;
    pub const i: u8 = 7;
    pub static j: u8 = 7;
    pub struct k;
    pub const sizes: u8 = 1;
    pub const x: u8 = 1;
    pub const y: u8 = 1;
    pub const positions1: u8 = 1;
    pub const gathered: u8 = 1;
    pub const result0: u8 = 1;
    pub const given0: u8 = 1;
    pub const condition0: u8 = 1;
    pub const i_start: u8 = 1;
    pub const i_size: u8 = 1;
    pub fn sum() {}
    pub fn max() {}
    pub trait Elementwise {
        fn exp(&self) {}
        fn order(&self) {}
    }
    impl Elementwise for Array2<f64> {}
    pub fn all(a: &Array2<f64>, ids: &Array1<usize>) -> f64 {
        let c = einsum!("ik,kj->ij", a, a);
        let d = einsum!(a[i, k] * a[k, j] => [i, j]);
        assert_eq!(c, d);
        assert!(try_einsum!(a[i, k] * a[k, j] => [i, j]).is_ok());
        assert!(try_einsum!("ik,kj->ij", a, a).is_ok());
        let t = tensor!([i, j] => if i <= j && a[i, j] > 0.0 { a[i, j].exp() } else { 0.0 });
        let u = tensor!([i in 1..2, j] => sum[k](a[i, k] * a[k, j]) + f64::from(value));
        let v = try_tensor!([i] => max[k](a[i, k] * i as f64));
        let w = tensor!([x, y] => a[x, y] + x as f64);
        let r = rearrange!(a, i j -> j i);
        let rv = rearrange_view!(a, i j -> j i);
        let (p, q) = rearrange!(a, i (x + y) -> i x, i y, x = 1);
        assert!(try_rearrange!(a, (i k) j -> i k j, k = 2).is_ok());
        let m = reduce!(a, i j -> i, max);
        let n = repeat!(a, i j -> i j value, value = 2);
        let (packed, shape) = pack!([a, m], i *);
        let [_, back] = unpack!(packed, shape, i *);
        let s = parse_shape!(a, error value);
        let g = gather!(a[_ value], ids[error] => error value);
        let g2 = try_gather!(a[_ i], ids[sizes] => sizes i);
        assert!(g2.is_ok());
        dims!(free);
        let l = a.len();
        let _ = free;
        assert_eq!(einsum_path!("ij,jk->ik", a, a).steps.len(), 1);
        t.sum()
            + u.sum()
            + v.unwrap().sum()
            + w.sum()
            + r.sum()
            + rv.sum()
            + p.sum()
            + q.sum()
            + n.sum()
            + back.sum()
            + g.sum()
            + (s.error + s.value + l) as f64
    }
}
mod bare {
    #![no_implicit_prelude]
    use ::typed_dims::prelude::*;
    pub fn all(a: &Array2<f64>, ids: &Array1<usize>) -> f64 {
        let c = einsum!("ik,kj->ij", a, a);
        let d = einsum!(a[i, k] * a[k, j] => [i, j]);
        let e = try_einsum!(a[i, k] * a[k, j] => [i, j]).unwrap();
        let t = tensor!([i, j] => if i <= j && a[i, j] > 0.0 { a[i, j].exp() } else { 0.0 });
        let u = try_tensor!([i in 1..2, j] => sum[k](a[i, k] * a[k, j])).unwrap();
        let r = rearrange!(a, i j -> j i);
        let rv = rearrange_view!(a, i j -> j i);
        let (p, q) = rearrange!(a, i (x + y) -> i x, i y, x = 1);
        let m = reduce!(a, i j -> i, max);
        let n = repeat!(a, i j -> i j value, value = 2);
        let (packed, shape) = pack!([a, m], i *);
        let [_, back] = unpack!(packed, shape, i *);
        let s = parse_shape!(a, error value);
        let g = gather!(a[_ value], ids[error] => error value);
        dims!(z);
        let o = a.at((z, ..)).order(z);
        let f = tensor!([i, j] => (a[i, j], 1.0).0);
        c.sum()
            + d.sum()
            + e.sum()
            + t.sum()
            + u.sum()
            + r.sum()
            + rv.sum()
            + p.sum()
            + q.sum()
            + n.sum()
            + back.sum()
            + g.sum()
            + (s.error + s.value) as f64
            + o.sum()
            + f.sum()
    }
}
/// `roles!` writes an attribute that a module without a prelude does not know, so `bare_items`
/// imports the role.
mod speech {
    typed_dims::roles! {
        pub struct Speech;
    }
}
/// Derives, attributes and declarations, where even `derive` has to be imported.
mod bare_items {
    #![no_implicit_prelude]
    #![allow(dead_code)]
    use super::speech::Speech;
    use ::core::prelude::v1::derive;
    use ::typed_dims::einsum_path;
    use ::typed_dims::grad::grad;
    use ::typed_dims::prelude::*;
    dims! {
        pub struct Gate = 2;
        pub struct In;
        pub struct Out: Speech;
    }
    #[derive(Parameters)]
    #[cfg_attr(feature = "safetensors", derive(Load))]
    pub struct Layer<L, T, D: AnyDim> {
        #[cfg_attr(feature = "safetensors", load(axes = (D,), layout = (D,)))]
        pub weight: Tensor<T, (D,)>,
        pub inner: L,
        #[cfg_attr(feature = "safetensors", load(default))]
        #[parameters(constant)]
        pub count: f32,
    }
    #[derive(Parameters)]
    pub struct Unit;
    #[batched]
    pub fn dot(a: &Tensor<f32, (In,)>, b: &Tensor<f32, (In,)>) -> Tensor<f32, ()> {
        (a * b).sum(In)
    }
    #[batched]
    impl<L, T> Layer<L, T, In> {
        pub fn times(&self, x: &Tensor<f32, (In,)>) -> Tensor<f32, (In,)> {
            (x * self.count).eval()
        }
    }
    #[cfg(feature = "onnx")]
    onnx_dims!("tests/onnx/models/classifier.onnx");
    pub fn all(a: &Array2<f64>) -> f64 {
        let layer = Layer { weight: ones::<f32, _>(In.of(2)), inner: Unit, count: 2.0 };
        let gradient = grad(|layer| dot(&layer.weight, &layer.times(&layer.weight)), &layer);
        let path = einsum_path!("ij,jk->ik", a, a).steps.len();
        let r =
            try_rearrange!(a, i j -> j i).unwrap().len() + try_rearrange_view!(a, i j -> j i).unwrap().len();
        let n =
            try_reduce!(a, i j -> i, max).unwrap().len() + try_repeat!(a, i j -> i j k, k = 2).unwrap().len();
        let (packed, shape) = try_pack!([a], i *).unwrap();
        let [back] = try_unpack!(packed, shape, i *).unwrap();
        let s = try_parse_shape!(a, i j).unwrap();
        let g = try_gather!(a[_ i], [0usize, 1][j] => j i).unwrap();
        let c = try_einsum!("ik,kj->ij", a, a).unwrap();
        (path + r + n + back.len() + s.i + g.len() + c.len()) as f64
            + <f64 as ::core::convert::From<f32>>::from(gradient.weight.sum(In).order(()))
    }
}
/// Declarations that depend on a `cfg`.
mod conditional {
    use typed_dims::prelude::*;
    roles! {
        #[cfg(test)]
        pub struct Place;
        #[cfg(not(test))]
        pub struct Place: Absent;
        #[cfg(not(test))]
        pub struct Spot: Desk;
        #[cfg(test)]
        pub struct Spot: Place;
        pub struct Desk: Spot;
    }
    dims! {
        #[cfg(not(test))]
        pub struct Never: Absent;
        #[cfg(test)]
        pub struct Head: Desk = 12;
        #[cfg(not(test))]
        pub struct Head = 16;
    }
    pub fn all() -> usize {
        dims! {
            #[cfg(not(test))]
            struct Never = 2;
            #[cfg(test)]
            struct Here = 3;
        }
        let x = ones::<f32, _>((Head, Here));
        x.size(Head) * x.size(Here)
    }
}
mod keywords {
    use typed_dims::prelude::*;
    pub fn all(a: &Array2<f64>) -> usize {
        let s = rearrange!(a, type fn -> fn type);
        let t = tensor!([r#type, r#in] => a[r#type, r#in]);
        let u = parse_shape!(a, type r#fn);
        let v = rearrange!(a, (match r#use) b -> b match use, match = 2);
        let w = rearrange!(a, "(async await) b -> b async await", r#async = 2);
        let e = einsum!(a, "type in -> in type");
        let g = gather!(a[_ type], [0usize][in] => in type);
        s.len() + t.len() + u.r#type + u.r#fn + v.len() + w.len() + e.len() + g.len()
    }
}
#[test]
fn macros_mean_what_is_theirs() {
    let a = typed_dims::ndarray::array![[1.0, 2.0], [3.0, 4.0]];
    let ids = typed_dims::ndarray::array![1, 0];
    assert!((shadowed::all(&a, &ids) - 191.705_487_960_533_94).abs() < 1e-9);
    assert!((bare::all(&a, &ids) - 353.705_487_960_533_9).abs() < 1e-9);
    assert!((bare_items::all(&a) - 41.0).abs() < 1e-9);
    assert_eq!(keywords::all(&a), 26);
    assert_eq!(conditional::all(), 36);
}

/// Variables of macros and of users never collide within one call.
#[test]
fn loops_and_lets_may_have_the_names_of_macro_variables() {
    use typed_dims::ndarray::array;
    use typed_dims::{gather, tensor};
    let (a, b) = (array![[0, 1, 2], [3, 4, 5]], array![1, 10, 100]);
    let products = tensor!([operand0, operand1] => a[operand0, operand1] * b[operand1]);
    assert_eq!(products, array![[0, 10, 200], [3, 40, 500]]);
    let places = tensor!([i in 1..3, i_start in 0..2] => i * 10 + i_start);
    assert_eq!(places, array![[10, 11], [20, 21]]);
    let sums = tensor!([] => sum[k](a[0, k]) + sum[k](b[k]) + sum[k_2](a[k_2, 1]) + sum[k__2](a[k__2, 1]));
    assert_eq!(sums, 3 + 111 + 5 + 5);
    let chosen = tensor!([condition0] => if b[condition0] > 5 { sum[j in 0..3](a[1, (j + condition0) % 3]) } else { 0 });
    assert_eq!(chosen, array![0, 12, 12]);
    let rows = gather!(a[_ positions1], array![1, 0][operand0] => operand0 positions1);
    assert_eq!(rows, array![[3, 4, 5], [0, 1, 2]]);
    // Each `let` has the value of its own block.
    let halves = tensor!([j] => if b[j] > 5 { let n = 2; b[j] / n } else { let n = 100; b[j] * n });
    assert_eq!(halves, array![100, 5, 50]);
    let power = |x: i32, n: u32| x.pow(n);
    let squares = tensor!([j] => let _0 = 2; let __element0 = 1; power(b[j], _0) + __element0);
    assert_eq!(squares, array![2, 101, 10_001]);
}
