//! The steps that expressions run: the number of passes, the products, and the copies.

use ndarray::{Array1, Array2, Array3, Array4};
use typed_dims::pipeline::plan::explain::{Plan, PlanStep};
use typed_dims::prelude::*;

fn products(plan: &Plan) -> usize {
    plan.steps.iter().filter(|step| matches!(step, PlanStep::Product { .. })).count()
}

fn copies(plan: &Plan) -> usize {
    plan.steps.iter().filter(|step| matches!(step, PlanStep::Copy { .. })).count()
}

#[test]
fn a_batched_product_is_one_contraction_without_a_copy() {
    let a = Array3::<f32>::ones((64, 128, 100));
    let b = Array3::<f32>::ones((64, 100, 120));
    dims!(n, i, j, k);
    let (c, plan) = explain(|| (a.at((n, i, k)) * b.at((n, k, j))).sum(k).order((n, i, j)));
    assert_eq!(c[[63, 127, 119]], 100.0);
    let [PlanStep::Product { batch: 64, m: 128, k: 100, n: 120, summed: 1, .. }] = plan.steps[..] else {
        panic!("{plan}");
    };
    assert_eq!(plan.bytes(), 64 * 128 * 120 * 4);
    assert_eq!(plan.flops(), 2 * 64 * 128 * 100 * 120);
}

#[test]
fn a_small_product_is_planned_alike() {
    let a = Array2::<f64>::ones((4, 5));
    dims!(i, j, k);
    let (_, plan) = explain(|| (a.at((i, k)) * a.at((j, k))).sum(k).order((j, i)));
    assert_eq!(products(&plan), 1, "{plan}");
}

#[test]
fn few_elements_are_shown_as_many_are() {
    for (n, m) in [(3, 4), (30, 40)] {
        let a = Array2::<f32>::ones((n, m));
        let mut out = Array2::zeros((m, n));
        dims!(i, j);
        for plan in [
            explain(|| a.at((i, j)).order((j, i))).1,
            explain(|| a.at((i, j)).order_into(&mut out, (j, i))).1,
            explain(|| rearrange!(a, i j -> j i)).1,
        ] {
            assert!(matches!(plan.steps[..], [PlanStep::Copy { .. }]) && plan.bytes() == 4 * n * m, "{plan}");
        }
        let mut out = Array2::zeros((n, m));
        for plan in [
            explain(|| (a.at((i, j)) + a.at((i, j))).order((i, j))).1,
            explain(|| (a.at((i, j)) + a.at((i, j))).order_into(&mut out, (i, j))).1,
        ] {
            assert!(matches!(plan.steps[..], [PlanStep::Elementwise { .. }]), "{plan}");
            assert_eq!(plan.bytes(), 4 * n * m);
        }
    }
}

#[test]
fn assignments_are_shown() {
    dims!(i = 4, j = 3);
    let mut x = zeros::<f32, _>((i, j));
    let row = ones::<f32, _>(j);
    let (_, plan) = explain(|| x.as_place().add_assign(&row));
    let [PlanStep::Elementwise { expression, loops }] = &plan.steps[..] else { panic!("{plan}") };
    assert_eq!((expression.as_str(), loops.bytes), ("add(place, tensor)", 4 * 12));
    // The memory has a different layout from the sum, so the step is an assignment.
    let mut out = Array2::<f32>::zeros((3, 4));
    let (_, plan) = explain(|| (&x + &row).order_into(&mut out, (j, i)));
    let [PlanStep::Elementwise { expression, .. }] = &plan.steps[..] else { panic!("{plan}") };
    assert_eq!(expression, "assign(place, add(tensor, tensor))");
    assert_eq!(out, Array2::from_elem((3, 4), 2.0));
}

#[test]
fn sums_go_right_to_where_they_shall_be() {
    let a = Array3::<f32>::ones((3, 40, 20));
    let b = Array2::<f32>::ones((20, 50));
    dims!(n, i, j, k);
    // First with rows along one dim, then along two. The targets have gaps and another order of
    // axes.
    let mut few = Array2::<f32>::zeros((100, 40));
    let (_, plan) = explain(|| {
        (a.at((0, i, k)) * b.at((k, j))).sum_into(k, &mut few.slice_mut(ndarray::s![..;2, ..]), (j, i));
    });
    assert!(matches!(plan.steps[..], [PlanStep::Product { c: (1, 80), .. }]), "{plan}");
    let mut out = Array3::<f32>::zeros((40, 3, 60));
    let (_, plan) = explain(|| {
        let out = &mut out.slice_mut(ndarray::s![.., .., ..50]);
        (a.at((n, i, k)) * b.at((k, j))).sum_into(k, out, (i, n, j));
    });
    assert!(matches!(plan.steps[..], [PlanStep::Product { .. }]), "{plan}");
    assert!(out.indexed_iter().all(|((_, _, j), &x)| x == if j < 50 { 20.0 } else { 0.0 }));
    // A sum that is not a product is computed in its target if the target is contiguous, and
    // otherwise copied into it.
    let mut out = Array2::<f32>::zeros((20, 40));
    let (_, plan) = explain(|| a.at((n, i, k)).sum_into(n, &mut out, (k, i)));
    assert!(matches!(plan.steps[..], [PlanStep::Reduce { .. }]), "{plan}");
    let mut out = Array2::<f32>::zeros((40, 60));
    let (_, plan) =
        explain(|| a.at((n, i, k)).sum_into(n, &mut out.slice_mut(ndarray::s![.., ..;3]), (i, k)));
    assert!(matches!(plan.steps[..], [PlanStep::Reduce { .. }, PlanStep::Copy { .. }]), "{plan}");
}

#[test]
fn rows_along_several_dims_are_those_of_one_product() {
    let x = Array3::from_shape_fn((3, 4, 5), |(i, j, k)| (20 * i + 5 * j + k) as f64);
    let w = Array2::from_shape_fn((5, 2), |(k, o)| (2 * k + o) as f64);
    let sum = |i: usize, j: usize, o: usize, step: usize| {
        (0..5).map(|k| x[[i, step * j, k]] * w[[k, o]]).sum::<f64>()
    };
    dims!(i, j, k, o);
    let (dense, plan) = explain(|| (x.at((i, j, k)) * w.at((k, o))).sum(k).order((i, j, o)));
    assert!(matches!(plan.steps[..], [PlanStep::Product { batch: 1, m: 12, k: 5, n: 2, .. }]), "{plan}");
    assert_eq!(dense, Array3::from_shape_fn((3, 4, 2), |(i, j, o)| sum(i, j, o, 1)));
    let (turned, plan) = explain(|| (w.at((k, o)) * x.at((i, j, k))).sum(k).order((o, i, j)));
    assert_eq!(products(&plan), 1, "{plan}");
    assert_eq!(turned, Array3::from_shape_fn((2, 3, 4), |(o, i, j)| sum(i, j, o, 1)));
    // Rows with gaps between them.
    let every_other = x.slice(ndarray::s![.., ..;2, ..]);
    dims!(i, j, k, o);
    let strided = (every_other.at((i, j, k)) * w.at((k, o))).sum(k).order((i, j, o));
    assert_eq!(strided, Array3::from_shape_fn((3, 2, 2), |(i, j, o)| sum(i, j, o, 2)));
    // An axis with one element can be merged with any other.
    let one = x.slice(ndarray::s![.., 1..2, ..]);
    dims!(i, j, k, o);
    let single = (one.at((i, j, k)) * w.at((k, o))).sum(k).order((i, j, o));
    assert_eq!(single, Array3::from_shape_fn((3, 1, 2), |(i, _, o)| sum(i, 1, o, 1)));
}

#[test]
fn a_convolution_copies_no_input() {
    let x = Array4::<f32>::ones((2, 3, 10, 12));
    let w = Array4::<f32>::ones((4, 3, 3, 3));
    dims!(b, c, o, h, y, kh, kw);
    let w = w.at((o, c, kh, kw));
    let (out, plan) = explain(|| (x.at((b, c, h + kh, y + kw)) * w).sum((c, kh, kw)).order((b, o, h, y)));
    assert_eq!(out.shape(), [2, 4, 8, 10]);
    assert!(out.iter().all(|&value| value == 27.0));
    assert_eq!(copies(&plan), 0, "{plan}");
    assert_eq!(products(&plan), 1, "{plan}");
}

#[test]
fn an_elementwise_expression_is_one_pass_into_its_result() {
    let x = Array4::<f32>::ones((2, 3, 4, 5));
    let scale = Array1::<f32>::ones(3);
    dims!(b, c, h, w);
    let scale = scale.at(c);
    let (_, plan) = explain(|| (x.at((b, c, h, w)) * scale + 0.5).relu().order((b, c, h, w)));
    let [PlanStep::Elementwise { expression, loops }] = &plan.steps[..] else { panic!("{plan}") };
    assert_eq!(expression, "relu(add(mul(view, view), 0.5))");
    assert_eq!(loops.sizes, [2, 3, 20]);
    assert_eq!(loops.bytes, 2 * 3 * 4 * 5 * 4);
}

#[test]
fn a_reduction_stores_no_elements() {
    let x = Array2::<f32>::ones((30, 7));
    dims!(i, j, k);
    let (_, plan) = explain(|| (x.at((i, k)) - x.at((j, k))).abs().sum(k));
    let [PlanStep::Reduce { reduction: "sum", count: 7, loops, .. }] = &plan.steps[..] else {
        panic!("{plan}")
    };
    assert_eq!(loops.bytes, 30 * 30 * 4);
}

#[test]
fn a_product_of_several_tensors_goes_pair_by_pair() {
    let thin = |rows, columns| Array2::<f32>::ones((rows, columns));
    let (a, b, c, d) = (thin(10, 1000), thin(1000, 10), thin(10, 1000), thin(1000, 10));
    dims!(i, j, k, l, m);
    let product = || a.at((i, j)) * b.at((j, k)) * c.at((k, l)) * d.at((l, m));
    let (out, plan) = explain(|| product().sum((j, k, l)).order((i, m)));
    assert!(out.iter().all(|&value| value == 1000.0 * 10.0 * 1000.0));
    assert_eq!(products(&plan), 3, "{plan}");
    // No 1000 x 1000 matrix is computed.
    assert!(plan.flops() <= 2 * (2 * 10 * 1000 * 10 + 10 * 10 * 10), "{plan}");
}

#[test]
fn a_factor_that_lacks_dims_is_computed_once_not_for_each_pair() {
    let a = Array2::<f32>::ones((20, 30));
    let b = Array2::<f32>::ones((30, 40));
    dims!(i, j, k);
    let (_, plan) = explain(|| (a.at((i, k)).exp() * b.at((k, j))).sum(k));
    let [PlanStep::Elementwise { loops, .. }, PlanStep::Product { .. }] = &plan.steps[..] else {
        panic!("{plan}")
    };
    assert_eq!(loops.bytes, 20 * 30 * 4);
}

#[test]
fn attention_of_a_tensor_to_itself_copies_nothing() {
    dims! {
        struct Seq;
        struct Key;
        struct Head;
        struct Feat;
    }
    let x = ones::<f32, _>((Seq.of(9), Head.of(2), Feat.of(8)));
    let keys = (&x).slice(Head, ..).rename(Seq, Key);
    let (_, plan) = explain(|| attention(&x, keys.clone(), keys, Feat, Key, 0.3, true));
    let [PlanStep::Attention { batch: 2, queries: 9, keys: 9, .. }] = &plan.steps[..] else {
        panic!("{plan}")
    };
}

#[test]
fn attention_written_out_stores_the_scores_once_and_copies_nothing() {
    let x = Array4::<f32>::ones((2, 40, 3, 8));
    // The heads are the last dim of the scores.
    dims!(b, q, k, h, d);
    let (out, plan) = explain(|| {
        let scores = (x.at((b, q, h, d)) * x.at((b, k, h, d))).sum(d) * 0.5;
        (scores.softmax(k) * x.at((b, k, h, d))).sum(k).order((b, q, h, d))
    });
    assert!(out.iter().all(|&value| (value - 1.0).abs() < 1e-6));
    let [
        PlanStep::Product { batch: 6, c: (40, 1), .. },
        PlanStep::Reduce { reduction: "softmax", loops, .. },
        PlanStep::Product { batch: 6, a: (40, 1), .. },
    ] = &plan.steps[..]
    else {
        panic!("{plan}")
    };
    assert_eq!(loops.sizes, [6 * 40, 40]);
}

#[test]
fn a_normalization_with_gain_and_bias_is_one_pass() {
    let (x, gain) = (Array2::<f32>::ones((30, 8)), Array1::<f32>::ones(8));
    dims!(i, j);
    let (_, plan) = explain(|| x.at((i, j)).layer_norm_affine(j, 1e-5, gain.at(j), 0.5).order((i, j)));
    let large: Vec<_> = plan.steps.iter().filter(|step| step.bytes() >= 30 * 8 * 4).collect();
    let [PlanStep::Reduce { reduction: "standardize, gain and bias", .. }] = large[..] else {
        panic!("{plan}")
    };
}

#[test]
fn plans_are_readable() {
    let a = Array2::<f32>::ones((2, 3));
    dims!(i, j);
    let (_, plan) = explain(|| (a.at((i, j)) * 2.0).order((j, i)));
    let place = plan.places[0].expect("the place is known");
    assert_eq!(
        plan.to_string(),
        format!(
            "1. elementwise mul(view, 2.0) (at {}:{}:{})\n   loops [3, 2], operand strides [1, 3]; 24 bytes, 1 thread\n\
             24 bytes written, 0 flops in products",
            place.file(),
            place.line(),
            place.column()
        )
    );
}

#[test]
fn what_is_not_asked_for_is_not_taken_down() {
    let a = Array1::<f32>::ones(3);
    dims!(i);
    let (inner, outer) = explain(|| explain(|| a.at(i).eval()).1);
    assert_eq!(inner.steps.len(), 1);
    assert_eq!(outer.steps.len(), 1);
    let _ = a.at(i).eval();
    assert_eq!(explain(|| ()).1.steps.len(), 0);
}

/// A large computed matrix that is multiplied by a vector is not stored. A stored matrix is used
/// directly, even if the vector is computed.
#[test]
fn a_computed_matrix_is_summed_as_it_is_computed() {
    let (a, b) = (Array2::<f32>::ones((256, 32)), Array2::<f32>::zeros((128, 32)));
    let w = Array1::<f32>::ones(32);
    dims!(i, j, d);
    let (sums, plan) = explain(|| ((a.at((i, d)) - b.at((j, d))).abs() * w.at(d)).sum(d).order((i, j)));
    assert_eq!(sums[[255, 127]], 32.0);
    assert_eq!((products(&plan), plan.steps.len()), (0, 1), "{plan}");
    let m = Array2::<f32>::ones((512, 256));
    let x = Array1::<f32>::zeros(256);
    dims!(i, j);
    let (sums, plan) = explain(|| (m.at((i, j)) * x.at(j).exp()).sum(j).order(i));
    assert_eq!(sums[511], 256.0);
    assert_eq!(plan.steps.len(), 2, "{plan}");
}

/// Expanding a factor along a dim of the other one does not change the product.
#[test]
fn a_broadcast_along_a_dim_is_a_stride_of_zero() {
    let (a, b) =
        (Array2::from_shape_fn((20, 30), |(i, k)| (i + 2 * k) as f32), Array2::<f32>::ones((30, 40)));
    dims!(i, j, k);
    let (x, y) = (a.at((i, k)), b.at((k, j)));
    let (c, plan) = explain(|| (x.expand(j) * y.expand(i)).sum(k).order((i, j)));
    assert!(matches!(plan.steps[..], [PlanStep::Product { m: 20, k: 30, n: 40, .. }]), "{plan}");
    assert_eq!(c, a.dot(&b));
    // The expanded dim is summed, then kept.
    let sums = x.expand(j).sum((j, k)).order(i);
    assert_eq!(sums, a.sum_axis(ndarray::Axis(1)) * 40.0);
    assert_eq!(x.index(k, 3).expand(j).order((j, i)), Array2::from_shape_fn((40, 20), |(_, i)| a[[i, 3]]));
    dims!(n = 3);
    let e = (x.expand(n) * y.expand(n)).sum(k).order((n, i, j));
    assert!(e.outer_iter().all(|c| c == a.dot(&b)));
    assert!(x.try_sum(k).is_ok() && ones::<f32, _>(n).expand(i).order((i, n)).dim() == (20, 3));
}

/// If the order of the dims would interleave the matrices, the result is stored matrix by matrix.
#[test]
fn a_product_with_two_batch_dims_is_one_step_in_the_order_asked_for() {
    for size in [4, 40] {
        let x = Array4::from_shape_fn((2, 3, size, 7), |(a, b, i, k)| (a + 2 * b + 3 * i + k) as f32);
        let w = Array4::from_shape_fn((2, 3, 7, size), |(a, b, k, j)| (3 * a + b + k + 2 * j) as f32);
        dims!(b1, b2, i, j, k);
        let (expected, first) =
            explain(|| (x.at((b1, b2, i, k)) * w.at((b1, b2, k, j))).sum(k).order((b1, b2, i, j)));
        dims!(i, j, k, b1, b2);
        let (found, second) =
            explain(|| (x.at((b1, b2, i, k)) * w.at((b1, b2, k, j))).sum(k).order((b1, b2, i, j)));
        for plan in [first, second] {
            assert!(matches!(plan.steps[..], [PlanStep::Product { batch: 6, .. }]), "{plan}");
        }
        assert_eq!(found, expected);
        let w = w.slice(ndarray::s![0, 0, .., ..]);
        dims!(b1, b2, i, j, k);
        let (expected, first) =
            explain(|| (x.at((b1, b2, i, k)) * w.at((k, j))).sum(k).order((b1, b2, i, j)));
        dims!(j, i, k, b1, b2);
        let (found, second) = explain(|| (x.at((b1, b2, i, k)) * w.at((k, j))).sum(k).order((b1, b2, i, j)));
        for plan in [first, second] {
            assert!(matches!(plan.steps[..], [PlanStep::Product { batch: 1, .. }]), "{plan}");
        }
        assert_eq!(found, expected);
    }
}

#[test]
fn a_result_under_another_name_is_not_copied() {
    dims! {
        struct Seq;
        struct Key;
        struct Feat;
    }
    for size in [3, 300] {
        let array = Array2::<f32>::ones((size, 5));
        let place = array.as_ptr();
        let x = array.into_tensor((Seq, Feat));
        let (y, plan) = explain(|| x.rename(Seq, Key).eval());
        assert!(plan.steps.is_empty(), "{plan}");
        let (z, plan) = explain(|| y.rename(Key, Seq).order((Seq, Feat)));
        assert!(plan.steps.is_empty() && z.as_ptr() == place, "{plan}");
    }
    // A part of a tensor is copied, and so is a tensor in another order.
    let x = from_fn((Seq.of(3), Feat.of(2)), |(s, f)| 2 * s + f);
    let part = x.clone().slice(Seq, 1..);
    let (part, plan) = explain(|| part.eval().order((Seq, Feat)));
    assert_eq!((part, plan.steps.len()), (ndarray::array![[2, 3], [4, 5]], 1), "{plan}");
    let (turned, plan) = explain(|| x.rename(Seq, Key).order((Feat, Key)));
    assert_eq!((turned, plan.steps.len()), (ndarray::array![[0, 2, 4], [1, 3, 5]], 1), "{plan}");
}

#[test]
fn a_product_is_shown_with_its_dims_and_where_it_stands() {
    dims! {
        struct Batch;
        struct Model;
        struct Ffn;
    }
    for (batch, model, ffn) in [(3, 4, 5), (3, 256, 704)] {
        let x = ones::<f32, _>((Batch.of(batch), Model.of(model)));
        let w = ones::<f32, _>((Model.of(model), Ffn.of(ffn)));
        let line = line!() + 1;
        let (_, plan) = explain(|| (&x * &w).sum(Model));
        let text = plan.to_string();
        let start =
            format!("1. (Batch, Model) x (Model, Ffn) -> (Batch, Ffn): {batch} x {model} x {ffn} (at ");
        assert!(text.starts_with(&start), "{text}");
        let place = plan.places[0].expect("the place is known");
        assert_eq!((place.file(), place.line()), (file!(), line));
    }
    let (a, b) = (Array3::<f32>::ones((2, 4, 3)), Array3::<f32>::ones((2, 3, 5)));
    let (_, plan) = explain(|| einsum!("bij,bjk->bik", a, b));
    assert!(
        plan.to_string().starts_with("1. (b, i, j) x (b, j, k) -> (b, i, k): 4 x 3 x 5, 2 times"),
        "{plan}"
    );
}

/// An owned tensor is normalized in place.
#[test]
fn a_softmax_in_place_is_a_step() {
    dims! { struct Row; struct Column; }
    let x = from_fn((Row.of(3), Column.of(4)), |(row, column)| (row * column) as f32);
    let (y, plan) = explain(move || x.softmax(Column));
    assert_eq!(plan.steps.len(), 1, "{plan}");
    assert!(matches!(plan.steps[0], PlanStep::Reduce { reduction: "softmax", count: 4, .. }), "{plan}");
    assert_eq!(y.size(Row), 3);
}

/// Each step has the line of the user's code that caused it, even if the library makes the step in
/// an inner call.
#[test]
fn steps_know_their_lines() {
    let x = Array2::<f32>::ones((30, 40));
    let mut out = Array2::<f32>::zeros((40, 30));
    dims!(i, j);
    let x = x.at((i, j));
    let first = line!() + 2;
    let (_, plan) = explain(|| {
        let y = (x + 1.0).eval();
        let y = (&y * 1.0).softmax(j);
        let _ = y.max(i);
        let _ = (&y - 1.0).abs().sum(j);
        y.order_into(&mut out, (j, i));
    });
    let lines: Vec<_> = plan.places.iter().map(|place| place.map(|place| place.line())).collect();
    assert_eq!(lines, (first..first + 5).map(Some).collect::<Vec<_>>(), "{plan}");
    assert!(plan.places.iter().flatten().all(|place| place.file() == file!()), "{plan}");
}
