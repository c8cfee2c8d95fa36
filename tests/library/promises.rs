//! Promises of the operator library other than its usual results, which `tests/operators` checks:
//! plans, views, sizes, batches, dims that cannot be confused, seeds, and edge cases.

use typed_dims::batch::map_each;
use typed_dims::fallible::*;
use typed_dims::pipeline::plan::explain::{Plan, PlanStep};
use typed_dims::prelude::*;

dims! {
    /// Examples.
    struct Batch;
    /// Input channels.
    struct C;
    /// Output channels.
    struct O;
    /// Rows.
    struct H;
    /// Columns.
    struct W;
    /// Rows in a window.
    struct Kh = 3;
    /// Columns in a window.
    struct Kw = 3;
    /// Rows, with a static size.
    struct Rows = 4;
    /// Columns, with a static size.
    struct Columns = 4;
}

fn count(plan: &Plan, which: impl Fn(&PlanStep) -> bool) -> usize {
    plan.steps.iter().filter(|step| which(step)).count()
}

fn image() -> ndarray::Array4<f32> {
    Array4::from_shape_fn((2, 3, 9, 8), |(n, c, h, w)| ((7 * n + 5 * c + 3 * h + w) % 11) as f32)
}

fn weight() -> ndarray::Array4<f32> {
    Array4::from_shape_fn((4, 3, 3, 3), |(o, c, h, w)| ((5 * o + 3 * c + 2 * h + w) % 7) as f32 - 3.0)
}

mod plans {
    use super::*;

    #[test]
    fn a_convolution_without_padding_copies_no_input() {
        let (x, w) = (image(), weight());
        let (x, w) = (x.at((Batch, C, H, W)), w.at((O, C, Kh, Kw)));
        let (y, plan) = explain(|| conv(x, w, C, (H, W), (Kh, Kw), &Window::new()));
        assert_eq!(count(&plan, |step| matches!(step, PlanStep::Product { .. })), 1, "{plan}");
        // The overlapping windows are not written, only the result and at most the weight.
        let windows = 2 * 3 * 7 * 6 * 9 * size_of::<f32>();
        assert!(plan.bytes() < windows, "{plan}");
        assert_eq!(y.dims(), [("Batch", 2), ("O", 4), ("H", 7), ("W", 6)]);
    }

    #[test]
    fn a_convolution_equals_its_loops() {
        dims!(b, c, o, h, w, kh, kw);
        let (x, k) = (image(), weight());
        let k = k.at((o, c, kh, kw));
        let loops = (x.at((b, c, h + kh, w + kw)) * k).sum((c, kh, kw)).order((b, o, h, w));
        let (x, k) = (x.at((Batch, C, H, W)), k.rename(o, O).rename(c, C).rename(kh, Kh).rename(kw, Kw));
        assert_eq!(conv(x, k, C, (H, W), (Kh, Kw), &Window::new()).order((Batch, O, H, W)), loops);
    }

    #[test]
    fn pooling_is_one_pass_over_windows() {
        let x = image();
        let x = x.at((Batch, C, H, W));
        let (_, plan) = explain(|| (x * 2.0).max_pool((H, W), 2, &Window::new().stride(2)));
        assert_eq!(plan.steps.len(), 1, "{plan}");
        assert!(matches!(plan.steps[0], PlanStep::Reduce { count: 4, .. }), "{plan}");
    }

    #[test]
    fn selecting_fuses_with_what_follows() {
        let table = Array2::from_shape_fn((5, 3), |(v, d)| (10 * v + d) as f32);
        let ids = ndarray::array![[4usize, 0], [1, 1]];
        dims!(v, d, i, j);
        let (bags, plan) = explain(|| (table.at((v, d)).take(v, ids.at((i, j))) * 2.0).sum(j).order((d, i)));
        assert_eq!(bags, ndarray::array![[80.0, 40.0], [84.0, 44.0], [88.0, 48.0]]);
        assert_eq!(plan.steps.len(), 1, "{plan}");
        assert!(plan.to_string().contains("take(v, view)"), "{plan}");
    }

    #[test]
    fn a_loss_is_one_pass_after_the_softmax() {
        let x = Array2::from_shape_fn((6, 4), |(i, c)| (i + c) as f32);
        let labels = ndarray::array![0u8, 1, 2, 3, 0, 1];
        dims!(i, c);
        let (loss, plan) = explain(|| x.at((i, c)).cross_entropy(c, labels.at(i)).mean(i).order(()));
        assert!((loss - 2.2735).abs() < 1e-3, "{loss}");
        assert_eq!(plan.steps.len(), 2, "{plan}");
    }
}

mod views {
    use super::*;

    #[test]
    fn of_views_go_into_products_as_they_are() {
        let (x, y) = (image(), Array2::from_shape_fn((7, 2), |(h, o)| (h + 2 * o) as f32));
        let whole = x.at((Batch, C, H, W));
        let view = whole.slice(H, 1..).slice(H, 1..).flip(H).index(C, 1);
        let (product, plan) = explain(|| view.dot(y.at((H, O)), H).order((Batch, O, W)));
        let expected = Array3::from_shape_fn((2, 2, 8), |(n, o, w)| {
            (0..7).map(|h| x[[n, 1, 8 - h, w]] * y[[h, o]]).sum::<f32>()
        });
        assert_eq!(product, expected);
        assert_eq!(
            count(&plan, |step| matches!(step, PlanStep::Elementwise { .. } | PlanStep::Copy { .. })),
            0,
            "{plan}"
        );
    }

    #[test]
    fn windows_of_an_expression_are_not_stored() {
        let x = ndarray::array![1.0f32, -2.0, 3.0, -4.0, 5.0];
        dims!(i);
        dims!(w = 3);
        let (means, plan) = explain(|| x.at(i).abs().unfold(i, w, 1, 1).mean(w).order(i));
        assert_eq!(means, ndarray::array![2.0, 3.0, 4.0]);
        assert_eq!(plan.steps.len(), 1, "{plan}");
    }

    #[test]
    fn windows_in_a_batch_have_dims_of_their_own() {
        #[batched]
        fn pooled(x: Tensor<f32, (H,)>) -> Tensor<f32, (H,)> {
            x.max_pool(H, 2, &Window::new())
        }
        let x = Array2::from_shape_fn((3, 4), |(i, h)| ((5 * i + 3 * h) % 7) as f32);
        dims!(i);
        let expected = Array2::from_shape_fn((3, 3), |(i, h)| x[[i, h]].max(x[[i, h + 1]]));
        assert_eq!(pooled(x.at((i, H))).order((i, H)), expected);
    }
}

mod sizes {
    use super::*;

    #[test]
    fn static_sizes_stay() {
        let x = Array2::from_shape_fn((4, 4), |(i, j)| (i * j) as f32).into_tensor((Rows, Columns));
        let same: Tensor<f32, (Rows, Columns)> =
            conv(&x, &ones::<f32, _>((Kh, Kw)), (), (Rows, Columns), (Kh, Kw), &Window::new().padding(1));
        assert_eq!(same.dims(), [("Rows", 4), ("Columns", 4)]);
        let lost = try_conv(&x, &ones::<f32, _>((Kh, Kw)), (), (Rows, Columns), (Kh, Kw), &Window::new());
        assert!(
            lost.expect_err("two rows are lost").to_string().starts_with("dim `Rows` has the static size 4")
        );
    }

    #[test]
    #[allow(clippy::reversed_empty_ranges)] // a negative end counts from the end
    fn a_part_of_a_dim_with_a_static_size_is_a_new_dim() {
        dims! { struct Pair = 2; struct Part; }
        let a = Array2::from_shape_fn((4, 4), |(i, j)| (4 * i + j) as f32);
        let x = a.clone().into_tensor((Rows, Columns));
        let middle: Tensor<f32, (Pair, Columns)> = (&x).slice_to(Rows, 1..-1, Pair).eval();
        assert_eq!(middle.order((Pair, Columns)), a.slice(ndarray::s![1..3, ..]));
        // The part is lazy, can have any size, and may keep the original dim.
        assert_eq!((&x).slice_to(Rows, 3.., Part).size(Part), 1);
        assert_eq!(
            (&x).slice_to(Rows, 2.., Part).slice(Part, 1..).order((Part, Columns)),
            a.slice(ndarray::s![3.., ..])
        );
        assert_eq!((&x).slice_to(Rows, .., Rows).order((Rows, Columns)), a);
        let error = (&x).try_slice_to(Rows, 1.., Pair).map(|_| ()).unwrap_err().to_string();
        assert_eq!(error, "dim `Pair` has the static size 2, but was given size 3");
        assert!((&x).try_slice_to(Rows, ..5, Part).is_err());
        assert!((&x).try_slice_to(Rows, ..2, Part.of(3)).is_err());
        // Operations without a variant for a new dim need a dim without a static size.
        let sides: Tensor<f32, (Pair, Part)> = middle_columns(&x).rename(Rows, Part).repeat(Part, 2).eval();
        assert_eq!(sides.size(Part), 8);

        fn middle_columns(x: &Tensor<f32, (Rows, Columns)>) -> Tensor<f32, (Rows, Pair)> {
            x.slice_to(Columns, 1..3, Pair).eval()
        }
    }

    #[test]
    fn what_cannot_be_counted_is_refused() {
        let x = Array1::<f64>::zeros(3);
        dims!(i);
        let x = x.at(i);
        assert!(matches!(x.try_repeat(i, usize::MAX), Err(DimError::TooLarge { .. })));
        assert!(matches!(x.try_repeat(i, isize::MAX as usize / 16), Err(DimError::TooLarge { .. })));
        assert!(matches!(x.try_pad(i, usize::MAX, 1, Pad::Constant(0.0)), Err(DimError::TooLarge { .. })));
        assert!(matches!(x.try_pad(i, 1, usize::MAX - 5, Pad::Circular), Err(DimError::TooLarge { .. })));
        assert!(x.try_max_pool(i, 2, &Window::new().padding(usize::MAX)).is_err());
        assert!(x.try_max_pool(i, usize::MAX, &Window::new()).is_err());
        assert!(x.try_max_pool(i, 2, &Window::new().dilation(usize::MAX)).is_err());
        assert_eq!(x.max_pool(i, 1, &Window::new().stride(usize::MAX)).order(i).len(), 1);
        assert!(x.try_adaptive_avg_pool(i, usize::MAX).is_err());
        assert_eq!(x.roll(i, isize::MIN).order(i).len(), 3);
        assert_eq!(x.shift(i, isize::MIN, 1.0).order(i), ndarray::array![1.0, 1.0, 1.0]);
        assert!(x.try_scatter_add(i, H.of(usize::MAX), i).is_err());
    }

    #[test]
    fn not_a_number_is_last_and_once() {
        let x = ndarray::array![f32::NAN, 1.0, f32::NAN, -1.0];
        dims!(i);
        let x = x.at(i);
        assert_eq!(x.argsort(i).order(i), ndarray::array![3, 1, 0, 2]);
        assert_eq!(x.topk(i, 1).1.order(i), ndarray::array![0]);
        assert!(x.median(i).order(()).is_nan());
        assert!(x.cummax(i).index(i, 3).order(()).is_nan());
        dims!(n);
        let unique = x.unique(i, n);
        assert_eq!(unique.counts.order(n), ndarray::array![1, 1, 2]);
        assert_eq!(unique.inverse.order(i), ndarray::array![2, 1, 2, 0]);
    }
}

mod batches {
    use super::*;

    dims! {
        struct Class;
        struct Feat;
    }

    #[batched]
    fn block(x: Tensor<f32, (C, H, W)>, weight: &Tensor<f32, (O, C, Kh, Kw)>) -> Tensor<f32, (O, H, W)> {
        let x = conv(x, weight, C, (H, W), (Kh, Kw), &Window::new().padding(1));
        let x = x.group_norm(O, 2, (H, W), 1e-3).relu();
        x.max_pool((H, W), 2, &Window::new().stride(2)).flip(H).roll(W, 1)
    }

    #[batched]
    fn loss(
        x: Tensor<f32, (Feat,)>,
        weight: &Tensor<f32, (Feat, Class)>,
        label: Tensor<usize, ()>,
    ) -> Tensor<f32, ()> {
        x.layer_norm(Feat, 1e-3).dot(weight, Feat).cross_entropy(Class, label)
    }

    #[batched]
    fn ranked(x: Tensor<f32, (Feat,)>) -> Tensor<f32, (Feat,)> {
        let order = x.argsort(Feat);
        x.take(Feat, order).cumprod(Feat)
            + x.median(Feat)
            + x.sort_descending(Feat).pad(Feat, 0, 0, Pad::Circular)
    }

    #[test]
    fn functions_made_of_the_library_take_further_dims() {
        dims!(m);
        let (x, w) = (image(), weight().into_tensor((O, C, Kh, Kw)));
        let all = block(x.at((Batch, C, H, W)), &w).order((Batch, O, H, W));
        for n in 0..2 {
            assert_eq!(block(x.at((n, C, H, W)), &w).order((O, H, W)), all.index_axis(ndarray::Axis(0), n));
        }
        let x = Array3::from_shape_fn((2, 3, 5), |(n, m, f)| ((3 * n + 5 * m + 7 * f) % 11) as f32);
        let weight = from_fn((Feat.of(5), Class.of(4)), |(f, c)| (f as f32 - c as f32) / 4.0);
        let labels = ndarray::array![[0usize, 1, 2], [3, 0, 1]];
        let losses = loss(x.at((Batch, m, Feat)), &weight, labels.at((Batch, m))).order((Batch, m));
        let ranks = ranked(x.at((Batch, m, Feat))).order((Batch, m, Feat));
        for n in 0..2 {
            for m in 0..3 {
                let one = loss(x.at((n, m, Feat)), &weight, labels.at((n, m))).order(());
                assert!((one - losses[[n, m]]).abs() < 1e-6);
                let one = ranked(x.at((n, m, Feat))).order(Feat);
                assert_eq!(one, ranks.slice(ndarray::s![n, m, ..]));
            }
        }
    }

    #[test]
    fn a_convolution_of_a_batch_is_one_contraction() {
        let (x, w) = (image(), weight().into_tensor((O, C, Kh, Kw)));
        let (_, plan) = explain(|| block(x.at((Batch, C, H, W)), &w));
        assert_eq!(count(&plan, |step| matches!(step, PlanStep::Product { .. })), 1, "{plan}");
    }
}

mod dynamic {
    use super::*;

    #[test]
    fn a_selection_has_a_new_dim() {
        let x = ndarray::array![3.0f32, -1.0, 4.0, -1.0, 5.0];
        dims!(i, n, m);
        let x = x.at(i);
        let (of_positive, of_negative) = (x.masked_select(x.gt(0.0), i, n), x.masked_select(x.lt(0.0), i, m));
        assert_eq!((n.size(), m.size()), (3, 2));
        // All pairs, not elements at equal positions.
        assert_eq!((of_positive * of_negative).order((n, m)).shape(), [3, 2]);
    }

    #[test]
    fn a_dim_is_new_once() {
        let x = ndarray::array![true, false];
        dims!(i, n);
        assert_eq!(x.at(i).nonzero(i, n).order(n), ndarray::array![0]);
        assert!(x.at(i).try_nonzero(i, n).is_err());
    }

    #[test]
    fn rows_are_selected_as_a_whole() {
        let x = ndarray::array![[1, 2], [3, 4], [5, 6]];
        dims!(i, j, n);
        let rows = x.at((i, j)).masked_select(x.at((i, j)).max(j).ge(4), i, n);
        assert_eq!(rows.order((n, j)), ndarray::array![[3, 4], [5, 6]]);
    }
}

mod seeds {
    use super::*;

    #[test]
    fn the_same_on_every_number_of_threads() {
        let x = &ones::<f32, _>((H.of(1000), W.of(300)));
        let dropped = x.dropout(0.25, 3).order((H, W));
        let kept = dropped.iter().filter(|&&x| x != 0.0).count();
        assert!((kept as f64 / 300_000.0 - 0.75).abs() < 0.005, "{kept}");
        assert!(dropped.iter().all(|&x| x == 0.0 || (x - 4.0 / 3.0).abs() < 1e-6));
        let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread can be started");
        assert_eq!(one.install(|| x.dropout(0.25, 3).order((H, W))), dropped);
        assert_ne!(x.dropout(0.25, 4).order((H, W)), dropped);
    }

    #[test]
    fn normal_numbers_have_their_moments() {
        let x = &randn::<f64, _>(H.of(100_000), 1);
        let (mean, var) = (x.mean(H).order(()), x.var(H).order(()));
        assert!(mean.abs() < 0.01 && (var - 1.0).abs() < 0.02, "mean {mean}, variance {var}");
    }
}

mod edges {
    use super::*;

    /// The result of a softmax over two dims that are not adjacent has a layout in which the last
    /// dim is not the innermost.
    #[test]
    fn lines_of_a_result_in_another_layout() {
        let image = image();
        let shares = image.at((Batch, C, H, W)).softmax((Batch, H)).eval();
        let copy = (&shares).order((Batch, C, H, W));
        let expected = copy.at((Batch, C, H, W)).layer_norm(W, 1e-6).order((Batch, C, H, W));
        let again = image.at((Batch, C, H, W)).softmax((Batch, H));
        assert_eq!(again.layer_norm(W, 1e-6).order((Batch, C, H, W)), expected);
    }

    #[test]
    fn triangles_beyond_all_indices_are_whole_or_empty() {
        let x = ndarray::array![[1, 2], [3, 4]];
        let nothing = ndarray::array![[0, 0], [0, 0]];
        dims!(i, j);
        let m = x.at((i, j));
        assert_eq!(m.tril(i, j, isize::MAX).order((i, j)), x);
        assert_eq!(m.tril(i, j, isize::MIN).order((i, j)), nothing);
        assert_eq!(m.triu(i, j, isize::MAX).order((i, j)), nothing);
        assert_eq!(m.triu(i, j, isize::MIN).order((i, j)), x);
    }

    /// Padding of a transposed convolution drops positions at the start and at the end.
    #[test]
    fn padding_by_side_of_a_transposed_convolution() {
        let (x, k) = (ndarray::array![1, 2, 4, 8], ndarray::array![1, 10, 100]);
        dims!(kh);
        let found =
            |steps: Window| conv_transpose(x.at(H), k.at(kh), (), H, kh, &steps.stride(2)).order(H).to_vec();
        let all = found(Window::new());
        for (front, behind) in [(0, 1), (1, 0), (2, 1), (1, 3)] {
            let some = found(Window::new().padding_sides(front, behind));
            assert_eq!(some, all[front..all.len() - behind], "{front} {behind}");
        }
    }

    /// Each element adds its product with the kernel, starting at its position times the stride.
    /// Padding removes positions, and `extra` appends some.
    #[test]
    fn transposed_convolutions_are_the_loops() {
        for (own, len, front, behind, stride, dilation) in ndarray::indices((5, 4, 4, 4, 4, 4)) {
            if own * len * stride * dilation == 0 {
                continue;
            }
            let extra = (own + len) % 2;
            dims!(kh);
            let x = Array1::from_shape_fn(own, |at| at as i64 * 7 - 3);
            let k = Array1::from_shape_fn(len, |at| 10_i64.pow(at as u32));
            let span = (own - 1) * stride + (len - 1) * dilation + 1 + extra;
            let mut expected = vec![0; span];
            for (at, &x) in x.iter().enumerate() {
                for (tap, &k) in k.iter().enumerate() {
                    expected[at * stride + tap * dilation] += x * k;
                }
            }
            let expected = (front + behind < span).then(|| expected[front..span - behind].to_vec());
            let steps = Window::new().padding_sides(front, behind).stride(stride).dilation(dilation);
            let found =
                try_conv_transpose(x.at(H), k.at(kh), (), H, kh, &steps.clone().output_padding(extra));
            let found = found.ok().map(|found| found.order(H).to_vec());
            assert_eq!(found, expected, "{own} {len} {steps:?} {extra}");
        }
    }

    #[test]
    fn greatest_elements_of_windows_with_unequal_sides() {
        let x =
            ndarray::Array3::from_shape_fn((2, 5, 4), |(c, h, w)| (31 * h + 17 * w + 5 * c) as i32 % 23 - 20);
        dims!(c);
        let steps = Window::new().padding_sides((1, 0), (0, 1)).stride((2, 1)).dilation((1, 2));
        let found = x.at((c, H, W)).max_pool((H, W), (3, 2), &steps).order((c, H, W));
        let expected = ndarray::Array3::from_shape_fn((2, 2, 3), |(c, h, w)| {
            let places = ndarray::indices((3, 2)).into_iter().map(|(kh, kw)| (2 * h + kh, w + 2 * kw));
            let inside = places.filter_map(|(h, w)| x.get([c, h.wrapping_sub(1), w]));
            *inside.max().expect("the window has an element")
        });
        assert_eq!(found, expected);
        // A window that contains only padding is an error.
        let one = ndarray::array![7i32];
        for (front, behind) in [(2, 0), (0, 2), (2, 1)] {
            let apart = Window::new().padding_sides(front, behind).dilation(3);
            let found = one.at(H).try_max_pool(H, 2, &apart);
            let widths = (1 + front + behind).saturating_sub(3);
            let holds = (0..widths).all(|start| [start, start + 3].contains(&front));
            assert_eq!(found.is_ok(), holds && widths > 0, "{front} {behind}: {found:?}");
        }
    }

    #[test]
    fn padding_that_cannot_be_counted_is_refused() {
        let (x, k) = (Array1::<f32>::zeros(3), Array1::<f32>::zeros(3));
        dims!(kh);
        let window = Window::new().padding(usize::MAX);
        let found = try_conv_transpose(x.at(H), k.at(kh), (), H, kh, &window);
        assert!(matches!(found, Err(DimError::Shape { .. })));
        let none = Array1::<f32>::zeros(0);
        assert!(matches!(none.at(H).try_pad(H, usize::MAX, 1, Pad::Reflect), Err(DimError::Shape { .. })));
    }

    #[test]
    fn a_window_of_only_padding_has_no_maximum() {
        let (one, none) = (ndarray::array![7i32], Array1::<i32>::zeros(0));
        let apart = Window::new().padding(2).dilation(3);
        let error =
            one.at(H).try_max_pool(H, 2, &apart).expect_err("the window covers places 0 and 3, not 2");
        assert_eq!(
            error.to_string(),
            "windows along dim `H` = 1: a window of 2 elements, 3 apart, would contain only padding (2)"
        );
        assert!(none.at(H).try_max_pool(H, 2, &Window::new().padding(1)).is_err());
        for (own, len, front, behind, stride, dilation) in ndarray::indices((5, 4, 4, 4, 4, 5)) {
            if len * stride * dilation == 0 || front.max(behind) > ((len - 1) * dilation).div_ceil(2) {
                continue;
            }
            let x = Array1::from_shape_fn(own, |at| at as i32 - 9);
            let steps = Window::new().padding_sides(front, behind).stride(stride).dilation(dilation);
            let span = (len - 1) * dilation + 1;
            let expected: Option<Vec<i32>> = (0..(own + front + behind + 1).saturating_sub(span))
                .step_by(stride)
                .map(|start| {
                    let places = (0..len).map(|k| (start + k * dilation).wrapping_sub(front));
                    places.filter_map(|at| x.get(at).copied()).max()
                })
                .collect();
            let found = x.at(H).try_max_pool(H, len, &steps).ok().map(|found| found.order(H).to_vec());
            assert_eq!(found, expected.filter(|all| !all.is_empty()), "{own} {len} {steps:?}");
        }
        // A mean counts padding as zeros.
        assert_eq!(ndarray::array![6.0].at(H).avg_pool(H, 2, &apart).order(H), ndarray::array![0.0, 0.0]);
    }

    #[test]
    fn between_equal_or_distant_elements_there_is_no_overflow() {
        dims!(i);
        let median = |x: [f64; 2]| x.at(i).median(i).order(());
        assert_eq!(median([f64::INFINITY; 2]), f64::INFINITY);
        assert_eq!(median([f64::NEG_INFINITY; 2]), f64::NEG_INFINITY);
        assert_eq!(median([f64::NEG_INFINITY, 1.0]), f64::NEG_INFINITY);
        assert_eq!(median([f64::MAX, f64::MIN]), 0.0);
        let upper = [f64::MIN, f64::MAX].at(i).quantile(i, 0.75).order(());
        assert!((upper / f64::MAX - 0.5).abs() < 1e-12, "{upper}");
    }

    #[test]
    fn numbers_between_ends_that_are_far_apart() {
        let found = linspace(H.of(3), f64::MIN, f64::MAX).order(H);
        assert_eq!(found, ndarray::array![f64::MIN, 0.0, f64::MAX]);
        assert_eq!(linspace(H.of(1), f64::MIN, f64::MAX).order(H), ndarray::array![f64::MIN]);
    }

    #[test]
    fn one_seed_is_not_one_stream() {
        let drawn = rand::<f64, _>(H.of(1000), 5).order(H);
        let dropped = Array1::<f64>::ones(1000).at(H).dropout(0.5, 5).order(H);
        // About half of the dropped elements have a drawn number below one half, not all of them.
        let both = drawn.iter().zip(&dropped).filter(|&(&drawn, &kept)| drawn < 0.5 && kept == 0.0).count();
        assert!((200..300).contains(&both), "{both}");
    }

    #[test]
    fn a_smooth_loss_without_a_smooth_part_is_a_distance() {
        dims!(i);
        let (x, y) = ([1.0f32, 2.0, 3.0], [1.0f32, 4.0, 2.5]);
        assert_eq!(x.at(i).smooth_l1_loss(y.at(i), 0.0).order(i), ndarray::array![0.0, 2.0, 0.5]);
    }

    /// Half precision cannot count past 2048, and its greatest number is 65504.
    #[cfg(feature = "half")]
    #[test]
    fn half_precision_runs_in_single_precision() {
        use half::f16;
        let of = f16::from_f32;
        let ones = Array2::from_elem((4096, 2), of(1.0));
        let x = ones.at((H, W));
        for last in [x.cumsum(H).index(H, 4095), x.order((W, H)).at((W, H)).cumsum(H).index(H, 4095)] {
            assert_eq!(last.order(W), ndarray::array![of(4096.0), of(4096.0)]);
        }
        assert_eq!(x.adaptive_avg_pool(H, 1).index(H, 0).order(W), ndarray::array![of(1.0), of(1.0)]);
        let near = x.logcumsumexp(H).index(H, 4095).index(W, 0).order(()).to_f64();
        assert!((near - (1.0 + 4096f64.ln())).abs() < 0.01, "{near}");
        let growing = Array1::from_elem(512, of(1.005)).at(H).cumprod(H).index(H, 511).order(()).to_f64();
        let exact = of(1.005).to_f64().powi(512);
        assert!((growing / exact - 1.0).abs() < 0.001, "{growing} {exact}");
    }

    #[cfg(feature = "half")]
    #[test]
    fn half_precision_counts_in_single_precision() {
        use half::f16;
        let of = f16::from_f32;
        let steps = arange(H.of(70_000), of(0.0), of(0.5)).order(H);
        assert_eq!(steps[69_998], of(34_999.0));
        let line = linspace(H.of(70_001), of(0.0), of(7.0)).order(H);
        assert_eq!((line[0], line[30_000], line[70_000]), (of(0.0), of(3.0), of(7.0)));
    }

    /// Half precision cannot count past 2048.
    #[cfg(feature = "half")]
    #[test]
    fn what_is_scattered_in_half_precision_is_added_in_single_precision() {
        use half::f16;
        let of = f16::from_f32;
        let (ones, places) = (Array1::from_elem(4096, of(1.0)), Array1::from_elem(4096, 1u8));
        let sums = ones.at(H).scatter_add(H, W.of(2), places.at(H)).order(W);
        assert_eq!(sums, ndarray::array![of(0.0), of(4096.0)]);
    }

    /// Formulas of several steps are computed in single precision, and rounded once.
    #[cfg(feature = "half")]
    #[test]
    fn formulas_in_half_precision_are_rounded_once() {
        use half::{bf16, f16};
        dims!(i);
        let all: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).filter(|x| x.to_f32().abs() < 20.0).collect();
        let wide: Vec<f32> = all.iter().map(|x| x.to_f32()).collect();
        let once = |found: Array1<f16>, exact: Array1<f32>| {
            assert!(found.iter().zip(&exact).all(|(a, b)| *a == f16::from_f32(*b)));
        };
        once(all.at(i).silu().order(i), wide.at(i).silu().order(i));
        once(all.at(i).gelu().order(i), wide.at(i).gelu().order(i));
        once(all.at(i).sinc().order(i), wide.at(i).sinc().order(i));
        once(all.at(i).powi(3).order(i), wide.at(i).powi(3).order(i));
        let (a, b) = (bf16::from_f32(3.0), bf16::from_f32(5.0));
        let third = bf16::from_f32(1.0 / 3.0);
        dims!(j);
        let found = [a].at(j).lerp([b].at(j), third).order(j)[0];
        assert_eq!(found, bf16::from_f32(3.0 + 2.0 * third.to_f32()));
    }

    /// The last element along the dim wins. Along two dims, the order of the list decides which
    /// element is last, not the order of the names.
    #[test]
    fn the_last_one_that_is_scattered_stays() {
        dims! {
            struct Early;
            struct Late;
        }
        let x = Array2::from_shape_fn((3, 4), |(i, j)| 4 * i + j);
        let one = |at: Array1<usize>| at[0];
        let zero = Array2::<usize>::zeros((3, 4));
        for _ in 0..2 {
            dims!(late, early);
            let (value, place) = (x.at((early, late)), zero.at((early, late)));
            assert_eq!(one(value.scatter((early, late), H.of(1), place, 99).order(H)), 11);
            assert_eq!(one(value.scatter((late, early), H.of(1), place, 99).order(H)), 11);
        }
        // All elements but the last go to one position. The element that stays shows the order.
        let place = Array2::from_shape_fn((3, 4), |(i, j)| usize::from(i == 2 && j == 3));
        let (value, place) = (x.at((Early, Late)), place.at((Early, Late)));
        assert_eq!(value.scatter((Early, Late), H.of(2), place, 99).order(H), ndarray::array![10, 11]);
        assert_eq!(value.scatter((Late, Early), H.of(2), place, 99).order(H), ndarray::array![7, 11]);
        let turned = x.at((Late, Early)); // `Late` has 3 positions now
        let place = Array2::from_shape_fn((3, 4), |(i, j)| usize::from(i == 2 && j == 3));
        let place = place.at((Late, Early));
        assert_eq!(turned.scatter((Late, Early), H.of(2), place, 99).order(H), ndarray::array![10, 11]);
        assert_eq!(turned.scatter((Early, Late), H.of(2), place, 99).order(H), ndarray::array![7, 11]);
    }

    /// Near 1e8, a mean in single precision is a multiple of 8.
    #[test]
    fn numbers_that_are_large_compared_with_their_deviation() {
        let small = Array2::from_shape_fn((2, 1000), |(n, i)| ((i * (7 + n)) % 13) as f32 * 8.0);
        let large = small.mapv(|x| 1e8 + x);
        let exact = |row: usize| {
            let line: Vec<f64> = small.row(row).iter().map(|&x| f64::from(x)).collect();
            let mean = line.iter().sum::<f64>() / 1000.0;
            let var = line.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / 1000.0;
            line.into_iter().map(move |x| (x - mean) / (var + 1e-5).sqrt())
        };
        let found = [
            large.at((H, W)).layer_norm(W, 1e-5).order((H, W)),
            large.at((H, W)).batch_norm(W, 1e-5).output.order((H, W)),
        ];
        for found in found {
            for row in 0..2 {
                assert!(found.row(row).iter().zip(exact(row)).all(|(&a, b)| (f64::from(a) - b).abs() < 1e-5));
            }
        }
    }

    #[test]
    fn inverse_hyperbolic_functions_of_the_greatest_numbers() {
        dims!(i);
        for x in [f32::MAX, 0.7 * f32::MAX, 1e20] {
            let exact = (f64::from(x).ln() + std::f64::consts::LN_2) as f32;
            assert!(([x].at(i).asinh().order(i)[0] - exact).abs() < 1e-5);
            assert!(([-x].at(i).asinh().order(i)[0] + exact).abs() < 1e-5);
            assert!(([x].at(i).acosh().order(i)[0] - exact).abs() < 1e-5);
        }
        assert_eq!([f64::MAX].at(i).asinh().order(i)[0], f64::MAX.ln() + std::f64::consts::LN_2);
        assert_eq!([f32::INFINITY].at(i).acosh().order(i)[0], f32::INFINITY);
        assert!([f32::NAN].at(i).asinh().order(i)[0].is_nan());
    }

    /// The panic of an integer division by 0 names the operation. Elements that a condition
    /// excludes are not divided.
    #[test]
    fn integers_divided_by_zero() {
        fn message(run: impl FnOnce()) -> String {
            let payload =
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).expect_err("there is no value");
            payload.downcast_ref::<String>().expect("the message is text").clone()
        }
        dims!(i);
        let (a, b) = ([6i32, 7, i32::MIN], [2i32, 0, -1]);
        assert!(message(|| drop((a.at(i) / b.at(i)).order(i))).starts_with("`/` of integers has no value"));
        assert!(message(|| drop((a.at(i) % b.at(i)).sum(i))).starts_with("`%` of integers has no value"));
        assert!(message(|| drop(a.at(i).floor_div(b.at(i)).order(i))).starts_with("`floor_div` of integers"));
        assert!(message(|| drop(a.at(i).remainder(b.at(i)).order(i))).starts_with("`remainder` of integers"));
        let found = select(b.at(i).ne(0), a.at(i) / b.at(i), -1).order(i);
        assert_eq!(found, ndarray::array![3, -1, i32::MIN]);
        // On several threads too.
        let many = Array1::from_elem(1 << 20, 1i32);
        dims!(j);
        assert!(
            message(move || drop((many.at(j) / (many.at(j) - 1)).order(j))).starts_with("`/` of integers")
        );
    }

    /// Constructors return an error if the result does not fit into memory.
    #[test]
    fn constructors_without_memory() {
        let huge = (H.of(usize::MAX / 2), W.of(usize::MAX / 2));
        assert!(try_zeros::<f32, _>(huge).is_err());
        assert!(try_ones::<f32, _>(huge).is_err());
        assert!(try_full(huge, 1u8).is_err());
        assert!(try_eye::<f32, _, _>(huge.0, huge.1).is_err());
        assert!(try_tri::<f32, _, _>(huge.0, huge.1, 0).is_err());
        assert!(try_arange(H.of(usize::MAX / 2), 0.0f64, 1.0).is_err());
        assert!(try_linspace(H.of(usize::MAX / 2), 0.0f64, 1.0).is_err());
        assert!(try_rand::<f32, _>(huge, 1).is_err());
        assert!(try_randn::<f32, _>(huge, 1).is_err());
        let x = ndarray::array![1.0f32, 3.0, 2.0];
        assert_eq!(x.at(H).try_sort_descending(H).unwrap().order(H), ndarray::array![3.0, 2.0, 1.0]);
        assert_eq!(x.at(H).try_argsort_descending(H).unwrap().order(H), ndarray::array![1, 2, 0]);
    }

    /// Each example draws different numbers, and the same seed draws them again. All examples can
    /// share one mask.
    #[test]
    fn dropout_draws_different_numbers_along_further_dims() {
        #[batched]
        fn dropped(x: &Tensor<f32, (H,)>) -> Tensor<f32, (H,)> {
            x.dropout(0.25, 7)
        }
        #[batched]
        fn alike(x: &Tensor<f32, (H,)>) -> Tensor<f32, (H,)> {
            x * ones::<f32, _>(H.of(x.size(H))).dropout(0.25, 7)
        }
        let x = Array2::<f32>::ones((50, 400));
        dims!(n);
        let found = dropped(x.at((n, H))).order((n, H));
        assert_eq!(found, dropped(x.at((n, H))).order((n, H)));
        assert!(found.iter().all(|&x| x == 0.0 || x == 1.0 / 0.75));
        let share = found.iter().filter(|&&x| x == 0.0).count() as f64 / found.len() as f64;
        assert!((share - 0.25).abs() < 0.02, "{share}");
        for a in 0..50 {
            for b in 0..a {
                let both = (0..400).filter(|&i| found[[a, i]] == 0.0 && found[[b, i]] == 0.0).count();
                assert!(both < 60, "examples {a} and {b} have {both} zeros in common");
            }
        }
        let found = alike(x.at((n, H))).order((n, H));
        assert!(found.rows().into_iter().all(|row| row == found.row(0)));
    }

    /// If the size of a result depends on the elements of an example, rustc refuses extra dims. The
    /// closure of `map_each` creates a dim for each example.
    #[test]
    fn dynamic_sizes_for_each_example() {
        #[batched]
        fn different(x: &Tensor<i32, (H,)>) -> Tensor<usize, ()> {
            map_each(x, |x| {
                dims!(n);
                let found = x.unique(H, n);
                full((), found.values.size(n))
            })
        }
        let x = ndarray::array![[1, 1, 1], [1, 2, 1], [3, 2, 1]];
        assert_eq!(different(x.at((Batch, H))).order(Batch), ndarray::array![1, 2, 3]);
    }

    #[test]
    fn chunks_are_used_up_early() {
        let x = ndarray::array![0, 1, 2, 3, 4, 5];
        let pieces = x.at(H).chunk(H, 4);
        assert_eq!(pieces.iter().map(|piece| piece.size(H)).collect::<Vec<_>>(), [2, 2, 2]);
    }

    #[test]
    fn results_of_several_tensors_outlive_their_inputs() {
        dims!(n);
        let (norm, unique) = {
            let x = ndarray::array![[1.0f32, 2.0], [3.0, 2.0]];
            (x.at((Batch, C)).batch_norm(Batch, 1e-5), x.at((Batch, C)).unique((Batch, C), n))
        };
        assert_eq!(norm.mean.order(C), ndarray::array![2.0, 2.0]);
        assert_eq!(norm.var.order(C), ndarray::array![1.0, 0.0]);
        assert_eq!(unique.values.order(n), ndarray::array![1.0, 2.0, 3.0]);
        assert_eq!(unique.inverse.order((Batch, C)), ndarray::array![[0, 1], [2, 1]]);
    }
}
