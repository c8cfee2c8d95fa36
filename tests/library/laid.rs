//! Typed layouts: the order of axes in memory as part of the type. `ui-tests/fail/layouts` has
//! programs that must not compile.

use typed_dims::ndarray::{Array2, Array3, array, s};
use typed_dims::pipeline::plan::explain::PlanStep;
use typed_dims::prelude::*;
use typed_dims::types::scalar::Num;

dims! {
    /// Channels.
    pub struct C = 3;
    /// Rows.
    pub struct H;
    /// Columns.
    pub struct W;
}

fn image() -> Array3<f32> {
    Array3::from_shape_fn((2, 4, 3), |(h, w, c)| (h * 100 + w * 10 + c) as f32)
}

/// Needs an image whose pixels are contiguous.
fn first_pixel(image: &Laid<f32, (H, W, C)>) -> &[f32] {
    &image.as_slice()[..3]
}

#[test]
fn what_lies_so_is_not_moved() {
    let array = image();
    let start = array.as_ptr();
    let tensor = array.into_tensor((H, W, C));
    let (laid, plan) = explain(|| tensor.laid((H, W, C)));
    assert!(plan.steps.is_empty(), "{plan}");
    assert_eq!(first_pixel(&laid), [0.0, 1.0, 2.0]);
    assert_eq!(laid.sizes(), [2, 4, 3]);
    let (back, plan) = explain(|| laid.into_array());
    assert!(plan.steps.is_empty() && back.as_ptr() == start, "{plan}");
    assert_eq!(back, image());
}

#[test]
fn what_lies_otherwise_is_copied_once() {
    let tensor = image().into_tensor((H, W, C));
    let (planes, plan) = explain(|| tensor.laid((C, H, W)));
    let [PlanStep::Copy { .. }] = plan.steps[..] else { panic!("{plan}") };
    assert_eq!(planes.as_slice()[..4], [0.0, 10.0, 20.0, 30.0]);
    let array: Array3<f32> = planes.clone().into_array();
    assert_eq!(array, image().permuted_axes([2, 0, 1]));
    let (_, plan) = explain(|| planes.into_inner().laid((C, H, W)));
    assert!(plan.steps.is_empty(), "{plan}");
}

#[test]
fn expressions_are_computed_in_the_order() {
    let tensor = image().into_tensor((H, W, C));
    let (laid, plan) = explain(|| (&tensor * 2.0 + 1.0).laid((W, C, H)));
    assert_eq!(plan.steps.len(), 1, "{plan}");
    assert_eq!(laid.as_slice()[..4], [1.0, 201.0, 3.0, 203.0]);
    let sum: Tensor<f32, (C,)> = laid.sum((H, W));
    assert_eq!(sum.order(C), (&tensor * 2.0 + 1.0).sum((H, W)).order(C));
    let product = (&*laid * &tensor).sum((H, W, C)).order(());
    assert_eq!(product, image().mapv(|x| (x * 2.0 + 1.0) * x).sum());
}

#[test]
fn local_dims_and_few_axes() {
    dims!(i, j);
    let a = array![[1, 2, 3], [4, 5, 6]];
    assert_eq!(a.at((i, j)).laid((j, i)).into_vec(), [1, 4, 2, 5, 3, 6]);
    assert_eq!(a.at((i, j)).laid((j, i)).into_array(), a.t());
    assert_eq!(a.at((i, j)).sum(i).laid(j).into_array(), array![5, 7, 9]);
    assert_eq!(a.at((i, j)).sum((i, j)).laid(()).into_array(), 21);
    let empty = Array3::<f32>::zeros((0, 4, 3)).into_tensor((H, W, C)).laid((W, H, C));
    assert!(empty.as_slice().is_empty());
    assert_eq!(empty.sizes(), [4, 0, 3]);
}

#[test]
fn neighbors_flatten_and_unflatten_without_a_copy() {
    dims! { pub struct Pixel; pub struct Bytes = 12; pub struct H2 = 2; pub struct H1; }
    let laid = image().into_tensor((H, W, C)).laid((H, W, C));
    let start = laid.as_slice().as_ptr();
    let (pixels, plan) = explain(|| laid.flatten((H, W), Pixel));
    let pixels: Laid<f32, (Pixel, C)> = pixels;
    assert_eq!(pixels.sizes(), [8, 3]);
    let lines: Laid<f32, (H, W, C)> = pixels.unflatten(Pixel, (H.of(2), W));
    let bytes: Laid<f32, (H, Bytes)> = lines.flatten((W, C), Bytes);
    let halves: Laid<f32, (H1, H2, Bytes)> = bytes.unflatten(H, (H1, H2));
    assert!(plan.steps.is_empty() && halves.as_slice().as_ptr() == start, "{plan}");
    assert_eq!(
        (&halves).order((H1, H2, Bytes)).into_raw_vec_and_offset().0,
        image().into_raw_vec_and_offset().0
    );
    assert_eq!(halves.sizes(), [1, 2, 12]);
    dims!(other = 5, n);
    let laid = image().into_tensor((H, W, C)).laid((H, W, C));
    assert!(laid.clone().try_unflatten(W, (n, other)).is_err());
    assert!(laid.try_flatten((H, W), other).is_err());
}

#[test]
fn shown_and_compared() {
    let laid = from_fn((H.of(2), W.of(2)), |(h, w)| (2 * h + w) as f32).laid((W, H));
    let shown = "[[0.0, 1.0],\n [2.0, 3.0]]\nwith dims (H: 2, W: 2), laid out as (W, H)";
    assert_eq!((format!("{laid:?}"), laid.to_string()), (shown.into(), shown.replace(".0", "")));
    assert!(laid == laid.view() && laid.view() == laid && laid != (&laid + 1.0).laid((W, H)));
    let short = ones::<f32, _>((H.of(1), W.of(2))).laid((W, H));
    assert!(laid != short);
}

/// The lengths of the loops of the only step. Panics unless rustc knew the strides.
fn known(plan: &typed_dims::pipeline::plan::explain::Plan) -> Vec<usize> {
    let [PlanStep::Elementwise { loops, .. } | PlanStep::Reduce { loops, .. }] = &plan.steps[..] else {
        panic!("{plan}")
    };
    assert!(loops.typed, "{plan}");
    assert!(loops.operands.iter().all(|strides| strides.last() == Some(&1)), "{plan}");
    assert!(plan.to_string().contains("operand strides known to rustc"), "{plan}");
    loops.sizes.clone()
}

/// The results equal those of tensors without typed layouts.
#[test]
fn equal_layouts_run_as_one_loop_that_rustc_knows() {
    let (a, b) = (image().into_tensor((H, W, C)), image().mapv(|x| x * 0.5 - 3.0).into_tensor((H, W, C)));
    let (x, y) = ((&a).laid((H, W, C)), (&b).laid((H, W, C)));
    let expected = (&a * 2.0 + &b).order((H, W, C));

    let (ordered, plan) = explain(|| (&x * 2.0 + &y).order((H, W, C)));
    assert_eq!((ordered, known(&plan)), (expected.clone(), vec![24]));
    let (laid, plan) = explain(|| (&x * 2.0 + &y).laid((H, W, C)));
    assert_eq!((laid.into_array(), known(&plan)), (expected.clone(), vec![24]));
    // The result reuses the memory of an owned operand.
    let own = (&a).laid((H, W, C));
    let start = own.as_slice().as_ptr();
    let (laid, plan) = explain(|| (own * 2.0 + &y).laid((H, W, C)));
    assert_eq!((laid.as_slice().as_ptr(), known(&plan)), (start, vec![24]));
    assert_eq!(laid.into_array(), expected);
    let (evaluated, plan) = explain(|| (-(2.0 * &x)).eval());
    assert_eq!(evaluated.order((H, W, C)), image() * -2.0);
    assert!(plan.steps.iter().all(|step| matches!(step, PlanStep::Elementwise { .. })), "{plan}");

    // With another order, or an operand whose type does not state its layout, strides are checked
    // at run time.
    let unknown = [
        explain(|| (&x * 2.0 + &y).order((W, H, C))).1,
        explain(|| (&x * 2.0 + &b).order((H, W, C))).1,
        explain(|| (&x + &(&b).laid((W, H, C))).order((H, W, C))).1,
    ];
    for plan in unknown {
        assert!(!plan.to_string().contains("known to rustc"), "{plan}");
    }
    assert_eq!((&x + &(&b).laid((W, H, C))).order((W, C, H)), (&a + &b).order((W, C, H)));
}

#[test]
fn lines_are_reduced_along_loops_that_rustc_knows() {
    let (a, b) = (image().into_tensor((H, W, C)), image().mapv(|x| x * 0.25).into_tensor((H, W, C)));
    let (x, y) = ((&a).laid((H, W, C)), (&b).laid((H, W, C)));

    let (sum, plan) = explain(|| (&x - &y).sum((H, W, C)).order(()));
    assert_eq!((sum, known(&plan)), ((&a - &b).sum((H, W, C)).order(()), vec![24]));
    let (rows, plan) = explain(|| (&x - &y).max((C, W)));
    assert_eq!((rows.order(H), known(&plan)), ((&a - &b).max((C, W)).order(H), vec![2, 12]));
    let (columns, plan) = explain(|| (&x - &y).sum((H, W)));
    assert_eq!((columns.order(C), known(&plan)), ((&a - &b).sum((H, W)).order(C), vec![8, 3]));
    // The reduced axis is in the middle, or the reduced axes are at the ends. In both cases, the
    // innermost loop is contiguous.
    let (planes, others) = ((&a).laid((C, H, W)), (&b).laid((C, H, W)));
    let (middle, plan) = explain(|| (&planes - &others).sum(H));
    assert_eq!((middle.order((C, W)), known(&plan)), ((&a - &b).sum(H).order((C, W)), vec![3, 2, 4]));
    let (ends, plan) = explain(|| (&x - &y).min((H, C)));
    assert_eq!((ends.order(W), known(&plan)), ((&a - &b).min((H, C)).order(W), vec![4, 2, 3]));
    // The order of the kept axes in memory differs from their order in the result.
    let (turned, plan) = explain(|| (&x - &y).sum(W));
    assert_eq!(turned.order((H, C)), (&a - &b).sum(W).order((H, C)));
    assert!(!plan.to_string().contains("known to rustc"), "{plan}");

    // Positions are counted in the order of the dims in the call, whatever the layout.
    for at in 0..24 {
        let mut a = Array3::zeros((2, 4, 3));
        a.as_slice_mut().expect("the array is in standard layout")[at] = 1.0;
        let a = a.into_tensor((H, W, C));
        let x = (&a).laid((H, W, C));
        let (h, w, c) = (at / 12, at / 3 % 4, at % 3);
        assert_eq!((&x * 3.0).argmax((H, W, C)).order(()), at);
        assert_eq!((&x * 3.0).argmax((C, W, H)).order(()), (c * 4 + w) * 2 + h);
        assert_eq!((&x * 3.0).argmax((W, H)).order(C)[c], w * 2 + h);
        assert_eq!((&x * 3.0).argmax((H, W)).order(C)[c], h * 4 + w);
        assert_eq!((&x * -3.0).argmin((C, W)).order(H)[h], c * 4 + w);
    }

    for (h, w) in [(1, 4), (4, 1), (1, 1), (0, 3), (3, 0)] {
        let a =
            Array3::from_shape_fn((h, w, 3), |(h, w, c)| (h * 7 + w * 5 + c) as f64).into_tensor((H, W, C));
        let x = (&a).laid((H, W, C));
        assert_eq!((&x * 3.0).sum((W, C)).order(H), (&a * 3.0).sum((W, C)).order(H));
        assert_eq!((&x * 3.0).sum((H, W)).order(C), (&a * 3.0).sum((H, W)).order(C));
        let planes = (&a).laid((C, H, W));
        assert_eq!((&planes * 3.0).sum(H).order((C, W)), (&a * 3.0).sum(H).order((C, W)));
        assert_eq!((&x * 3.0).sum((H, C)).order(W), (&a * 3.0).sum((H, C)).order(W));
        assert_eq!((&x * 3.0).sum((H, W, C)).order(()), (&a * 3.0).sum((H, W, C)).order(()));
        assert_eq!((&x * 3.0).order((H, W, C)), (&a * 3.0).order((H, W, C)));
    }
}

#[test]
fn products_of_what_is_laid() {
    dims!(i, j, k);
    let (a, b) =
        (array![[1.0f64, 2.0, 3.0], [4.0, 5.0, 6.0]], array![[1.0f64, 0.5], [2.0, -1.0], [0.0, 4.0]]);
    let expected = a.dot(&b);
    let (x, y) = ((&a).into_laid((i, k)), (&b).into_laid((k, j)));
    assert_eq!((x * y).sum(k).order((i, j)), expected);
    assert_eq!((x * &b.at((k, j)).laid((j, k))).sum(k).order((i, j)), expected);
    assert_eq!((2.0 * &x * y).sum(k).laid((j, i)).into_array(), (expected * 2.0).t());
}

/// The contiguous axis of each operand can be that of the rows, the columns or the sum. Where rustc
/// knows enough, it chooses a kernel, and the products equal those planned at run time.
#[test]
fn rustc_knows_which_matrix_of_a_product_is_transposed() {
    dims!(i, j, k);
    fn products<T: Num + std::fmt::Debug + PartialEq>(of: fn(usize) -> T) {
        dims!(i, j, k);
        let (a, b) = (
            Array2::from_shape_fn((3, 5), |(i, k)| of(i * 5 + k)),
            Array2::from_shape_fn((5, 17), |(k, j)| of(k * 17 + j)),
        );
        let (a, b) = (a.at((i, k)), b.at((k, j)));
        let expected = (a * b).sum(k).order((i, j));
        macro_rules! check {
            ($(($a:expr) ($b:expr) $known:literal;)*) => {$({
                let (product, plan) = explain(|| ($a * $b).sum(k));
                assert_eq!(product.order((i, j)), expected);
                let [PlanStep::Product { m, n, typed, .. }] = plan.steps[..] else { panic!("{plan}") };
                assert!(m + n == 20 && typed == $known, "{plan}");
                assert_eq!(plan.to_string().contains("strides known to rustc"), $known, "{plan}");
            })*};
        }
        let (ik, ki, kj, jk) = (&a.laid((i, k)), &a.laid((k, i)), &b.laid((k, j)), &b.laid((j, k)));
        check! {
            (ik)(kj) true; (ki)(kj) true; (ik)(jk) true; (ki)(jk) true;
            (kj)(ik) true; (kj)(ki) true; (jk)(ik) true; (jk)(ki) true;
            // The relevant matrix is the one with the columns of the result.
            (a)(kj) true; (b)(ki) false;
        }
    }
    products(|at| at as f32);
    products(|at| at as i32);
    dims!(n);
    let (a, b) = (
        Array3::from_shape_fn((2, 3, 4), |(n, i, k)| (n + i * k) as f64),
        Array3::from_shape_fn((2, 4, 5), |(n, k, j)| (n * k + j) as f64),
    );
    let (x, y) = ((&a).into_laid((n, i, k)), (&b).into_laid((n, k, j)));
    let (product, plan) = explain(|| (x * y).sum(k));
    assert_eq!(product.order((n, i, j)), (a.at((n, i, k)) * b.at((n, k, j))).sum(k).order((n, i, j)));
    assert!(matches!(plan.steps[..], [PlanStep::Product { batch: 2, typed: true, .. }]), "{plan}");
}

/// Large products, sums over several dims or over none, and products of more than two factors are
/// planned from their strides.
#[test]
fn which_products_are_planned_when_they_run() {
    dims!(i, j, k, l);
    let of = |rows: usize, columns: usize| {
        Array2::from_shape_fn((rows, columns), |(r, c)| ((r * 7 + c) % 5) as f32)
    };
    let (a, b, c) = (of(64, 64), of(64, 65), of(65, 2));
    let (x, y, z) = ((&a).into_laid((i, k)), (&b).into_laid((k, j)), (&c).into_laid((j, l)));
    let cube = Array3::<f32>::ones((64, 64, 2));
    let cube = (&cube).into_laid((i, k, l));
    let plans = [
        explain(|| assert_eq!((x * y).sum(k).order((i, j)), a.dot(&b))).1,
        explain(|| assert_eq!((x * cube).sum((i, k)).order(l)[1], a.sum())).1,
        explain(|| assert_eq!((x * y).order((i, k, j))[(1, 2, 3)], a[(1, 2)] * b[(2, 3)])).1,
        explain(|| assert_eq!((x * y * z).sum((k, j)).order((i, l)), a.dot(&b).dot(&c))).1,
    ];
    for plan in plans {
        assert!(!plan.to_string().contains("known to rustc"), "{plan}");
    }
}

/// Several axes that are the rows, columns or batch of a product form one axis if they are adjacent
/// in memory. Where the types state that they are, no stride is checked.
#[test]
fn several_axes_of_a_role_are_one_by_their_types() {
    dims! { pub struct P; pub struct Q; pub struct R; pub struct S; pub struct K; }
    for (p, q, r, s) in [(2, 3, 4, 5), (1, 3, 4, 1), (3, 1, 1, 5), (1, 1, 1, 1)] {
        let x = from_fn((P.of(p), Q.of(q), K.of(3)), |(p, q, k)| (p * 7 + q * 3 + k) as f32);
        let y = from_fn((R.of(r), S.of(s), K.of(3)), |(r, s, k)| (r * 5 + s * 2 + k * 4) as f32);
        let expected = (&x * &y).sum(K).order((P, Q, R, S));
        macro_rules! check {
            ($(($a:expr) ($b:expr) $typed:literal;)*) => {$({
                let (a, b) = ($a, $b);
                let (product, plan) = explain(|| (a * b).sum(K));
                assert_eq!(product.order((P, Q, R, S)), expected);
                let [PlanStep::Product { m, n, typed, .. }] = plan.steps[..] else { panic!("{plan}") };
                assert_eq!((m * n, typed), (p * q * r * s, $typed), "{plan}");
            })*};
        }
        let (rows, columns) = (&(&x).laid((P, Q, K)), &(&y).laid((K, R, S)));
        check! {
            (rows)(columns) true;
            (&(&x).laid((K, P, Q)))(&(&y).laid((R, S, K))) true;
            (&x)(columns) true;
            // The types do not say how far apart the columns are.
            (rows)(&y) false;
        }
        // Axes that are apart or in the reverse order are detected at run time.
        for product in [
            (rows * &(&y).laid((R, K, S))).sum(K).eval(),
            (rows * &(&y).laid((S, R, K))).sum(K).eval(),
            (&(&x).laid((Q, P, K)) * columns).sum(K).eval(),
        ] {
            assert_eq!(product.order((P, Q, R, S)), expected);
        }
        // `P` and `Q` form the batch.
        let z = from_fn((P.of(p), Q.of(q), K.of(3), S.of(s)), |(p, q, k, s)| (p + q * 2 + k * 3 + s) as f32);
        let w = from_fn((P.of(p), Q.of(q), R.of(r), K.of(3)), |(p, q, r, k)| (p * q + r + k) as f32);
        let (a, b) = ((&w).laid((P, Q, R, K)), (&z).laid((P, Q, K, S)));
        let (product, plan) = explain(|| (&a * &b).sum(K));
        assert_eq!(product.order((P, Q, R, S)), (&w * &z).sum(K).order((P, Q, R, S)));
        let [PlanStep::Product { batch, typed: true, .. }] = plan.steps[..] else { panic!("{plan}") };
        assert_eq!(batch, p * q, "{plan}");
    }
}

#[test]
fn what_is_laid_is_written_into_arrays_along_one_loop() {
    let a = image().into_tensor((H, W, C));
    let x = (&a).laid((H, W, C));
    let mut out = Array3::zeros((2, 4, 3));
    let ((), plan) = explain(|| (&x - 1.0).order_into(&mut out, (H, W, C)));
    assert_eq!((&out, known(&plan)), (&(image() - 1.0), vec![24]));
    (&x).order_into(&mut out, (H, W, C));
    assert_eq!(out, image());
    let mut wide = Array3::zeros((2, 4, 6));
    (&x - 1.0).order_into(&mut wide.slice_mut(s![.., .., 3..]), (H, W, C));
    assert_eq!(wide.slice(s![.., .., 3..]), image() - 1.0);
    (&x).order_into(&mut wide.slice_mut(s![.., .., ..3]), (H, W, C));
    assert_eq!(wide.slice(s![.., .., ..3]), image());
    let mut turned = Array3::zeros((3, 4, 2));
    (&x - 1.0).order_into(&mut turned, (C, W, H));
    assert_eq!(turned, (image() - 1.0).reversed_axes());
    let error = (&x - 1.0).try_order_into(&mut turned, (H, W, C)).unwrap_err();
    assert!(error.to_string().contains("do not fit into an array of shape [3, 4, 2]"), "{error}");
}

#[test]
fn functions_are_mapped_over_what_is_laid() {
    let tensor = image().into_tensor((H, W, C));
    let laid = (&tensor).laid((W, C, H));
    let one = |x: &Tensor<f32, (C, W)>| x.sum(W);
    let expected = tensor.sum(W).order((H, C));
    assert_eq!(vmap(one, H)(&laid).order((H, C)), expected);
    assert_eq!(vmap(one, H)(laid.clone()).order((H, C)), expected);
    assert_eq!(vmap(one, H)(laid.view()).order((H, C)), expected);
    let together = |x: Tensor<f32, (C, W, Rest<_>)>| x.sum(W);
    assert_eq!(vmap(together, H)(&laid).order((H, C)), expected);
    let by: Tensor<f32, (W,)> = tensor.max((H, C));
    let dot = |x: &Tensor<f32, (C, W)>, by: &Tensor<f32, (W,)>| (x * by).sum(W);
    let products = vmap(dot, H)((&laid, &by)).order((H, C));
    assert_eq!(products, (&tensor * &by).sum(W).order((H, C)));

    // `batched` takes the tensor.
    assert_eq!(batched(H, &*laid, |x| x.sum(W)).order((H, C)), expected);
    assert_eq!(batched(H, laid.view().eval(), |x| x.sum(W)).order((H, C)), expected);
}

#[test]
fn sizes_are_still_compared() {
    let x = image().into_tensor((H, W, C)).laid((H, W, C));
    let short = Array3::<f32>::zeros((2, 3, 3)).into_tensor((H, W, C)).laid((H, W, C));
    for error in
        [(&x + &short).try_order((H, W, C)).unwrap_err(), (&x + &short).try_sum((H, W, C)).unwrap_err()]
    {
        let text = error.to_string();
        assert!(text.starts_with("dim `W` has size 4 (at tests/library/laid.rs:"), "{text}");
        assert!(text.contains("but was also given size 3 (at tests/library/laid.rs:"), "{text}");
    }
    assert!((&x + &short).try_laid((H, W, C)).is_err());
}

#[test]
fn borrowed_memory_is_laid_without_a_copy() {
    let data: Vec<u8> = (0..24).collect();
    let view: Laid<u8, (H, W, C), &[u8]> = data.as_slice().into_laid((H, W.of(4), C));
    assert_eq!(view.sizes(), [2, 4, 3]);
    assert_eq!((view.as_slice().as_ptr(), view.into_slice().as_ptr()), (data.as_ptr(), data.as_ptr()));
    assert_eq!(view.as_array(), Array3::from_shape_vec((2, 4, 3), data.clone()).unwrap());
    assert_eq!(view.into_array().as_ptr(), data.as_ptr());
    assert_eq!((view.cast::<u32>()).sum((H, W)).order(C).to_vec(), [84, 92, 100]);
    let (sum, plan) = explain(|| (&view * 2).cast::<u32>().sum((H, W, C)).order(()));
    assert_eq!((sum, known(&plan)), (552, vec![24]));
    // Adjacent axes flatten and unflatten in borrowed memory too.
    dims! { pub struct Pixel; }
    let pixels: Laid<u8, (Pixel, C), &[u8]> = view.flatten((H, W), Pixel);
    assert_eq!((pixels.sizes(), pixels.as_slice().as_ptr()), (vec![8, 3], data.as_ptr()));
    assert_eq!(pixels.unflatten(Pixel, (H, W.of(2))).sizes(), [4, 2, 3]);

    // Errors about sizes name the dims.
    let error = data.as_slice().try_into_laid((H.of(5), W, C)).unwrap_err();
    assert!(
        error.to_string().contains(
            "24 elements cannot be laid out as `(H = 5, W, C = 3)`: the product of the known sizes does not divide it"
        ),
        "{error}"
    );
    let owned = data.clone().into_laid((H.of(2), W, C));
    assert_eq!(owned.into_vec(), data);
    // A reference to a `Vec` borrows its elements.
    let mut data = data;
    assert_eq!((&data).into_laid((H.of(2), W, C)).as_slice().as_ptr(), data.as_ptr());
    (&mut data).into_laid((H.of(2), W, C)).assign(1);
    assert_eq!(data, [1; 24]);
}

#[test]
fn arrays_and_views_of_ndarray_are_laid_without_a_copy() {
    let array = image();
    let start = array.as_ptr();
    let view: Laid<f32, (H, W, C), &[f32]> = array.view().into_laid((H, W, C));
    assert_eq!((view.as_slice().as_ptr(), view.into_array()), (start, array.view()));
    let error = array.t().try_into_laid((C, W, H)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the elements of an array of shape [3, 4, 2] are not stored in the order (C, W, H); `.at((C, W, H)).laid((C, W, H))` copies them"
    );
    assert!(array.slice(typed_dims::ndarray::s![..1, .., ..]).try_into_laid((H, W, C)).is_ok());
    assert!(array.view().into_dyn().try_into_laid((H, W, C)).is_ok());
    assert!(array.view().into_dyn().try_into_laid((H, C)).is_err());
    assert_eq!((&array).into_laid((H, W, C)).into_slice().as_ptr(), start);
    let mut zeros = Array3::<f32>::zeros((2, 4, 3));
    (&mut zeros).into_laid((H, W, C)).assign((&array).into_laid((H, W, C)));
    assert_eq!(zeros, array);
    let owned: Laid<f32, (H, W, C)> = array.into_laid((H, W, C));
    assert_eq!(owned.as_slice().as_ptr(), start);
}

#[test]
fn borrowed_memory_is_written() {
    let mut array = image();
    let start = array.as_ptr();
    let expected = image() * 2.0;
    let x = image().into_tensor((H, W, C)).laid((H, W, C));
    {
        let mut place: Laid<f32, (H, W, C), &mut [f32]> = array.view_mut().into_laid((H, W, C));
        place.assign(&x * 2.0);
        assert_eq!(place.as_array(), expected);
        place.assign(1.0);
        place.as_place().add_assign(image().at((H, W, C)));
        assert_eq!(place.view().as_array(), image() + 1.0);
        // A writable place can also be read.
        let (sum, plan) = explain(|| (&place - &x).sum((H, W, C)).order(()));
        assert_eq!((sum, known(&plan)), (24.0, vec![24]));
        assert_eq!((&place * x.view()).sum((H, W, C)).order(()), (image() * (image() + 1.0)).sum());
        place.as_mut_slice()[0] = 7.0;
        place.as_array_mut()[(0, 0, 1)] = 8.0;
        let lines = place.flatten((W, C), typed_dims_line::Line);
        assert_eq!((lines.sizes(), lines.into_slice().as_ptr()), (vec![2, 12], start));
    }
    assert_eq!((array[(0, 0, 0)], array[(0, 0, 1)]), (7.0, 8.0));
    let mut owned = x.clone();
    owned.view_mut().assign(&x + &x);
    assert_eq!(owned.as_array(), expected);
    owned.assign(-&x);
    assert_eq!(owned.as_array(), image() * -1.0);
    owned.assign(&x + 1.0);
    let rests = (image() + 1.0).mapv(|x| 5.0 % x);
    assert_eq!((5.0 % &owned).order((H, W, C)), rests);
    assert_eq!((5.0 % owned).order((H, W, C)), rests);
}

mod typed_dims_line {
    typed_dims::dims! { pub struct Line = 12; }
}
