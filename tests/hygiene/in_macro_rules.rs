//! The macros within `macro_rules!` macros, with metavariables of several kinds in many positions.

#![deny(warnings, clippy::pedantic)]
#![forbid(unsafe_code)]

use ndarray::array;
use typed_dims::einsum_path;
use typed_dims::prelude::*;

macro_rules! transposed { ($x:expr, $a:ident, $b:ident) => { rearrange!($x, $a $b -> $b $a) }; }
macro_rules! flattened { ($x:expr; $($n:ident)+) => { rearrange!($x, $($n)+ -> ($($n)+)) }; }
macro_rules! pooled { ($x:expr, $op:ident, $by:literal) => { reduce!($x, h (w $by) -> h w, $op) }; }
macro_rules! pooled_by { ($x:expr, $op:ident, $by:expr) => { reduce!($x, h (w k) -> h w, $op, k = $by) }; }
macro_rules! pooled_str {
    ($x:expr, $op:literal, $by:expr) => {
        reduce!($x, "h (w k) -> h w", $op, k = $by)
    };
}
macro_rules! tiled { ($x:expr, $n:tt) => { repeat!($x, h w -> h (w $n)) }; }
macro_rules! tiled_axis { ($x:expr, $n:ident = $k:expr) => { repeat!($x, h w -> h (w $n), $n = $k) }; }
macro_rules! any { ($($t:tt)*) => { rearrange!($($t)*) }; }
macro_rules! shape { ($x:expr, $a:ident) => { parse_shape!($x, $a _).$a }; }
macro_rules! packed { ($a:ident, $($x:expr),+) => { pack!([$($x),+], $a *) }; }
macro_rules! unpacked { ($y:expr, $s:expr, $a:ident) => { unpack!($y, $s, $a *) }; }
macro_rules! picked { ($t:expr, $ids:expr, $k:ident $f:ident) => { gather!($t[_ $f], $ids[$k] => $k $f) }; }
macro_rules! product { ($a:expr, $b:expr, $i:ident $j:ident $k:ident) => { einsum!($a[$i, $k] * $b[$k, $j] => [$i, $j]) }; }
macro_rules! product_id { ($a:ident, $b:ident) => { einsum!($a[i, k] * $b[k, j] => [i, j]) }; }
macro_rules! product_str { ($p:literal, $($x:expr),+) => { einsum!($p, $($x),+) }; }
macro_rules! product_concat { ($($x:expr),+) => { einsum!("ij,jk", $($x),+) }; }
macro_rules! summed { ($red:ident, $a:expr, $i:ident) => { tensor!([$i] => $red[k]($a[$i, k])) }; }
macro_rules! ranged { ($a:expr, $i:ident in $r:expr) => { tensor!([$i in $r] => $a[$i, 0] + 1.0) }; }
macro_rules! elem { ($a:expr, $e:expr) => { tensor!([i, j] => $a[i, j] * $e) }; }
macro_rules! body { ($($t:tt)*) => { tensor!([i, j] => $($t)*) }; }
macro_rules! typed { ($a:expr, $t:ty) => { tensor!([i, j] => $a[i, j] as $t) }; }
macro_rules! guarded { ($a:expr, $c:tt) => { tensor!([i, j] => if i $c j { $a[i, j] } else { 0.0 }) }; }
macro_rules! lookup { ($a:expr, $ids:expr, $i:ident, $j:ident) => { tensor!([$i, $j] => $a[$ids[$i], $j]) }; }
macro_rules! path { ($p:literal, $($x:expr),+) => { einsum_path!($p, $($x),+) }; }
macro_rules! nested {
    ($x:expr) => {
        transposed!(transposed!($x, p, q), q, p)
    };
}
macro_rules! of_dim { ($x:expr, $d:ident) => { repeat!($x, h w -> h $d w, $d = $d.size()) }; }
macro_rules! of_own_dim { ($x:expr) => {{ dims!(n = 3); repeat!($x, h w -> h w $n) }}; }
macro_rules! view { ($x:expr, $($n:ident)*) => { rearrange_view!($x, $($n)* -> ($($n)*)) }; }
macro_rules! list { ($($x:expr),*) => { rearrange!([$($x),*], n h w -> h (n w)) }; }
macro_rules! joined { ($x:expr, $m:ident $(; $y:expr, $n:ident)*) => { rearrange!($x $(, $y)*, h $m $(, h $n)* -> h ($m $(+ $n)*)) }; }
macro_rules! field { ($s:ident . $f:ident) => { tensor!([i, j] => $s.$f[i, j] + 1.0) }; }
macro_rules! dot_method { ($a:expr, $m:ident) => { tensor!([i, j] => $a[i, j].$m()) }; }
macro_rules! try_all { ($a:expr) => { (|| -> Result<_, DimError> { Ok((try_rearrange!($a, a b -> b a)?, try_einsum!("ij->i", $a)?, try_tensor!([i] => sum[j]($a[i, j]))?)) })() }; }
macro_rules! make { ($name:ident, $($loops:ident),+ => $red:ident over $k:ident) => { fn $name(a: &Array3<f64>) -> Array2<f64> { tensor!([$($loops),+] => $red[$k](a[$($loops),+, $k])) } }; }
macro_rules! times { ($x:expr) => { rearrange!($x * 2.0, a b -> b a) }; }
macro_rules! times_t { ($x:expr) => { tensor!([i] => -$x[i] * 2.0) }; }
macro_rules! closure { ($a:expr, $f:expr) => { tensor!([i, j] => $f($a[i, j])) }; }
macro_rules! clo2 { ($a:expr, $n:expr) => { tensor!([i, j] => ($a[i, j] + f64::from(3 * $n)) * $n as f64) }; }
macro_rules! blk { ($a:expr, $c:expr, $b:block) => { tensor!([i, j] => if $a[i, j] > $c $b else { 0.0 }) }; }
macro_rules! rows_by { ($x:expr, $f:expr) => { (reduce!($x, h w -> h, $f), reduce!($x, "h w -> h", $f)) }; }
macro_rules! below { ($a:expr, $b:expr, $t:ty) => { tensor!([i] => $a[i] as $t < $b[i] as $t) }; }
macro_rules! within { ($a:expr, $low:literal, $high:literal) => { tensor!([i] => match $a[i] { $low..=$high => 1, _ => 0 }) }; }
macro_rules! called { ($a:expr, $f:expr) => { tensor!([i] => $f($a[i])) }; }
macro_rules! column { ($a:expr, $at:literal) => { tensor!([i] => $a[i, $at]) }; }
macro_rules! dim {
    ($name:ident, $size:literal) => {
        dims! { pub struct $name = $size; }
    };
}
macro_rules! doubled_dim {
    ($name:ident, $size:expr) => {
        dims! { pub struct $name = $size * 2; }
    };
}
macro_rules! doubled_size {
    ($size:expr) => {{
        dims!(n = $size * 2);
        n.size()
    }};
}
make!(row_sums, i, j => sum over k);
dim!(Wide, 3000);
doubled_dim!(Doubled, 1 + 1);
mod first {
    typed_dims::prelude::dims! { pub struct Same; }
}
mod second {
    typed_dims::prelude::dims! { pub struct Same; }
}
mod third {
    use typed_dims::prelude::*;
    dim!(Same, 2);
}
mod fourth {
    use typed_dims::prelude::*;
    dim!(Same, 3);
}
struct S {
    w: Array2<f64>,
}
struct Rule {
    next: fn(i32) -> i32,
}

#[test]
fn in_patterns() {
    let a = array![[1.0, 2.0], [3.0, 4.0]];
    let ids = array![1usize, 0];
    assert_eq!(transposed!(a, h, w), a.t());
    assert_eq!(transposed!(&a + 1.0, h, w), &a.t() + 1.0);
    assert_eq!(flattened!(a; x y), array![1.0, 2.0, 3.0, 4.0]);
    assert_eq!(pooled!(a, max, 2), array![[2.0], [4.0]]);
    assert_eq!(pooled_by!(a, sum, 1 + 1), array![[3.0], [7.0]]);
    assert_eq!(pooled_str!(a, "mean", 2), array![[1.5], [3.5]]);
    assert_eq!(tiled!(a, 2).dim(), (2, 4));
    assert_eq!(tiled_axis!(a, r = 3).dim(), (2, 6));
    assert_eq!(any!(a, i j -> j i), a.t());
    assert_eq!(shape!(a, rows), 2);
    let (p, s) = packed!(h, a, a.column(0));
    assert_eq!(p.dim(), (2, 3));
    let [x, _] = unpacked!(p, s, h);
    assert_eq!(x, a.clone().into_dyn());
    assert_eq!(picked!(a, ids, k f), array![[3.0, 4.0], [1.0, 2.0]]);
    assert_eq!(path!("ij,jk,kl->il", a, a, a).steps.len(), 2);
    assert_eq!(nested!(a), a);
    assert_eq!(view!(a, h w).len(), 4);
    assert_eq!(list!(a, a).dim(), (2, 4));
    assert_eq!(joined!(a, x; a, y).dim(), (2, 4));
    assert!(try_all!(a).is_ok());
    dims!(twice = 2);
    assert_eq!(of_dim!(a, twice), array![[[1.0, 2.0], [1.0, 2.0]], [[3.0, 4.0], [3.0, 4.0]]]);
    assert_eq!(of_own_dim!(a).dim(), (2, 2, 3));
    assert_eq!(times!(&a + 1.0), (&a.t() + 1.0) * 2.0);
    assert_eq!(rows_by!(a, |row| row[1]), (array![2.0, 4.0], array![2.0, 4.0]));
}

#[test]
fn in_declarations() {
    assert_eq!((Wide::SIZE, Doubled::SIZE), (3000, 4));
    assert_eq!(zeros::<f32, _>((Wide, Doubled)).order((Wide, Doubled)).dim(), (3000, 4));
    assert_eq!(doubled_size!(1 + 1), 4);
}

#[test]
fn in_declarations_of_one_name() {
    let x = ones::<f64, _>((first::Same.of(4), second::Same.of(5), third::Same, fourth::Same));
    let x = x.sum((second::Same, fourth::Same)).order((first::Same, third::Same));
    assert_eq!(x, Array2::from_elem((4, 2), 15.0));
}

#[test]
fn in_comprehensions() {
    let a = array![[1.0, 2.0], [3.0, 4.0]];
    let ids = array![1usize, 0];
    assert_eq!(product!(a, &a + 0.0, i j k), a.dot(&a));
    assert_eq!(product_id!(a, a), a.dot(&a));
    assert_eq!(product_str!("ij,jk->ik", a, a.view()), a.dot(&a));
    assert_eq!(product_concat!(a, &a), a.dot(&a));
    assert_eq!(summed!(max, a, i), array![2.0, 4.0]);
    assert_eq!(ranged!(a, i in 0..2), array![2.0, 4.0]);
    assert_eq!(elem!(a, 1.0 + 1.0), &a * 2.0);
    assert_eq!(body!(a[i, j] - a[j, i]), array![[0.0, -1.0], [1.0, 0.0]]);
    assert_eq!(typed!(a, i32), array![[1, 2], [3, 4]]);
    assert_eq!(guarded!(a, <=), array![[1.0, 2.0], [0.0, 4.0]]);
    assert_eq!(lookup!(a, ids, i, j), array![[3.0, 4.0], [1.0, 2.0]]);
    let st = S { w: a.clone() };
    assert_eq!(field!(st.w), &a + 1.0);
    assert_eq!(dot_method!(a, sqrt), a.mapv(f64::sqrt));
    assert_eq!(times_t!(vec![1.0] as Vec<f64>), array![-2.0]);
    assert_eq!(closure!(a, |x: f64| x + 1.0), &a + 1.0);
    assert_eq!(clo2!(a, 1 + 1), (&a + 6.0) * 2.0);
    assert_eq!(blk!(a, 1.0 + 1.0, { 1.0 }), array![[0.0, 0.0], [1.0, 1.0]]);
    assert_eq!(row_sums(&Array3::ones((2, 3, 4))), Array2::from_elem((2, 3), 4.0));
    assert_eq!((column!(a, 0), column!(a, -1)), (array![1.0, 3.0], array![2.0, 4.0]));
    assert_eq!(below!(array![1.5, 2.5], array![2, 2], f32), array![true, false]);
    assert_eq!(within!(array![-2, -1, 1], -1, 5), array![0, 1, 1]);
    let rule = Rule { next: |n| n + 1 };
    assert_eq!(called!(array![1, 2], rule.next), array![2, 3]);
}
