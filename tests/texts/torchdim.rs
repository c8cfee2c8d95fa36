//! The code of torchdim's README, and related idioms.

use ndarray::{Array3, Axis, array, concatenate, s};
use typed_dims::fallible::try_concat_to;
use typed_dims::operators::join::concat_to;
use typed_dims::prelude::*;

/// 0, 1, 2, .. in row-major order.
fn counting<D: ndarray::Dimension>(shape: impl ndarray::ShapeBuilder<Dim = D>) -> Array<f32, D> {
    let mut next = -1.0;
    Array::from_shape_simple_fn(shape, || {
        next += 1.0;
        next
    })
}

fn mm(a: &Array2<f32>, b: &Array2<f32>) -> Array2<f32> {
    dims!(i, j, k);
    (a.at((i, k)) * b.at((k, j))).sum(k).order((i, j))
}

mod creating_and_binding_dims {
    use super::*;

    #[test]
    fn binding_makes_a_new_tensor() {
        let input = counting((2, 3, 5, 4));
        dims!(batch, channel, width, height);
        let input_fc = input.at((batch, channel, width, height));
        assert_eq!(input_fc.dims(), [("batch", 2), ("channel", 3), ("width", 5), ("height", 4)]);
        assert_eq!(input_fc.positional_sizes(), [0usize; 0]);
        assert_eq!(input.ndim(), 4);
    }

    #[test]
    fn positional_and_first_class_dims_mix() {
        let input = counting((2, 3, 5, 4));
        dims!(batch, height);
        let mixed = input.at((batch, .., .., height));
        assert_eq!(mixed.dims(), [("batch", 2), ("height", 4)]);
        assert_eq!(mixed.positional_sizes(), [3, 5]);
    }

    #[test]
    fn index_works_on_first_class_dims() {
        let input = counting((2, 3));
        dims!(batch, channel);
        assert_eq!(input.at((batch, channel)).index(batch, 0).order(channel), array![0., 1., 2.]);
    }
}

mod dimension_sizes {
    use super::*;

    #[test]
    fn the_first_binding_gives_the_size() {
        let input = counting(3);
        dims!(x);
        let _ = input.at(x);
        assert_eq!(x.size(), 3);
    }

    #[test]
    fn a_size_can_be_set_again_if_it_is_the_same() {
        dims!(i, j = 4);
        i.set_size(5);
        i.set_size(5);
        assert_eq!((i.size(), j.size()), (5, 4));
    }

    #[test]
    #[should_panic(expected = "dim `i` has size 5")]
    fn a_size_cannot_change() {
        dims!(i);
        i.set_size(5);
        i.set_size(3);
    }

    #[test]
    fn the_error_names_the_dim_and_both_sizes() {
        dims!(i = 5);
        let text = counting(3).try_at(i).unwrap_err().to_string();
        for part in ["`i`", "5", "3", file!()] {
            assert!(text.contains(part), "{part} is not in: {text}");
        }
    }
}

mod rule_1_implicit_batching {
    use super::*;

    #[test]
    fn operands_are_batched_over_the_union_of_their_dims() {
        let input = array![[1., 2., 3.], [4., 5., 6.]];
        let bias = array![10., 20., 30.];
        dims!(batch, channel);
        let result = input.at((batch, channel)) + bias.at(channel);
        assert_eq!(result.dims(), [("batch", 2), ("channel", 3)]);
        assert_eq!(result.order((batch, channel)), array![[11., 22., 33.], [14., 25., 36.]]);
    }

    #[test]
    fn positional_dims_broadcast_within_the_loops() {
        let a = array![[1., 2., 3.], [4., 5., 6.]];
        let b = array![[10.], [20.]];
        dims!(i);
        // For each i, the row a[i] of shape (3,) plus the row b[i] of shape (1,).
        assert_eq!((a.at((i, ..)) + b.at((i, ..))).order(i), array![[11., 12., 13.], [24., 25., 26.]]);
        // For each i, the matrix b of shape (2, 1) and the row a[i] of shape (3,).
        let outer = (a.at((i, ..)) + b.at((.., ..))).order(i);
        assert_eq!(outer.shape(), [2, 2, 3]);
        assert_eq!(outer.index_axis(Axis(0), 1), array![[14., 15., 16.], [24., 25., 26.]]);
    }
}

mod rule_2_specifying_dimensions {
    use super::*;

    #[test]
    fn avg_pixel_color() {
        let input = counting((2, 3, 4, 5));
        dims!(batch, channel, width, height);
        let average = input.at((batch, channel, width, height)).mean((width, height));
        assert_eq!(average.dims(), [("batch", 2), ("channel", 3)]);
        // Each channel starts 20 higher; the mean of 0 .. 19 is 9.5.
        assert_eq!(average.order((batch, channel)), array![[9.5, 29.5, 49.5], [69.5, 89.5, 109.5]]);
    }
}

mod rule_3_dims_are_tensors {
    use super::*;

    #[test]
    fn a_dim_is_its_indices() {
        dims!(channel = 3);
        let shown = channel + 1000;
        assert_eq!(shown.to_string(), "[1000, 1001, 1002]\nwith dims (channel: 3)");
        assert_eq!(shown.order(channel), array![1000, 1001, 1002]);
    }

    #[test]
    fn a_mask() {
        dims!(i = 4, j = 4);
        let (t, f) = (true, false);
        let expected = array![[t, t, t, t], [f, t, t, t], [f, f, t, t], [f, f, f, t]];
        assert_eq!(i.le(j).order((i, j)), expected);
    }

    #[test]
    fn an_embedding_table() {
        let embeddings = counting((8, 3));
        let words = array![5, 4, 0];
        dims!(sequence, features);
        let state = embeddings.at((words.at(sequence), features));
        assert_eq!(state.dims(), [("sequence", 3), ("features", 3)]);
        assert_eq!(state.order((sequence, features)), array![[15., 16., 17.], [12., 13., 14.], [0., 1., 2.]]);
    }
}

mod unbinding_dims {
    use super::*;

    #[test]
    fn transposition() {
        let a = counting((3, 4));
        dims!(i, j);
        assert_eq!(a.at((i, j)).order((j, i)), a.t());
    }

    #[test]
    fn transposition_with_a_positional_dim() {
        let b = counting((3, 4, 5));
        dims!(i, j);
        assert_eq!(b.at((i, j, ..)).order((j, i)), b.view().permuted_axes([1, 0, 2]));
    }
}

mod flattening_and_splitting_dims {
    use super::*;

    #[test]
    fn split_and_flatten() {
        let a = counting((6, 4));
        dims!(i, j = 2, k);
        let bound = a.at(((i, j), k));
        assert_eq!((i.size(), j.size(), k.size()), (3, 2, 4));
        assert_eq!(bound.order((i, (j, k))), counting((3, 8)));
    }
}

mod einsum_style_products {
    use super::*;

    #[test]
    fn matrix_multiply() {
        let product = mm(&counting((3, 4)), &counting((4, 5)));
        assert_eq!(
            product,
            array![[70., 76., 82., 88., 94.], [190., 212., 234., 256., 278.], [310., 348., 386., 424., 462.]]
        );
    }

    fn gram_matrix(y: &Array4<f32>) -> Array3<f32> {
        dims!(b, c, c2, h, w);
        let r = (y.at((b, c, h, w)) * y.at((b, c2, h, w))).sum((h, w));
        let r = r / (h.size() * w.size()) as f32;
        r.order((b, c, c2))
    }

    #[test]
    fn style_transfer() {
        // The channels hold 0 .. 11 and 12 .. 23. The sums of their squares are 506 and 3818, and
        // the sum of their products is 12 * 66 + 506 = 1298.
        let expected = array![[[506. / 12., 1298. / 12.], [1298. / 12., 3818. / 12.]]];
        assert_eq!(gram_matrix(&counting((1, 2, 3, 4))), expected);
    }

    fn attention(k: &Array3<f32>, q: &Array3<f32>, v: &Array3<f32>) -> Array3<f32> {
        dims!(batch, channel, key, query);
        let a = (k.at((batch, channel, key)) * q.at((batch, channel, query))).sum(channel);
        let a = (a * (channel_scale(k.shape()[1]))).softmax(key);
        let r = (v.at((batch, channel, key)) * a).sum(key);
        concatenate(Axis(1), &[r.order((batch, channel, query)).view(), q.view()]).expect("the shapes agree")
    }

    fn channel_scale(channels: usize) -> f32 {
        (channels as f32).powf(-0.5)
    }

    #[test]
    fn attention_with_equal_scores_averages() {
        let q = counting((2, 3, 4));
        let out = attention(&Array3::zeros((2, 3, 4)), &q, &counting((2, 3, 4)));
        // The four values of channel c in batch b count up from 12 * b + 4 * c, so their mean is
        // 12 * b + 4 * c + 1.5.
        let expected = Array3::from_shape_fn((2, 6, 4), |(b, c, at)| match c {
            0..3 => (12 * b + 4 * c) as f32 + 1.5,
            _ => q[[b, c - 3, at]],
        });
        assert_eq!(out, expected);
    }

    #[test]
    fn attention_weighs_by_the_score() {
        // Only one of the four channels contributes: after scaling by 1/2, the score is 0 for the
        // first key, and ln 3 for the second.
        let score = 2.0 * 3f32.ln();
        let mut k = Array3::zeros((1, 4, 2));
        k[[0, 0, 1]] = score;
        let mut q = Array3::zeros((1, 4, 1));
        q[[0, 0, 0]] = 1.0;
        let v = Array3::from_shape_fn((1, 4, 2), |(_, c, key)| (10 * c + 4 * key) as f32);
        let out = attention(&k, &q, &v);
        for c in 0..4 {
            // The keys have the weights 1/4 and 3/4.
            let expected = (10 * c) as f32 + 3.0;
            assert!((out[[0, c, 0]] - expected).abs() < 1e-5, "{out}");
        }
    }
}

mod reshaping_tensors {
    use super::*;

    fn pixel_shuffle(img: &Array4<f32>, upscale_factor: usize) -> Array4<f32> {
        dims!(h2 = upscale_factor, w2 = upscale_factor, c, b, h, w);
        img.at((b, (c, h2, w2), h, w)).order((b, c, (h, h2), (w, w2)))
    }

    #[test]
    fn channels_become_pixels() {
        let out = pixel_shuffle(&counting((1, 4, 2, 2)), 2);
        let expected =
            array![[[[0., 4., 1., 5.], [8., 12., 9., 13.], [2., 6., 3., 7.], [10., 14., 11., 15.]]]];
        assert_eq!(out, expected);
    }
}

mod automatically_batching_code {
    use super::*;

    #[test]
    fn a_linear_model_with_a_batch_bound() {
        let weights = array![1., -1., 2.];
        let examples = array![[1., 2., 3.], [0., 5., 1.]];
        dims!(batch, feature);
        let r = (examples.at((batch, feature)) * weights.at(feature)).sum(feature).relu();
        assert_eq!(r.order(batch), array![5., 0.]);
    }

    // The product does not mention `n`, the dim of the batch, which both operands have.
    fn bmm(a: &Array3<f32>, b: &Array3<f32>) -> Array3<f32> {
        dims!(n, i, j, k);
        let (a, b) = (a.at((n, .., ..)), b.at((n, .., ..)));
        (a.at((i, k)) * b.at((k, j))).sum(k).order((n, i, j))
    }

    #[test]
    fn a_batched_matrix_multiply() {
        let (a, b) = (counting((2, 3, 4)), counting((2, 4, 5)));
        let out = bmm(&a, &b);
        assert_eq!(out.shape(), [2, 3, 5]);
        for n in 0..2 {
            let (a, b) = (a.index_axis(Axis(0), n).to_owned(), b.index_axis(Axis(0), n).to_owned());
            assert_eq!(out.index_axis(Axis(0), n), mm(&a, &b));
        }
        assert_eq!(out[[1, 0, 0]], 12. * 20. + 13. * 25. + 14. * 30. + 15. * 35.);
    }
}

mod composing_matrix_products_reshaping_and_batching {
    use super::*;

    fn multi_head_attention(q: &Array3<f32>, k: &Array3<f32>, v: &Array3<f32>, n: usize) -> Array3<f32> {
        dims!(batch, query_sequence, key_sequence, heads = n, features);
        let q = q.at((batch, query_sequence, (heads, features)));
        let k = k.at((batch, key_sequence, (heads, features)));
        let v = v.at((batch, key_sequence, (heads, features)));
        let attention_scores = (q * k).sum(features) * (features.size() as f32).powf(-0.5);
        let attention_probs = attention_scores.softmax(key_sequence);
        let context_layer = (attention_probs * v).sum(key_sequence);
        context_layer.order((batch, query_sequence, (heads, features)))
    }

    #[test]
    fn heads_attend_on_their_own() {
        // Two heads with one feature each, and two keys. Head 0 weighs the keys 1 : 3, and head 1
        // weighs them equally.
        let k = array![[[0., 5.], [3f32.ln(), 5.]]];
        let q = array![[[1., 1.]]];
        let v = array![[[8., 1.], [16., 3.]]];
        let out = multi_head_attention(&q, &k, &v, 2);
        assert_eq!(out.shape(), [1, 1, 2]);
        assert!((out[[0, 0, 0]] - 14.).abs() < 1e-5, "{out}");
        assert!((out[[0, 0, 1]] - 2.).abs() < 1e-5, "{out}");
    }

    #[test]
    fn equal_keys_give_the_mean_of_the_values() {
        let q = counting((2, 3, 8));
        let out = multi_head_attention(&q, &Array3::zeros((2, 4, 8)), &counting((2, 4, 8)), 4);
        // The values of the four keys are 8 apart, so their mean is 12 more than the first.
        assert_eq!(out, Array3::from_shape_fn((2, 3, 8), |(b, _, f)| (32 * b + f + 12) as f32));
    }
}

mod indexing {
    use super::*;

    fn triu(a: &Array2<f32>) -> Array2<f32> {
        dims!(i, j);
        let a = a.at((i, j));
        select(i.le(j), a, 0.0).order((i, j))
    }

    #[test]
    fn the_upper_triangle() {
        let expected = array![[0., 1., 2., 3.], [0., 5., 6., 7.], [0., 0., 10., 11.]];
        assert_eq!(triu(&counting((3, 4))), expected);
    }

    fn embedding_bag(input: &Array2<usize>, embedding_weights: &Array2<f32>) -> Array2<f32> {
        dims!(batch, sequence, features);
        let r = embedding_weights.at((input.at((batch, sequence)), features)).sum(sequence);
        r.order((batch, features))
    }

    #[test]
    fn a_bag_of_embeddings() {
        // Rows 1, 0, 4 and 3, where row r is (2r, 2r + 1).
        assert_eq!(embedding_bag(&array![[1, 0, 4, 3]], &counting((5, 2))), array![[16., 20.]]);
    }

    fn relative_positional_embedding(
        q: &Array3<f32>,
        k: &Array3<f32>,
        distance_embedding_weight: &Array2<f32>,
        n: usize,
    ) -> Array4<f32> {
        dims!(batch, query_sequence, key_sequence, heads = n, features);
        let q = q.at((batch, query_sequence, (heads, features)));
        let k = k.at((batch, key_sequence, (heads, features)));
        let distance = query_sequence - key_sequence;
        let n_embeddings = distance_embedding_weight.shape()[0];
        let index_bias = (n_embeddings / 2) as isize;
        assert!(key_sequence.size() + index_bias as usize <= n_embeddings);
        let positional_embedding = distance_embedding_weight.at((distance + index_bias, features));
        let scores_query = (q * positional_embedding).sum(features);
        let scores_key = (k * positional_embedding).sum(features);
        (scores_query + scores_key).order((batch, heads, key_sequence, query_sequence))
    }

    #[test]
    fn embeddings_of_distances() {
        let (q, k) = (counting((2, 3, 4)), Array3::ones((2, 3, 4)));
        // Row r of the table holds r and -r; two heads of two features.
        let table = Array2::from_shape_fn((7, 2), |(r, f)| if f == 0 { r as f32 } else { -(r as f32) });
        let out = relative_positional_embedding(&q, &k, &table, 2);
        assert_eq!(out.shape(), [2, 2, 3, 3]);
        // The products sum to r * (first feature - second feature): -r for q, and 0 for k.
        for ((_, _, key, query), &score) in out.indexed_iter() {
            assert_eq!(score, key as f32 - query as f32 - 3.0, "key {key}, query {query}");
        }
    }
}

mod tensor_puzzlers {
    use super::*;

    fn outer(a: &Array1<f32>, b: &Array1<f32>) -> Array2<f32> {
        dims!(i, j);
        (a.at(i) * b.at(j)).order((i, j))
    }

    #[test]
    fn puzzle_3_outer() {
        assert_eq!(outer(&array![1., 2.], &array![3., 4., 5.]), array![[3., 4., 5.], [6., 8., 10.]]);
    }

    fn diag(a: &Array2<f32>) -> Array1<f32> {
        dims!(i);
        a.at((i, i)).order(i)
    }

    #[test]
    fn puzzle_4_diag() {
        assert_eq!(diag(&counting((3, 3))), array![0., 4., 8.]);
    }

    fn eye_of(n: usize) -> Array2<i32> {
        dims!(i = n, j = n);
        select(i.eq(j), 1, 0).order((i, j))
    }

    #[test]
    fn puzzle_5_eye() {
        assert_eq!(eye_of(3), array![[1, 0, 0], [0, 1, 0], [0, 0, 1]]);
        assert_eq!(eye_of(0), Array2::<i32>::zeros((0, 0)));
    }

    fn triu(n: usize) -> Array2<i32> {
        dims!(i = n, j = n);
        select(i.le(j), 1, 0).order((i, j))
    }

    #[test]
    fn puzzle_6_triu() {
        assert_eq!(triu(3), array![[1, 1, 1], [0, 1, 1], [0, 0, 1]]);
    }

    fn diff(a: &Array1<i32>) -> Array1<i32> {
        dims!(i = a.len());
        let d = a.at(i) - a.at(i - 1);
        select((i - 1).ge(0), d, a.at(i)).order(i)
    }

    #[test]
    fn puzzle_8_diff() {
        assert_eq!(diff(&array![3, 5, 4, 10]), array![3, 2, -1, 6]);
        assert_eq!(diff(&array![3]), array![3]);
        assert_eq!(diff(&array![]), Array1::<i32>::zeros(0));
    }

    fn vstack(a: &Array1<i32>, b: &Array1<i32>) -> Array2<i32> {
        dims!(v = 2, i);
        select(v.eq(0), a.at(i), b.at(i)).order((v, i))
    }

    #[test]
    fn puzzle_9_vstack() {
        assert_eq!(vstack(&array![1, 2, 3], &array![4, 5, 6]), array![[1, 2, 3], [4, 5, 6]]);
    }

    fn roll(a: &Array1<i32>) -> Array1<i32> {
        dims!(i = a.len());
        let n = i.size() as isize;
        a.at(select((i + 1).lt(n), i + 1, 0)).order(i)
    }

    #[test]
    fn puzzle_10_roll() {
        assert_eq!(roll(&array![1, 2, 3, 4]), array![2, 3, 4, 1]);
    }

    fn flip(a: &Array1<i32>) -> Array1<i32> {
        dims!(i = a.len());
        a.at(i.size() as isize - i - 1).order(i)
    }

    #[test]
    fn puzzle_11_flip() {
        assert_eq!(flip(&array![1, 2, 3, 4]), array![4, 3, 2, 1]);
        assert_eq!(flip(&array![]), Array1::<i32>::zeros(0));
    }

    fn sequence_mask(values: &Array2<f32>, length: &Array1<isize>) -> Array2<f32> {
        dims!(i, j);
        let v = values.at((i, j));
        select(j.lt(length.at(i)), v, 0.0).order((i, j))
    }

    #[test]
    fn puzzle_14_sequence_mask() {
        let out = sequence_mask(&counting((3, 3)), &array![2, 0, 3]);
        assert_eq!(out, array![[0., 1., 0.], [0., 0., 0.], [6., 7., 8.]]);
    }
}

mod avoiding_naming_conflicts {
    use super::*;

    #[test]
    fn the_same_name_in_a_callee_is_another_dim() {
        fn scaled(a: &Array2<f32>, factor: f32) -> Array2<f32> {
            dims!(i, j);
            (a.at((i, j)) * factor).order((i, j))
        }
        let a = counting((2, 2));
        dims!(i, j);
        let doubled = scaled(&a, 2.0);
        assert_eq!((doubled.at((i, j)) - a.at((i, j))).order((i, j)), a);
    }
}

/// All old names are replaced at once: two dims swap names, and three rotate theirs.
#[test]
fn simultaneous_renames() {
    let a = Array3::from_shape_fn((3, 3, 3), |(i, j, k)| (i * 100 + j * 10 + k) as i32);
    dims!(i, j, k);
    let x = a.at((i, j, k));
    let swapped = x.rename_all((i, k), (k, i));
    assert_eq!((&swapped).order((k, j, i)), a);
    assert_eq!((swapped + 1).order((k, j, i)), &a + 1);
    dims!(p, q, r);
    let turned = a.at((p, q, r)).rename_all((p, q, r), (q, r, p));
    assert_eq!((&turned).order((q, r, p)), a);
    assert_eq!(turned.sum(r).order((p, q)), a.sum_axis(Axis(1)).reversed_axes());
    // `m` already has another size.
    dims!(m, n, o);
    let five = [0; 5];
    let _ = Array1::from(five.to_vec()).at(m).order(m);
    let error = a.at((n, o, ..)).try_rename_all((n, o), (m, n)).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("`m`") && error.contains('5') && error.contains('3'), "{error}");
}

#[test]
fn split_by_dims() {
    let x = counting((3, 7));
    dims!(b, c, p = 2, q, r = 1);
    let (first, middle, last) = x.at((b, c)).split_to(c, (p, q, r));
    assert_eq!(q.size(), 4);
    assert_eq!(first.order((b, p)), x.slice(s![.., ..2]));
    assert_eq!((middle * 2.0).order((b, q)), &x.slice(s![.., 2..6]) * 2.0);
    assert_eq!(last.order((b, r)), x.slice(s![.., 6..]));
    dims!(m = 5, n = 3, u, v);
    let error = x.at((b, c)).try_split_to(c, (m, n)).map(|_| ()).unwrap_err().to_string();
    assert_eq!(error, "dim `c` of size 7 cannot be split into `m` = 5, `n` = 3");
    let error = x.at((b, c)).try_split_to(c, (u, v)).map(|_| ()).unwrap_err().to_string();
    assert_eq!(error, "dim `c` of size 7 cannot be split into `u`, `v`: all sizes but one must be known");
    let error = x.at((b, c)).try_split_to(c, (m, n, u)).map(|_| ()).unwrap_err().to_string();
    assert_eq!(error, "dim `c` of size 7 cannot be split into `m` = 5, `n` = 3, `u`");
}

#[test]
fn parts_of_different_types_and_lengths() {
    let (x, y) = (counting((2, 3)), counting((2, 3)) + 10.0);
    dims!(i, j, k);
    let (a, b) = (x.at((i, j)), y.at((i, j)));
    let both = concat(j, (a * b, a.exp(), b));
    let expected = concatenate![Axis(1), &x * &y, x.mapv(f32::exp), y];
    assert!((both.order((i, j)) - &expected).iter().all(|difference| difference.abs() < 1e-4));
    let stacked = stack(k, (a, b + 1.0));
    assert_eq!(stacked.order((k, i, j)), ndarray::stack![Axis(0), x, &y + 1.0]);

    let (short, long) = (counting((2, 1)), counting((2, 4)));
    dims!(s, t, whole, five = 5, four = 4);
    let parts = (short.at((i, s)), long.at((i, t)) * 1.0);
    let expected = concatenate![Axis(1), short, long];
    assert_eq!(concat_to(whole, (s, t), parts).order((i, whole)), expected);
    assert_eq!(whole.size(), 5);
    assert_eq!(concat_to(five, (s, t), parts).order((i, five)), expected);
    let error = try_concat_to(four, (s, t), parts).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("`four`") && error.contains('5') && error.contains('4'), "{error}");
    // Static sizes: rustc checks their sum. If one part's size is known only at run time, the sum
    // is checked then.
    dims! { struct Short = 1; struct Long = 4; struct Whole = 5; }
    let (x, y) = (short.at((i, Short)), long.at((i, Long)));
    assert_eq!(concat_to(Whole, (Short, Long), (x, y)).order((i, Whole)), expected);
    assert_eq!(concat_to(Whole, (s, Long), (short.at((i, s)), y)).order((i, Whole)), expected);
    let error = try_concat_to(Whole, (t, Long), (long.at((i, t)), y)).map(|_| ()).unwrap_err();
    assert!(matches!(error, DimError::StaticSize { dim: "Whole", fixed: 5, found: 8, .. }), "{error}");
    let all = concat_to(Whole, (Short, Long), (x, y));
    let (front, back) = (&all).split_to(Whole, (Short, Long));
    assert_eq!((front.order((i, Short)), back.order((i, Long))), (short.clone(), long.clone()));
    // An empty part, and positional axes.
    let none = Array2::<f32>::zeros((2, 0));
    dims!(o, p, all);
    assert_eq!(concat_to(all, (o, p), (none.at((.., o)), long.at((.., p)))).order(all), long.t());
}

/// `A[l]` with a list of dims `l`, alone and next to other dims.
#[test]
fn lists_of_dims() {
    let a = Array4::from_shape_fn((2, 3, 4, 5), |(b, c, h, w)| 1000 * b + 100 * c + 10 * h + w);
    dims!(b, c, space: [2]);
    let x = a.at((b, c, space));
    assert_eq!(x.dims(), [("b", 2), ("c", 3), ("space0", 4), ("space1", 5)]);
    assert_eq!(x.order((b, c, space)), a);
    assert_eq!(x.order((space, b, c)), a.view().permuted_axes([2, 3, 0, 1]));
    // A tuple in an order is one axis.
    assert_eq!(x.order((b, (space0, space1), c)).dim(), (2, 20, 3));
    assert_eq!(x.sum(space).order((b, c)), a.sum_axis(Axis(3)).sum_axis(Axis(2)));
    assert_eq!(x.max(Each((b, c))).order(space), a.slice(s![1, 2, .., ..]));
    let mut out = Array4::zeros((4, 5, 3, 2));
    x.order_into(&mut out, (space, c, b));
    assert_eq!(out, a.view().permuted_axes([2, 3, 1, 0]));
    let mut sums = Array2::zeros((4, 5));
    x.sum_into((b, c), &mut sums, space);
    assert_eq!(sums, a.sum_axis(Axis(0)).sum_axis(Axis(0)));
    assert_eq!(x.try_sum(space).map(|sums| sums.order((c, b)).dim()), Ok((3, 2)));

    // One list for all axes. Its dims keep the sizes that they were bound to.
    let square = counting((3, 3));
    dims!(all: [2], rows: [1]);
    assert_eq!(square.at(all).order(all), square);
    assert_eq!(square.at((rows, ..)).order(rows), square);
    let other = Array2::<f32>::zeros((3, 4));
    let error = other.try_at(all).map(|_| ()).unwrap_err().to_string();
    assert!(error.starts_with("dim `all1` has size 3"), "{error}");
    // A dim that is in the list twice takes the diagonal.
    dims!(i, j, k, five = 5);
    assert_eq!(square.at(Each((i, i))).order(i), array![0., 4., 8.]);
    // Lists beside positional axes, a group and computed indices.
    let y = a.at((.., Each((i, j)), (k, five)));
    assert_eq!((y.positional_sizes(), k.size()), (vec![2], 1));
    dims!(p, rest: [2]);
    let one = array![2, 0];
    let y = a.at((1, one.at(p), rest)).order((p, rest));
    assert_eq!(y, a.index_axis(Axis(0), 1).select(Axis(0), &[2, 0]));
}

/// Like `A[i, None]` and `x.sum(k, keepdim=True)` in torch.
#[test]
fn new_axes_and_kept_ones() {
    let a = counting((2, 3));
    dims!(i, j);
    let x = a.at((i, j));
    assert_eq!(x.order((i, NewAxis, j)), a.view().insert_axis(Axis(1)));
    assert_eq!(x.order((NewAxis, j, i, NewAxis)), a.t().insert_axis(Axis(0)).insert_axis(Axis(3)));
    assert_eq!((x * 2.0).sum(j).order((i, NewAxis)), array![[6.], [24.]]);
    assert_eq!(x.sum((i, j)).order(NewAxis), array![15.]);
    assert_eq!(x.sum((i, j)).order((NewAxis, NewAxis)), array![[15.]]);
    assert_eq!(x.order((NewAxis, (i, j))), counting((1, 6)));
    // If a dim remains, the new axis and the ordered dims are positional axes.
    let kept = x.order((NewAxis, j));
    assert_eq!(kept.dims(), [("i", 2)]);
    assert_eq!(kept.positional_sizes(), [1, 3]);
    assert_eq!(kept.order(i), a.view().insert_axis(Axis(1)));

    // Into existing arrays, which must have the new axis.
    let mut out = Array3::zeros((3, 1, 2));
    x.order_into(&mut out, (j, NewAxis, i));
    assert_eq!(out, a.t().insert_axis(Axis(1)));
    let mut sums = array![[7., 7.]];
    x.sum_into(j, &mut sums, (NewAxis, i));
    assert_eq!(sums, array![[3., 12.]]);
    dims!(k);
    let mut product = Array3::zeros((2, 1, 2));
    (x * a.at((k, j))).sum_into(j, &mut product, (i, NewAxis, k));
    assert_eq!(product, array![[[5., 14.]], [[14., 50.]]]);
    let mut wide = Array3::<f32>::zeros((3, 2, 2));
    let error = x.try_order_into(&mut wide, (j, NewAxis, i)).unwrap_err().to_string();
    assert!(error.contains("do not fit into an array of shape [3, 2, 2]"), "{error}");

    // A new axis is positional when bound, and broadcasts accordingly.
    let column = a.at((i, NewAxis, ..));
    assert_eq!(column.positional_sizes(), [1, 3]);
    let table = (column + a.at((i, .., NewAxis))).order(i);
    assert_eq!(table, Array3::from_shape_fn((2, 3, 3), |(i, r, c)| a[[i, c]] + a[[i, r]]));
    assert_eq!(a.at((NewAxis, Ellipsis)).positional_sizes(), [1, 2, 3]);
    let vector = array![1., 2.];
    dims!(v, w);
    let row: Array2<f32> = vector.at(v).order((NewAxis, v));
    assert_eq!((row.dim(), row.at((UnitAxis, w)).order(w)), ((1, 2), vector));
    let mut places = counting((2, 3));
    places.at_mut((i, NewAxis, ..)).assign(a.at((i, NewAxis, ..)) * 10.0);
    assert_eq!(places, &a * 10.0);

    // Binding with `UnitAxis` removes an axis of size 1.
    let kept = x.sum(j).order((i, NewAxis));
    assert_eq!(kept.at((i, UnitAxis)).order(i), array![3., 12.]);
    let error = a.try_at((i, UnitAxis)).map(|_| ()).unwrap_err().to_string();
    assert!(
        error.starts_with("axis 1 has size 3, but `UnitAxis` takes an axis of size 1 (at tests"),
        "{error}"
    );
    let dynamic = a.clone().into_dyn();
    assert!(dynamic.try_at((UnitAxis, i, j)).is_err());
    assert!(Array2::<f32>::zeros((0, 2)).try_at((UnitAxis, ..)).is_err());
}

/// `A[ids]`, where negative values count from the end, as in torch.
#[test]
fn indices_from_the_end() {
    let a = array![[1, 2], [3, 4], [5, 6]];
    let ids = array![-1i64, 0, -3, 2];
    dims!(i, j, k);
    let expected = array![[5, 6], [1, 2], [1, 2], [5, 6]];
    assert_eq!(a.at((ids.at(k).from_end(a.nrows()), j)).order((k, j)), expected);
    assert_eq!(a.at((i, j)).take(i, ids.at(k).from_end(i)).order((k, j)), expected);
    // The index can have any integer type, even one like `i8`, which cannot represent position 199.
    let long = Array1::from_iter(0..200);
    dims!(n);
    let small = array![-1i8, -128, 127];
    assert_eq!(long.at(small.at(n).from_end(200)).order(n), array![199, 72, 127]);
    dims!(m);
    assert_eq!(array![u64::MAX, 3].at(m).from_end(4).order(m), array![isize::MAX, 3]);

    // Without `from_end`, the index -1 is an error, whose text suggests `from_end`.
    let v = array![1, 2, 4];
    dims!(p = 3);
    assert_eq!((v.at(p) - v.at((p - 1).from_end(p))).order(p), array![-3, 1, 2]);
    let error = v.at(p - 1).try_order(p).unwrap_err().to_string();
    assert!(error.starts_with("index -1 of axis 0, computed from dim `p`, is out of range"), "{error}");
    let advice = "; to count negative indices from the end, write `index.from_end(size)`, or add the size to the index in `tensor!` and `gather!`";
    assert!(error.ends_with(advice), "{error}");
    // For an index before the start, the error has the given index and no suggestion.
    let error = v.at((p - 4).from_end(p)).try_order(p).unwrap_err().to_string();
    assert!(error.starts_with("index -4 of axis 0") && !error.contains("from_end"), "{error}");
    let error = v.at(p).try_index(p, -4).map(|_| ()).unwrap_err().to_string();
    assert!(!error.contains("from_end"), "{error}");
    dims!(open);
    let error = ids.at(k).try_from_end(open).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("`open`"), "{error}");
}

#[test]
fn dims_with_tensors_in_tuples() {
    let x = array![3, 4];
    let x = x.mapv(|x| x as isize);
    dims!(i, k, l);
    let all = stack(k, (i, x.at(i), i * 10, &(x.at(i) - i)));
    assert_eq!(all.order((k, i)), array![[0, 1], [3, 4], [0, 10], [3, 3]]);
    let all = concat(i, (x.at(i), i, i + 1, 5 * x.at(i)));
    assert_eq!(all.order(i), array![3, 4, 0, 1, 1, 2, 15, 20]);
    dims!(p, q = 3, whole);
    let all = concat_to(whole, (p, q), (x.at(p), q));
    assert_eq!(all.order(whole), array![3, 4, 0, 1, 2]);
    // Masks, and the pieces of an expression of two dims.
    let masks = stack(l, (i.eq(0), x.at(i).gt(3)));
    assert_eq!(masks.order((l, i)), array![[true, false], [false, true]]);
    let (a, b) = (counting((2, 3)), counting((2, 3)));
    dims!(r, c, front = 1, behind);
    let (first, others) = (a.at((r, c)) * b.at((r, c)) + 1.0).split_to(c, (front, behind));
    assert_eq!(first.order((r, front)), array![[1.], [10.]]);
    assert_eq!(others.order((behind, r)), array![[2., 17.], [5., 26.]]);
    // The indices of the dim itself, in pieces.
    dims!(n = 5, low = 2, high);
    let (low_indices, high_indices) = (n + 0).split_to(n, (low, high));
    assert_eq!((low_indices.order(low), high_indices.order(high)), (array![0, 1], array![2, 3, 4]));
}

#[test]
fn numbers_beside_dims() {
    let (x, n): (Array2<f64>, usize) = (array![[1.0, 5.0], [2.0, 6.0], [4.0, 7.0]], 3);
    dims!(i, j = 4, two);
    assert_eq!((2.0 * x.at((i, two))).order((two, i)).row(0).to_vec(), [2.0, 4.0, 8.0]);
    assert_eq!((10 * i + 1).order(i), array![1, 11, 21]);
    assert_eq!((-i + 1).order(i), array![1, 0, -1]);
    assert_eq!((1_isize - i).order(i), array![1, 0, -1]);
    let first: Array1<f64> = x.at((i, 0)).order(i);
    assert_eq!(first.len(), x.at((i, 0_usize)).order(i).len());
    assert_eq!(x.at((n - 1 - i, 1_usize)).order(i).to_vec(), [7.0, 6.0, 5.0]);
    assert_eq!((i + n as isize).order(i), array![3, 4, 5]);
    assert_eq!(((i - j) + n as isize).order((i, j)).row(0), array![3, 2, 1, 0]);
    assert_eq!(j.lt(n as isize).order(j), array![true, true, true, false]);
    // Lengths of several integer types.
    let (bytes, words, sizes) = (array![2_u8, 0, 4], array![2_i32, 0, 4], array![2_usize, 0, 4]);
    let expected = Array2::from_shape_fn((3, 4), |(i, j)| j < sizes[i]);
    assert_eq!(j.lt(bytes.at(i).cast::<isize>()).order((i, j)), expected);
    assert_eq!(j.lt(words.at(i).cast::<isize>()).order((i, j)), expected);
    assert_eq!(sizes.at(i).gt(j.cast::<usize>()).order((i, j)), expected);
}
