//! Derivatives of operations that rearrange, join, select and window, compared with central
//! differences.

use crate::gradients::{assert_lost, check, check_curved};
use ndarray::s;
use typed_dims::batch::map_each;
use typed_dims::creation::random::{categorical, rand_like};
use typed_dims::operators::join::concat_to;
use typed_dims::prelude::*;

dims! {
    struct I; struct J; struct K; struct N; struct M; struct C; struct O; struct G; struct H; struct W; struct P; struct Q;
    struct Six = 6; struct Two = 2; struct Three = 3;
}

/// A tensor that is not contiguous.
fn strided(n: usize) -> Tensor<f64, (I, N)> {
    let data =
        Array2::from_shape_fn((3, 2 * n + 1), |(i, j)| (((7 * i + 3 * j) * 5) % 17) as f64 / 8.5 - 1.0);
    data.reversed_axes().slice_move(s![1..;2, ..;-1]).into_tensor((I, N))
}

/// For each of the sizes of `I`, checks a function for a tensor with only `I`, for one with `N`
/// too, and for one that is not contiguous.
macro_rules! along_i {
    ([$($n:expr),*], |$x:ident| $body:expr) => {$(
        check_curved(|$x: &Tensor<f64, (I,)>| $body, &randn(I.of($n), 1));
        check_curved(|$x: &Tensor<f64, (I, N)>| $body, &randn((I.of($n), N.of(3)), 2));
        check_curved(|$x: &Tensor<f64, (I, N)>| $body, &strided($n));
    )*};
}

#[test]
fn moved_along_a_dim() {
    along_i!([0, 1, 5], |x| x.roll(I, 2));
    along_i!([0, 1, 5], |x| x.roll(I, -7));
    along_i!([0, 1, 5], |x| x.shift(I, 2, 1.5));
    along_i!([1, 5], |x| x.shift(I, -1, 0.0));
    along_i!([5], |x| x.shift(I, 9, 1.0));
    along_i!([0, 1, 5], |x| x.flip(I).eval());
}

/// A sum of elements that do not vary along a dim multiplies them by the dim's size. The gradient
/// has this factor too.
#[test]
fn sums_of_broadcast_elements() {
    let broadcast = |x: &Tensor<f64, (I,)>| -> Tensor<f64, (I,)> {
        let column = ndarray::ArrayView2::from_shape((x.size(I), 1), x.memory()).unwrap();
        column.broadcast((x.size(I), 4)).unwrap().at((I, J)).sum(J).eval()
    };
    let x = randn(I.of(3), 1);
    check(broadcast, &x);
    let (_, pull) = typed_dims::grad::vjp(broadcast, &x);
    assert_eq!(pull(&ones(I.of(3))).memory(), [4.0; 3]);
}

#[test]
fn repeated() {
    along_i!([0, 1, 5], |x| x.repeat(I, 3));
    along_i!([1, 5], |x| x.repeat(I, 0));
    along_i!([0, 1, 5, 12], |x| x.repeat_interleave(I, 2));
    along_i!([1, 5], |x| x.interpolate_nearest(I, 13));
    along_i!([1, 5, 29], |x| x.interpolate_nearest(I, 4));
    along_i!([1, 5], |x| x.expand(J.of(3)).eval());
}

#[test]
fn padded() {
    along_i!([0, 1, 5], |x| x.pad(I, 2, 1, Pad::Constant(0.5)));
    along_i!([1, 5], |x| x.pad(I, 2, 3, Pad::Reflect));
    along_i!([1, 5], |x| x.pad(I, 2, 3, Pad::Replicate));
    along_i!([1, 5], |x| x.pad(I, 7, 3, Pad::Circular));
    along_i!([5], |x| (x * x).pad(I, 2, 1, Pad::Constant(-1.0)));
    check_curved(|x: &Tensor<f64, (I, N)>| x.pad((I, N), 1, 2, Pad::Constant(0.5)), &strided(4));
    check_curved(|x: &Tensor<f64, (I, N)>| x.pad((I, N), 1, 2, Pad::Reflect), &strided(4));
}

#[test]
fn windows() {
    along_i!([3, 7], |x| x.unfold(I, J.of(3), 2, 1).eval());
    along_i!([7], |x| (x.unfold(I, J.of(3), 1, 2) * x.unfold(I, J.of(3), 1, 2)).sum(J));
    along_i!([3, 7], |x| (x * x).unfold(I, J.of(3), 2, 1).fold(I, J, x.size(I), 2, 1));
    along_i!([1, 5], |x| (x * x).expand(J.of(2)).fold(I, J, x.size(I) + 3, 1, 3));
}

/// Without the constant factor, the products of the gradient are out of range.
#[test]
fn windows_times_a_constant() {
    let (x, w) = (ones::<f32, _>(I.of(7)), full(K.of(3), 1e20_f32));
    for (factor, sum) in [(1e-30_f32, 1e10_f32), (1e-9, 1e31)] {
        let sums = |x: &Tensor<f32, (I,)>| (x.lookup(I, J.of(5) + K.of(3)) * &w * factor).sum(K);
        let (_, pull) = typed_dims::grad::vjp(sums, &x);
        let found = pull(&full(J.of(5), 1e20_f32)).order(I);
        // The numbers have been rounded fewer than ten times, by at most 6e-8 of their value.
        let expected = [1.0, 2.0, 3.0, 3.0, 3.0, 2.0, 1.0].map(|count| count * sum);
        let is_near = |(found, expected): (&f32, &f32)| (found / expected - 1.0).abs() < 1e-6;
        assert!(found.iter().zip(&expected).all(is_near), "{factor}: {found}");
    }
}

#[test]
fn cut() {
    along_i!([5], |x| x.slice(I, -4..-1).eval());
    along_i!([5], |x| x.slice(I, ..3).eval());
    along_i!([5], |x| x.slice(I, 2..2).eval());
    along_i!([5], |x| x.slice_step(I, 1.., 2).eval());
    along_i!([5], |x| x.slice_to(I, 1..4, J).eval());
    along_i!([1, 5], |x| x.index(I, -1).eval());
    along_i!([5], |x| {
        let parts = x.split(I, &[2, 0, 3]);
        (parts[0].view().eval(), parts[1].view().eval(), (parts[2].view() * parts[2].view()).eval())
    });
    along_i!([5], |x| {
        let (a, b) = x.split_to(I, (J.of(2), K));
        (a * b).eval()
    });
    along_i!([1, 5], |x| x.chunk(I, 2).into_iter().map(|part| part.exp().eval()).collect::<Vec<_>>());
    along_i!([1, 3], |x| x
        .unbind(I)
        .into_iter()
        .map(|part| (part.view() * part.view()).eval())
        .collect::<Vec<_>>());
}

#[test]
fn under_other_names() {
    along_i!([0, 1, 5], |x| x.rename(I, J).eval());
    along_i!([0, 1, 4], |x| (x * x.rename(I, J)).eval());
    along_i!([0, 1, 4], |x| (x * x.rename(I, J)).sum(I));
    along_i!([5], |x| x.redefine(I, J).sum(J));
    check_curved(|x: &Tensor<f64, (I, N)>| x.rename_all((I, N), (J, K)).eval(), &strided(4));
    check_curved(|x: &Tensor<f64, (I, N)>| x.rename_all((I, N), (N, I)).eval(), &strided(4));
}

#[test]
fn flattened_and_unflattened() {
    check_curved(|x: &Tensor<f64, (I, N)>| x.flatten((I, N), J), &strided(4));
    check_curved(|x: &Tensor<f64, (I, N)>| (x * 2.0).flatten((N, I), J), &strided(0));
    along_i!([6], |x| x.unflatten(I, (J.of(2), K)).sum(K));
    along_i!([6], |x| x.unflatten(I, (J.of(2), K)).flatten((K, J), I));
    check_curved(|x: &Tensor<f64, (Six,)>| x.unflatten(Six, (Two, Three)).eval(), &randn(Six, 3));
}

#[test]
fn borrowed() {
    along_i!([1, 5], |x| (x.view() * x.view().slice(I, ..1).index(I, 0)).eval());
    along_i!([5], |x| {
        let y = x * 2.0 + 1.0;
        (y.view() * y.view().flip(I)).eval()
    });
    along_i!([5], |x| {
        let y = x.exp().eval();
        let part = y.view();
        (part.slice(I, 1..) - part.slice(I, ..-1)).eval()
    });
    check_curved(
        |x: &Tensor<f64, (I, N)>| {
            let y = x.order(I);
            (y.at((J,)) * 3.0).eval()
        },
        &strided(4),
    );
}

/// Systems whose matrices have a positional axis.
#[cfg(feature = "linalg")]
#[test]
fn systems_of_a_batch_without_a_name() {
    type Matrices = Tensor<f64, (I, J, K)>;
    let matrices: Matrices = from_fn((I.of(2), J.of(3), K.of(3)), |(i, j, k)| {
        if j == k { 4.0 + i as f64 } else { ((i + 2 * j + k) % 3) as f64 }
    });
    let sides = randn((J.of(3), O.of(2)), 2);
    check(
        |(a, b): &(Matrices, Tensor<f64, (J, O)>)| {
            let x = a.order(I).solve(b, J, K);
            x.at((I,)).eval()
        },
        &(matrices, sides),
    );
}

#[test]
fn joined() {
    along_i!([0, 1, 5], |x| concat(I, [x, x]));
    along_i!([1, 5], |x| concat(I, [x]));
    along_i!([1, 5], |x| concat(I, (x, x * x, x.slice(I, 1..).exp())));
    along_i!([0, 1], |x| concat(I, (x, x * x, x.slice(I, ..).exp())));
    along_i!([1, 5], |x| concat(I, (x * 0.5, ones(I.of(2)) * x.sum(I))));
    along_i!([1, 5], |x| concat_to(K, (I, J), (x, x.rename(I, J).sin())));
    along_i!([0, 1, 5], |x| stack(J, [x, x, x]));
    along_i!([1, 5], |x| stack(J, (x, x * x)));
    check(
        |(a, b): &(Tensor<f64, (I, N)>, Tensor<f64, (I, N)>)| (a * concat(I, [b, b]).slice(I, 1..=4)).eval(),
        &(strided(4), strided(4)),
    );
    dims! { struct Front = 4; struct Back = 4; struct Whole = 8; }
    check_curved(
        |x: &Tensor<f64, (I, N)>| {
            let (front, back) = (x.rename(I, Front), x.rename(I, Back).sin());
            concat_to(Whole, (Front, Back), (front, back)).eval()
        },
        &strided(4),
    );
    let constant = randn((I.of(2), N.of(3)), 8);
    check_curved(|x: &Tensor<f64, (I, N)>| concat(I, [&constant, x, &constant]), &strided(4));
}

#[test]
fn looked_up() {
    let ids = from_vec(K.of(4), vec![2_usize, 0, 2, 1]);
    along_i!([3, 5], |x| x.take(I, &ids).eval());
    along_i!([3], |x| (x * x).take(I, &ids).eval());
    along_i!([3], |x| (x.take(I, &ids) * x.take(I, (&ids).rename(K, J))).eval());
    along_i!([3], |x| x.slice(I, ..).take(I, &ids).sum(K));
    let from_end = from_vec(K.of(3), vec![-1_isize, 0, -2]);
    along_i!([3], |x| x.take(I, (&from_end).from_end(3)).eval());
    let each = from_vec((K.of(2), N.of(3)), vec![0_usize, 2, 1, 1, 2, 2]);
    check_curved(|x: &Tensor<f64, (I, N)>| x.take(I, &each).eval(), &strided(3));
    let none = from_vec(K.of(0), Vec::<usize>::new());
    along_i!([0, 3], |x| x.take(I, &none).eval());
}

#[test]
fn indices_that_are_not_taken() {
    let ids = from_vec(K.of(4), vec![2_isize, -1, 7, 0]);
    along_i!([3], |x| select((&ids).ge(0) & (&ids).lt(3), x.take(I, &ids), 0.5).eval());
    along_i!([0], |x| select((&ids).gt(100), x.take(I, &ids), 0.5).eval());
    along_i!([1, 4], |x| {
        let n = x.size(I);
        select(I.of(n).ge(1), x - x.take(I, I.of(n) - 1), x * 2.0).eval()
    });
}

#[test]
fn scattered_out_of_range() {
    // The offset of the first of three elements at this position is almost `isize::MAX`.
    let ids = from_vec(I.of(2), vec![0, (isize::MAX as usize - 1) / 3]);
    let sum = |x: &Tensor<f64, (I, N)>| {
        let error = x.try_scatter(I, J.of(4), &ids, 0.0).map(drop).unwrap_err();
        assert!(matches!(error, DimError::OutOfBounds { size: 4, .. }), "{error}");
        x.sum((I, N))
    };
    assert_eq!(typed_dims::grad::grad(sum, &ones((I.of(2), N.of(3)))).memory(), [1.0; 6]);
}

#[test]
fn scattered() {
    let ids = from_vec(I.of(5), vec![2_usize, 0, 2, 3, 2]);
    along_i!([5], |x| x.scatter_add(I, J.of(4), &ids));
    along_i!([5], |x| (x * x).scatter(I, J.of(4), &ids, 0.25));
    along_i!([5], |x| x.slice(I, ..).scatter(I, J.of(4), &ids, 0.25));
    let each = from_vec((I.of(2), N.of(3)), vec![0_usize, 2, 1, 1, 2, 0]);
    check_curved(|x: &Tensor<f64, (I, N)>| x.scatter_add((I, N), J.of(3), &each), &strided(2));
    check_curved(|x: &Tensor<f64, (I, N)>| x.scatter((I, N), J.of(3), &each, 1.0), &strided(2));
    check_curved(|x: &Tensor<f64, (I, N)>| x.scatter((N, I), J.of(3), &each, 1.0), &strided(2));
    check_curved(|x: &Tensor<f64, (I, N)>| x.scatter(I, J.of(3), &each, 1.0), &strided(2));
    let none = from_vec(I.of(0), Vec::<usize>::new());
    along_i!([0], |x| x.scatter_add(I, J.of(2), &none));
    let mask = from_vec(I.of(5), vec![true, false, false, true, true]);
    along_i!([5], |x| x.masked_fill(&mask, 0.5).eval());
    // If several elements go to one position, only the last one has a derivative.
    let gradient = typed_dims::grad::grad(
        |x: &Tensor<f64, (I,)>| x.scatter(I, J.of(4), &ids, 0.0).sum(J),
        &ones(I.of(5)),
    );
    assert_eq!(gradient.order(I), ndarray::array![0.0, 1.0, 0.0, 1.0, 1.0]);
}

#[test]
fn of_a_size_that_elements_decide() {
    let mask = from_vec(I.of(5), vec![true, false, false, true, true]);
    along_i!([5], |x| {
        dims!(n);
        x.masked_select(&mask, I, n).rename(n, K).eval()
    });
    check_curved(
        |x: &Tensor<f64, (I, N)>| {
            dims!(n);
            x.unique((I, N), n).values.rename(n, K).eval()
        },
        &randn((I.of(3), N.of(2)), 5),
    );
}

#[test]
fn convolutions() {
    type Image = Tensor<f64, (C, H, W, N)>;
    type Filter = Tensor<f64, (C, O, P, Q)>;
    let image: Image = randn((N.of(2), H.of(5), C.of(2), W.of(6)), 1);
    let filter: Filter = randn((O.of(3), C.of(2), P.of(2), Q.of(3)), 2);
    let both = (image, filter);
    for steps in [
        Window::new(),
        Window::new().stride((2, 1)).padding(1),
        Window::new().dilation((2, 1)).padding_sides((1, 0), (0, 2)).stride(2).output_padding(1),
    ] {
        check(|(x, w): &(Image, Filter)| conv(x, w, C, (H, W), (P, Q), &steps), &both);
        check(|(x, w): &(Image, Filter)| conv(x * 2.0, w.sin(), C, (H, W), (P, Q), &steps), &both);
        check(|(x, w): &(Image, Filter)| conv_transpose(x, w, C, (H, W), (P, Q), &steps), &both);
    }
    type Line = Tensor<f64, (C, G, H, N)>;
    type Filters = Tensor<f64, (C, G, O, P)>;
    for (n, h) in [(2, 5), (1, 2), (0, 3)] {
        let both: (Line, Filters) =
            (randn((N.of(n), C.of(2), G.of(3), H.of(h)), 1), randn((O.of(2), C.of(2), G.of(3), P.of(2)), 2));
        check(|(x, w): &(Line, Filters)| conv(x, w, C, H, P, &Window::new()), &both);
        check(|(x, w): &(Line, Filters)| conv(x, w, (), H, P, &Window::new().padding(1)), &both);
        check(|(x, w): &(Line, Filters)| conv_transpose(x, w, C, H, P, &Window::new().stride(2)), &both);
    }
}

#[test]
fn pools() {
    along_i!([4, 7], |x| x.max_pool(I, 3, &Window::new().stride(2).padding(1)));
    along_i!([4, 7], |x| x.max_pool(I, 2, &Window::new()));
    along_i!([4, 7], |x| x.avg_pool(I, 3, &Window::new().stride(2).padding(1)));
    along_i!([4, 7], |x| x.avg_pool_without_padding(I, 3, &Window::new().stride(2).padding(1)));
    along_i!([4, 7], |x| x.norm_pool(I, 3, &Window::new().dilation(1).padding(1)));
    along_i!([1, 4, 7], |x| x.adaptive_avg_pool(I, 3));
    along_i!([1, 4, 7], |x| x.adaptive_max_pool(I, 3));
    check_curved(|x: &Tensor<f64, (I, N)>| x.adaptive_max_pool((I, N), (3, 2)), &strided(5));
    check_curved(|x: &Tensor<f64, (I, N)>| x.adaptive_avg_pool((N, I), (2, 0)), &strided(5));
    check_curved(|x: &Tensor<f64, (I, N)>| x.max_pool((I, N), 2, &Window::new().padding(1)), &strided(5));
    check_curved(
        |x: &Tensor<f64, (I, N)>| x.avg_pool_without_padding((I, N), 2, &Window::new().padding(1)),
        &strided(5),
    );
    // Ties get equal shares.
    let x = from_vec(I.of(4), vec![1.0, 1.0, 0.0, 1.0]);
    let gradient = typed_dims::grad::grad(|x| x.adaptive_max_pool(I, 1).sum(I), &x);
    let third = 1.0 / 3.0;
    assert_eq!(gradient.order(I), ndarray::array![third, third, 0.0, third]);
}

#[test]
fn drawn() {
    along_i!([0, 1, 9], |x| x.dropout(0.4, 7));
    along_i!([9], |x| (x * 2.0).dropout(1.0, 7));
    along_i!([9], |x| (x * rand_like(x, 3)).eval());
    along_i!([9], |x| {
        let drawn = categorical(x, I, 3);
        (x * drawn.cast::<f64>()).eval()
    });
}

#[test]
fn called_for_each_example() {
    let x: Tensor<f64, (I, N)> = strided(4);
    check_curved(
        |x: &Tensor<f64, (I, N)>| {
            let sealed = x.view().seal(I);
            map_each(sealed, |one| (one * one.sum(I)).eval()).unseal()
        },
        &x,
    );
    check_curved(|x: &Tensor<f64, (I, N)>| map_each(x.view().seal(I), |one| (one * one).sum(I)).unseal(), &x);
    // One of the results is a constant.
    let constant = zeros::<f64, _>(I.of(4));
    check_curved(
        |x: &Tensor<f64, (I, N)>| {
            let mut call = 0;
            let sealed = x.view().seal(I);
            let all = map_each(sealed, |one| {
                call += 1;
                if call == 2 { constant.clone() } else { one.exp().eval() }
            });
            all.unseal()
        },
        &x,
    );
}

#[test]
fn written_to_memory_of_others() {
    let x = randn::<f64, _>((I.of(3), N.of(2)), 1);
    type X = Tensor<f64, (I, N)>;
    let out = || Array2::<f64>::zeros((3, 2));
    assert_lost("order_into", |x: &X| x.order_into(&mut out(), (I, N)), &x);
    assert_lost("order_into", |x: &X| (x * 2.0).order_into(&mut out(), (I, N)), &x);
    assert_lost("order_into", |x: &X| x.view().order_into(&mut out().reversed_axes(), (N, I)), &x);
    let sums = || Array1::<f64>::zeros(3);
    assert_lost("sum_into", |x: &X| x.sum_into(N, &mut sums(), I), &x);
    let w = randn::<f64, _>((N.of(2), J.of(3)), 1);
    assert_lost("sum_into", |x: &X| (x * &w).sum_into(N, &mut Array2::zeros((3, 3)), (I, J)), &x);
    assert_lost("assign", |x: &X| out().at_mut((I, N)).assign(x), &x);
    assert_lost("add_assign", |x: &X| out().at_mut((I, N)).add_assign(x * 2.0), &x);
    let ids = ndarray::array![0_usize, 0, 2];
    assert_lost("add_assign", |x: &X| out().at_mut((ids.at(I), N)).add_assign(x), &x);
    let other = zeros::<f64, _>((I.of(3), N.of(2)));
    assert_lost("assign", |x: &X| other.clone().assign(x), &x);
    assert_lost(
        "mul_assign",
        |x: &X| {
            let mut other = other.clone();
            other *= x.exp()
        },
        &x,
    );
    assert_lost("max_assign", |x: &X| other.clone().as_place().max_assign(x), &x);
    // Writing untraced elements works as usual.
    check_curved(
        |x: &X| {
            let mut other = other.clone();
            other += 2.0;
            other.assign(&other.clone() * 3.0);
            let mut sums = Array1::zeros(3);
            (&other).sum_into(N, &mut sums, I);
            (x * &other * sums.at(I)).eval()
        },
        &x,
    );
}

#[test]
fn small_products() {
    // Sizes that run without a plan if nothing is traced.
    type A = Tensor<f64, (I, K)>;
    type B = Tensor<f64, (K, J)>;
    for (i, j, k) in [(2, 3, 4), (1, 1, 1), (3, 2, 0), (0, 2, 3)] {
        let both: (A, B) = (randn((I.of(i), K.of(k)), 1), randn((K.of(k), J.of(j)), 2));
        check(|(a, b): &(A, B)| (a * b).sum(K), &both);
        check(|(a, b): &(A, B)| (a.view() * b.slice(K, ..)).sum(K), &both);
        check(|(a, b): &(A, B)| (a.exp() * b).sum((K, I)), &both);
    }
    let constant: B = randn((K.of(4), J.of(2)), 2);
    check_curved(|a: &A| (a * &constant).sum(K), &randn((I.of(3), K.of(4)), 1));
}
