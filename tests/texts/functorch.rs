//! Cases from PyTorch's `test_vmap.py` and from the guide to functorch's batching rules, as
//! functions with `#[batched]`, methods, and closures.

use ndarray::{Array1, Array2, Array3, Axis};
use std::ops::Mul;
use typed_dims::batch::map_each;
use typed_dims::creation::create::full_like;
use typed_dims::pipeline::plan::explain::PlanStep;
use typed_dims::prelude::*;
use typed_dims::types::scalar::Real;

dims! {
    struct Batch;
    struct Seq;
    struct Feat;
    struct Hidden;
}

const N: usize = 3;
const M: usize = 2;

/// Pseudorandom numbers, the same in each run.
fn numbers<D: ndarray::Dimension>(sizes: impl ndarray::ShapeBuilder<Dim = D>, seed: u64) -> Array<f32, D> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    Array::from_shape_simple_fn(sizes, || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 40) as f32 / (1u64 << 24) as f32) * 2.0 - 1.0
    })
}

fn close<D: ndarray::Dimension>(a: Array<f32, D>, b: Array<f32, D>) {
    assert_eq!(a.shape(), b.shape());
    for (x, y) in a.iter().zip(&b) {
        assert!((x - y).abs() < 1e-5 * x.abs().max(y.abs()).max(1.0), "{a} instead of {b}");
    }
}

/// `vmap(lambda x: vmap(lambda y: f(x, y))(ys))(xs)`: the inner function uses what the outer one
/// maps over.
#[test]
fn nested_closures() {
    let (x, y) = (numbers((N, 4), 1), numbers((M, 4), 2));
    dims!(n, m);
    let expected =
        Array2::from_shape_fn((N, M), |(n, m)| (0..4).map(|i| (x[[n, i]] - y[[m, i]]).powi(2)).sum());
    let passed = batched(n, (x.at((n, Feat)), y.at((m, Feat))), |(x, y)| {
        batched(m, (x, y), |(x, y)| (x - y).square().sum(Feat))
    });
    close(passed.order((n, m)), expected.clone());
    let captured = batched(n, x.at((n, Feat)), |x| batched(m, y.at((m, Feat)), |y| y * 2.0).mul(x).sum(Feat));
    let products = Array2::from_shape_fn((N, M), |(n, m)| (0..4).map(|i| 2.0 * x[[n, i]] * y[[m, i]]).sum());
    close(captured.order((n, m)), products);
    // Nesting is equivalent to one call over both dims.
    let both = vmap(
        |x: Tensor<f32, (Feat, Rest<_>)>, y: Tensor<f32, (Feat, Rest<_>)>| (x - y).square().sum(Feat),
        (n, m),
    );
    close(both((x.at((n, Feat)), y.at((m, Feat)))).order((n, m)), expected);
}

/// Two functions that call each other, and one that calls itself on halves.
mod recursion {
    use super::*;

    #[batched]
    fn even(x: &Tensor<f32, (Feat,)>, depth: usize) -> Tensor<f32, (Feat,)> {
        if depth == 0 {
            return x;
        }
        odd(x * 2.0, depth - 1)
    }

    #[batched]
    fn odd(x: &Tensor<f32, (Feat,)>, depth: usize) -> Tensor<f32, (Feat,)> {
        if depth == 0 {
            return x - 1.0;
        }
        even(x + 1.0, depth - 1)
    }

    #[test]
    fn of_two_functions() {
        let x = numbers((N, 4), 1);
        let out = even(x.at((Batch, Feat)), 5).order((Batch, Feat));
        close(out, x.mapv(|x| ((x * 2.0 + 1.0) * 2.0 + 1.0) * 2.0 - 1.0));
    }

    /// The sum along `Seq`, which is halved recursively. The size decides when to stop.
    #[batched]
    fn tree_sum(x: &Tensor<f32, (Seq, Feat)>) -> Tensor<f32, (Feat,)> {
        let n = x.size(Seq);
        if n == 1 {
            return x.index(Seq, 0);
        }
        tree_sum(x.slice(Seq, ..n / 2)) + tree_sum(x.slice(Seq, n / 2..))
    }

    #[test]
    fn on_halves() {
        let x = numbers((N, 5, 4), 1);
        close(tree_sum(x.at((Batch, Seq, Feat))).order((Batch, Feat)), x.sum_axis(Axis(1)));
    }
}

/// Traits, generics and methods.
mod methods {
    use super::*;

    #[batched]
    trait Layer<T: Real> {
        const NAME: &'static str;

        fn forward(&self, x: &Tensor<T, (Feat,)>) -> Tensor<T, (Feat,)>;

        /// A provided method calls a required one.
        fn twice(&self, x: &Tensor<T, (Feat,)>) -> Tensor<T, (Feat,)> {
            self.forward(self.forward(x))
        }
    }

    struct Dense<T: Real>(Tensor<T, (Feat, Hidden)>);
    struct Residual<L>(L);

    #[batched]
    impl<T: Real> Layer<T> for Dense<T> {
        const NAME: &'static str = "dense";

        fn forward(&self, x: &Tensor<T, (Feat,)>) -> Tensor<T, (Feat,)> {
            (x * &self.0).sum(Feat).rename(Hidden, Feat)
        }
    }

    #[batched]
    impl<T: Real, L: Layer<T>> Layer<T> for Residual<L> {
        const NAME: &'static str = "residual";

        fn forward(&self, x: &Tensor<T, (Feat,)>) -> Tensor<T, (Feat,)> {
            x + self.0.forward(x)
        }
    }

    /// Fixes the dims of one caller, so that a list can hold different layers.
    trait BatchLayer {
        fn run(&self, x: &Tensor<f32, (Batch, Feat)>) -> Tensor<f32, (Batch, Feat)>;
    }

    impl<L: Layer<f32>> BatchLayer for L {
        fn run(&self, x: &Tensor<f32, (Batch, Feat)>) -> Tensor<f32, (Batch, Feat)> {
            self.forward(x)
        }
    }

    #[test]
    fn of_a_generic_trait() {
        let (x, w) = (numbers((N, 4), 1), numbers((4, 4), 2));
        let dense = || Dense(w.clone().into_tensor((Feat, Hidden)));
        let once = &x + &x.dot(&w);
        let twice = &once + &once.dot(&w);
        let layer = Residual(dense());
        close(layer.twice(x.at((Batch, Feat))).order((Batch, Feat)), twice);
        assert_eq!(<Residual<Dense<f32>> as Layer<f32>>::NAME, "residual");
        let list: Vec<Box<dyn BatchLayer>> = vec![Box::new(layer), Box::new(dense())];
        let out = list.iter().fold(x.clone().into_tensor((Batch, Feat)), |x, layer| layer.run(&x));
        close(out.order((Batch, Feat)), once.dot(&w));
    }

    struct Counter {
        calls: usize,
    }

    impl Counter {
        #[batched]
        fn scaled(&mut self, x: Tensor<f32, (Feat,)>) -> Tensor<f32, (Feat,)> {
            self.calls += 1;
            x * self.calls as f32
        }

        #[batched]
        fn consumed(self, mut x: Tensor<f32, (Feat,)>) -> (Tensor<f32, (Feat,)>, usize) {
            x += 1.0;
            (x, self.calls)
        }
    }

    #[test]
    fn with_each_kind_of_self() {
        let x = numbers((N, 4), 1);
        let mut counter = Counter { calls: 0 };
        let _ = counter.scaled(x.at((Batch, Feat)));
        close(counter.scaled(x.at((Batch, Feat))).order((Batch, Feat)), &x * 2.0);
        let (y, calls) = counter.consumed(x.at((Batch, Feat)));
        close(y.order((Batch, Feat)), &x + 1.0);
        assert_eq!(calls, 2, "a call with a batch counts as one call");
    }
}

/// Generics, lifetimes, closures as parameters, and unusual names.
mod signatures {
    use super::*;

    #[batched]
    fn first<'a, T, const K: usize>(x: &'a Tensor<T, (Feat,)>, name: &'a str) -> (Tensor<T, (Feat,)>, &'a str)
    where
        T: Real,
    {
        (x.slice(Feat, ..K), name)
    }

    #[batched]
    fn each(x: &Tensor<f32, (Feat,)>, f: impl Fn(f32) -> f32, also: Option<f32>) -> Tensor<f32, (Feat,)> {
        x.map(|x| f(x) + also.unwrap_or(0.0))
    }

    /// Names that the macro could use itself.
    #[batched]
    fn clashes<Further: Real, Dims0>(
        further0: &Tensor<Further, (Feat,)>,
        batch0: &Tensor<Further, (Feat,)>,
        part0: Dims0,
    ) -> (Tensor<Further, (Feat,)>, Dims0) {
        let (arg0, part1) = (further0 + batch0, further0 - batch0);
        (arg0 * part1, part0)
    }

    #[test]
    fn of_all_kinds() {
        let x = numbers((N, 4), 1);
        let (y, name) = first::<_, 3, _, _, _, _>(x.at((Batch, Feat)), "x");
        assert_eq!(name, "x");
        close(y.order((Batch, Feat)), x.slice(ndarray::s![.., ..3]).to_owned());
        let offset = 2.0;
        close(each(x.at((Batch, Feat)), |x| x * offset, Some(1.0)).order((Batch, Feat)), &x * 2.0 + 1.0);
        let (y, unit) = clashes(x.at((Batch, Feat)), x.row(0).at(Feat), ());
        assert_eq!(unit, ());
        let row = x.row(0).to_owned();
        close(y.order((Batch, Feat)), (&x + &row) * (&x - &row));
    }

    /// The dims of the caller, of the function and of a nested function have the same names.
    #[test]
    fn one_name_for_many_dims() {
        #[batched]
        fn gram(x: &Tensor<f32, (), U2>) -> Tensor<f32, (), U2> {
            #[batched]
            fn square(x: &Tensor<f32, (), U2>) -> Tensor<f32, (), U2> {
                dims!(i, j, k);
                (x.at((i, k)) * x.at((j, k))).sum(k).order((i, j))
            }
            dims!(i, k);
            square(x.at((i, k)).order((i, k)))
        }
        let x = numbers((N, M, 4, 5), 1);
        dims!(i, j);
        let out = gram(x.at((i, j, .., ..))).order((i, j));
        for n in 0..N {
            for m in 0..M {
                let x = x.index_axis(Axis(0), n).index_axis(Axis(0), m).to_owned();
                let out = out.index_axis(Axis(0), n).index_axis(Axis(0), m).to_owned();
                close(out, x.dot(&x.t()));
            }
        }
    }
}

/// A pair, a list, a `Result` of an `Option`, and a mask as results.
mod results {
    use super::*;

    #[batched]
    fn var_mean(x: &Tensor<f32, (Feat,)>) -> (Tensor<f32, ()>, Tensor<f32, ()>) {
        (x.var(Feat), x.mean(Feat))
    }

    #[batched]
    fn chunks(x: &Tensor<f32, (Feat,)>, n: usize) -> Vec<Tensor<f32, (Feat,)>> {
        x.chunk(Feat, n)
    }

    #[batched]
    fn checked(x: &Tensor<f32, (Feat,)>, at: usize) -> Result<Option<Tensor<f32, ()>>, DimError> {
        if at == 9 {
            return Ok(None);
        }
        let found = x.try_index(Feat, at)?;
        Ok(Some(found))
    }

    #[batched]
    fn mask(x: &Tensor<f32, (Feat,)>) -> Tensor<bool, (Feat,)> {
        x.gt(x.mean(Feat))
    }

    #[test]
    fn of_all_kinds() {
        let x = numbers((N, 4), 1);
        let (var, mean) = var_mean(x.at((Batch, Feat)));
        close(mean.order(Batch), x.mean_axis(Axis(1)).unwrap());
        close(var.order(Batch), x.var_axis(Axis(1), 0.0));
        let parts = chunks(x.at((Batch, Feat)), 2);
        close(parts[1].clone().order((Batch, Feat)), x.slice(ndarray::s![.., 2..]).to_owned());
        assert!(checked(x.at((Batch, Feat)), 9).unwrap().is_none());
        assert!(checked(x.at((Batch, Feat)), 5).is_err());
        close(checked(x.at((Batch, Feat)), 1).unwrap().unwrap().order(Batch), x.column(1).to_owned());
        let means = x.mean_axis(Axis(1)).unwrap();
        let expected = Array2::from_shape_fn((N, 4), |(n, f)| x[[n, f]] > means[n]);
        assert_eq!(mask(x.at((Batch, Feat))).order((Batch, Feat)), expected);
    }
}

/// Elements that are not floats, and indices that differ between examples.
#[test]
fn lookups_and_integers() {
    #[batched]
    fn lookup(
        table: &Tensor<f32, (Seq, Feat)>,
        ids: &Tensor<usize, (Hidden,)>,
    ) -> Tensor<f32, (Hidden, Feat)> {
        table.take(Seq, ids)
    }
    #[batched]
    fn counts(ids: &Tensor<usize, (Hidden,)>, classes: usize) -> Tensor<usize, (Seq,)> {
        full_like(ids, 1).scatter_add(Hidden, Seq.of(classes), ids)
    }
    let table = numbers((5, 4), 1);
    let ids = Array2::from_shape_fn((N, 3), |(n, k)| (2 * n + k * k) % 5);
    let out = lookup(table.at((Seq, Feat)), ids.at((Batch, Hidden))).order((Batch, Hidden, Feat));
    close(out, Array3::from_shape_fn((N, 3, 4), |(n, k, f)| table[[ids[[n, k]], f]]));
    let found = counts(ids.at((Batch, Hidden)), 5).order((Batch, Seq));
    let expected = Array2::from_shape_fn((N, 5), |(n, s)| ids.row(n).iter().filter(|&&id| id == s).count());
    assert_eq!(found, expected);
}

/// A loop whose number of steps depends on the example, and a loop with a fixed number of steps.
#[test]
fn data_decides() {
    #[batched]
    fn steps(x: &Tensor<f32, (Feat,)>) -> Tensor<f32, ()> {
        map_each(x, |x| {
            let (mut x, mut steps) = (x.eval(), 0.0);
            while x.clone().sum(Feat).order(()) < 10.0 {
                x = (x * 2.0 + 1.0).eval();
                steps += 1.0;
            }
            full((), steps)
        })
    }
    #[batched]
    fn roots(x: &Tensor<f32, (Feat,)>) -> Tensor<f32, (Feat,)> {
        let mut y = x.eval();
        for _ in 0..20 {
            y = ((&y + x / &y) * 0.5).eval();
        }
        y
    }
    let x = numbers((N, 4), 1).mapv(|x| x.abs() + 0.1);
    let (found, plan) = explain(|| steps(x.at((Batch, Feat))));
    assert!(plan.steps.iter().any(|step| matches!(step, PlanStep::Calls { calls: N, .. })), "{plan}");
    let expected: Array1<f32> = x
        .rows()
        .into_iter()
        .map(|row| {
            let (mut row, mut steps) = (row.to_owned(), 0.0);
            while row.sum() < 10.0 {
                row = row * 2.0 + 1.0;
                steps += 1.0;
            }
            steps
        })
        .collect();
    close(found.order(Batch), expected);
    close(roots(x.at((Batch, Feat))).order((Batch, Feat)), x.mapv(f32::sqrt));
}

/// The effects of the guide's batching rules: a new axis, pointwise operations, broadcasting, a
/// reduction, a decomposition and random numbers. Here, none of these needs a rule of its own.
#[test]
fn batching_rules() {
    let (x, y) = (numbers((N, 4), 1), numbers((4, N), 2));
    dims!(n);
    // `unsqueeze`: a dim that the operand lacks.
    let wide = batched(n, x.at((n, Feat)), |x| x + zeros::<f32, _>(Seq.of(2))).order((n, Seq, Feat));
    close(wide, Array3::from_shape_fn((N, 2, 4), |(n, _, f)| x[[n, f]]));
    // Pointwise, with the mapped axis in different positions, and in only one operand.
    let sum = batched(n, (x.at((n, Feat)), y.at((Feat, n))), |(x, y)| x + y).order((n, Feat));
    close(sum, &x + &y.t());
    let g = y.column(0).to_owned();
    let one = batched(n, (x.at((n, Feat)), g.at(Feat)), |(x, g)| x * g).order((n, Feat));
    close(one, &x * &g);
    // A reduction over all dims of the example.
    let all = batched(n, x.at((n, Feat)), |x| x.sum(Feat)).order(n);
    close(all, x.sum_axis(Axis(1)));
    // A decomposition: the trace as a sum over the diagonal.
    let squares = numbers((N, 4, 4), 3);
    let traces = batched(n, squares.at((n, .., ..)), |x| {
        dims!(i);
        x.at((i, i)).sum(i)
    });
    close(traces.order(n), Array1::from_shape_fn(N, |n| (0..4).map(|i| squares[[n, i, i]]).sum()));
    // Random numbers: different along the mapped dim, as with `randomness="different"`.
    let noisy = batched(n, ones::<f32, _>((n, Feat.of(64))), |x| x.dropout(0.5, 7)).order((n, Feat));
    assert_ne!(noisy.row(0), noisy.row(1));
    // `randomness="same"`: a mask of one example.
    let same =
        batched(n, ones::<f32, _>((n, Feat.of(64))), |x| x * ones::<f32, _>(Feat.of(64)).dropout(0.5, 7));
    let same = same.order((n, Feat));
    assert_eq!(same.row(0), same.row(1));
}
