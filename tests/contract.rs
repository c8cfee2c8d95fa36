//! Small programs with known results: dims, binding, arithmetic, reductions, order, dims as values,
//! and gradients.

use ndarray::{Array3, ArrayView2, Axis, array, s};
use typed_dims::prelude::*;

dims! {
    /// Examples in a mini-batch.
    pub struct Batch;
    /// Positions of a sequence.
    pub struct Seq;
    /// Positions that are attended to.
    pub struct Key;
    /// Attention heads.
    pub struct Heads = 12;
    /// Features of a head.
    pub struct Feat = 64;
    /// Features of all heads.
    pub struct Model = 768;
}

dims! {
    struct Row;
    struct Col;
    struct Two = 2;
    struct Three = 3;
    struct Six = 6;
}

mod dims {
    use super::*;

    #[test]
    fn declared_dims_know_their_static_size() {
        assert_eq!((Heads::SIZE, Feat::SIZE, Model::SIZE), (12, 64, 768));
    }

    #[test]
    fn local_dims_take_the_first_size_they_meet() {
        let a = Array2::<f32>::zeros((3, 4));
        dims!(i, j);
        assert_eq!((i.try_size(), j.try_size()), (None, None));
        let _ = a.at((i, j));
        assert_eq!((i.size(), j.size()), (3, 4));
    }

    #[test]
    fn local_dims_can_be_given_a_size() {
        let n = 5;
        dims!(h2 = 2, w2 = n);
        assert_eq!((h2.size(), w2.size()), (2, 5));
    }

    #[test]
    fn the_order_in_which_a_type_lists_dims_does_not_matter() {
        fn swapped(x: Tensor<f32, (Seq, Batch)>) -> Tensor<f32, (Batch, Seq)> {
            x
        }
        let x = swapped(from_fn((Batch.of(2), Seq.of(3)), |(b, s)| (10 * b + s) as f32));
        assert_eq!(x.order((Seq, Batch)), array![[0., 10.], [1., 11.], [2., 12.]]);
    }
}

mod products {
    use super::*;

    fn mm(a: &Array2<f32>, b: &Array2<f32>) -> Array2<f32> {
        dims!(i, j, k);
        (a.at((i, k)) * b.at((k, j))).sum(k).order((i, j))
    }

    #[test]
    fn matrix_product() {
        let a = array![[1., 2., 3.], [4., 5., 6.]];
        let b = array![[1., 0.], [0., 1.], [2., -1.]];
        assert_eq!(mm(&a, &b), array![[7., -1.], [16., -1.]]);
    }

    #[test]
    fn matrix_product_of_nothing() {
        assert_eq!(mm(&Array2::ones((2, 0)), &Array2::ones((0, 3))), Array2::<f32>::zeros((2, 3)));
        assert_eq!(mm(&Array2::ones((0, 2)), &Array2::ones((2, 3))), Array2::<f32>::zeros((0, 3)));
    }

    #[test]
    fn large_matrix_product() {
        // (i + 2k)(k - j) summed over k < n: i(s1 - nj) + 2(s2 - s1 j), where s1 and s2 are the
        // sums of k and k^2.
        let n = 40;
        let a = Array2::from_shape_fn((30, n), |(i, k)| (i + 2 * k) as f32);
        let b = Array2::from_shape_fn((n, 20), |(k, j)| k as f32 - j as f32);
        let (n, s1, s2) = (40., 780., 20_540.);
        let closed = |(i, j): (usize, usize)| {
            let (i, j) = (i as f32, j as f32);
            i * (s1 - n * j) + 2. * (s2 - s1 * j)
        };
        assert_eq!(mm(&a, &b), Array2::from_shape_fn((30, 20), closed));
    }

    fn norm<B: Dims>(
        x: Tensor<f32, (Seq, Feat, Rest<B>)>,
        g: Tensor<f32, (Feat,)>,
    ) -> Tensor<f32, (Seq, Rest<B>)> {
        (x * g).sum(Feat)
    }

    fn generic_mm<B: Dims>(
        a: Tensor<f32, (Rest<B>,), U2>,
        b: Tensor<f32, (Rest<B>,), U2>,
    ) -> Tensor<f32, (Rest<B>,), U2> {
        dims!(i, j, k);
        (a.at((i, k)) * b.at((k, j))).sum(k).order((i, j))
    }

    #[test]
    fn functions_over_a_rest_need_one_bound() {
        // Only checks that these compile.
        let norm: fn(_, _) -> _ = norm::<(Batch, Row)>;
        let mm: fn(_, _) -> _ = generic_mm::<(Batch,)>;
        let _ = (norm, mm);
    }
}

mod reshaping {
    use super::*;

    fn pixel_shuffle(img: &Array4<f32>, r: usize) -> Array4<f32> {
        dims!(b, c, h, w, h2 = r, w2 = r);
        img.at((b, (c, h2, w2), h, w)).order((b, c, (h, h2), (w, w2)))
    }

    #[test]
    fn pixels_are_shuffled() {
        let x = Array4::from_shape_fn((1, 8, 2, 3), |(_, c, h, w)| (c * 100 + h * 10 + w) as f32);
        let y = pixel_shuffle(&x, 2);
        assert_eq!(y.shape(), [1, 2, 4, 6]);
        for ((_, c, h, w), &value) in y.indexed_iter() {
            let channel = c * 4 + (h % 2) * 2 + w % 2;
            assert_eq!(value, (channel * 100 + h / 2 * 10 + w / 2) as f32, "at {c} {h} {w}");
        }
    }

    #[test]
    fn order_flattens_tuples() {
        let a = Array3::from_shape_fn((2, 3, 4), |(i, j, k)| 100 * i + 10 * j + k);
        dims!(i, j, k);
        let r = a.at((i, j, k)).order(((k, i), j));
        assert_eq!(r.shape(), [8, 3]);
        assert_eq!(r[[5, 2]], 100 + 20 + 2);
    }

    #[test]
    fn order_of_nothing_is_a_scalar() {
        dims!(i);
        let total: i32 = vec![1, 2, 3].at(i).sum(i).order(());
        assert_eq!(total, 6);
    }

    #[test]
    fn order_leaves_a_tensor_where_dims_are_left() {
        let x = from_fn((Batch.of(2), Seq.of(3)), |(b, s)| 10 * b + s);
        let y: Tensor<usize, (Batch,), U1> = x.order(Seq);
        assert_eq!(y.positional_sizes(), [3]);
        let z: Array2<usize> = y.order(Batch);
        assert_eq!(z, array![[0usize, 1, 2], [10, 11, 12]]);
    }

    #[test]
    fn order_into_an_array_that_is_there() {
        let a = array![[1, 2, 3], [4, 5, 6]];
        let mut out = Array2::from_elem((6, 4), -1);
        dims!(i, j);
        a.at((i, j)).order_into(&mut out.slice_mut(s![..;2, 1..3]), (j, i));
        let expected = array![
            [-1, 1, 4, -1],
            [-1, -1, -1, -1],
            [-1, 2, 5, -1],
            [-1, -1, -1, -1],
            [-1, 3, 6, -1],
            [-1, -1, -1, -1]
        ];
        assert_eq!(out, expected);
    }

    #[test]
    fn sum_into_an_array_that_is_there() {
        let a = array![[1, 2, 3], [4, 5, 6]];
        let mut out = Array2::from_elem((2, 4), -1);
        dims!(i, j, k);
        (a.at((i, k)) * a.at((j, k))).sum_into(k, &mut out.slice_mut(s![.., ..;2]), (i, j));
        assert_eq!(out, array![[14, -1, 32, -1], [32, -1, 77, -1]]);
        // A positional axis, an axis formed by two dims, and a single sum.
        let mut sums = array![0, 0, 0];
        a.at((i, ..)).sum_into(i, &mut sums, ());
        assert_eq!(sums, array![5, 7, 9]);
        let mut all = Array1::zeros(4);
        (a.at((i, k)) * a.at((j, k))).sum_into(k, &mut all, ((j, i),));
        assert_eq!(all, array![14, 32, 32, 77]);
        let mut total = ndarray::arr0(0);
        a.at((i, k)).sum_into((i, k), &mut total, ());
        assert_eq!(total, ndarray::arr0(21));
    }

    #[test]
    fn flatten_and_unflatten_static_dims() {
        let x = from_fn((Two, Three, Batch.of(2)), |(a, b, c)| 100 * a + 10 * b + c);
        let flat = x.clone().flatten((Two, Three), Six);
        assert_eq!(
            (&flat).order((Six, Batch)),
            array![[0, 1], [10, 11], [20, 21], [100, 101], [110, 111], [120, 121]]
        );
        assert_eq!(flat.unflatten(Six, (Two, Three)), x);
    }
}

mod attention {
    use super::*;

    fn attention(
        q: &Tensor<f32, (Batch, Seq, Heads, Feat)>,
        k: &Tensor<f32, (Batch, Key, Heads, Feat)>,
        v: &Tensor<f32, (Batch, Key, Heads, Feat)>,
    ) -> Tensor<f32, (Batch, Seq, Heads, Feat)> {
        let scores = (q * k).sum(Feat) * (Feat::SIZE as f32).powf(-0.5);
        (scores.softmax(Key) * v).sum(Key)
    }

    #[test]
    fn equal_scores_give_the_mean_of_the_values() {
        let q = zeros((Batch.of(2), Seq.of(3), Heads, Feat));
        let k = from_fn((Batch.of(2), Key.of(4), Heads, Feat), |(b, k, h, f)| (b + k + h + f) as f32);
        let v = from_fn((Batch.of(2), Key.of(4), Heads, Feat), |(b, k, h, f)| (b + 2 * k + h + f) as f32);
        let out = attention(&q, &k, &v).order((Batch, Seq, Heads, Feat));
        // The mean of 2k over k < 4 is 3.
        assert_eq!(out, Array4::from_shape_fn((2, 3, 12, 64), |(b, _, h, f)| (b + h + f + 3) as f32));
    }

    #[test]
    fn one_key_that_fits_takes_all() {
        // The score of query s is 32 * 32 / 8 = 128 for key s, and 0 for the other key, so the
        // share of key s is 1 up to e^-128.
        let hot = |s: usize, k: usize| if s == k { 4.0 } else { 0.0 };
        let q = from_fn((Batch.of(1), Seq.of(2), Heads, Feat), |(_, s, _, f)| hot(s, f % 2));
        let k = from_fn((Batch.of(1), Key.of(2), Heads, Feat), |(_, k, _, f)| 2.0 * hot(k, f % 2));
        let v = from_fn((Batch.of(1), Key.of(2), Heads, Feat), |(_, k, h, f)| (1000 * k + 10 * h + f) as f32);
        let out = attention(&q, &k, &v).order((Batch, Seq, Heads, Feat));
        assert_eq!(out, Array4::from_shape_fn((1, 2, 12, 64), |(_, s, h, f)| (1000 * s + 10 * h + f) as f32));
    }

    #[test]
    fn self_attention_uses_one_axis_twice() {
        let x = from_fn((Seq.of(3), Row.of(2)), |(s, r)| (s + r) as f32);
        let gram = (&x * (&x).rename(Seq, Key)).sum(Row).order((Seq, Key));
        assert_eq!(gram, array![[1., 2., 3.], [2., 5., 8.], [3., 8., 13.]]);
    }
}

mod binding {
    use super::*;

    #[test]
    fn everything_that_has_elements_can_be_bound() {
        let owned = array![[1, 2], [3, 4]];
        let view: ArrayView2<'_, i32> = owned.view();
        let dynamic = owned.clone().into_dyn();
        let nested = [[1, 2], [3, 4]];
        dims!(i, j);
        let expected = array![[1, 3], [2, 4]];
        assert_eq!(owned.at((i, j)).order((j, i)), expected);
        let reference = &owned;
        assert_eq!(reference.at((i, j)).order((j, i)), expected);
        assert_eq!(view.at((i, j)).order((j, i)), expected);
        assert_eq!(owned.t().at((j, i)).order((j, i)), expected);
        assert_eq!(dynamic.at((i, j)).order((j, i)), expected);
        assert_eq!(nested.at((i, j)).order((j, i)), expected);
        assert_eq!(vec![5, 6].at(i).order(i), array![5, 6]);
        assert_eq!([5, 6][..].at(i).order(i), array![5, 6]);
        assert_eq!(ndarray::arr0(7).at(()).order(()), 7);
        assert_eq!(owned.to_shared().at((i, j)).order((j, i)), expected);
        assert_eq!([true, false].at(i).order(i), array![true, false]);
    }

    #[test]
    fn lengths_of_fixed_size_arrays_meet_static_dims() {
        let a = [[1, 2, 3], [4, 5, 6]];
        assert_eq!(a.at((Two, Three)).order((Three, Two)), array![[1, 4], [2, 5], [3, 6]]);
    }

    #[test]
    fn binders_of_every_kind() {
        let a = Array3::from_shape_fn((2, 3, 6), |(i, j, k)| 100 * i + 10 * j + k);
        dims!(i, j, k);
        assert_eq!(a.at((i, 1, k)).order((i, k)), a.slice(s![.., 1, ..]));
        assert_eq!(a.at((i, -1, k)).order((i, k)), a.slice(s![.., 2, ..]));
        assert_eq!(a.at((i, 1.., k)).order((i, k)), a.slice(s![.., 1.., ..]).permuted_axes([0, 2, 1]));
        assert_eq!(a.at((0, .., ..)).order(()), a.slice(s![0, .., ..]));
        assert_eq!(a.at((0, Ellipsis)).order(()), a.slice(s![0, .., ..]));
        assert_eq!(a.at((Ellipsis, k)).order(k), a.view().permuted_axes([2, 0, 1]));
        assert_eq!(a.at((i, 1..=2, -2..)).order(i), a.slice(s![.., 1..=2, 4..]));
        assert_eq!(a.at((i, ..2, ..=1)).order(i), a.slice(s![.., ..2, ..2]));
        let square = a.slice(s![1, .., ..3]).to_owned();
        dims!(d);
        assert_eq!(square.at((d, d)).order(d), array![100usize, 111, 122]);
        dims!(h = 3, w);
        let split: Array3<usize> = a.at((0, j, (h, w))).order((w, j, h));
        assert_eq!(split, Array3::from_shape_fn((2, 3, 3), |(w, j, h)| 10 * j + 2 * h + w));
    }

    #[test]
    fn an_array_becomes_a_tensor_without_a_copy() {
        let a = Array2::from_shape_fn((2, 3), |(i, j)| 10 * i + j);
        let address = a.as_ptr();
        let t: Tensor<usize, (Batch, Seq)> = a.into_tensor((Batch, Seq));
        assert_eq!((t.size(Batch), t.size(Seq)), (2, 3));
        assert_eq!(t.dims(), [("Batch", 2), ("Seq", 3)]);
        let back = t.order((Batch, Seq));
        assert_eq!(back.as_ptr(), address);
        let mut flipped = back.reversed_axes();
        flipped.invert_axis(Axis(0));
        let t = flipped.into_tensor((Seq, Batch));
        assert_eq!(t.order((Batch, Seq)), array![[2, 1, 0], [12, 11, 10]]);
    }

    #[test]
    fn constructors() {
        assert_eq!(zeros::<f32, _>((Row.of(2), Col.of(3))).order((Row, Col)), Array2::<f32>::zeros((2, 3)));
        assert_eq!(ones::<i8, _>(Row.of(2)).order(Row), array![1, 1]);
        assert_eq!(full(Two, 7u8).order(Two), array![7, 7]);
        assert_eq!(
            eye::<f64, _, _>(Row.of(2), Col.of(3)).order((Row, Col)),
            array![[1., 0., 0.], [0., 1., 0.]]
        );
        assert_eq!(
            from_fn((Col.of(2), Row.of(2)), |(c, r)| 10 * c + r).order((Row, Col)),
            array![[0, 10], [1, 11]]
        );
        assert_eq!(
            from_vec((Col.of(2), Row.of(2)), vec![1, 2, 3, 4]).order((Row, Col)),
            array![[1, 3], [2, 4]]
        );
        dims!(i = 2);
        assert_eq!(from_vec(i, vec![1, 2]).order(i), array![1, 2]);
        assert_eq!(from_vec((), vec![4]).order(()), 4);
    }
}

mod structure {
    use super::*;

    fn x() -> Tensor<usize, (Batch, Seq)> {
        from_fn((Batch.of(2), Seq.of(5)), |(b, s)| 10 * b + s)
    }

    #[test]
    fn rename_index_slice() {
        let x = x();
        assert_eq!((&x).rename(Seq, Key).order((Key, Batch)), x.clone().order((Seq, Batch)));
        assert_eq!((&x).index(Seq, 3).order(Batch), array![3, 13]);
        assert_eq!((&x).index(Seq, -1).order(Batch), array![4, 14]);
        assert_eq!((&x).slice(Seq, 1..4).order((Batch, Seq)), array![[1, 2, 3], [11, 12, 13]]);
        assert_eq!((&x).slice(Seq, -2..).order((Batch, Seq)), array![[3, 4], [13, 14]]);
        assert_eq!((&x).slice(Seq, ..=-4).order((Batch, Seq)), array![[0, 1], [10, 11]]);
        assert_eq!((&x).slice(Seq, ..).eval(), x);
        assert_eq!(x.size(Seq), 5);
    }

    #[test]
    fn concat_stack_split() {
        let x = x();
        let parts = (&x).split(Seq, &[2, 0, 3]);
        assert_eq!(parts.iter().map(|part| part.size(Seq)).collect::<Vec<_>>(), [2, 0, 3]);
        assert_eq!(concat(Seq, parts), x);
        let stacked = stack(Row, [&x, &x]);
        assert_eq!(stacked.dims().len(), 3);
        assert_eq!((&stacked).index(Row, 1), x);
        assert_eq!(stacked.size(Row), 2);
    }
}

mod dims_are_values {
    use super::*;

    fn triu(a: &Array2<f32>) -> Array2<f32> {
        dims!(i, j);
        select(i.le(j), a.at((i, j)), 0.0).order((i, j))
    }

    fn embedding_bag(ids: &Array2<usize>, w: &Array2<f32>) -> Array2<f32> {
        dims!(batch, seq, feat);
        w.at((ids.at((batch, seq)), feat)).sum(seq).order((batch, feat))
    }

    fn conv2d(x: &Array4<f32>, w: &Array4<f32>) -> Array4<f32> {
        dims!(b, c, o, h, y, kh, kw);
        let w = w.at((o, c, kh, kw));
        (x.at((b, c, h + kh, y + kw)) * w).sum((c, kh, kw)).order((b, o, h, y))
    }

    fn scatter(e: &mut Array2<f32>, ids: &Array1<usize>, v: &Array2<f32>) {
        dims!(i, f);
        e.at_mut((ids.at(i), f)).add_assign(v.at((i, f)));
    }

    #[test]
    fn upper_triangle() {
        let a = array![[1., 2., 3.], [4., 5., 6.], [7., 8., 9.]];
        assert_eq!(triu(&a), array![[1., 2., 3.], [0., 5., 6.], [0., 0., 9.]]);
    }

    #[test]
    fn bags_of_embeddings() {
        let w = array![[1., 2.], [3., 4.], [5., 6.]];
        assert_eq!(embedding_bag(&array![[0, 2], [1, 1]], &w), array![[6., 8.], [6., 8.]]);
    }

    #[test]
    fn convolution() {
        // The sum over c < 2, kh < 2, kw < 3 of w = o + 1 times x = c + 10 (h + kh) + (y + kw).
        let x = Array4::from_shape_fn((2, 2, 4, 5), |(_, c, h, w)| (c + 10 * h + w) as f32);
        let w = Array4::from_shape_fn((3, 2, 2, 3), |(o, ..)| (o + 1) as f32);
        let closed =
            |(_, o, h, y): (usize, usize, usize, usize)| ((o + 1) * (6 + 120 * h + 60 + 12 * y + 12)) as f32;
        assert_eq!(conv2d(&x, &w), Array4::from_shape_fn((2, 3, 3, 3), closed));
    }

    #[test]
    fn duplicates_accumulate() {
        let mut e = Array2::ones((3, 2));
        scatter(&mut e, &array![2, 0, 2], &array![[1., 2.], [10., 20.], [100., 200.]]);
        assert_eq!(e, array![[11., 21.], [1., 1.], [102., 203.]]);
    }

    #[test]
    fn strides_and_negative_steps() {
        let a = array![1, 2, 3, 4, 5];
        dims!(i, j);
        assert_eq!(a.at(2 * i + 1).order(i), array![2, 4]);
        assert_eq!(a.at(a.len() - 1 - j).order(j), array![5, 4, 3, 2, 1]);
        assert_eq!(a.at(-j + 4).order(j), array![5, 4, 3, 2, 1]);
        dims! { struct Down; }
        assert_eq!(a.at(-Down.of(5) + 4).order(Down), array![5, 4, 3, 2, 1]);
        let x = a.mapv(|x| x as isize);
        assert_eq!((-Down + x.at(Down)).order(Down), array![1, 1, 1, 1, 1]);
    }

    #[test]
    fn what_a_select_does_not_take_may_be_out_of_range() {
        let a = array![1, 3, 6, 10, 15];
        dims!(i = 5);
        let d = select((i - 1).ge(0), a.at(i) - a.at(i - 1), a.at(i)).order(i);
        assert_eq!(d, array![1, 2, 3, 4, 5]);
        let error = a.at(i - 1).try_order(i).unwrap_err().to_string();
        assert!(error.contains("`i`") && error.contains("-1") && error.contains("size 5"), "{error}");
    }

    #[test]
    fn dims_wrap_around() {
        let a = array![1, 2, 3];
        let n = a.len() as isize;
        dims!(i = 3);
        assert_eq!(a.at((i + 1) % n).order(i), array![2, 3, 1]);
    }
}

mod gradients {
    use super::*;
    use typed_dims::grad::{checkpoint, grad, hessian, hvp, jacobian, jvp, value_and_grad, vjp};

    dims! {
        struct Example; struct Pixel; struct Hidden; struct Class;
        struct In; struct In2; struct Out;
    }

    type Images = Tensor<f32, (Example, Pixel)>;
    type Labels = Tensor<usize, (Example,)>;

    #[derive(Parameters)]
    struct Network {
        w1: Tensor<f32, (Pixel, Hidden)>,
        b1: Tensor<f32, (Hidden,)>,
        w2: Tensor<f32, (Hidden, Class)>,
        b2: Tensor<f32, (Class,)>,
    }

    fn loss(net: &Network, x: &Images, y: &Labels) -> Tensor<f32, ()> {
        let hidden = ((x * &net.w1).sum(Pixel) + &net.b1).relu();
        let scores = (hidden * &net.w2).sum(Hidden) + &net.b2;
        scores.cross_entropy(Class, y).mean(Example)
    }

    #[test]
    fn the_gradient_of_a_network_is_a_network() {
        let images: Images = randn((Example.of(4), Pixel.of(6)), 1);
        let labels: Labels = from_vec(Example.of(4), vec![2, 0, 1, 2]);
        let network = Network {
            w1: randn((Pixel.of(6), Hidden.of(5)), 2),
            b1: randn(Hidden.of(5), 3),
            w2: randn((Hidden.of(5), Class.of(3)), 4),
            b2: randn(Class.of(3), 5),
        };
        let (value, gradient): (f32, Network) = value_and_grad(|net| loss(net, &images, &labels), &network);
        assert_eq!(value, loss(&network, &images, &labels).order(()));
        // The backward pass by hand. The gradient of the loss with respect to the scores is
        // `(softmax - one hot) / n`.
        let before = ((&images * &network.w1).sum(Pixel) + &network.b1).eval();
        let hidden = (&before).relu().eval();
        let scores = ((&hidden * &network.w2).sum(Hidden) + &network.b2).eval();
        let hot = labels.one_hot::<f32, _>(Class.of(3));
        let d_scores = ((scores.softmax(Class) - hot) / 4.0).eval();
        let d_before = (select(before.gt(0.0), 1.0, 0.0) * (&d_scores * &network.w2).sum(Class)).eval();
        let near = |found: ndarray::ArrayD<f32>, expected: ndarray::ArrayD<f32>| {
            assert!(
                found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-6),
                "{found} instead of {expected}"
            );
        };
        near(gradient.b2.order(Class).into_dyn(), d_scores.sum(Example).order(Class).into_dyn());
        near(
            gradient.w2.order((Hidden, Class)).into_dyn(),
            (&hidden * &d_scores).sum(Example).order((Hidden, Class)).into_dyn(),
        );
        near(gradient.b1.order(Hidden).into_dyn(), d_before.sum(Example).order(Hidden).into_dyn());
        near(
            gradient.w1.order((Pixel, Hidden)).into_dyn(),
            (&images * &d_before).sum(Example).order((Pixel, Hidden)).into_dyn(),
        );
    }

    #[test]
    fn every_call() {
        let images: Tensor<f32, (Example, Pixel)> = randn((Example.of(4), Pixel.of(6)), 1);
        let w: Tensor<f32, (Pixel, Hidden)> = randn((Pixel.of(6), Hidden.of(5)), 2);
        let dw: Tensor<f32, (Pixel, Hidden)> = grad(|w| (&images * w).sum((Example, Pixel, Hidden)), &w);
        let sums = images.sum(Example).expand(Hidden.of(5)).eval();
        let difference: f32 = (&dw - &sums).abs().max((Pixel, Hidden)).order(());
        assert!(difference < 1e-6);

        let b: Tensor<f32, (Hidden,)> = zeros(Hidden.of(5));
        let (dw, db) = grad(|(w, b)| ((&images * w).sum(Pixel) + b).sum((Example, Hidden)), (&w, &b));
        let (dw, db): (Tensor<f32, (Pixel, Hidden)>, Tensor<f32, (Hidden,)>) = (dw, db);
        assert_eq!((dw.size(Pixel), db.order(Hidden)), (6, array![4., 4., 4., 4., 4.]));

        let weight = from_vec((In.of(2), Out.of(3)), vec![1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
        fn squares(weight: &Tensor<f32, (In, Out)>, x: &Tensor<f32, (In,)>) -> Tensor<f32, (Out,)> {
            (weight * x).sum(In).square().eval()
        }
        let f = |x: &Tensor<f32, (In,)>| squares(&weight, x);
        let x = from_vec(In.of(2), vec![1.0_f32, -1.0]);
        let dx = from_vec(In.of(2), vec![1.0_f32, 0.0]);
        let (y, pullback) = vjp(|x| f(x), &x);
        assert_eq!(y.order(Out), array![9.0, 9.0, 9.0]);
        let dy: Tensor<f32, (Out,)> = ones(Out.of(3));
        let found: Tensor<f32, (In,)> = pullback(&dy);
        assert_eq!(found.order(In), array![-36.0, -90.0]);
        let (y, dy) = jvp(|x| f(x), &x, &dx);
        assert_eq!((y.order(Out), dy.order(Out)), (array![9.0, 9.0, 9.0], array![-6.0, -12.0, -18.0]));
        let hv: Tensor<f32, (In,)> = hvp(|x| f(x).sum(Out), &x, &dx);
        assert_eq!(hv.order(In), array![28.0, 64.0]);
        let j: Tensor<f32, (Out, In)> = jacobian(|x: &Tensor<f32, (In,)>| f(x), &x);
        assert_eq!(j.order((Out, In)), array![[-6.0, -24.0], [-12.0, -30.0], [-18.0, -36.0]]);
        let h: Tensor<f32, (In, In2)> = hessian(|x| f(x).sum(Out), &x, (In,), (In2,));
        assert_eq!(h.order((In, In2)), array![[28.0, 64.0], [64.0, 154.0]]);
        let kept = grad(|x| checkpoint(|x: &Tensor<f32, (In,)>| (x * x).eval(), x).sum(In), &x);
        assert_eq!(kept.order(In), array![2.0, -2.0]);
        // `detach` makes a constant: the derivative of `x * c` is `c`.
        assert_eq!(grad(|x| (x * x.detach()).sum(In), &x).order(In), array![1.0, -1.0]);
        // Per-example gradients: `vmap` of a gradient.
        let xs = from_vec((Example.of(2), In.of(2)), vec![1.0_f32, -1.0, 0.0, 1.0]);
        let all: Tensor<f32, (Example, In)> =
            vmap(|x: Tensor<f32, (In,)>| grad(|x| (x * x).sum(In), &x), Example)(&xs);
        assert_eq!(all.order((Example, In)), array![[2.0, -2.0], [0.0, 2.0]]);
    }
}

/// Sums of up to 10^18 elements, with axes along which nothing varies.
mod still_axes {
    use super::*;
    use typed_dims::grad::grad;

    const MANY: usize = 1_000_000;

    dims! { struct I; struct J; struct K; }

    fn scalar(value: f64) -> Tensor<f64, ()> {
        from_vec((), vec![value])
    }

    fn line() -> Tensor<f64, (Row,)> {
        from_vec(Row.of(3), vec![1.0, 2.0, 3.0])
    }

    #[test]
    fn of_expanded_scalars() {
        let (i, j, k) = (I.of(MANY), J.of(MANY), K.of(MANY));
        let (x, y, z) = (scalar(2.0), scalar(3.0), scalar(0.5));
        let product = (x.view().expand(i) * y.view().expand(j) * z.view().expand(k)).sum((I, J, K));
        assert_eq!(product.order(()), 3e18);
        let pair = (x.view().expand(i) * y.view().expand(j)).sum((I, J));
        assert_eq!(pair.order(()), 6e12);
        assert_eq!(x.view().expand(i).expand(j).expand(k).sum((I, J, K)).order(()), 2e18);
        assert_eq!((x.view().expand(i).expand(j) + y.view().expand(k)).sum((I, J, K)).order(()), 5e18);
        assert_eq!(x.view().expand(i).expand(j).expand(k).mean((I, J, K)).order(()), 2.0);
        assert_eq!(x.view().expand(i).expand(j).expand(k).max((I, J, K)).order(()), 2.0);
        let integers = from_vec((), vec![7_u8]);
        assert_eq!(
            integers.expand(I.of(1000)).expand(j).sum((I, J)).order(()),
            (7_u64 * 1_000_000_000) as u8
        );
    }

    #[test]
    fn of_factors_that_vary_along_others() {
        let line = line();
        let (j, k) = (J.of(MANY), K.of(MANY));
        let y = scalar(3.0);
        // Kept rows, and axes that only some factors have.
        let sums = (line.view() * y.view().expand(j) * scalar(0.5).expand(k)).sum((J, K)).order(Row);
        assert_eq!(sums, array![1.5e12, 3e12, 4.5e12]);
        let all = (line.view().expand(j) * line.view().expand(k) * y.view()).sum((Row, J, K)).order(());
        assert_eq!(all, 42e12);
        // A kept axis along which nothing varies: the sum is computed once.
        let x: Tensor<f64, (J,)> = ones(J.of(MANY));
        let repeated = (y.view().expand(k) * x.view()).sum(J);
        let repeated: Tensor<f64, (K,)> = repeated;
        assert_eq!(repeated.max(K).order(()), 3e6);
        assert_eq!(repeated.min(K).order(()), 3e6);
        let halves = (line.view().expand(I.of(2)).expand(j) + y.view().expand(K.of(2))).sum((J, Row));
        assert_eq!(halves.order((I, K)), array![[15e6, 15e6], [15e6, 15e6]]);
        let wide = (line.view().expand(I.of(2)).expand(j) * 2.0).sum(J).order((I, Row));
        assert_eq!(wide, array![[2e6, 4e6, 6e6], [2e6, 4e6, 6e6]]);
    }

    #[test]
    fn of_broadcast_arrays() {
        let one = array![2.0];
        let rows = one.broadcast((MANY, MANY)).unwrap();
        dims!(i, j, k);
        let (x, y) = (rows.at((i, j)), rows.at((j, k)));
        assert_eq!((x * y).sum((i, j, k)).order(()), 4e18);
        let mut out = Array1::<f64>::zeros(2);
        let few = one.broadcast((2, MANY)).unwrap();
        dims!(l);
        (few.at((l, i)) * rows.at((i, j))).sum_into((i, j), &mut out, l);
        assert_eq!(out, array![4e12, 4e12]);
        assert_eq!(einsum!("i j, j k ->", rows, rows), 4e18);
        assert_eq!(einsum!("l i, i j, j k -> l", few, rows, rows), array![8e18, 8e18]);
        assert_eq!(einsum!("i j ->", rows), 2e12);
        // Products of long lines have their own kernel.
        let lines = ndarray::Array2::from_shape_fn((3, 200), |(i, k)| (i + k % 5) as f64);
        let many = lines.broadcast((MANY, 3, 200)).unwrap();
        dims!(repeat, line, at);
        let x = many.at((repeat, line, at));
        let sums = (x * x).sum((repeat, at)).order(line);
        assert_eq!(sums, (&lines * &lines).sum_axis(Axis(1)) * MANY as f64);
    }

    #[cfg(feature = "half")]
    #[test]
    fn of_half_precision_are_rounded_once() {
        use half::bf16;
        // 3 * 257 is 771, between the `bf16`s 768 and 772. The nearest to 257 is 256.
        let numbers = [256.0, 1.0].map(bf16::from_f32);
        for power in [0, 40] {
            let size = 3_usize << power;
            let (many, sum) = (J.of(size), bf16::from_f32(772.0 * 2_f32.powi(power)));
            let x: Tensor<bf16, (K,)> = from_vec(K.of(2), numbers.to_vec());
            assert_eq!(x.view().expand(many).sum((J, K)).order(()), sum);
            assert_eq!((x.view() * bf16::ONE).expand(many).sum((J, K)).order(()), sum);
            let mut out = ndarray::arr0(bf16::ZERO);
            x.view().expand(many).sum_into((J, K), &mut out, ());
            assert_eq!(out, ndarray::arr0(sum));

            let rows = from_fn((Row.of(2), K.of(2)), |(_, k)| numbers[k]);
            let columns = ones::<bf16, _>((K.of(2), I.of(2)));
            let expected = ndarray::Array2::from_elem((2, 2), sum);
            let product = || (rows.view() * columns.view()).expand(many);
            assert_eq!(product().sum((J, K)).order((Row, I)), expected);
            let mut out = ndarray::Array2::from_elem((2, 2), bf16::ZERO);
            product().sum_into((J, K), &mut out, (Row, I));
            assert_eq!(out, expected);

            let ones = ndarray::Array2::from_elem((2, 2), bf16::ONE);
            let rows = rows.order((Row, K));
            let wide = rows.broadcast((size, 2, 2)).unwrap();
            let wide_ones = ones.broadcast((size, 2, 2)).unwrap();
            assert_eq!(einsum!("j i k, k l -> i l", wide, ones), expected);
            assert_eq!(einsum!("j i k -> i", wide), array![sum, sum]);
            dims!(i, j, k);
            let sums = (wide.at((j, i, k)) * wide_ones.at((j, i, k))).sum((j, k)).order(i);
            assert_eq!(sums, array![sum, sum]);
        }
    }

    /// As without the axes along which nothing varies.
    #[cfg(feature = "half")]
    #[test]
    fn of_half_precision_that_are_no_matrix_products_round_each_product() {
        use half::f16;
        // Both products are out of range, so the sum is `inf - inf`.
        let (x, y) = (array![300.0, -300.0].mapv(f16::from_f32), array![300.0, 300.0].mapv(f16::from_f32));
        let (wide_x, wide_y) = (x.broadcast((3, 2)).unwrap(), y.broadcast((3, 2)).unwrap());
        let sums = [
            (x.at(K) * y.at(K)).sum(K).order(()),
            (x.at(K) * y.at(K)).expand(J.of(3)).sum((J, K)).order(()),
            (wide_x.at((J, K)) * wide_y.at((J, K))).sum((J, K)).order(()),
            (wide_x.to_owned().at((J, K)) * wide_y.to_owned().at((J, K))).sum((J, K)).order(()),
            einsum!("j k, j k ->", wide_x, wide_y),
        ];
        assert!(sums.iter().all(|sum| sum.is_nan()), "{sums:?}");
    }

    /// Few of the elements differ, but their number overflows.
    #[test]
    fn that_cannot_be_counted() {
        const HUGE: usize = 1 << (usize::BITS * 5 / 8);
        let (line, y, j, k) = (line(), scalar(3.0), J.of(HUGE), K.of(HUGE));
        let product = || line.view() * y.view().expand(j) * y.view().expand(k);
        let expected = DimError::TooLarge { dims: format!("dims `J` = {HUGE}, `K` = {HUGE}") };
        assert_eq!(product().try_sum((J, K)).unwrap_err(), expected);
        let mut out = Array1::<f64>::zeros(3);
        assert_eq!(product().try_sum_into((J, K), &mut out, Row).unwrap_err(), expected);

        let (pair, square) = (array![1.0, 2.0], array![[1.0, 2.0], [3.0, 4.0]]);
        let (pairs, squares) = (pair.broadcast((HUGE, 2)).unwrap(), square.broadcast((HUGE, 2, 2)).unwrap());
        dims!(m, n, p, q);
        let sum = (pairs.at((m, p)) * squares.at((n, p, q))).try_sum((m, n, p, q));
        let dims = format!("dims `m` = {HUGE}, `n` = {HUGE}, `p` = 2, `q` = 2");
        assert_eq!(sum.unwrap_err(), DimError::TooLarge { dims });
        // The message has the sizes of all axes: the result has none.
        let sum = typed_dims::try_einsum!("m p, n p q ->", pairs, squares);
        let dims = format!("the sizes [{HUGE}, 2, {HUGE}, 2], in the pattern `m p, n p q ->`,");
        assert_eq!(sum.unwrap_err(), DimError::TooLarge { dims });
        let one = array![1.0];
        let many = one.broadcast(HUGE).unwrap();
        let sum = typed_dims::try_einsum!("m, n ->", many, many);
        let dims = format!("the sizes [{HUGE}, {HUGE}], in the pattern `m, n ->`,");
        assert_eq!(sum.unwrap_err(), DimError::TooLarge { dims });
    }

    /// Each element counts twice, so only the number of all elements overflows. Contractions do not
    /// need that number.
    #[test]
    fn of_more_elements_than_can_be_counted() {
        const SIZE: usize = 100_000;
        let x: Tensor<f64, (I,)> = ones(I.of(SIZE));
        let y: Tensor<f64, (J,)> = ones(J.of(SIZE));
        let z: Tensor<f64, (K,)> = ones(K.of(SIZE));
        let w: Tensor<f64, (Key,)> = ones(Key.of(SIZE));
        let product = || x.view().expand(Two) * y.view() * z.view() * w.view();
        assert_eq!(product().sum((I, J, K, Key)).order(Two), array![1e20, 1e20]);
        assert_eq!(product().sum((I, J, K, Key, Two)).order(()), 2e20);
        let mut out = ndarray::arr0(0.0);
        product().sum_into((I, J, K, Key, Two), &mut out, ());
        assert_eq!(out, ndarray::arr0(2e20));
        let line = Array1::<f64>::ones(SIZE);
        let lines = line.broadcast((2, SIZE)).unwrap();
        assert_eq!(einsum!("l i, j, k, m ->", lines, line, line, line), 2e20);
    }

    #[test]
    fn their_gradients() {
        let (i, j, k) = (I.of(MANY), J.of(MANY), K.of(MANY));
        let (x, y) = (scalar(2.0), scalar(3.0));
        let slopes =
            grad(|(x, y)| (x.view().expand(i) * y.view().expand(j)).expand(k).sum((I, J, K)), (&x, &y));
        assert_eq!((slopes.0.order(()), slopes.1.order(())), (3e18, 2e18));
    }
}

/// Matrix products whose left factor is computed.
mod computed_factors {
    use super::*;
    use typed_dims::grad::value_and_grad;

    dims! { struct M; struct K; struct N; }

    #[test]
    fn of_all_sizes() {
        for [m, k, n] in (0..27).map(|at| [at / 9, at / 3 % 3, at % 3]) {
            let x = from_fn((M.of(m), K.of(k)), |(row, at)| (row * 3 + at) as i64 - 2);
            let bias = from_fn(K.of(k), |at| at as i64 + 1);
            let w = from_fn((K.of(k), N.of(n)), |(at, col)| (at * 5) as i64 - col as i64);
            let expected = ndarray::Array2::from_shape_fn((m, n), |(row, col)| {
                (0..k)
                    .map(|at| {
                        ((row * 3 + at) as i64 - 2 + at as i64 + 1) * ((at * 5) as i64 - col as i64) * 3
                    })
                    .sum()
            });
            assert_eq!(((&x + &bias) * 3).contract(&w, K).order((M, N)), expected, "{m} {k} {n}");
            let (x, bias, w) = (x.cast::<f32>().eval(), bias.cast::<f32>().eval(), w.cast::<f32>().eval());
            let found = ((&x + &bias) * 3.0).contract(&w, K).order((M, N));
            assert_eq!(found, expected.mapv(|sum: i64| sum as f32), "{m} {k} {n}");
            let (value, slopes) =
                value_and_grad(|(x, w)| ((x + &bias) * 3.0).contract(w, K).sum((M, N)), (&x, &w));
            assert_eq!(value, expected.sum() as f32, "{m} {k} {n}");
            let expected = ndarray::Array2::from_shape_fn((m, k), |(_, at)| {
                (0..n).map(|col| (at * 5) as f32 - col as f32).sum::<f32>() * 3.0
            });
            assert_eq!(slopes.0.order((M, K)), expected, "{m} {k} {n}");
        }
    }

    #[test]
    fn of_no_elements_compute_nothing() {
        let x = from_fn((M.of(0), K.of(2)), |_| 1);
        let zeros = from_vec(K.of(2), vec![0, 0]);
        let w = from_fn((K.of(2), N.of(3)), |_| 1);
        // A division by zero would be an error.
        assert_eq!((&x / &zeros).contract(&w, K).order((M, N)), ndarray::Array2::<i32>::zeros((0, 3)));
    }

    #[test]
    fn that_do_not_vary() {
        let x = from_vec(M.of(2), vec![1.0, 2.0]);
        let many = K.of(1_000_000);
        let y = ones::<f64, _>((N.of(3), K.of(1_000_000)));
        assert_eq!(x.view().expand(many).contract(&y, K).order((M, N)), array![[1e6; 3], [2e6; 3]]);
    }

    #[cfg(feature = "half")]
    #[test]
    fn are_scaled_before_they_are_rounded() {
        let ten = half::f16::from_f32(10.0);
        let x = full((M.of(1), K.of(4096)), ten);
        let w = full((K.of(4096), N.of(2)), ten);
        // The sum of the unscaled products is greater than the greatest number of this type.
        let found = (&x * half::f16::from_f32(0.001)).contract(&w, K).order((M, N));
        assert!(found.iter().all(|sum| (sum.to_f32() - 410.0).abs() < 1.0), "{found}");
    }
}

/// Products with a constant factor without which a sum, or the product of all constant factors, is
/// outside the range of the type.
mod constant_factors {
    use super::*;
    use typed_dims::program::record;

    dims! { struct M; struct K; struct N; }

    type Rows = Tensor<f32, (M, K)>;
    type Columns = Tensor<f32, (K, N)>;

    /// The numbers have been rounded fewer than ten times, by at most 6e-8 of their value.
    #[track_caller]
    fn assert_near<'x>(found: impl IntoIterator<Item = &'x f32>, expected: f32) {
        for number in found {
            assert!((number / expected - 1.0).abs() < 1e-6, "{number} instead of {expected}");
        }
    }

    #[test]
    fn that_are_large_or_small() {
        let cases = [(1e20_f32, 1e-30_f32, 3e10_f32), (1e-25, 1e30, 3e-20), (1e20, 1e-9, 3e31)];
        for (element, factor, expected) in cases {
            let a: Rows = full((M.of(2), K.of(3)), element);
            let b: Columns = full((K.of(3), N.of(2)), element);
            assert_near(&(&a * factor * &b).sum(K).order((M, N)), expected);
            assert_near(&(&a * factor).contract(&b, K).order((M, N)), expected);
            assert_near(&(&a * factor * &b).expand(Row.of(2)).sum(K).order((Row, M, N)), expected);
            let mut out = ndarray::Array2::zeros((2, 2));
            (&a * factor * &b).sum_into(K, &mut out, (M, N));
            assert_near(&out, expected);
            let program = record(|(a, b): (&Rows, &Columns)| (a * factor * b).sum(K), (&a, &b)).unwrap();
            assert_near(&program.call((&a, &b)).order((M, N)), expected);
            let (x, y) = (Array3::from_elem((1, 2, 3), element), b.order((K, N)));
            dims!(n);
            assert_near(&einsum!("i k, k j -> i j", x.at((n, .., ..)) * factor, y).order(n), expected);
        }
    }

    #[test]
    fn whose_product_is_too_large() {
        let (a, b): (Rows, Columns) = (full((M.of(2), K.of(4)), 1e-30), ones((K.of(4), N.of(2))));
        let product = |(a, b): (&Rows, &Columns)| (a * 1e25 * 1e25 * b).sum(K);
        assert_near(&product((&a, &b)).order((M, N)), 4e20);
        let program = record(product, (&a, &b)).unwrap();
        assert_near(&program.call((&a, &b)).order((M, N)), 4e20);
    }

    /// The factors multiply in turn, so the product is infinite or 0 although the product of all
    /// factors is not.
    #[test]
    fn some_of_which_have_a_product_out_of_range() {
        let (a, b): (Rows, Columns) = (ones((M.of(2), K.of(3))), ones((K.of(3), N.of(2))));
        let large = |(a, b): (&Rows, &Columns)| (a * 1e20 * 1e20 * 1e-20 * 1e-15 * b).sum(K);
        let infinite = ndarray::Array2::from_elem((2, 2), f32::INFINITY);
        assert_eq!(large((&a, &b)).order((M, N)), infinite);
        let program = record(large, (&a, &b)).unwrap();
        assert_eq!(program.call((&a, &b)).order((M, N)), infinite);
        let small = |(a, b): (&Rows, &Columns)| (a * 1e-30 * 1e-30 * 1e30 * 1e30 * b).sum(K);
        let zeros = ndarray::Array2::<f32>::zeros((2, 2));
        assert_eq!(small((&a, &b)).order((M, N)), zeros);
        let program = record(small, (&a, &b)).unwrap();
        assert_eq!(program.call((&a, &b)).order((M, N)), zeros);
    }

    /// The constant multiplies the factor on its right: its product with the other one is infinite.
    #[test]
    fn on_the_left_of_a_factor() {
        let (a, b): (Rows, Columns) = (full((M.of(2), K.of(3)), 1e20), full((K.of(3), N.of(2)), 1e-25));
        let product = |(a, b): (&Rows, &Columns)| (a * (1e30_f32 * b)).sum(K);
        assert_near(&product((&a, &b)).order((M, N)), 3e25);
        let program = record(product, (&a, &b)).unwrap();
        assert_near(&program.call((&a, &b)).order((M, N)), 3e25);
        let mut out = ndarray::Array2::zeros((2, 2));
        (&a * (1e30_f32 * &b)).sum_into(K, &mut out, (M, N));
        assert_near(&out, 3e25);
    }

    #[test]
    fn beside_factors_that_are_computed_once() {
        let (a, b): (Rows, Columns) = (ones((M.of(2), K.of(3))), ones((K.of(3), N.of(2))));
        let calls = std::cell::Cell::new(0);
        let counted = |x: f32| {
            calls.set(calls.get() + 1);
            x
        };
        assert_near(&((&a).map(counted) * 1e20 * &b).sum(K).order((M, N)), 3e20);
        assert_eq!(calls.take(), 6);
        let (x, y) = (Array3::<f32>::ones((1, 2, 3)), b.order((K, N)));
        dims!(n);
        let found = einsum!("i k, k j -> i j", x.at((n, .., ..)).map(counted) * 1e20, y).order(n);
        assert_near(&found, 3e20);
        assert_eq!(calls.take(), 6);
    }

    #[cfg(feature = "half")]
    #[test]
    fn of_half_precision() {
        use half::{bf16, f16};
        type Rows = Tensor<f16, (M, K)>;
        type Columns = Tensor<f16, (K, N)>;
        let factor = f16::from_f32(256.0);
        let a: Rows = full((M.of(2), K.of(4)), f16::from_f32(1.0 / 1024.0));
        let b: Columns = full((K.of(4), N.of(2)), f16::ONE);
        let expected = ndarray::Array2::from_elem((2, 2), factor);
        let product = |(a, b): (&Rows, &Columns)| (a * factor * factor * b).sum(K);
        assert_eq!(product((&a, &b)).order((M, N)), expected);
        let program = record(product, (&a, &b)).unwrap();
        assert_eq!(program.call((&a, &b)).order((M, N)), expected);
        // Without the constant factor, the sums are out of the range of `f32` too.
        let power = |exponent| bf16::from_f32(2_f32.powi(exponent));
        let (a, b) = (full((M.of(2), K.of(4)), power(70)), full((K.of(4), N.of(2)), power(70)));
        let found = (&a * power(-30) * &b).sum(K).order((M, N));
        assert_eq!(found, ndarray::Array2::from_elem((2, 2), power(112)));
    }
}
