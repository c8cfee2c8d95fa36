//! Batching: functions written for one example, called with extra dims. `tests/programs` has larger
//! functions.

use ndarray::{Array2, Array3, ArrayD, Dimension, IxDyn};
use typed_dims::batch::map_each;
use typed_dims::fallible::try_apply_arrays;
use typed_dims::operators::custom::apply_arrays;
use typed_dims::pipeline::plan::explain::{Plan, PlanStep};
use typed_dims::prelude::*;
use typed_dims::types::rank::Rank;
use typed_dims::types::rank::U0;
use typed_dims::types::scalar::Element;

dims! {
    /// Examples.
    pub struct Batch;
    /// Further examples.
    pub struct Group;
    /// Positions.
    pub struct Seq;
    /// Input features.
    pub struct Feat;
    /// Output features.
    pub struct Out;
    /// Hidden features.
    pub struct Hidden;
    /// Other hidden features.
    pub struct Hidden2;
}

/// Pseudorandom numbers, the same in each run.
fn numbers<D: Dimension>(sizes: impl ndarray::ShapeBuilder<Dim = D>, seed: u64) -> ndarray::Array<f32, D> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    ndarray::Array::from_shape_simple_fn(sizes, || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 40) as f32 / (1u64 << 24) as f32) * 2.0 - 1.0
    })
}

fn products(plan: &Plan) -> usize {
    plan.steps.iter().filter(|step| matches!(step, PlanStep::Product { .. })).count()
}

fn close<A: Dimension, B: Dimension>(a: ndarray::Array<f32, A>, b: ndarray::Array<f32, B>) {
    assert_eq!(a.shape(), b.shape());
    for (x, y) in a.iter().zip(&b) {
        assert!((x - y).abs() < 1e-5 * x.abs().max(y.abs()).max(1.0), "{x} instead of {y}");
    }
}

/// The numbers of examples along two extra dims.
const N: usize = 3;
const M: usize = 2;

/// The results of single calls, with one axis for each of the two extra dims in front.
fn looped(mut one: impl FnMut(usize, usize) -> ArrayD<f32>) -> ArrayD<f32> {
    let parts: Vec<ArrayD<f32>> =
        (0..N).flat_map(|n| (0..M).map(move |m| (n, m))).map(|(n, m)| one(n, m)).collect();
    let views: Vec<_> = parts.iter().map(|part| part.view()).collect();
    let all = ndarray::stack(ndarray::Axis(0), &views).unwrap();
    let mut sizes = vec![N, M];
    sizes.extend(parts[0].shape());
    all.into_shape_with_order(IxDyn(&sizes)).unwrap()
}

#[batched]
fn mm(a: Tensor<f32, (), U2>, b: Tensor<f32, (), U2>) -> Tensor<f32, (), U2> {
    dims!(i, j, k);
    (a.at((i, k)) * b.at((k, j))).sum(k).order((i, j))
}

mod products {
    use super::*;

    #[test]
    fn a_batch_of_products_is_one_contraction() {
        let (a, b) = (numbers((64, 5, 7), 1), numbers((64, 7, 6), 2));
        dims!(n);
        let (c, plan) = explain(|| mm(a.at((n, .., ..)), b.at((n, .., ..))));
        let [PlanStep::Product { batch: 64, m: 5, k: 7, n: 6, .. }] = plan.steps[..] else {
            panic!("{plan}")
        };
        let c: Array3<f32> = c.order(n);
        for at in 0..64 {
            close(
                c.index_axis(ndarray::Axis(0), at).to_owned(),
                a.index_axis(ndarray::Axis(0), at).dot(&b.index_axis(ndarray::Axis(0), at)),
            );
        }
    }

    #[test]
    fn an_argument_that_lacks_the_further_dim_makes_rows_of_it() {
        let (a, b) = (numbers((64, 5, 7), 1), numbers((7, 6), 2));
        dims!(n);
        let (c, plan) = explain(|| mm(a.at((n, .., ..)), b.at((.., ..))));
        let [PlanStep::Product { batch: 1, m: 320, k: 7, n: 6, .. }] = plan.steps[..] else {
            panic!("{plan}")
        };
        let flat = a.clone().into_shape_with_order((320, 7)).unwrap().dot(&b);
        close(c.order(n), flat.into_shape_with_order((64, 5, 6)).unwrap());
    }

    #[test]
    fn different_dims_per_argument_are_an_outer_batch() {
        let (a, b) = (numbers((N, 2, 3), 1), numbers((M, 3, 4), 2));
        dims!(n, m);
        let (c, plan) = explain(|| mm(a.at((n, .., ..)), b.at((m, .., ..))));
        assert_eq!(products(&plan), 1, "{plan}");
        let expected = looped(|n, m| {
            a.index_axis(ndarray::Axis(0), n).dot(&b.index_axis(ndarray::Axis(0), m)).into_dyn()
        });
        close(c.order((n, m)), expected);
    }

    #[test]
    fn two_further_dims_and_transposed_views() {
        let (a, b) = (numbers((2, N, 3, M), 1), numbers((M, 3, N, 4), 2));
        dims!(n, m);
        let (c, plan) = explain(|| mm(a.at((.., n, .., m)), b.at((m, .., n, ..))));
        assert_eq!(products(&plan), 1, "{plan}");
        close(
            c.order((n, m)),
            looped(|n, m| mm(a.at((.., n, .., m)), b.at((m, .., n, ..))).order(()).into_dyn()),
        );
    }

    #[test]
    fn without_further_dims_it_is_the_function() {
        let (a, b) = (numbers((2, 3), 1), numbers((3, 4), 2));
        let c: Tensor<f32, (), U2> = mm(a.at((.., ..)), &b.at((.., ..)));
        close(c.order(()), a.dot(&b));
    }

    #[test]
    fn expressions_and_owned_tensors_are_arguments() {
        let (a, b) = (numbers((N, 2, 3), 1), numbers((3, 4), 2));
        dims!(n);
        let c = mm(a.at((n, .., ..)) * 2.0 + 1.0, b.at((.., ..)).eval());
        let plain = mm((a.mapv(|x| x * 2.0 + 1.0)).at((n, .., ..)), b.at((.., ..)));
        assert_eq!(c.order(n), plain.order(n));
    }

    #[test]
    fn an_empty_batch_has_an_empty_result() {
        let (a, b) = (Array3::<f32>::zeros((0, 2, 3)), numbers((3, 4), 2));
        dims!(n);
        assert_eq!(mm(a.at((n, .., ..)), b.at((.., ..))).order(n).shape(), [0, 2, 4]);
    }

    #[test]
    #[should_panic(expected = "dim `n` has size 3")]
    fn sizes_of_further_dims_must_agree() {
        dims!(n);
        let (a, b) = (numbers((3, 2, 2), 1), numbers((4, 2, 2), 2));
        let _ = mm(a.at((n, .., ..)), b.at((n, .., ..)));
    }

    #[test]
    #[should_panic(expected = "dim `Batch` has size 3")]
    fn sizes_of_declared_further_dims_must_agree() {
        #[batched]
        fn add(a: Tensor<f32, (Feat,)>, b: Tensor<f32, (Feat,)>) -> Tensor<f32, (Feat,)> {
            a + b
        }
        let _ = add(ones::<f32, _>((Batch.of(3), Feat.of(2))), ones::<f32, _>((Batch.of(4), Feat.of(2))));
    }
}

mod declared {
    use super::*;

    #[batched]
    fn mlp(
        x: &Tensor<f32, (Feat,)>,
        w1: &Tensor<f32, (Feat, Hidden)>,
        w2: &Tensor<f32, (Hidden, Hidden2)>,
        w3: &Tensor<f32, (Hidden2, Out)>,
    ) -> Tensor<f32, (Out,)> {
        let h = (x * w1).sum(Feat).relu();
        let h = (h * w2).sum(Hidden).relu();
        (h * w3).sum(Hidden2)
    }

    #[test]
    fn mlp_over_two_further_dims() {
        let x = numbers((N, M, 5), 1).into_tensor((Batch, Group, Feat));
        let w1 = numbers((5, 6), 2).into_tensor((Feat, Hidden));
        let w2 = numbers((6, 7), 3).into_tensor((Hidden, Hidden2));
        let w3 = numbers((7, 4), 4).into_tensor((Hidden2, Out));
        let (out, plan) = explain(|| mlp(&x, &w1, &w2, &w3));
        let rows = |step: &PlanStep| matches!(step, PlanStep::Product { batch: 1, m: 6, .. });
        assert_eq!(plan.steps.iter().filter(|step| rows(step)).count(), 3, "{plan}");
        let expected =
            looped(|n, m| mlp((&x).index(Batch, n).index(Group, m), &w1, &w2, &w3).order(Out).into_dyn());
        close(out.order((Batch, Group, Out)), expected);
    }

    /// The weights can be batched too: an ensemble of networks.
    #[test]
    fn mlp_with_batched_weights() {
        let x = numbers((N, 5), 1).into_tensor((Batch, Feat));
        let w1 = numbers((M, 5, 6), 2).into_tensor((Group, Feat, Hidden));
        let w2 = numbers((6, 7), 3).into_tensor((Hidden, Hidden2));
        let w3 = numbers((7, 4), 4).into_tensor((Hidden2, Out));
        let expected =
            looped(|n, m| mlp((&x).index(Batch, n), (&w1).index(Group, m), &w2, &w3).order(Out).into_dyn());
        close(mlp(&x, &w1, &w2, &w3).order((Batch, Group, Out)), expected);
    }
}

mod methods {
    use super::*;

    #[batched]
    trait Layer {
        /// The output of the layer.
        fn forward(&self, x: &Tensor<f32, (Feat,)>) -> Tensor<f32, (Feat,)>;

        /// Methods without tensors are not changed.
        fn name(&self) -> String;
    }

    struct Dense(Tensor<f32, (Feat, Out)>);
    struct Shift(f32);
    struct Both<A, B>(A, B);

    #[batched]
    impl Layer for Dense {
        fn forward(&self, x: &Tensor<f32, (Feat,)>) -> Tensor<f32, (Feat,)> {
            (x * &self.0).sum(Feat).rename(Out, Feat)
        }

        fn name(&self) -> String {
            "dense".into()
        }
    }

    #[batched]
    impl Layer for Shift {
        fn forward(&self, x: &Tensor<f32, (Feat,)>) -> Tensor<f32, (Feat,)> {
            x + self.0
        }

        fn name(&self) -> String {
            "shift".into()
        }
    }

    #[batched]
    impl<A: Layer, B: Layer> Layer for Both<A, B> {
        fn forward(&self, x: &Tensor<f32, (Feat,)>) -> Tensor<f32, (Feat,)> {
            self.1.forward(self.0.forward(x))
        }

        fn name(&self) -> String {
            format!("{}, {}", self.0.name(), self.1.name())
        }
    }

    impl Dense {
        #[batched]
        fn transposed(&self, y: Tensor<f32, (Out,)>) -> Tensor<f32, (Feat,)> {
            (y * &self.0).sum(Out)
        }

        #[batched]
        fn identity(like: Tensor<f32, (Feat,)>) -> Self
        where
            Self: Sized,
        {
            Dense(ones((Feat.of(like.size(Feat)), Out.of(1))))
        }
    }

    /// Functions without `self`.
    #[batched]
    trait Scaling {
        fn scaled(x: &Tensor<f32, (Feat,)>) -> Tensor<f32, (Feat,)>;

        fn doubled(x: &Tensor<f32, (Feat,)>) -> Tensor<f32, (Feat,)> {
            x * 2.0
        }
    }

    struct Times<const K: usize>;

    #[batched]
    impl<const K: usize> Scaling for Times<K> {
        fn scaled(x: &Tensor<f32, (Feat,)>) -> Tensor<f32, (Feat,)> {
            x * K as f32
        }
    }

    #[batched]
    impl<const K: usize> Times<K> {
        fn divided(x: &Tensor<f32, (Feat,)>) -> Tensor<f32, (Feat,)> {
            x / K as f32
        }
    }

    impl<const K: usize> Times<K> {
        const FACTOR: f32 = K as f32;

        /// The body mentions `Self` only in the argument of a macro.
        #[batched]
        fn checked(x: &Tensor<f32, (Feat,)>) -> Tensor<f32, (Feat,)> {
            assert!(Self::FACTOR > 1.0);
            x * 4.0
        }
    }

    #[test]
    fn functions_without_self() {
        let x = numbers((N, 4), 1).into_tensor((Batch, Feat));
        let same = |found: Tensor<f32, (Batch, Feat)>, factor: f32| {
            assert_eq!(found.order((Batch, Feat)), (&x * factor).order((Batch, Feat)));
        };
        same(Times::<3>::scaled(&x), 3.0);
        same(Times::<3>::doubled(&x), 2.0);
        same(Times::<8>::divided(&x), 0.125);
        same(Times::<3>::checked(&x), 4.0);
    }

    #[test]
    fn a_layer_is_written_once() {
        let dense = || Dense(numbers((4, 4), 1).into_tensor((Feat, Out)));
        let model = Both(dense(), Both(Shift(0.5), dense()));
        let x = numbers((N, M, 4), 2).into_tensor((Batch, Group, Feat));
        let (y, plan) = explain(|| model.forward(&x));
        assert_eq!(products(&plan), 2, "{plan}");
        let expected =
            looped(|n, m| model.forward((&x).index(Batch, n).index(Group, m)).order(Feat).into_dyn());
        close(y.order((Batch, Group, Feat)), expected);
        assert_eq!(model.name(), "dense, shift, dense");
    }

    #[test]
    fn methods_of_a_type() {
        let dense = Dense(numbers((4, 3), 1).into_tensor((Feat, Out)));
        let y = numbers((N, M, 3), 2).into_tensor((Batch, Group, Out));
        let expected =
            looped(|n, m| dense.transposed((&y).index(Batch, n).index(Group, m)).order(Feat).into_dyn());
        close(dense.transposed(&y).order((Batch, Group, Feat)), expected);
        assert_eq!(
            Dense::identity(numbers((N, 4), 1).into_tensor((Batch, Feat))).0.dims(),
            [("Feat", 4), ("Out", 1)]
        );
    }
}

mod names {
    use super::*;

    /// Creates a new `n` in each nested call.
    #[batched]
    fn total(x: Tensor<f32, (), U1>, depth: usize) -> Tensor<f32, ()> {
        dims!(n);
        let sum = x.at(n).sum(n);
        if depth == 0 {
            return sum;
        }
        let rest = total(x, depth - 1);
        sum + rest
    }

    #[test]
    fn dims_of_the_caller_and_of_each_call_are_different_ones() {
        let x = numbers((N, 4), 1);
        dims!(n);
        let sums = total(x.at((n, ..)), 3).order(n);
        close(sums, x.sum_axis(ndarray::Axis(1)) * 4.0);
    }

    fn of_one(x: f32) -> f32 {
        x + 1.0
    }

    struct Further;

    impl Further {
        const FACTOR: f32 = 2.0;
    }

    /// Mentions names that an expansion could have.
    #[batched]
    fn clashing(
        arg1: f32,
        _: &Tensor<f32, (Feat,)>,
        x: &Tensor<f32, (Feat,)>,
        batch0: f32,
    ) -> (Tensor<f32, (Feat,)>, f32) {
        assert!(Further::FACTOR > batch0);
        let part0 = of_one(arg1);
        ((x * part0).eval(), batch0)
    }

    #[test]
    fn names_of_the_expansion_are_free() {
        let x = numbers((N, 4), 1).into_tensor((Batch, Feat));
        let (found, rest) = clashing(1.0, &x, &x, 0.5);
        assert_eq!(found.order((Batch, Feat)), (&x * 2.0).order((Batch, Feat)));
        assert_eq!(rest, 0.5);
    }

    #[batched]
    fn sum_over_batch(x: &Tensor<f32, (Batch, Feat)>) -> Tensor<f32, (Feat,)> {
        x.sum(Batch)
    }

    /// A function that names `Batch` is called on a tensor that already has `Batch` in its rest.
    #[batched]
    fn outer(x: &Tensor<f32, (Feat,)>, y: &Tensor<f32, (Seq,)>) -> Tensor<f32, (Feat,)> {
        let both = (x * y).rename(Seq, Batch);
        sum_over_batch(&both)
    }

    #[test]
    fn a_declared_dim_behind_the_rest_is_not_the_one_in_front() {
        let x = numbers((N, 4), 1).into_tensor((Batch, Feat));
        let y = numbers((N, 5), 2).into_tensor((Batch, Seq));
        let out = outer(&x, &y).order((Batch, Feat));
        let expected = Array2::from_shape_fn((N, 4), |(n, f)| {
            (&x).index(Batch, n).index(Feat, f).order(()) * (&y).index(Batch, n).sum(Seq).order(())
        });
        close(out, expected);
    }
}

mod rests {
    use super::*;

    fn norm<B: Dims>(
        x: Tensor<f32, (Seq, Feat, Rest<B>)>,
        g: Tensor<f32, (Feat,)>,
    ) -> Tensor<f32, (Seq, Rest<B>)> {
        (x * g).sum(Feat)
    }

    #[test]
    fn seal_and_unseal_by_hand() {
        let x = numbers((N, M, 4, 5), 1).into_tensor((Batch, Group, Seq, Feat));
        let g = numbers(5, 2).into_tensor(Feat);
        let direct = (&x * &g).sum(Feat);
        let (out, plan) = explain(|| norm(x.seal((Seq, Feat)), g).unseal());
        assert_eq!(plan.steps.len(), 1, "{plan}");
        let out: Tensor<f32, (Batch, Group, Seq)> = out;
        close(out.order((Batch, Group, Seq)), direct.order((Batch, Group, Seq)));
    }

    #[test]
    fn views_are_sealed_as_views() {
        let x = numbers((N, 4, 5), 1);
        dims!(n, i, j);
        let sealed = x.at((n, i, j)).seal(i);
        let (sum, plan) = explain(|| sealed.sum(i).unseal());
        assert_eq!(plan.steps.len(), 1);
        close(sum.order((n, j)), x.sum_axis(ndarray::Axis(1)));
        let reference = &x.at((n, i, j));
        close(reference.seal((i, j)).unseal().order((n, i, j)), x.clone());
    }

    #[batched]
    fn apart<B: Dims, C: Dims>(
        x: Tensor<f32, (Seq, Rest<B>)>,
        g: &Tensor<f32, (Feat, Rest<C>)>,
        scale: &Tensor<f32, (Feat,)>,
    ) -> (Tensor<f32, (Rest<B>,)>, Tensor<f32, (Feat, Rest<C>)>, usize) {
        (x.sum(Seq), g * scale, g.size(Feat))
    }

    #[test]
    fn a_result_has_no_dim_that_it_does_not_depend_on() {
        let x = numbers((N, 4), 1).into_tensor((Batch, Seq));
        let g = numbers((M, 5), 2).into_tensor((Group, Feat));
        let scale = numbers(5, 3).into_tensor(Feat);
        let (sum, scaled, features) = apart(&x, &g, &scale);
        let sum: Tensor<f32, (Batch,)> = sum;
        let scaled: Tensor<f32, (Group, Feat)> = scaled;
        close(sum.order(Batch), x.sum(Seq).order(Batch));
        close(scaled.order((Group, Feat)), (&g * &scale).order((Group, Feat)));
        assert_eq!(features, 5);
    }
}

mod in_place {
    use super::*;

    #[test]
    fn closures_are_batched_in_place() {
        let x = numbers((N, 4, 5), 1).into_tensor((Batch, Seq, Feat));
        let g = numbers(5, 2).into_tensor(Feat);
        let (out, plan) = explain(|| batched(Batch, (&x, &g), |(x, g)| (x * g).sum(Feat)));
        assert_eq!(plan.steps.len(), 1, "{plan}");
        let out: Tensor<f32, (Batch, Seq)> = out;
        close(out.order((Batch, Seq)), (&x * &g).sum(Feat).order((Batch, Seq)));
    }

    #[test]
    fn what_does_not_depend_on_a_dim_does_not_have_it() {
        let x = numbers((N, 4), 1);
        let g = numbers(4, 2).into_tensor(Feat);
        dims!(n);
        let (all, one) = batched(n, (x.at((n, ..)), &g), |(x, g)| {
            dims!(n);
            (x.at(n).sum(n), g.square().sum(Feat))
        });
        close(all.order(n), x.sum_axis(ndarray::Axis(1)));
        let one: Tensor<f32, ()> = one;
        assert_eq!(one.order(()), g.square().sum(Feat).order(()));
    }

    #[test]
    fn vmap_takes_functions_and_closures() {
        fn total<B: Dims>(x: Tensor<f32, (Seq, Feat, Rest<B>)>) -> Tensor<f32, (Seq, Rest<B>)> {
            x.sum(Feat)
        }
        fn scaled<B: Dims>(
            x: Tensor<f32, (Seq, Rest<B>)>,
            g: Tensor<f32, (Seq,)>,
        ) -> Tensor<f32, (Seq, Rest<B>)> {
            (x * g).eval()
        }
        let x = numbers((N, M, 4, 5), 1).into_tensor((Batch, Group, Seq, Feat));
        let sums = x.sum(Feat).order((Batch, Group, Seq));
        close(vmap(total, (Batch, Group))(x).order((Batch, Group, Seq)), sums.clone());
        let y = sums.into_tensor((Batch, Group, Seq));
        let g = numbers(4, 2).into_tensor(Seq);
        let expected = (&y * &g).order((Batch, Group, Seq));
        close(
            vmap(scaled, (Group, Batch))((y.clone(), g.clone())).order((Batch, Group, Seq)),
            expected.clone(),
        );
        let closure = |x: Tensor<f32, (Seq, Rest<_>)>| x * 2.0;
        close(
            vmap(closure, (Batch, Group))(y.clone()).order((Batch, Group, Seq)),
            (&y * 2.0).order((Batch, Group, Seq)),
        );
    }

    /// Written for one example, without `Rest`.
    fn unit_length(x: Tensor<f32, (Feat,)>) -> Tensor<f32, (Feat,)> {
        let length = x.norm(Feat);
        (x / length).eval()
    }

    fn is_loop(plan: &Plan) -> bool {
        plan.steps.iter().any(|step| matches!(step, PlanStep::Calls { .. }))
    }

    #[test]
    fn vmap_of_a_function_of_one_example_is_a_loop() {
        let x = numbers((N, 4, M), 1);
        dims!(n, m);
        let (out, plan) = explain(|| vmap(unit_length, (n, m))(x.at((n, Feat, m))));
        let calls = plan.steps.iter().find_map(|step| match step {
            PlanStep::Calls { calls, .. } => Some(*calls),
            _ => None,
        });
        assert_eq!(calls, Some(N * M), "{plan}");
        assert!(plan.to_string().contains("one whose parameters have `Rest` runs once"), "{plan}");
        let expected = looped(|n, m| {
            let x = x.index_axis(ndarray::Axis(2), m).index_axis(ndarray::Axis(0), n).to_owned();
            unit_length(x.into_tensor(Feat)).order(Feat).into_dyn()
        });
        close(out.order((n, m, Feat)), expected);
    }

    /// Examples share the memory of the whole tensor. Modifying one must not change another, or the
    /// caller's tensor.
    #[test]
    fn modifying_an_example_in_a_loop_changes_no_other() {
        fn doubled(mut x: Tensor<f32, (Seq, Feat)>) -> Tensor<f32, (Seq, Feat)> {
            let before = x.clone();
            x += &before;
            x
        }
        fn doubled_clone(x: &Tensor<f32, (Seq, Feat)>) -> Tensor<f32, (Seq, Feat)> {
            let mut copy = x.clone();
            copy += x;
            copy
        }
        // In several memory orders, also of the mapped axes.
        for axes in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]] {
            dims!(n, m);
            let x = numbers((N, M, 4, 5), 1).permuted_axes(axes);
            let expected = &x * 2.0;
            let mut owned = x.clone().into_tensor((n, Seq, m, Feat));
            for doubled in [vmap(doubled, (n, m))(&owned), vmap(doubled_clone, (m, n))(&owned)] {
                assert_eq!(doubled.order((n, Seq, m, Feat)), expected);
            }
            owned += 1.0;
            assert_eq!(vmap(doubled, (n, m))(owned).order((n, Seq, m, Feat)), (&x + 1.0) * 2.0);
        }
    }

    /// Tensors that a call keeps outlive the loop.
    #[test]
    fn examples_can_leave_the_loop() {
        let x = numbers((N, 4), 1);
        let kept = std::cell::RefCell::new(Vec::new());
        dims!(n);
        let sums = vmap(
            |x: Tensor<f32, (Feat,)>| {
                let sum = x.sum(Feat);
                kept.borrow_mut().push(x);
                sum
            },
            n,
        )(x.at((n, Feat)));
        close(sums.order(n), x.sum_axis(ndarray::Axis(1)));
        for (mut kept, row) in kept.into_inner().into_iter().zip(x.rows()) {
            kept += 1.0;
            assert_eq!(kept.order(Feat), &row + 1.0);
        }
    }

    #[test]
    fn vmap_of_a_typed_closure_on_bound_arrays_and_expressions() {
        let (x, g) = (numbers((N, 4), 1), numbers(4, 2));
        dims!(n);
        let once = vmap(|x: Tensor<f32, (Seq, Rest<_>)>, g: Tensor<f32, (Seq,)>| (x * g).sum(Seq), n);
        let (out, plan) = explain(|| once((x.at((n, Seq)), g.at(Seq))));
        assert!(!is_loop(&plan), "{plan}");
        close(out.order(n), x.dot(&g));
        let each = vmap(|x: Tensor<f32, (Seq,)>, g: Tensor<f32, (Seq,)>| (x * g).sum(Seq), n);
        let (out, plan) = explain(|| each((x.at((n, Seq)) * 2.0, g.at(Seq) + 0.0)));
        assert!(is_loop(&plan), "{plan}");
        close(out.order(n), x.dot(&g) * 2.0);
    }

    /// A tensor without the mapped dim is shared by all examples. Positional axes and tuples of
    /// results work as usual.
    #[test]
    fn vmap_shares_tensors_without_the_mapped_dim() {
        let (x, g) = (numbers((4, N), 1), numbers(4, 2).into_tensor(Seq));
        dims!(n);
        let both = vmap(
            |x: Tensor<f32, (), U1>, g: &Tensor<f32, (Seq,)>| {
                dims!(i);
                let x = x.at(i).rename(i, Seq);
                ((&x * g).sum(Seq), (&x + g).order(Seq).at(..).eval())
            },
            n,
        );
        let (sums, rows) = both((x.at((.., n)), &g));
        let g = (&g).order(Seq);
        close(sums.order(n), x.t().dot(&g));
        close(rows.order(n), &x.t() + &g);
    }

    /// A function of references is called once if it has a rest, and in a loop otherwise. A
    /// function can also take some tensors by value and others by reference.
    #[test]
    fn vmap_of_functions_of_references() {
        fn dot<B: Dims>(x: &Tensor<f32, (Seq, Rest<B>)>, g: &Tensor<f32, (Seq,)>) -> Tensor<f32, (Rest<B>,)> {
            (x * g).sum(Seq)
        }
        fn dot_of_one(x: &Tensor<f32, (Seq,)>, g: &Tensor<f32, (Seq,)>) -> Tensor<f32, ()> {
            (x * g).sum(Seq)
        }
        fn twice(x: Tensor<f32, (Seq,)>, g: &Tensor<f32, (Seq,)>) -> Tensor<f32, ()> {
            (dot_of_one(&x, g) + dot_of_one(g, &x)).eval()
        }
        let (x, g) = (numbers((4, N), 1), numbers(4, 2));
        let expected = x.t().dot(&g);
        dims!(n);
        let (out, plan) = explain(|| vmap(dot, n)((x.at((Seq, n)), g.at(Seq))));
        assert!(!is_loop(&plan), "{plan}");
        close(out.order(n), expected.clone());
        let (out, plan) = explain(|| vmap(dot_of_one, n)((x.at((Seq, n)), g.at(Seq))));
        assert!(is_loop(&plan), "{plan}");
        close(out.order(n), expected.clone());
        let owned = x.clone().into_tensor((Seq, n));
        close(vmap(dot_of_one, n)((&owned, g.at(Seq))).order(n), expected.clone());
        close(vmap(twice, n)((&owned, g.at(Seq))).order(n), expected * 2.0);
    }

    /// Functions that are generic over the whole set of dims of an argument: by reference and by
    /// value, with several sets, and with another argument that has a `Rest`.
    #[test]
    fn functions_of_any_set_are_batched_in_closures() {
        fn logistic<S: Dims>(x: &Named<f32, S>) -> Named<f32, S> {
            x.sigmoid().eval()
        }
        fn both<S: Dims, U: Dims>(x: &Named<f32, S>, g: Named<f32, U>) -> (Named<f32, S>, Named<f32, U>) {
            (logistic(x), logistic(&g))
        }
        fn clones<T: Element, S: Dims, R: Rank>(x: &Named<T, S, R>) -> Named<T, S, R> {
            x.clone()
        }
        fn dot<B: Dims, U: Dims>(
            x: &Tensor<f32, (Seq, Rest<B>)>,
            g: &Named<f32, U>,
        ) -> (Tensor<f32, (Rest<B>,)>, Named<f32, U>) {
            (x.sum(Seq), logistic(g))
        }
        let (x, g) = (numbers((4, N), 1), numbers(4, 2));
        let sigmoid = |x: f32| 1.0 / (1.0 + (-x).exp());
        dims!(n);
        let (out, plan) = explain(|| batched(n, x.at((Seq, n)).eval(), |x| logistic(&x)));
        assert!(!is_loop(&plan), "{plan}");
        close(out.order((Seq, n)), x.mapv(sigmoid));
        let (mapped, plain) =
            batched(n, (x.at((Seq, n)), g.at(Feat)), |(x, g)| both(&(x * 2.0).eval(), g.eval()));
        close(mapped.order((Seq, n)), x.mapv(|x| sigmoid(x * 2.0)));
        close(plain.order(Feat), g.mapv(sigmoid));
        let owned = x.clone().into_tensor((Seq, n));
        let (plain, mapped) = batched(n, (g.at(Feat), &owned), |(g, x)| both(&g.eval(), x.eval()));
        close(plain.order(Feat), g.mapv(sigmoid));
        close(mapped.order((n, Seq)), x.t().mapv(sigmoid));
        assert_eq!(batched(n, x.at((.., n)), |x| clones(&x.eval())).order(n), x.t());
        let (sums, plain) = batched(n, (x.at((Seq, n)), g.at(Seq)), |(x, g)| dot(&x.eval(), &g.eval()));
        close(sums.order(n), x.sum_axis(ndarray::Axis(0)));
        close(plain.order(Seq), g.mapv(sigmoid));
    }

    #[test]
    fn vmap_of_no_example() {
        let x = Array2::<f32>::zeros((0, 4));
        dims!(n);
        assert_eq!(vmap(unit_length, n)(x.at((n, Feat))).order((n, Feat)).shape(), [0, 4]);
    }

    /// The examples come from two nested rests.
    #[test]
    fn a_loop_inside_of_a_batched_function() {
        #[batched]
        fn columns(x: &Tensor<f32, (Seq, Feat)>) -> Tensor<f32, (Seq, Feat)> {
            batched(Feat, x, |x| map_each(&x.eval(), |x| (x.order(Seq) * 2.0).into_tensor(Seq)))
        }
        let x = numbers((N, 3, 4), 1);
        dims!(n);
        close(columns(x.at((n, Seq, Feat))).order((n, Seq, Feat)), x * 2.0);
    }

    #[test]
    fn vmap_inside_of_a_batched_function() {
        #[batched]
        fn rows(x: &Tensor<f32, (Seq, Feat)>) -> Tensor<f32, (Seq, Feat)> {
            vmap(unit_length, Seq)(x)
        }
        let x = numbers((N, 3, 4), 1);
        dims!(n);
        let out = rows(x.at((n, Seq, Feat)));
        let lengths = x.at((n, Seq, Feat)).norm(Feat);
        close(out.order((n, Seq, Feat)), (x.at((n, Seq, Feat)) / lengths).order((n, Seq, Feat)));
    }

    #[test]
    fn axes_are_chosen_by_dims() {
        let (x, y) = (numbers((4, N), 1), numbers(4, 2));
        dims!(n);
        // In JAX: `vmap(outer, in_axes=(1, None), out_axes=2)`.
        let outer = batched(n, (x.at((.., n)), y.at(..)), |(x, y)| {
            dims!(i, j);
            (x.at(i) * y.at(j)).order((i, j))
        });
        dims!(i, j);
        let out = outer.at((i, j)).order((i, j, n));
        close(out, Array3::from_shape_fn((4, 4, N), |(i, j, n)| x[[i, n]] * y[j]));
    }

    #[test]
    fn inside_of_a_batched_function() {
        #[batched]
        fn each_row(x: &Tensor<f32, (), U2>) -> Tensor<f32, (), U1> {
            dims!(row);
            batched(row, x.at((row, ..)), |x| {
                dims!(i);
                x.at(i).norm(i)
            })
            .order(row)
        }
        let x = numbers((N, M, 4, 5), 1);
        dims!(n, m);
        let out = each_row(x.at((n, m, .., ..))).order((n, m));
        let squares = x.mapv(|x| x * x).sum_axis(ndarray::Axis(3));
        close(out, squares.mapv(f32::sqrt));
    }

    #[test]
    #[should_panic(expected = "dim `Batch` has size 3 (at tests/tensors/batching.rs:")]
    fn sizes_must_agree() {
        let (x, y) = (ones::<f32, _>((Batch.of(3), Feat.of(2))), ones::<f32, _>((Batch.of(2), Feat.of(2))));
        let _ = batched(Batch, (&x, &y), |(x, y)| x + y);
    }
}

/// Users' operations on the arrays of several tensors.
mod arrays {
    use super::*;
    use ndarray::{Array0, Array1, ArrayView0, ArrayView1, ArrayView2, Axis, arr0};
    use typed_dims::operators::custom::Examples;

    /// The matrix-vector product `a b`, one product at a time, or with a batching rule.
    struct MatVec {
        rule: bool,
    }

    impl ArrayOp<(f32, f32)> for MatVec {
        type In = (U2, U1);
        type Out = U1;
        type Elem = f32;
        const NAME: &'static str = "mat_vec";

        fn one(&self, (a, b): (ArrayView2<'_, f32>, ArrayView1<'_, f32>)) -> Array1<f32> {
            assert!(!self.rule, "the rule is not used");
            a.dot(&b)
        }

        fn batch(&self, (a, b): (Examples<'_, f32>, Examples<'_, f32>)) -> Option<ArrayD<f32>> {
            if !self.rule {
                return None;
            }
            let rows = b.stacked();
            let out: Array2<f32> = match a.same() {
                // One matrix: a single product.
                Some(a) => {
                    let rows = rows.into_dimensionality::<ndarray::Ix2>().unwrap();
                    rows.dot(&a.into_dimensionality::<ndarray::Ix2>().unwrap().t())
                }
                None => {
                    let a = a.stacked();
                    let len = a.len_of(Axis(1));
                    Array2::from_shape_fn((a.len_of(Axis(0)), len), |(n, i)| {
                        (0..rows.len_of(Axis(1))).map(|k| a[[n, i, k]] * rows[[n, k]]).sum()
                    })
                }
            };
            Some(out.into_dyn())
        }
    }

    /// `a b`, computed by ndarray.
    fn product(a: ArrayView2<'_, f32>, b: ArrayView1<'_, f32>) -> ArrayD<f32> {
        let out: Array1<f32> = a.dot(&b);
        out.into_dyn()
    }

    #[test]
    fn tensors_with_the_same_with_fewer_and_with_other_dims() {
        let (a, b) = (numbers((N, 4, 5), 1), numbers((5, M, N), 2));
        let of = |n: usize| a.index_axis(Axis(0), n);
        dims!(n, m);
        for rule in [false, true] {
            // Each operand has its own dim.
            let out = apply_arrays((a.at((n, .., ..)), b.at((.., m, 0))), MatVec { rule });
            let expected = looped(|n, m| product(of(n), b.slice(ndarray::s![.., m, 0])));
            close(out.order((n, m)), expected);
            // One operand lacks a dim of the other, and the axes are not in the order of the dims.
            let out = apply_arrays((a.at((n, .., ..)), b.at((.., m, n))), MatVec { rule });
            let expected = looped(|n, m| product(of(n), b.slice(ndarray::s![.., m, n])));
            close(out.order((n, m)), expected);
            // First one operand has no dims, then both.
            let out = apply_arrays((of(1).at((.., ..)), b.at((.., m, n))), MatVec { rule });
            let expected = looped(|n, m| product(of(1), b.slice(ndarray::s![.., m, n])));
            close(out.order((n, m)), expected);
            let out = apply_arrays((of(1).at((.., ..)), b.at((.., 0, 0))), MatVec { rule });
            close(out.order(()), product(of(1), b.slice(ndarray::s![.., 0, 0])));
        }
    }

    #[test]
    fn the_plan_shows_calls_or_none() {
        let (a, b) = (numbers((N, 4, 5), 1), numbers((M, 5), 2));
        dims!(n, m);
        let run = |rule| explain(|| apply_arrays((a.at((n, .., ..)), b.at((m, ..))), MatVec { rule })).1;
        let calls = |plan: &Plan| {
            plan.steps.iter().find_map(|step| match step {
                PlanStep::Calls { function: "mat_vec", calls, .. } => Some(*calls),
                _ => None,
            })
        };
        assert_eq!((calls(&run(false)), calls(&run(true))), (Some(N * M), None));
    }

    /// `values[first..first + count]`: a vector and two numbers, with three element types.
    struct Pick;

    impl ArrayOp<(f32, usize, u8)> for Pick {
        type In = (U1, U0, U0);
        type Out = U1;
        type Elem = f32;
        const NAME: &'static str = "pick";

        fn one(
            &self,
            (values, first, count): (ArrayView1<'_, f32>, ArrayView0<'_, usize>, ArrayView0<'_, u8>),
        ) -> Array1<f32> {
            let (first, count) = (first.into_scalar(), usize::from(*count.into_scalar()));
            values.slice(ndarray::s![*first..first + count]).to_owned()
        }
    }

    #[test]
    fn three_tensors_of_other_elements() {
        let values = ndarray::array![[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
        let firsts = [0usize, 1];
        dims!(n, m);
        let out = apply_arrays((values.at((n, ..)), firsts.at(m), arr0(2u8).at(())), Pick);
        let expected = ndarray::array![[[1.0, 2.0], [2.0, 3.0]], [[4.0, 5.0], [5.0, 6.0]]];
        assert_eq!(out.order((n, m)), expected);
        // Expressions are computed first.
        let out = apply_arrays((values.at((n, ..)) * 10.0, firsts.at(n), arr0(1u8).at(())), Pick);
        assert_eq!(out.order(n), ndarray::array![[10.0], [50.0]]);
    }

    /// A batching rule that returns an array without the axis of the examples.
    struct WithoutExamples;

    impl ArrayOp<(f32, f32)> for WithoutExamples {
        type In = (U1, U1);
        type Out = U0;
        type Elem = f32;
        const NAME: &'static str = "without_examples";

        fn one(&self, (a, b): (ArrayView1<'_, f32>, ArrayView1<'_, f32>)) -> Array0<f32> {
            arr0(a.dot(&b))
        }

        fn batch(&self, _: (Examples<'_, f32>, Examples<'_, f32>)) -> Option<ArrayD<f32>> {
            Some(arr0(1.0).into_dyn())
        }
    }

    #[test]
    fn batching_rules_return_an_axis_of_examples() {
        let a = ndarray::array![[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
        let result = try_apply_arrays((a.at((Batch, ..)), a.at((Batch, ..))), WithoutExamples);
        assert_eq!(
            result.unwrap_err().to_string(),
            "the operation `without_examples`: `batch` returned an array of shape []; the number of \
             axes must be 1, and the size of axis 0 must be 2"
        );
    }

    #[test]
    fn what_sizes_decide_is_an_error() {
        let values = ones::<f32, _>((Batch.of(2), Seq.of(3))).order((Batch, Seq));
        let text = |counts: &[u8], firsts: &[usize]| {
            let values = values.at((Batch, ..));
            let result = try_apply_arrays((values, firsts.at(Batch), counts.at(Batch)), Pick);
            result.expect_err("an error").to_string()
        };
        let differ = text(&[1, 2], &[0, 0]);
        assert_eq!(differ, "the operation `pick`: its results have the shapes [1] and [2]");
        let sizes = text(&[1, 1, 1], &[0, 0]);
        assert!(sizes.contains("`Batch`") && sizes.contains('2') && sizes.contains('3'), "{sizes}");
        let none = values.slice(ndarray::s![..0, ..]);
        let result = try_apply_arrays((none.at((Batch, ..)), arr0(0usize).at(()), arr0(1u8).at(())), Pick);
        assert!(result.unwrap_err().to_string().contains("without examples"));
        // With a rule there is a result.
        let (a, b) = (Array3::<f32>::zeros((0, 4, 5)), Array1::<f32>::zeros(5));
        dims!(n);
        let out = apply_arrays((a.at((n, .., ..)), b.at(..)), MatVec { rule: true });
        assert_eq!(out.order(n).shape(), [0, 4]);
    }
}

mod results {
    use super::*;

    #[batched]
    fn parts(x: &Tensor<f32, (Feat,)>, n: usize) -> Result<Vec<Tensor<f32, (Feat,)>>, DimError> {
        if n == 0 {
            return Err(DimError::Shape { what: "nothing asked for".into() });
        }
        let doubled = x.try_index(Feat, 0)?.order(());
        let _ = doubled;
        Ok((0..n).map(|i| x * i as f32).collect::<Vec<_>>())
    }

    #[test]
    fn results_in_results_and_vectors() {
        let x = numbers((N, 4), 1).into_tensor((Batch, Feat));
        let all = parts(&x, 3).unwrap();
        close((&all[2]).order((Batch, Feat)), (&x * 2.0).order((Batch, Feat)));
        assert!(parts(&x, 0).is_err());
    }

    macro_rules! twice {
        ($x:expr) => {
            $x * 2.0
        };
    }

    #[batched]
    fn of_a_macro(x: &Tensor<f32, (Feat,)>) -> Tensor<f32, (Feat,)> {
        twice! { x }
    }

    #[batched]
    fn of_a_branch(x: &Tensor<f32, (Feat,)>, n: usize) -> Tensor<f32, (Feat,)> {
        if n > 0 {
            return x * n as f32;
        }
        unreachable! { "there is a number" }
    }

    #[test]
    fn a_body_may_end_in_a_macro() {
        let x = numbers((N, 4), 1).into_tensor((Batch, Feat));
        for found in [of_a_macro(&x), of_a_branch(&x, 2)] {
            assert_eq!(found.order((Batch, Feat)), (&x * 2.0).order((Batch, Feat)));
        }
    }

    #[batched]
    #[rustfmt::skip]
    fn returned(x: &Tensor<f32, (Feat,)>) -> Tensor<f32, (Feat,)> {
        return x * 2.0
    }

    #[batched]
    fn returned_in_a_loop(x: &Tensor<f32, (Feat,)>, n: usize) -> Tensor<f32, (Feat,)> {
        let mut round = 0;
        loop {
            round += 1;
            if round == n {
                return x * round as f32;
            }
        }
    }

    #[batched]
    fn unreachable_after(x: &Tensor<f32, (Feat,)>, n: usize) -> Tensor<f32, (Feat,)> {
        if n > 0 {
            return x * n as f32;
        }
        std::unreachable!()
    }

    #[batched]
    fn returned_by_an_if(x: &Tensor<f32, (Feat,)>, n: usize) -> Tensor<f32, (Feat,)> {
        if n > 1 {
            return x * n as f32;
        } else if n == 1 {
            return x * 3.0;
        } else {
            unreachable! { "there is a number" }
        }
    }

    #[batched]
    fn returned_by_a_match(x: &Tensor<f32, (Feat,)>, n: usize) -> Tensor<f32, (Feat,)> {
        match n {
            0 => return x * 3.0,
            1 => {
                return x * 4.0;
            }
            _ => return x * n as f32,
        }
    }

    #[batched]
    fn returned_by_a_block(x: &Tensor<f32, (Feat,)>) -> Tensor<f32, (Feat,)> {
        {
            return x * 2.0;
        }
    }

    #[batched]
    fn returned_after_an_inner_loop(x: &Tensor<f32, (Feat,)>, n: usize) -> Tensor<f32, (Feat,)> {
        let mut sum = 0;
        loop {
            for step in 1..=n {
                if step == 2 {
                    break;
                }
                sum += step;
            }
            if sum == n {
                return x * sum as f32;
            }
        }
    }

    #[test]
    fn a_body_may_have_no_value_at_its_end() {
        let x = numbers((N, 4), 1).into_tensor((Batch, Feat));
        for found in [
            returned(&x),
            returned_in_a_loop(&x, 2),
            unreachable_after(&x, 2),
            returned_by_an_if(&x, 2),
            returned_by_a_match(&x, 2),
            returned_by_a_block(&x),
            returned_after_an_inner_loop(&x, 2),
        ] {
            assert_eq!(found.order((Batch, Feat)), (&x * 2.0).order((Batch, Feat)));
        }
    }

    #[batched]
    fn nothing_or_returned(x: &Tensor<f32, (Feat,)>, n: usize) -> Option<Tensor<f32, (Feat,)>> {
        match n {
            0 => None,
            _ => return Some(x * n as f32),
        }
    }

    #[batched]
    fn out_of_an_inner_loop(x: &Tensor<f32, (Feat,)>, n: usize) -> Tensor<f32, (Feat,)> {
        'rounds: loop {
            for round in 1..=n {
                if round == n {
                    break 'rounds x * round as f32;
                }
            }
        }
    }

    #[batched]
    fn out_of_a_block(x: &Tensor<f32, (Feat,)>, n: usize) -> Tensor<f32, (Feat,)> {
        'scaled: {
            if n > 0 {
                break 'scaled x * n as f32;
            }
            return x * 3.0;
        }
    }

    #[test]
    fn a_body_may_have_a_value_on_one_way_only() {
        let x = numbers((N, 4), 1).into_tensor((Batch, Feat));
        let found = nothing_or_returned(&x, 2).expect("there is a number");
        for found in [found, out_of_an_inner_loop(&x, 2), out_of_a_block(&x, 2)] {
            assert_eq!(found.order((Batch, Feat)), (&x * 2.0).order((Batch, Feat)));
        }
        assert!(nothing_or_returned(&x, 0).is_none());
        assert_eq!(out_of_a_block(&x, 0).order((Batch, Feat)), (&x * 3.0).order((Batch, Feat)));
    }

    macro_rules! or {
        ($found:expr, $otherwise:expr) => {
            match $found {
                Some(found) => found,
                None => $otherwise,
            }
        };
    }

    #[batched]
    fn of_an_option(x: &Tensor<f32, (Feat,)>, scale: Option<f32>) -> Tensor<f32, (Feat,)> {
        let scale = or!(scale, return x * 3.0);
        x * scale
    }

    #[test]
    fn an_argument_of_a_macro_may_return() {
        let x = numbers((N, 4), 1).into_tensor((Batch, Feat));
        for (scale, by) in [(None, 3.0), (Some(2.0), 2.0)] {
            assert_eq!(of_an_option(&x, scale).order((Batch, Feat)), (&x * by).order((Batch, Feat)));
        }
    }

    macro_rules! scaled {
        ($name:ident$(<$b:ident>)?, $arg:ty => $out:ty, $by:expr, $number:ty) => {
            #[batched]
            fn $name$(<$b: Dims>)?(x: $arg) -> $out {
                assert!($by * 2 > x.size(Feat) + 1);
                let is_small = $by as $number < 4.0;
                assert!(is_small);
                x * ($by * 2) as f32
            }
        };
    }
    scaled!(six_times, &Tensor<f32, (Feat,)> => Tensor<f32, (Feat,)>, 1 + 2, f64);
    scaled!(six_times_rest<B>, &Tensor<f32, (Feat, Rest<B>)> => Tensor<f32, (Feat, Rest<B>)>, 1 + 2, f64);

    /// What a `macro_rules!` macro puts into a function stays in one piece.
    #[test]
    fn expressions_and_types_may_come_from_macros() {
        let x = numbers((N, 4), 1).into_tensor((Batch, Feat));
        for found in [six_times(&x), six_times_rest(&x)] {
            assert_eq!(found.order((Batch, Feat)), (&x * 6.0).order((Batch, Feat)));
        }
    }

    macro_rules! items {
        ($($item:item)*) => {
            $($item)*
        };
    }
    macro_rules! doubled {
        ($name:ident, $about:meta) => {
            #[batched]
            fn $name(x: &Tensor<f32, (Feat,)>) -> Tensor<f32, (Feat,)> {
                items! {
                    #[$about]
                    const TWO: f32 = 2.0;
                    fn two() -> f32 {
                        #![$about]
                        TWO
                    }
                }
                x * two()
            }
        };
    }
    doubled!(twice_as_large, doc = "A number");

    /// `doc = ".."` could be read as an assignment.
    #[test]
    fn attributes_may_come_from_macros() {
        let x = numbers((N, 4), 1).into_tensor((Batch, Feat));
        assert_eq!(twice_as_large(&x).order((Batch, Feat)), (&x * 2.0).order((Batch, Feat)));
    }

    #[batched]
    fn constant(x: &Tensor<f32, (Feat,)>) -> [Tensor<f32, (Feat,)>; 2] {
        [ones(Feat.of(x.size(Feat))), ones(Feat.of(2))]
    }

    #[test]
    fn what_does_not_vary_is_repeated() {
        let x = numbers((N, 4), 1).into_tensor((Batch, Feat));
        let [a, b] = constant(&x);
        assert_eq!(a.order((Batch, Feat)), Array2::<f32>::ones((N, 4)));
        assert_eq!(b.order((Batch, Feat)), Array2::<f32>::ones((N, 2)));
    }
}

/// Random operations draw the same numbers for a tensor, however the function is batched.
mod drawing {
    use super::*;
    use ndarray::{Axis, s};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use typed_dims::creation::random::{bernoulli, categorical, rand_like, randn_like};
    use typed_dims::grad::{checkpoint, custom_vjp, grad, vjp};

    /// Compares ways to batch a call, with two dims of the caller before `Seq` and `Feat`.
    macro_rules! every_way {
        ($call:ident -> ($($out:ty)?) [$($order:ident)?], $t:ty, |$x:ident| $body:expr) => {{
            #[batched]
            fn written($x: &Tensor<f32, (Seq, Feat)>) -> Tensor<$t, (Seq, $($out)?)> {
                $body
            }
            fn generic<B: Dims>($x: &Tensor<f32, (Seq, Feat, Rest<B>)>) -> Tensor<$t, (Seq, $($out,)? Rest<B>)> {
                $body
            }
            fn one($x: &Tensor<f32, (Seq, Feat)>) -> Tensor<$t, (Seq, $($out)?)> {
                $body
            }
            fn owned($x: Tensor<f32, (Seq, Feat)>) -> Tensor<$t, (Seq, $($out)?)> {
                let $x = &$x;
                $body
            }
            // Two local dims, which may sort before, between or after the others.
            dims!(m, n);
            let x = numbers((N, M, 4, 5), 3).mapv(f32::abs);
            let x = x.at((n, m, Seq, Feat)).eval();
            let bound = { let $x = &x; $body }.order((n, m, Seq, $($order)?));
            let same = |way: &str, found: ndarray::ArrayBase<_, _>| assert_eq!(found, bound, "{} by {way}", stringify!($call));
            same("batched", batched((n, m), &x, |$x| $body).order((n, m, Seq, $($order)?)));
            same("nested `batched`", batched(n, &x, |x| batched(m, x, |$x| $body)).order((n, m, Seq, $($order)?)));
            same("an attribute", written(&x).order((n, m, Seq, $($order)?)));
            same("a rest", generic(&x.view().seal((Seq, Feat)).eval()).unseal().order((n, m, Seq, $($order)?)));
            same("`vmap` of one call", vmap(generic, (n, m))(&x).order((n, m, Seq, $($order)?)));
            same("`vmap` in a loop", vmap(one, (n, m))(&x).order((n, m, Seq, $($order)?)));
            same("`vmap` of an owned example", vmap(owned, (m, n))(&x).order((n, m, Seq, $($order)?)));
            same("a loop in one call", batched(n, &x, |x| vmap(one, m)(x)).order((n, m, Seq, $($order)?)));
            same("`map_each`", map_each(&x.view().seal((Seq, Feat)).eval(), |x| one(&x.eval())).unseal().order((n, m, Seq, $($order)?)));
            // In another memory order, and with other dims in place of `m` and `n`.
            let turned = x.view().order((Feat, m, Seq, n)).into_tensor((Feat, m, Seq, n));
            same("another order in memory", written(turned).order((n, m, Seq, $($order)?)));
            let declared = x.view().order((n, m, Seq, Feat)).into_tensor((Batch, Group, Seq, Feat));
            let each = |x: Tensor<f32, (Group, Seq, Feat)>| vmap(one, Group)(x);
            let (twice, $x) = (vmap(each, Batch)(&declared), &declared);
            assert_eq!(twice.order((Batch, Group, Seq, $($order)?)), $body.order((Batch, Group, Seq, $($order)?)));
            // Different examples have different numbers.
            assert_ne!(bound.index_axis(Axis(0), 0), bound.index_axis(Axis(0), 1));
            assert_ne!(bound.index_axis(Axis(1), 0), bound.index_axis(Axis(1), 1));
        }};
    }

    #[test]
    fn all_ways_draw_the_same() {
        every_way!(dropout -> (Feat) [Feat], f32, |x| x.dropout(0.4, 7));
        every_way!(rand_like -> (Feat) [Feat], f32, |x| rand_like(x, 7));
        every_way!(randn_like -> (Feat) [Feat], f32, |x| randn_like(x, 7));
        every_way!(bernoulli -> (Feat) [Feat], bool, |x| bernoulli(x, 7));
        every_way!(categorical -> () [], usize, |x| categorical(x, Feat, 7));
    }

    /// Numbers drawn from dims alone are the same for all examples, in a loop and in one call.
    #[test]
    fn numbers_drawn_from_dims_are_drawn_once() {
        #[batched]
        fn written(x: &Tensor<f32, (Feat,)>) -> Tensor<f32, (Feat,)> {
            let kept = rand::<f32, _>(Feat.of(64), 3).ge(0.5);
            select(kept, x + randn::<f32, _>(Feat.of(64), 5), 0.0)
        }
        fn one(x: &Tensor<f32, (Feat,)>) -> Tensor<f32, (Feat,)> {
            let kept = rand::<f32, _>(Feat.of(64), 3).ge(0.5);
            select(kept, x + randn::<f32, _>(Feat.of(64), 5), 0.0).eval()
        }
        dims!(n = 5);
        let x = ones::<f32, _>((n, Feat.of(64)));
        let found = written(&x).order((n, Feat));
        assert_eq!(vmap(one, n)(&x).order((n, Feat)), found);
        assert!(found.rows().into_iter().all(|row| row == found.row(0)));
        assert_ne!(found.slice(s![0, ..32]), found.slice(s![0, 32..]));
    }

    /// A loop resets its current example when it ends, even by a panic.
    #[test]
    fn a_call_after_a_loop_draws_as_before() {
        dims!(n = 5);
        let x = ones::<f32, _>((n, Feat.of(64)));
        let one = ones::<f32, _>(Feat.of(64));
        let before = (&one).dropout(0.5, 7);
        let drawn = vmap(|x: Tensor<f32, (Feat,)>| x.dropout(0.5, 7), n)(&x);
        assert_eq!((&one).dropout(0.5, 7), before);
        let failing = |_: Tensor<f32, (Feat,)>| -> Tensor<f32, (Feat,)> { panic!("in the middle") };
        assert!(catch_unwind(AssertUnwindSafe(|| vmap(failing, n)(&x))).is_err());
        assert_eq!((&one).dropout(0.5, 7), before);
        assert_eq!(vmap(|x: Tensor<f32, (Feat,)>| x.dropout(0.5, 7), n)(&x), drawn);
    }

    /// The mask of a loop is that of one call, even on several threads.
    #[test]
    fn gradients_of_a_loop_are_those_of_one_call() {
        dims!(n);
        let x = numbers((4, 50_000), 3).into_tensor((n, Feat));
        let one = |x: Tensor<f32, (Feat,)>| x.dropout(0.5, 7);
        let in_one = grad(|x| (x.dropout(0.5, 7) * 3.0).sum((n, Feat)), &x).order((n, Feat));
        let in_a_loop = grad(|x| (vmap(one, n)(x) * 3.0).sum((n, Feat)), &x).order((n, Feat));
        assert!(in_one == in_a_loop);
        assert!(in_one.iter().all(|&a| a == 0.0 || a == 6.0) && in_one.iter().any(|&a| a == 0.0));
    }

    /// A checkpoint runs its function again after the loop, and a custom pull-back runs then, too.
    #[test]
    fn calls_after_a_loop_draw_the_numbers_of_their_example() {
        type Line = Tensor<f32, (Feat,)>;
        dims!(n, m);
        let x = numbers((4, 3, 20), 3).into_tensor((n, m, Feat));
        let again = |x: Line| checkpoint(|x: &Line| x.dropout(0.5, 7), &x);
        let twice = |x: Line| checkpoint(|x: &Line| checkpoint(|x: &Line| x.dropout(0.5, 7), x), &x);
        let pulled = |x: Line| custom_vjp(|x| x.dropout(0.5, 7), |_, _, dy| dy.dropout(0.5, 7), &x);
        let expected = grad(|x| (x.dropout(0.5, 7) * 3.0).sum((n, m, Feat)), &x);
        assert_eq!(grad(|x| (vmap(again, (n, m))(x) * 3.0).sum((n, m, Feat)), &x), expected);
        assert_eq!(grad(|x| (vmap(twice, (n, m))(x) * 3.0).sum((n, m, Feat)), &x), expected);
        assert_eq!(grad(|x| (vmap(pulled, (n, m))(x) * 3.0).sum((n, m, Feat)), &x), expected);
        // A loop of backward passes through a call that was not in a loop.
        let line = ones::<f32, _>(Feat.of(20));
        let (mask, pull_back) = vjp(|x| checkpoint(|x: &Line| x.dropout(0.5, 7), x), &line);
        let dx = vmap(|dy: Line| pull_back(&dy), (n, m))(&x).order((n, m, Feat));
        assert_eq!(dx, (&x * mask).order((n, m, Feat)));
    }

    /// A dim of the function and a dim of its caller are distinct, even if they have the same name.
    #[test]
    fn dims_of_one_name_are_told_apart() {
        fn one(x: &Tensor<f32, (), U1>) -> Tensor<f32, (), U1> {
            dims!(n);
            x.at(n)
                .dropout(0.5, 7)
                .order(n)
                .into_dyn()
                .into_dimensionality::<ndarray::Ix1>()
                .unwrap()
                .at(..)
                .eval()
        }
        dims!(n);
        let x = Array2::<f32>::ones((20, 20));
        let found = vmap(one, n)(x.at((n, ..))).at(Feat).order((n, Feat));
        assert_ne!(found, found.t());
    }

    /// An argument that lacks a dim of another argument is repeated along that dim, and can be
    /// modified in each example.
    #[test]
    fn a_repeated_argument_is_expanded_when_modified() {
        #[batched]
        fn summed(x: &Tensor<f32, (Feat,)>, mut total: Tensor<f32, (Feat,)>) -> Tensor<f32, (Feat,)> {
            total += x;
            total
        }
        let x = numbers((3, 4), 1);
        let total = numbers(4, 2);
        let expected = &x + &total;
        assert_eq!(summed(x.at((Batch, Feat)), total.at(Feat)).order((Batch, Feat)), expected);
        // Also if the argument stores one element for all examples along `n`.
        dims!(m, n);
        let (x, total) = (numbers((3, 2, 4), 1), numbers((2, 4), 2));
        let both = (x.at((n, m, Feat)).eval(), total.at((m, Feat)).eval());
        let found = batched((n, m), both, |(x, mut total)| {
            total += x;
            total
        });
        assert_eq!(found.order((n, m, Feat)), &x + &total);
    }
}

/// An alias of a tuple, not a dim.
type Row = (Feat,);

/// A value with the name of an alias.
#[batched]
fn sum_of_row(x: &Tensor<f32, Row>) -> Tensor<f32, ()> {
    #[allow(non_upper_case_globals)]
    const Row: Feat = Feat;
    x.sum(Row)
}

#[test]
fn an_alias_of_a_tuple_may_have_the_name_of_a_value() {
    let x = ndarray::array![[1.0f32, 2.0], [3.0, 4.0]];
    assert_eq!(sum_of_row(&x.at((Batch, Feat))).order(Batch), ndarray::array![3.0, 7.0]);
}
