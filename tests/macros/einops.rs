//! `rearrange!`, `reduce!`, `repeat!` and related macros: the patterns of einops' documentation,
//! tutorial and test suite, compared with an oracle that parses the same string at run time.

use crate::reference::input::Random;
use crate::reference::patterns::{IntoDynamic, einops as oracle, random, stacked};
use ndarray::{Array, Array2, Array3, ArrayD, array, s};
use typed_dims::pipeline::plan::explain::PlanStep;
use typed_dims::prelude::*;

/// Defines a test from a table. A line has a pattern, the shape of the array and the sizes given
/// for axes. Each pattern runs with static and with dynamic rank.
macro_rules! patterns {
    ($name:ident $macro:ident: $($pattern:literal, [$($size:literal),*] $($axis:ident = $given:literal)*;)*) => {
        #[test]
        fn $name() {
            let mut wrong = Vec::new();
            $(
                let x = random::<i32, _>(&mut Random(3), [$($size),*]);
                let expected = oracle($pattern, &x.clone().into_dyn(), &[$((stringify!($axis), $given)),*], |part| part[0]);
                let found = $macro!(x, $pattern $(, $axis = $given)*).into_dynamic();
                let dynamic = $macro!(x.view().into_dyn(), $pattern $(, $axis = $given)*).into_dynamic();
                if found != expected || dynamic != expected {
                    wrong.push(format!("{}:\n{found}\n{dynamic}\nexpected\n{expected}", $pattern));
                }
            )*
            assert!(wrong.is_empty(), "{} patterns are wrong: {}", wrong.len(), wrong.join("\n"));
        }
    };
}

patterns! { rearrangements rearrange:
    "a -> a", [5];
    "a b -> a b", [2, 3];
    "a b -> b a", [2, 3];
    "a b -> (a b)", [2, 3];
    "a b -> (b a)", [2, 3];
    "a b c d e -> a b c d e", [2, 3, 1, 2, 2];
    "a b c d e -> e d c b a", [2, 3, 1, 2, 2];
    "a b c d e -> (a b c d e)", [2, 3, 1, 2, 2];
    "a b c d e -> (e c d b a)", [2, 3, 1, 2, 2];
    "a b c d e -> a (b c d) e", [2, 3, 1, 2, 2];
    "a b c d e -> (a) (b) (c) (d) (e)", [2, 3, 1, 2, 2];
    "a b c d e -> (a b) (c d) e", [2, 3, 1, 2, 2];
    "... -> ...", [2, 3, 4];
    "... a -> a ...", [2, 3, 4];
    "a ... -> ... a", [2, 3, 4];
    "a ... b -> b ... a", [2, 3, 4, 5];
    "a ... b -> (a b) ...", [2, 3, 4, 5];
    "a ... b -> a b ...", [2, 3];
    "... -> (...)", [2, 3, 4];
    "a ... -> a (...)", [2, 3, 4];
    "a ... -> (... a)", [2, 3, 4];
    "a b ... c -> c (b ...) a", [2, 3, 4, 2, 3];
    "a b c d e ... -> ... a b c d e", [2, 3, 1, 2, 2];
    "a ... c d e -> a (...) c d e", [2, 3, 1, 2, 2];
    "... c d e -> ... (c d) e", [2, 3, 1, 2, 2];
    "a b ... -> b (...) a", [2, 3, 1, 2, 2];
    "a b ... e -> b (a ...) e", [2, 3, 1, 2, 2];
    "a b c d ... ->  ... c b a d", [2, 3, 1, 2, 2];
    "a b c d ... ->  (a b) c (d ...)", [2, 3, 1, 2, 2];
    "b c h w -> b h w c", [2, 3, 4, 5];
    "b h w c -> b c h w", [2, 3, 4, 5];
    "b c h w -> b (c h w)", [2, 3, 4, 5];
    "b c h w -> (b c) h w", [2, 3, 4, 5];
    "b c h w -> (b h) (w c)", [2, 3, 4, 5];
    "b h w c -> h (b w) c", [2, 3, 4, 5];
    "b h w c -> (b h) w c", [2, 3, 4, 5];
    "(b1 b2) h w c -> b1 b2 h w c", [6, 2, 3, 4] b1 = 2;
    "(b1 b2) h w c -> (b1 h) (b2 w) c", [6, 2, 3, 4] b1 = 2;
    "(b1 b2) h w c -> (b2 h) (b1 w) c", [6, 2, 3, 4] b1 = 2;
    "b h (w w2) c -> (h w2) (b w) c", [2, 3, 4, 5] w2 = 2;
    "b h (w w2) c -> h (b w w2) c", [2, 3, 4, 5] w2 = 2;
    "b (h1 h2) (w1 w2) c -> b h1 w1 (h2 w2 c)", [2, 4, 6, 3] h2 = 2 w2 = 3;
    "b (h1 h2) (w1 w2) c -> (b h2 w2) h1 w1 c", [2, 4, 6, 3] h1 = 2 w1 = 2;
    "b h w (c h2 w2) -> b (h h2) (w w2) c", [2, 3, 2, 12] h2 = 2 w2 = 2;
    "b (c h2 w2) h w -> b c (h h2) (w w2)", [2, 12, 3, 2] h2 = 2 w2 = 2;
    "b c (h h2) (w w2) -> (b h2 w2) c h w", [2, 3, 4, 4] h2 = 2 w2 = 2;
    "(b h2 w2) c h w -> b c (h h2) (w w2)", [8, 3, 2, 2] h2 = 2 w2 = 2;
    "b (h w) c -> b c h w", [2, 12, 3] h = 3;
    "b t (h d) -> b h t d", [2, 3, 8] h = 4;
    "b h t d -> b t (h d)", [2, 4, 3, 2];
    "b t (qkv h d) -> qkv b h t d", [2, 3, 24] qkv = 3 h = 4;
    "b (g c) h w -> b g c h w", [2, 6, 2, 2] g = 3;
    "b (g c) h w -> b (c g) h w", [2, 6, 2, 2] g = 3;
    "b (h2 h) (w2 w) c -> (h2 w2) b h w c", [2, 4, 6, 3] h2 = 2 w2 = 2;
    "b ... -> b (...)", [2, 3, 4];
    "h w c -> w h c", [3, 4, 2];
    "h w c -> 1 h w c", [3, 4, 2];
    "h w -> h w 1", [3, 4];
    "h w -> h () w", [3, 4];
    "b 1 h w -> b h w", [2, 1, 3, 4];
    "b () h w -> b (h w)", [2, 1, 3, 4];
    "b h w 1 1 -> b (h w)", [2, 3, 4, 1, 1];
    "1 1 -> ", [1, 1];
    "1 1 -> 1", [1, 1];
    "() -> () ()", [1];
    "(1 a) -> a", [3];
    "a (1 b) -> a b 1", [2, 3];
    "(a) b -> b a", [2, 3];
    "((a b) c) d -> a (b (c d))", [12, 5] a = 2 b = 3;
    "(a (b c)) -> c b a", [12] b = 2 c = 3;
    "(a b c) -> a b c", [12] a = 2 c = 3;
    "(time batch) ch -> time batch ch", [6, 4] batch = 2;
    "time (batch ch) -> (ch batch) time", [3, 8] ch = 4;
}

patterns! { repetitions repeat:
    "a -> a", [3];
    "a b c -> a b c", [2, 3, 4];
    "a b c -> a b c d", [2, 3, 4] d = 2;
    "a b c -> d a b c", [2, 3, 4] d = 2;
    "a b c -> a d b c", [2, 3, 4] d = 2;
    "a b c -> c a d1 b d2", [2, 3, 2] d1 = 2 d2 = 3;
    "a b c -> (a d) b c", [2, 3, 4] d = 2;
    "a b c -> (d a) b c", [2, 3, 4] d = 2;
    "a b c -> 1 (c copy a b)", [2, 3, 4] copy = 2;
    "(a copy) b c -> a b c copy", [6, 2, 3] copy = 2;
    "a ... -> a ... copy", [2, 3, 4] copy = 2;
    "... c -> ... (c copy1) copy2", [2, 3, 4] copy1 = 1 copy2 = 2;
    "...  -> ... ", [2, 3];
    " ... -> copy1 ... copy2 ", [2, 3] copy1 = 2 copy2 = 2;
    "a b c  -> copy1 a copy2 b c () ", [2, 3, 4] copy1 = 2 copy2 = 1;
    "h w -> h w c", [3, 4] c = 3;
    "h w -> h (w r)", [3, 4] r = 3;
    "h w -> (r h) w", [3, 4] r = 2;
    "h w -> (h r) (w s)", [3, 4] r = 2 s = 3;
    "h w -> (h 2) (w 2)", [3, 4];
    "h w -> h 2 w 3", [3, 4];
    "h w -> 2 2 h w", [2, 2];
    " -> n", [] n = 3;
    " -> 2 3", [];
    "1 h -> n h", [1, 3] n = 4;
    "b c h w -> b c (h h2) (w w2)", [2, 1, 2, 2] h2 = 2 w2 = 2;
    "b h w c -> b (h new_h) (w new_w) c", [2, 2, 2, 2] new_h = 2 new_w = 3;
    "... -> ... 2", [2, 3];
    "... -> (... n)", [2, 3] n = 2;
    "i -> (i i2) j", [3] i2 = 2 j = 0;
}

/// Like `patterns!`, but each pattern runs with `sum`, `mean`, `max`, `min` and `prod`. Only `sum`
/// also runs with dynamic rank.
macro_rules! reductions {
    ($name:ident: $($pattern:literal, [$($size:literal),*] $($axis:ident = $given:literal)*;)*) => {
        #[test]
        fn $name() {
            let mut wrong = Vec::new();
            $(
                let x = random::<f64, _>(&mut Random(3), [$($size),*]);
                let of = |combine: &dyn Fn(&[f64]) -> f64| {
                    oracle($pattern, &x.clone().into_dyn(), &[$((stringify!($axis), $given)),*], combine)
                };
                let sum = of(&|part| part.iter().sum());
                let mean = of(&|part| part.iter().sum::<f64>() / part.len() as f64);
                let max = of(&|part| part.iter().copied().fold(f64::MIN, f64::max));
                let min = of(&|part| part.iter().copied().fold(f64::MAX, f64::min));
                let prod = of(&|part| part.iter().product());
                let same = [
                    reduce!(x, $pattern, sum $(, $axis = $given)*).into_dynamic() == sum,
                    reduce!(x.view().into_dyn(), $pattern, "sum" $(, $axis = $given)*).into_dynamic() == sum,
                    reduce!(x, $pattern, "mean" $(, $axis = $given)*).into_dynamic() == mean,
                    reduce!(x, $pattern, max $(, $axis = $given)*).into_dynamic() == max,
                    reduce!(x, $pattern, min $(, $axis = $given)*).into_dynamic() == min,
                    reduce!(x, $pattern, prod $(, $axis = $given)*).into_dynamic() == prod,
                ];
                if same != [true; 6] {
                    wrong.push(format!("{}: {same:?}", $pattern));
                }
            )*
            assert!(wrong.is_empty(), "{} patterns are wrong: {}", wrong.len(), wrong.join("\n"));
        }
    };
}

reductions! { reductions_of_numbers:
    "a -> ", [4];
    "a b -> a", [2, 4];
    "a b -> b", [2, 4];
    "a b -> ", [2, 4];
    "a b -> a b", [2, 4];
    "a b -> b a", [2, 4];
    "a b c d e -> a b c d e", [2, 2, 1, 2, 2];
    "a b c d e -> c a", [2, 2, 4, 2, 4];
    "a b c d e -> (e c) b", [2, 2, 4, 2, 2];
    "a b c d e -> ", [2, 2, 4, 2, 2];
    "a b c d e -> 1 1 1 1 1", [2, 2, 4, 2, 2];
    "... -> ", [2, 4, 2];
    "... -> ...", [2, 4, 2];
    "... a -> a", [2, 2, 3];
    "... a -> ...", [2, 2, 4];
    "a ... -> a", [3, 2, 4];
    "a ... -> ...", [4, 2, 3];
    "a ... e -> ... a", [2, 3, 1, 2];
    "a b ... -> (a ...)", [3, 2, 2, 2];
    "b c h w -> b c", [2, 3, 4, 4];
    "b c h w -> b c 1 1", [2, 3, 4, 4];
    "b c h w -> b c () ()", [2, 3, 4, 4];
    "b h w c -> b h w", [2, 2, 2, 4];
    "b c (h h2) (w w2) -> b c h w", [2, 3, 4, 4] h2 = 2 w2 = 2;
    "b c (h 2) (w 2) -> b c h w", [2, 3, 4, 4];
    "b (h h2) (w w2) c -> b h w c", [1, 4, 4, 3] h2 = 2 w2 = 2;
    "b (h h2) (w w2) c -> h (b w) c", [2, 4, 4, 3] h2 = 2 w2 = 2;
    "(h 4) (w 2) c -> h w c", [8, 4, 2];
    "(t 2) c -> t c", [8, 3];
    "(t1 t2) c -> t2 c", [8, 3] t1 = 4;
    "b 4 w -> b w", [2, 4, 3];
    "h w -> h 1", [4, 2];
    "b c (h1 h2) (w1 w2) -> b c h1 w1", [1, 2, 4, 4] h1 = 2 w1 = 2;
    "b c h w -> b (c h)", [2, 2, 2, 4];
    "b h w c -> (h w) c", [2, 2, 2, 3];
    "(a b) -> a", [8] b = 2;
    "(a b) -> b", [8] b = 2;
    "((a b) c) -> b", [16] a = 2 c = 4;
    "a b -> a 1 1", [2, 4];
    "1 a -> a", [1, 4];
}

#[test]
fn bare_patterns_are_the_same_as_strings() {
    let x = random::<i32, _>(&mut Random(2), (2, 4, 6, 3));
    assert_eq!(
        rearrange!(x, b (h h2) (w w2) c -> (b h2 w2) h w c, h2 = 2, w2 = 2),
        rearrange!(x, "b (h h2) (w w2) c -> (b h2 w2) h w c", h2 = 2, w2 = 2)
    );
    assert_eq!(rearrange!(x, b ... c -> c (b ...)), rearrange!(x, "b ... c -> c (b ...)"));
    assert_eq!(rearrange!(x, b ... c -> c (b ...),), rearrange!(x, "b ... c -> c (b ...)",));
    assert_eq!(reduce!(x, b h w c -> b 1 c, sum), reduce!(x, "b h w c -> b () c", "sum"));
    assert_eq!(reduce!(x, b (h 2) w c -> h, max), reduce!(x, "b (h 2) w c -> h", max));
    assert_eq!(repeat!(x, b h w c -> b (h r) w c 2, r = 3), repeat!(x, "b h w c -> b (h r) w c 2", r = 3));
    assert_eq!(rearrange!(x, größe höhe 幅 c -> c 幅 höhe größe).shape(), [3, 6, 4, 2]);
    assert_eq!(rearrange!(x, in type w c -> c w type in).shape(), [3, 6, 4, 2]);
    assert_eq!(rearrange!(x, b (in h) w c -> in b h w c, in = 2).shape(), [2, 2, 2, 6, 3]);
    let two = 2;
    assert_eq!(rearrange!(x, b (h h2) w c -> b h h2 w c, h2 = two * 2).shape(), [2, 1, 4, 6, 3]);
}

#[test]
fn lists_are_a_leading_axis() {
    let mut generator = Random(4);
    let parts: Vec<Array3<f32>> = (0..3).map(|_| random(&mut generator, (2, 3, 4))).collect();
    let whole = stacked(&parts.iter().map(|part| part.clone().into_dyn()).collect::<Vec<_>>());
    let [x0, x1, x2] = [&parts[0], &parts[1], &parts[2]];
    macro_rules! same {
        ($($pattern:literal)*) => {$(
            let expected = oracle($pattern, &whole, &[], |part| part[0]);
            assert_eq!(rearrange!(parts, $pattern).into_dyn(), expected, $pattern);
            assert_eq!(rearrange!(&parts[..], $pattern).into_dyn(), expected, $pattern);
            assert_eq!(rearrange!([x0, x1, x2], $pattern).into_dyn(), expected, $pattern);
            assert_eq!(rearrange!([x0.view(), x1.clone(), x2.view()], $pattern).into_dyn(), expected, $pattern);
            let dynamic: Vec<_> = parts.iter().map(|part| part.view().into_dyn()).collect();
            assert_eq!(rearrange!(dynamic, $pattern).into_dyn(), expected, $pattern);
        )*};
    }
    same! {
        "n h w c -> n h w c"
        "n h w c -> h w c n"
        "n h w c -> h (n w) c"
        "n h w c -> (h n) w c"
        "n h w c -> c w (h n)"
        "n h w c -> (n h w c)"
        "n ... -> ... n"
        "... c -> c ..."
        "n h ... -> (h n) (...)"
    }
    assert_eq!(rearrange!(parts, (n m) h w c -> m n h w c, m = 3).into_dyn(), {
        whole.clone().into_shape_with_order(vec![1, 3, 2, 3, 4]).unwrap().permuted_axes(vec![1, 0, 2, 3, 4])
    });
    assert_eq!(
        reduce!(parts, n h w c -> h c, max).into_dyn(),
        oracle("n h w c -> h c", &whole, &[], |part| part.iter().copied().fold(f32::MIN, f32::max))
    );
    assert_eq!(reduce!([x0, x1], n ... -> ..., sum), x0 + x1);
    assert_eq!(repeat!([x0, x1], n h w c -> n r h w c, r = 2).shape(), [2, 2, 2, 3, 4]);
    assert_eq!(rearrange!([1, 2, 3], n -> n 1), array![[1], [2], [3]]);
    assert_eq!(rearrange!([[1, 2], [3, 4]], i j -> j i), array![[1, 3], [2, 4]]);
    assert_eq!(rearrange!(vec![[1, 2], [3, 4]], i j -> (j i)), array![1, 3, 2, 4]);
    assert_eq!(rearrange!([[x0, x1], [x1, x2]], a b h w c -> a b h w c).shape(), [2, 2, 2, 3, 4]);
    let error = try_rearrange!([x0.slice(s![..1, .., ..]), x1.view()], n h w c -> n h w c).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the arrays of a list differ: the first has the sizes [1, 3, 4], number 2 has [2, 3, 4]"
    );
    let none: Vec<Array2<f32>> = Vec::new();
    assert_eq!(
        try_rearrange!(none, n h w -> h w n).unwrap_err().to_string(),
        "an empty list of arrays has no sizes"
    );
}

/// Views of one array with equal sizes and different memory layouts.
fn views(whole: &Array3<i32>) -> [ndarray::ArrayView3<'_, i32>; 4] {
    [
        whole.slice(s![..4, ..4, ..2]),
        whole.slice(s![..;-1, .., ..]).slice_move(s![..4, ..;2, ..2]),
        whole.slice(s![..2, 2..6, ..4]).permuted_axes([2, 1, 0]),
        whole.slice(s![1..5, 4.., ..;4]),
    ]
}

#[test]
fn elements_lie_anywhere_in_memory() {
    let whole: Array3<i32> = random(&mut Random(5), (6, 8, 5));
    let views = views(&whole);
    // An axis with one element, broadcast to four, has stride 0.
    let one = whole.slice(s![..1, ..4, 1..3]);
    let still = one.broadcast((4, 4, 2)).unwrap();
    macro_rules! same {
        ($($macro:ident $pattern:literal $([$op:ident])? $($axis:ident = $given:literal)*;)*) => {$(
            for x in views.iter().chain([&still]) {
                let sum = |part: &[i32]| part.iter().fold(0, |sum: i32, &x| sum.wrapping_add(x));
                let expected =
                    oracle($pattern, &x.to_owned().into_dyn(), &[$((stringify!($axis), $given)),*], sum);
                let found = $macro!(x, $pattern $(, $op)? $(, $axis = $given)*).into_dynamic();
                assert_eq!(found, expected, "{} of {:?}", $pattern, x.strides());
            }
        )*};
    }
    same! {
        rearrange "a b c -> c a b";
        rearrange "a b c -> (b c) a";
        rearrange "(a a2) b c -> a c (b a2)" a2 = 2;
        rearrange "(a a2) (a2 b) c -> c a a2 b" a2 = 2;
        rearrange "a a c -> c a";
        repeat "a b c -> a (c n) b" n = 3;
        reduce "a b c -> b" [sum];
        reduce "(a a2) b c -> a2 c" [sum] a2 = 2;
        reduce "a a c -> " [sum];
    }
    let list: Vec<_> = views.iter().map(|view| view.to_owned().into_dyn()).collect();
    let whole = stacked(&list);
    macro_rules! lists {
        ($($pattern:literal $($axis:ident = $given:literal)*;)*) => {$(
            let expected = oracle($pattern, &whole, &[$((stringify!($axis), $given)),*], |part| part[0]);
            let found = rearrange!(views, $pattern $(, $axis = $given)*).into_dynamic();
            assert_eq!(found, expected, $pattern);
            let alike: Vec<_> = list.iter().map(|array| array.view()).collect();
            let found = rearrange!(alike, $pattern $(, $axis = $given)*).into_dynamic();
            assert_eq!(found, expected, $pattern);
        )*};
    }
    lists! {
        "n a b c -> a (n b) c";
        "(n m) a b c -> m (a n) (c b)" m = 2;
        "n (a a2) b c -> a2 c (b n) a" a2 = 2;
    }
    let [x, y, z, ..] = views;
    assert_eq!(rearrange!([x, y, x, z], n n b c -> b n c).slice(s![.., 3, ..]), z.slice(s![3, .., ..]));
    assert_eq!(
        pack!([x, y, z], a *).0,
        ndarray::concatenate![ndarray::Axis(1), flat(&x), flat(&y), flat(&z)]
    );
    assert_eq!(pack!([x, y, z], *c).0.dim(), (48, 2));
}

fn flat(x: &ndarray::ArrayView3<'_, i32>) -> Array2<i32> {
    Array2::from_shape_fn((4, 8), |(a, at)| x[(a, at / 2, at % 2)])
}

#[test]
fn arrays_are_joined_and_split() {
    let mut generator = Random(6);
    let x = random::<i32, _>(&mut generator, (2, 5, 3));
    let (left, right) = rearrange!(x, h (w1 + w2) c -> h w1 c, h w2 c, w1 = 2);
    assert_eq!((left.view(), right.view()), (x.slice(s![.., ..2, ..]), x.slice(s![.., 2.., ..])));
    assert_eq!(rearrange!(left, right, h w1 c, h w2 c -> h (w1 + w2) c), x);
    assert_eq!(rearrange!(left, right, "h w1 c, h w2 c -> h (w1 + w2) c"), x);
    // Parts are matched by their axes, in any order.
    let swapped = rearrange!(left, right, h w1 c, h w2 c -> c (w2 + w1) h);
    assert_eq!(swapped, ndarray::concatenate![ndarray::Axis(1), right, left].reversed_axes());
    assert_eq!(rearrange!(x, h (w1 + w2) c -> h (w2 + w1) c, w2 = 3).reversed_axes(), swapped);
    let (a, b, c) = rearrange!(x, h (w1 + w2 + 1) c -> c w1 h, (h w2 c), h c, w1 = 2);
    assert_eq!((a, b.len()), (left.clone().reversed_axes().as_standard_layout().to_owned(), 12));
    assert_eq!(c, x.slice(s![.., 4, ..]));
    let grouped = rearrange!(x, h (g w1 + w2) c -> h g w1 c, h w2 c, g = 2, w1 = 2);
    assert_eq!(grouped.0.into_shape_with_order((2, 4, 3)).unwrap(), x.slice(s![.., ..4, ..]));
    assert_eq!(grouped.1, x.slice(s![.., 4.., ..]));
    // Four blocks of a matrix, split and joined.
    let m = random::<i32, _>(&mut generator, (5, 7));
    let (a, b, c, d) = rearrange!(m, (i + j) (k + l) -> i k, i l, j k, j l, i = 2, k = 3);
    assert_eq!((a.dim(), b.dim(), c.dim(), d.dim()), ((2, 3), (2, 4), (3, 3), (3, 4)));
    assert_eq!(rearrange!(a, b, c, d, i k, i l, j k, j l -> (i + j) (k + l)), m);
    // A part that lacks axes is repeated along them.
    let bias = array![1, 2];
    let padded = rearrange!(m, bias, h w, c -> h (w + c));
    assert_eq!(padded.slice(s![.., 7..]), bias.broadcast((5, 2)).unwrap());
    assert_eq!(rearrange!(m, [0], h w, 1 -> (1 + h) w).row(0), Array1::<i32>::zeros(7));
}

#[test]
fn what_sizes_decide_of_joined_arrays_is_an_error() {
    let x = Array2::<i32>::zeros((2, 5));
    let error = try_rearrange!(x, h (w1 + w2) -> h w1, h w2, w1 = 7).unwrap_err();
    assert_eq!(
        error.to_string(),
        "an axis of size 5 cannot be split into `(w1 = 7 + w2)`: the known sizes exceed it"
    );
    let error = try_rearrange!(x, (h + 1 + () + 1) w -> h w, w, w, w).unwrap_err();
    assert_eq!(
        error.to_string(),
        "an axis of size 2 cannot be split into `(h + 1 + 1 + 1)`: the known sizes exceed it"
    );
    let error = try_rearrange!(x, h (w1 + w2) -> h w1, h w2, w1 = 1, w2 = 2).unwrap_err();
    assert!(error.to_string().contains("the sum of the sizes differs"), "{error}");
    let error = try_rearrange!(x, x.slice(s![..1, ..]), h w1, h w2 -> h (w1 + w2)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "axis `h` has size 2 in operand 1, but 1 in operand 2, in the pattern `h w1, h w2 -> h (w1 + w2)`"
    );
}

#[test]
fn diagonals() {
    let x = random::<f64, _>(&mut Random(8), (4, 4, 3));
    assert_eq!(rearrange!(x, i i c -> i c), Array2::from_shape_fn((4, 3), |(i, c)| x[(i, i, c)]));
    assert_eq!(
        reduce!(x, i i c -> c, sum),
        Array::from_shape_fn(3, |c| (0..4).map(|i| x[(i, i, c)]).sum::<f64>())
    );
    assert!(
        try_rearrange!(x, i j i -> i j).unwrap_err().to_string().contains("axis `i` has the sizes 4 and 3")
    );
    let flat = random::<i32, _>(&mut Random(8), 9);
    assert_eq!(rearrange!(flat, (i i) -> i, i = 3), array![flat[0], flat[4], flat[8]]);
}

#[test]
fn views_copy_nothing() {
    let x = random::<i32, _>(&mut Random(10), (4, 6, 5));
    let (y, plan) = explain(|| rearrange_view!(x, (a b) c d -> d b c a, a = 2));
    assert!(plan.steps.is_empty());
    assert_eq!(y, rearrange!(x, (a b) c d -> d b c a, a = 2));
    assert_eq!(rearrange_view!(x, a b c -> (a b c)).len(), 120);
    assert_eq!(rearrange_view!(x, "... c -> (...) c").shape(), [24, 5]);
    assert_eq!(
        rearrange_view!(x.view().into_dyn(), "... c -> c ..."),
        rearrange!(x, "... c -> c ...").into_dyn()
    );
    let turned = x.slice(s![..;-1, .., ..;-2]);
    assert_eq!(rearrange_view!(turned, a (b 1) c -> c 1 a b), rearrange!(turned, a b c -> c 1 a b));
    assert_eq!(
        rearrange_view!(turned, (a a2) b c -> a2 a b c, a = 2),
        rearrange!(turned, (a a2) b c -> a2 a b c, a = 2)
    );
    let error = try_rearrange_view!(x, a b c -> (b a) c).unwrap_err();
    assert!(error.to_string().contains("`a b c -> (b a) c`"), "{error}");
    assert_eq!(rearrange_view!(x.slice(s![..0, .., ..]), a b c -> (c a) b).shape(), [0, 6]);
    let square = Array2::from_shape_fn((3, 3), |(i, j)| 3 * i + j);
    assert_eq!(rearrange_view!(square, i i -> i), array![0, 4, 8]);
    const HUGE: usize = 1 << (usize::BITS * 5 / 8);
    let none = Array1::<i32>::zeros(0);
    let error = try_rearrange_view!(none, (a b c) -> a (b c), a = 0, b = HUGE, c = HUGE).unwrap_err();
    assert!(matches!(error, DimError::TooLarge { .. }), "{error}");
    let error = try_rearrange_view!(none, (a b c) -> a b c, a = 0, b = HUGE, c = HUGE).unwrap_err();
    assert!(matches!(error, DimError::TooLarge { .. }), "{error}");
}

#[test]
fn conditions_and_positions() {
    let x = array![[true, false, true], [false, false, false]];
    assert_eq!(reduce!(x, h w -> h, any), array![true, false]);
    assert_eq!(reduce!(x, "h w -> w", "all"), array![false, false, false]);
    assert_eq!(reduce!(x, h w -> h, count), array![2, 0]);
    let y = array![[1.0, 9.0, 3.0], [9.0, 2.0, 0.0]];
    assert_eq!(reduce!(y, h w -> , argmax), 1);
    assert_eq!(reduce!(y, h w -> w, argmax), array![1, 0, 0]);
    assert_eq!(reduce!(y, h w -> h, argmin), array![0, 2]);
    assert_eq!(reduce!(y, h w -> , norm), y.iter().map(|y| y * y).sum::<f64>().sqrt());
    assert_eq!(reduce!(array![1.0, 3.0], i -> , var), 1.0);
    assert_eq!(reduce!(array![1.0, 3.0], i -> , std), 1.0);
    assert_eq!(reduce!(array![0.0, 0.0], i -> , logsumexp), 2_f64.ln());
    let empty = Array2::<i32>::zeros((0, 3));
    assert_eq!(reduce!(empty, h w -> w, sum), array![0, 0, 0]);
    assert_eq!(
        try_reduce!(empty, h w -> w, max).unwrap_err().to_string(),
        "`max` over axis `h` has no elements to choose from"
    );
    assert_eq!(
        try_reduce!(empty, h w -> , max).unwrap_err().to_string(),
        "`max` over axes `h`, `w` has no elements to choose from"
    );
    assert_eq!(
        try_reduce!(empty, ... w -> w, min).unwrap_err().to_string(),
        "`min` over the axes of `...` has no elements to choose from"
    );
    assert_eq!(
        try_reduce!(empty, ... w -> , min).unwrap_err().to_string(),
        "`min` over axis `w` and the axes of `...` has no elements to choose from"
    );
    assert_eq!(reduce!(empty, h w -> h, max).len(), 0);
}

#[test]
fn tensors_keep_their_dims() {
    dims!(n);
    let x = random::<f64, _>(&mut Random(12), (4, 2, 6));
    let bound = x.at((n, .., ..));
    assert_eq!(
        rearrange!(bound, h (w w2) -> w2 (h w), w2 = 3).order(n),
        rearrange!(x, n h (w w2) -> n w2 (h w), w2 = 3)
    );
    let (y, plan) = explain(|| reduce!(&bound * 2.0 + 1.0, h w -> h, max).order(n));
    assert_eq!(y, reduce!(x.mapv(|x| 2.0 * x + 1.0), n h w -> n h, max));
    assert!(
        matches!(&plan.steps[0], PlanStep::Reduce { expression, .. } if expression.contains("mul")),
        "{plan}"
    );
    assert_eq!(repeat!(bound, h w -> h w 2).order(n), repeat!(x, n h w -> n h w 2));
    assert_eq!(rearrange!(x.at((.., .., ..)) + 1.0, a b c -> c b a), rearrange!(x, a b c -> c b a) + 1.0);
    let joined = rearrange!(bound, bound, h w1, h w2 -> h (w1 + w2)).order(n);
    assert_eq!(joined, rearrange!(x, x, n h w1, n h w2 -> n h (w1 + w2)));
}

#[test]
fn dims_of_the_scope_say_how_long_axes_are() {
    dims!(n, m = 3, open);
    let x = random::<i32, _>(&mut Random(13), (4, 6)).mapv(|x| x % 100);
    let bound = x.at((n, ..));
    assert_eq!(repeat!(x, h w -> h $m w), repeat!(x, h w -> h m w, m = 3));
    assert_eq!(rearrange!(x, h ($m w) -> w ($m h)), rearrange!(x, h (m w) -> w (m h), m = 3));
    assert_eq!(reduce!(x, $n w -> $n, sum), x.sum_axis(ndarray::Axis(1)));
    assert_eq!(rearrange!(bound, ($m w) -> w m).order(n), rearrange!(x, n (m w) -> n w m, m = 3));
    assert_eq!(parse_shape!(x, $n (w $m)).w, 2);
    // A dim without a size does not constrain the axis.
    assert_eq!(rearrange!(x, $open w -> w $open), x.t());
    assert_eq!(
        try_rearrange!(x, $m w -> w $m).unwrap_err().to_string(),
        "axis `m` has size 3 as given, but 4 in the operand, in the pattern `m w -> w m`"
    );
    assert!(try_repeat!(x, h w -> h w $open).unwrap_err().to_string().contains("`open`"));
    dims! {
        struct Half = 2;
    }
    assert_eq!(rearrange!(x, ($Half h) w -> h $Half w).dim(), (2, 2, 6));
}

#[test]
fn sizes_that_do_not_fit_are_errors() {
    let x = Array2::<i32>::zeros((4, 6));
    let text = |result: Result<ArrayD<i32>, DimError>| result.unwrap_err().to_string();
    assert_eq!(
        text(try_rearrange!(x, (a b) c -> a b c, a = 3).map(Array::into_dyn)),
        "an axis of size 4 cannot be split into `(a = 3, b)`: the product of the known sizes does not divide it"
    );
    assert_eq!(
        text(try_rearrange!(x, (a b) c -> a b c, a = 3, b = 2).map(Array::into_dyn)),
        "an axis of size 4 cannot be split into `(a = 3, b = 2)`: the product of the sizes differs"
    );
    assert!(text(try_rearrange!(x, (a b) c -> a b c, a = 0).map(Array::into_dyn)).contains("multiply to 0"));
    assert_eq!(
        text(try_rearrange!(x, a b -> b a, a = 5).map(Array::into_dyn)),
        "axis `a` has size 5 as given, but 4 in the operand, in the pattern `a b -> b a`"
    );
    assert_eq!(
        text(try_rearrange!(x, 1 b -> b).map(Array::into_dyn)),
        "axis `1` has size 1 as written, but 4 in the operand, in the pattern `1 b -> b`"
    );
    assert!(
        text(try_reduce!(x, a 3 -> a, sum).map(Array::into_dyn))
            .contains("axis `3` has size 3 as written, but 6")
    );
    assert_eq!(
        text(try_reduce!(x, a (b 2 2) -> a, sum).map(Array::into_dyn)),
        "an axis of size 6 cannot be split into `(b, 2, 2)`: the product of the known sizes does not divide it"
    );
    assert_eq!(
        text(try_reduce!(x, a (b 2 2) -> a, sum, b = 3).map(Array::into_dyn)),
        "an axis of size 6 cannot be split into `(b = 3, 2, 2)`: the product of the sizes differs"
    );
    assert_eq!(
        text(try_rearrange!(x.view().into_dyn(), a b c -> a b c).map(Array::into_dyn)),
        "the array has 2 axes, but the pattern names 3"
    );
    assert!(
        text(try_repeat!(x, a b -> a b n, n = usize::MAX / 4).map(Array::into_dyn))
            .contains("does not fit into memory")
    );
    assert!(
        text(try_repeat!(x, a b -> a b n, n = usize::MAX / 64).map(Array::into_dyn))
            .contains("does not fit into memory")
    );
}

#[test]
#[should_panic(expected = "cannot be split into `(a = 3, b)`")]
fn the_short_form_panics() {
    rearrange!(Array2::<i32>::zeros((4, 6)), (a b) c -> a b c, a = 3);
}

#[test]
fn works_in_macros_and_generic_functions() {
    macro_rules! flat {
        ($x:expr, $($name:ident)*) => { rearrange!($x, $($name)* -> ($($name)*)) };
    }
    macro_rules! pattern {
        ($x:expr, $pattern:literal, $size:expr) => {
            rearrange!($x, $pattern, r = $size)
        };
    }
    fn transposed<T: typed_dims::types::scalar::Element>(x: &Array2<T>) -> Array2<T> {
        rearrange!(x, i j -> j i)
    }
    fn greatest<T: typed_dims::types::scalar::Ordered>(x: &Array2<T>) -> T {
        reduce!(x, i j -> , max)
    }
    let x = array![[1, 2], [3, 4]];
    assert_eq!(flat!(&x + 1, h w), array![2, 3, 4, 5]);
    assert_eq!(pattern!(x, "(h r) w -> r h w", 1 + 1).shape(), [2, 1, 2]);
    assert_eq!((transposed(&x), greatest(&x)), (x.t().to_owned(), 4));
}

#[test]
fn sizes_are_evaluated_once_for_all_results() {
    let z = array![[1i32, 2, 3], [4, 5, 6]];
    let mut calls = 0;
    let mut next = || {
        calls += 1;
        calls
    };
    let (x, y) = rearrange!(z, h (a + b) -> h a, h b, a = next());
    assert_eq!((x, y), (array![[1], [4]], array![[2, 3], [5, 6]]));
    assert_eq!(calls, 1);
}

#[test]
fn functions_reduce_as_well() {
    let x = random::<i32, _>(&mut Random(8), (3, 4, 5)).mapv(|x| x % 10);
    let spread = |part: &[i32]| part.iter().max().unwrap() - part.iter().min().unwrap();
    let expected = oracle("h w c -> c h", &x.clone().into_dyn(), &[], spread);
    assert_eq!(reduce!(x, h w c -> c h, |part| spread(part)).into_dyn(), expected);
    assert_eq!(reduce!(x.view().into_dyn(), "h w c -> c h", |part| spread(part)).into_dyn(), expected);
    // The elements come in the order of the axes, and the result may have another type.
    let digits =
        |part: &[i32]| part.iter().fold(0_i64, |number, &digit| number.wrapping_mul(100) + i64::from(digit));
    let flat = rearrange!(x, h w c -> (h w) c);
    assert_eq!(
        reduce!(x, h w c -> c, |part| digits(part)),
        reduce!(flat, n c -> c, move |part| digits(part))
    );
    assert_eq!(reduce!(x, (h k) w c -> h, |part| part.len(), k = 3), array![60]);
    assert_eq!(
        reduce!(Array2::<i32>::zeros((2, 0)), h w -> h, |part: &[i32]| part.is_empty()),
        array![true, true]
    );
    assert_eq!(reduce!([&x, &x], n h w c -> , |part| part.len()), 120);
    assert_eq!(
        reduce!(x, h w c -> h, |part| Vec::<i32, >::from(part).len().min(core::mem::size_of::<Result<i8, u8>>())),
        array![2, 2, 2]
    );
    dims!(n);
    assert_eq!(
        reduce!(x.at((n, .., ..)), w c -> c, |part| spread(part)).order(n),
        reduce!(x, n w c -> n c, |part| spread(part))
    );
}
