//! Gradients through macros, batching, layouts, users' operations, custom pull-backs and
//! checkpoints, and gradients in place.

use crate::gradients::{self, assert_close, assert_lost, check, noise};
use crate::panics::message;
use num_complex::Complex;
use std::cell::Cell;
use typed_dims::grad::{self, checkpoint, custom_vjp, grad, hvp, jvp, try_checkpoint, vjp};
use typed_dims::ndarray::{Array0, ArrayView0, ArrayView1, ArrayView2, arr0};
use typed_dims::operators::custom::{Derivative, PullBackOf, apply_arrays};
use typed_dims::pipeline::plan::explain::{Plan, PlanStep};
use typed_dims::prelude::*;
use typed_dims::types::rank::U0;

dims! {
    struct I;
    struct J;
    struct K;
    struct L;
    struct M;
}

type Matrix = Tensor<f64, (I, J)>;
type Cube = Tensor<f64, (I, J, K)>;

/// Numbers between 0.5 and 1.5, away from kinks at 0.
fn positive<P: Parameters>(like: &P, seed: u64) -> P {
    noise(like, seed).map_elements(|x: f64| 1.0 + 0.5 * x)
}

fn matrix(i: usize, j: usize) -> Matrix {
    positive(&zeros((I.of(i), J.of(j))), 1)
}

fn cube(i: usize, j: usize, k: usize) -> Cube {
    positive(&zeros((I.of(i), J.of(j), K.of(k))), 2)
}

mod patterns {
    use super::*;

    #[test]
    fn rearrangements() {
        for x in [cube(2, 4, 3), cube(1, 4, 1), cube(0, 4, 3)] {
            check(|x: &Cube| rearrange!((x * x).order((J, K)), j k -> k j), &x);
            check(|x: &Cube| rearrange!((x * x).order((J, K)), (a b) k -> (k b) a, a = 2), &x);
            check(|x: &Cube| rearrange!(x.sin().order((J, K)), j k -> j 1 k), &x);
            check(|x: &Cube| repeat!((x * x).order((J, K)), j k -> j (r k) r2, r = 2, r2 = 3), &x);
        }
        check(|x: &Cube| rearrange!(x.slice(J, 1..).exp().order((J, K)), j k -> (k j)), &cube(2, 3, 2));
        check(|x: &Cube| rearrange!(x.order((J, K)), ... k -> k ...), &cube(2, 3, 2));
    }

    #[test]
    fn diagonals() {
        let x: Tensor<f64, (I, J)> = matrix(2, 9);
        check(|x: &Matrix| einsum!("ii->i", x.unflatten(J, (K.of(3), L)).order((K, L))), &x);
    }

    #[test]
    fn joins() {
        let (x, y) = (cube(2, 2, 3), positive(&zeros((I.of(2), L.of(4), K.of(3))), 3));
        check(
            |(x, y): &(Cube, Tensor<f64, (I, L, K)>)| rearrange!((x * x).order((J, K)), y.sin().order((L, K)), a k, b k -> k (a + b)),
            &(x, y),
        );
        // One operand is constant.
        let y = positive(&zeros((I.of(2), L.of(4), K.of(3))), 4);
        check(
            |x: &Cube| rearrange!(x.sin().order((J, K)), (&y).order((L, K)), a k, b k -> (b + a) k),
            &cube(2, 2, 3),
        );
        // A split is the inverse of a join.
        check(
            |x: &Cube| {
                let x = x.sin().order((J, K));
                rearrange!(x, (a + b) k -> a k, b k, a = 1).1
            },
            &cube(2, 4, 3),
        );
    }

    #[test]
    fn reductions() {
        for x in [cube(2, 3, 4), cube(1, 1, 1), cube(3, 5, 2)] {
            check(|x: &Cube| reduce!((x * x).order((J, K)), j k -> k, sum), &x);
            check(|x: &Cube| reduce!(x.exp().order((J, K)), j k -> j, mean), &x);
            check(|x: &Cube| reduce!(x.exp().order((J, K)), j k -> j, prod), &x);
            check(|x: &Cube| reduce!(x.order((J, K)), j k -> j, max), &x);
            check(|x: &Cube| reduce!(x.order((J, K)), j k -> , min), &x);
            check(|x: &Cube| reduce!(x.order((J, K)), j k -> k, logsumexp), &x);
            check(|x: &Cube| reduce!(x.order((J, K)), j k -> , norm), &x);
        }
        let x = cube(2, 3, 4);
        check(|x: &Cube| reduce!(x.order((J, K)), j k -> k, var), &x);
        check(|x: &Cube| reduce!(x.order((J, K)), j (a k) -> a, std, a = 2), &x);
    }

    #[test]
    fn sums_of_products() {
        let (x, y) = (cube(2, 3, 4), positive(&zeros((I.of(2), K.of(4), L.of(5))), 5));
        type Both = (Cube, Tensor<f64, (I, K, L)>);
        let both = (x, y);
        check(|(x, y): &Both| einsum!("jk,kl->jl", x.order((J, K)), y.order((K, L))), &both);
        check(|(x, y): &Both| einsum!("jk,kl->l", x.sin().order((J, K)), y.exp().order((K, L))), &both);
        check(
            |(x, y): &Both| einsum!("jk,kl,jk->", x.order((J, K)), y.order((K, L)), x.order((J, K))),
            &both,
        );
        let a = ndarray::array![[1.0, 2.0, -1.0], [0.5, 0.0, 3.0]];
        check(|x: &Cube| einsum!("aj,jk->ak", a, x.order((J, K))), &both.0);
    }

    #[test]
    fn arrays_are_no_part_of_it() {
        let x = cube(2, 3, 4);
        let laid = |x: &Cube| x.laid((I, J, K));
        assert_lost("as_array", |x: &Cube| full::<f64, _>(I.of(1), einsum!("ijk->", laid(x).as_array())), &x);
        let text = message(|| {
            grad(
                |x: &Tensor<f64, (I,)>| {
                    let sum: f64 = einsum!("i->", x.order(I));
                    (x * sum).sum(I)
                },
                &positive(&zeros(I.of(3)), 1),
            )
        });
        assert!(text.contains("no gradient can be taken through `order`"), "{text}");
        assert_lost(
            "reduce! with a closure",
            |x: &Cube| reduce!(x.order((J, K)), j k -> j, |line: &[f64]| line[0]),
            &x,
        );
    }
}

mod batching {
    use super::*;

    #[batched]
    fn energy(x: &Tensor<f64, (J,)>) -> Tensor<f64, ()> {
        (x * x.tanh()).sum(J)
    }

    #[batched]
    fn normed(x: &Tensor<f64, (J,)>, w: &Tensor<f64, (J,)>) -> Tensor<f64, (J,)> {
        let weighted = x * w;
        (weighted / weighted.norm(J)).eval()
    }

    #[test]
    fn functions_with_further_dims() {
        check(|x: &Matrix| energy(x), &matrix(3, 4));
        check(|x: &Cube| energy(x), &cube(2, 3, 4));
        let w = positive(&zeros(J.of(4)), 3);
        check(|(x, w): &(Matrix, Tensor<f64, (J,)>)| normed(x, w), &(matrix(3, 4), w));
        check(|x: &Matrix| batched(I, x, |x| x.exp().sum(J)), &matrix(3, 4));
    }

    #[test]
    fn comprehensions() {
        let both = (cube(2, 3, 4), positive(&zeros((I.of(2), K.of(4), L.of(2))), 3));
        type Both = (Cube, Tensor<f64, (I, K, L)>);
        check(
            |(x, w): &Both| {
                let (x, w) = (x.order((J, K)), w.order((K, L)));
                tensor!([j, l] => sum[k](x[j, k].exp() * w[k, l]))
            },
            &both,
        );
        check(
            |(x, w): &Both| {
                let (x, w) = (x.order((J, K)), w.order((K, L)));
                einsum!(x[j, k] * w[k, l] * x[j, k] => [l, j])
            },
            &both,
        );
        let x = &both.0;
        check(
            |x: &Cube| {
                let x = x.order((J, K));
                tensor!([j] => sum[k](if k > j { x[j, k] * x[j, k] } else { x[0, k].sin() }))
            },
            x,
        );
        let ids = ndarray::array![2usize, 0, 2];
        check(
            |x: &Cube| {
                let x = x.order((J, K));
                tensor!([k, j] => x[ids[j], k] + x[2 - j, k].exp())
            },
            x,
        );
        check(
            |(x, w): &Both| {
                let (x, w) = (x.order((J, K)), w.order((K, L)));
                tensor!([j, t] => sum[l](x[j, t + l] * w[0, l]))
            },
            &both,
        );
        check(
            |x: &Cube| {
                let x = x.order((J, K));
                gather!(x[_ k], ids[n] => n k)
            },
            x,
        );
        check(
            |x: &Cube| {
                let x = x.order((J, K));
                tensor!([] => logsumexp[j, k](x[j, k] * 2.0))
            },
            x,
        );
    }

    fn logistic(w: &Tensor<f64, (J,)>, x: &Tensor<f64, (J,)>) -> Tensor<f64, ()> {
        (-(w * x).sum(J)).exp().ln_1p().eval()
    }

    #[test]
    fn a_loop_of_gradients() {
        let w = positive(&zeros(J.of(4)), 3);
        let x = matrix(3, 4);
        let each = vmap(|x: Tensor<f64, (J,)>| grad(|w| logistic(w, &x), &w), I)(&x);
        let expected = |at: usize| {
            let x = x.clone().index(I, at).eval();
            grad(|w| logistic(w, &x), &w).order(J)
        };
        let each = each.order((I, J));
        for at in 0..3 {
            assert_eq!(each.row(at), expected(at));
        }
        // Gradients of these gradients.
        check(
            |w: &Tensor<f64, (J,)>| {
                let w = w.clone();
                vmap(move |x: Tensor<f64, (J,)>| grad(|w| logistic(w, &x), &w), I)(&x)
            },
            &w,
        );
    }

    /// The gradient of one example's loss.
    #[batched]
    fn slope(w: &Tensor<f64, (J,)>, x: &Tensor<f64, (J,)>) -> Tensor<f64, (J,)> {
        let w = w.eval();
        let (loss, pull) = vjp(|w| (w * x).sum(J).tanh().eval(), &w);
        pull(&(loss * 0.0 + 1.0).eval())
    }

    #[test]
    fn gradients_within_batched_functions() {
        let (w, x) = (positive(&zeros(J.of(4)), 3), matrix(3, 4));
        let (each, plan) = explain(|| slope(&w, &x));
        assert!(!plan.steps.iter().any(|step| matches!(step, PlanStep::Calls { .. })), "{plan}");
        let each = each.order((I, J));
        for at in 0..3 {
            let x = x.clone().index(I, at).eval();
            let one = slope(&w, &x).order(J);
            assert!(each.row(at).iter().zip(&one).all(|(a, b): (&f64, &f64)| (a - b).abs() < 1e-12));
        }
        type Both = (Tensor<f64, (J,)>, Matrix);
        check(|(w, x): &Both| slope(w, x), &(w, x));
    }

    #[test]
    fn gradients_under_bound_dims() {
        // `own` has the dim of the examples, so the gradient has this dim too.
        let (w, x) = (positive(&zeros(J.of(4)), 3), matrix(3, 4));
        let t = positive(&zeros(I.of(3)), 5);
        let (each, plan) = explain(|| {
            let own = w.clone().expand(I.of(3)).eval();
            grad(|w| ((w * &x).sum(J) - &t).square().sum(I), &own)
        });
        assert!(!plan.steps.iter().any(|step| matches!(step, PlanStep::Calls { .. })), "{plan}");
        let each = each.order((I, J));
        for at in 0..3 {
            let (x, t) = (x.clone().index(I, at).eval(), t.clone().index(I, at).eval());
            let one = grad(|w| ((w * &x).sum(J) - &t).square(), &w).order(J);
            assert!(each.row(at).iter().zip(&one).all(|(a, b): (&f64, &f64)| (a - b).abs() < 1e-12));
        }
    }
}

/// The gradients with respect to all operands of a fused expression are computed in one pass. The
/// gradient of a broadcast operand is summed from the result of that pass.
#[test]
fn gradients_of_several_operands_are_one_pass() {
    type Three = (Matrix, Matrix, Matrix);
    type Two = (Matrix, Tensor<f64, (J,)>);
    let three = (matrix(3, 4), matrix(3, 4).exp().eval(), matrix(3, 4).ln().eval());
    let two = (matrix(3, 4), positive(&zeros(J.of(4)), 3));
    fn fused((a, b, c): &Three) -> Tensor<f64, ()> {
        ((a * b + c).tanh() * a.sigmoid()).sum((I, J))
    }
    fn biased((a, b): &Two) -> Tensor<f64, ()> {
        let biased = (a + b).tanh().eval();
        (&biased * &biased).sum((I, J))
    }
    check(fused, &three);
    check(biased, &two);
    let passes =
        |plan: Plan| plan.steps.iter().filter(|step| matches!(step, PlanStep::Elementwise { .. })).count();
    assert_eq!(passes(explain(|| grad(fused, &three)).1), 1);
    // One pass forward, one for the gradient of the square, and one for the gradient of `a + b`.
    assert_eq!(passes(explain(|| grad(biased, &two)).1), 3);
}

mod layouts {
    use super::*;

    #[test]
    fn layouts_carry_the_trace() {
        for x in [cube(2, 3, 4), cube(1, 3, 1), cube(2, 0, 4)] {
            check(|x: &Cube| x.laid((K, I, J)).into_inner(), &x);
            check(|x: &Cube| (x * x).laid((I, J, K)).into_inner(), &x);
            check(|x: &Cube| (x.laid((K, J, I)).sin() * x).sum(J), &x);
            check(|x: &Cube| (&x.laid((K, J, I)) * x.laid((K, J, I))).laid((K, J, I)).into_inner(), &x);
            check(|x: &Cube| x.sin().laid((K, J, I)).flatten((J, I), L).into_inner(), &x);
            check(|x: &Cube| (x.laid((I, J, K)).view() * x).sum((I, K)), &x);
            check(|x: &Cube| (-x.laid((I, J, K)).view()).exp().eval(), &x);
        }
        let x = cube(2, 6, 4);
        check(|x: &Cube| x.exp().laid((I, J, K)).unflatten(J, (L, M.of(2))).sum(M), &x);
        check(|x: &Cube| (x.clone().laid((I, J, K)) * 2.0).laid((I, J, K)).into_inner(), &x);
    }

    #[test]
    fn products_of_layouts() {
        let (a, b) = (matrix(3, 4), positive(&zeros((J.of(4), K.of(5))), 3));
        check(|(a, b): &(Matrix, Tensor<f64, (J, K)>)| (a.laid((I, J)) * b.laid((J, K))).sum(J), &(a, b));
    }

    #[test]
    fn numbers_leave_the_program() {
        let x = cube(2, 3, 4);
        let to = |sum: f64| full::<f64, _>(I.of(1), sum);
        assert_lost("as_slice", |x: &Cube| to(x.laid((I, J, K)).as_slice()[0]), &x);
        assert_lost("into_vec", |x: &Cube| to(x.laid((I, J, K)).into_vec()[0]), &x);
        assert_lost("into_array", |x: &Cube| to(x.laid((I, J, K)).into_array()[[0, 0, 0]]), &x);
        assert_lost("into_slice", |x: &Cube| to(x.laid((I, J, K)).view().into_slice()[0]), &x);
    }
}

mod operations {
    use super::*;

    /// `factor x^n`. Its derivative is another `Power`.
    #[derive(Clone, Copy)]
    struct Power {
        n: i32,
        factor: f64,
    }

    impl ScalarOp<f64> for Power {
        type Out = f64;
        const NAME: &'static str = "power";

        fn apply<I: Isa>(self, x: f64) -> f64 {
            self.factor * x.powi(self.n)
        }

        fn derivative(self) -> Option<Derivative<f64>> {
            Some(Derivative::of(Power { n: self.n - 1, factor: self.factor * f64::from(self.n) }))
        }
    }

    #[derive(Clone, Copy)]
    struct SinTimes;
    #[derive(Clone, Copy)]
    struct CosTimes;
    #[derive(Clone, Copy)]
    struct SinOf;

    macro_rules! op {
        ($name:ident, $text:literal, |$a:ident, $b:ident| $value:expr, $derivative:expr) => {
            impl ScalarOp<(f64, f64)> for $name {
                type Out = f64;
                const NAME: &'static str = $text;

                fn apply<I: Isa>(self, ($a, $b): (f64, f64)) -> f64 {
                    $value
                }

                fn derivative(self) -> Option<Derivative<(f64, f64)>> {
                    Some($derivative)
                }
            }
        };
    }

    op!(SinTimes, "sin_times", |a, b| a.sin() * b, Derivative::of_each(CosTimes, SinOf));
    op!(
        CosTimes,
        "cos_times",
        |a, b| a.cos() * b,
        Derivative::from_fns(|(a, b): (f64, f64)| -a.sin() * b, |(a, _): (f64, f64)| a.cos())
    );
    op!(
        SinOf,
        "sin_of",
        |a, _b| a.sin(),
        Derivative::from_fns(|(a, _): (f64, f64)| a.cos(), |_: (f64, f64)| 0.0)
    );

    #[test]
    fn scalar_operations_have_derivatives() {
        for x in [cube(2, 3, 4), cube(1, 0, 2), cube(3, 7, 31)] {
            check(|x: &Cube| x.apply(Power { n: 5, factor: 2.0 }).eval(), &x);
            check(|x: &Cube| (x.exp().apply(Power { n: 3, factor: 1.0 }) * x).sum(J), &x);
            check(|x: &Cube| x.apply_with(x.tanh(), SinTimes).eval(), &x);
        }
        let both = (matrix(3, 4), positive(&zeros(J.of(4)), 3));
        check(|(x, w): &(Matrix, Tensor<f64, (J,)>)| (x * 2.0).apply_with(w, SinTimes).eval(), &both);
    }

    #[derive(Clone, Copy)]
    struct Square;

    impl<T: Real> ScalarOp<T> for Square {
        type Out = T;
        const NAME: &'static str = "own_square";

        fn apply<I: Isa>(self, x: T) -> T {
            x * x
        }

        fn derivative(self) -> Option<Derivative<T>> {
            Some(Derivative::from_fn(|x: T| x + x))
        }
    }

    #[test]
    fn scalar_operations_of_other_types() {
        let x = from_vec(I.of(3), vec![1.5f32, -2.0, 0.25]);
        let dx = grad(|x| x.apply(Square).sum(I), &x);
        assert_eq!(dx.order(I), ndarray::array![3.0f32, -4.0, 0.5]);
        // A derivative that is a closure has no derivative of its own.
        let text = message(|| hvp(|x| x.apply(Square).sum(I), &x, &x));
        assert!(text.contains("`the derivative of an operation` has no derivative"), "{text}");
    }

    /// The derivative is an integer above the greatest signed one.
    #[derive(Clone, Copy)]
    struct TimesMost;

    impl ScalarOp<f64> for TimesMost {
        type Out = f64;
        const NAME: &'static str = "times_most";

        fn apply<I: Isa>(self, x: f64) -> f64 {
            x * u64::MAX as f64
        }

        fn derivative(self) -> Option<Derivative<f64>> {
            Some(Derivative::from_fn(|_: f64| u64::MAX))
        }
    }

    #[test]
    fn derivatives_are_converted_from_unsigned_integers() {
        let x = from_vec(I.of(3), vec![1.5_f64, -2.0, 0.25]);
        let dx = grad(|x| x.apply(TimesMost).sum(I), &x);
        assert_eq!(dx.order(I), ndarray::Array1::from_elem(3, u64::MAX as f64));
    }

    #[derive(Clone, Copy)]
    struct Odd;

    impl ScalarOp<f64> for Odd {
        type Out = f64;
        const NAME: &'static str = "odd";

        fn apply<I: Isa>(self, x: f64) -> f64 {
            x * x * x
        }
    }

    /// A `bool` result needs no derivative.
    #[derive(Clone, Copy)]
    struct IsLarge;

    impl ScalarOp<f64> for IsLarge {
        type Out = bool;
        const NAME: &'static str = "is_large";

        fn apply<I: Isa>(self, x: f64) -> bool {
            x > 1.0
        }
    }

    /// `exp(i x)`.
    #[derive(Clone, Copy)]
    struct Phase;

    impl ScalarOp<f64> for Phase {
        type Out = Complex<f64>;
        const NAME: &'static str = "phase";

        fn apply<I: Isa>(self, x: f64) -> Complex<f64> {
            Complex::cis(x)
        }

        fn derivative(self) -> Option<Derivative<f64>> {
            Some(Derivative::from_fn(|x: f64| Complex::<f64>::i() * Complex::cis(x)))
        }
    }

    #[test]
    fn without_a_derivative_it_is_an_error() {
        let x = matrix(3, 4);
        let text = message(|| vjp(|x: &Matrix| x.apply(Odd).eval(), &x));
        assert!(
            text.contains("no gradient can be taken through `odd`")
                && text.contains(
                    "give it a derivative, with `fn derivative` in its `impl ScalarOp`, or write `x.detach()`"
                ),
            "{text}"
        );
        let text = message(|| vjp(|x: &Matrix| x.map(|x| x * 2.0).eval(), &x));
        assert!(text.contains("write a `ScalarOp` with a derivative, for `x.apply(op)`"), "{text}");
        let text = message(|| vjp(|x: &Matrix| x.apply(Phase).map(|z| z.re).eval(), &x));
        assert!(
            text.contains("no gradient can be taken through `phase`")
                && text.contains("use operations that have a derivative"),
            "{text}"
        );
        check(|x: &Matrix| select(x.apply(IsLarge), x * x, x.exp()).eval(), &x);
    }

    struct TimesSum;

    impl ArrayOp<f64> for TimesSum {
        type In = U1;
        type Out = U1;
        type Elem = f64;
        const NAME: &'static str = "times_sum";

        fn one(&self, x: ArrayView1<'_, f64>) -> Array1<f64> {
            &x * x.sum()
        }

        fn pull_back(&self) -> Option<PullBackOf<Self, f64>> {
            Some(PullBackOf::<Self, f64>::new(|x, _, dy| &dy * x.sum() + dy.dot(&x)))
        }
    }

    struct Largest;

    impl ArrayOp<f64> for Largest {
        type In = U1;
        type Out = U0;
        type Elem = f64;
        const NAME: &'static str = "largest";

        fn one(&self, x: ArrayView1<'_, f64>) -> Array0<f64> {
            arr0(x.iter().copied().fold(f64::MIN, f64::max))
        }
    }

    /// Compares first derivatives in reverse and forward mode with finite differences.
    #[track_caller]
    fn check_first<P: Parameters, Y: Parameters>(f: impl Fn(&P) -> Y, at: &P) {
        let v = noise(at, 5);
        let expected = gradients::difference(&f, at, &v);
        let (y, pull) = vjp(|x| f(x), at);
        let u = noise(&y, 6);
        let dot = |a: f64, b: f64| a * b;
        let sum = |pairs: Vec<(f64, f64)>| pairs.into_iter().map(|(a, b)| dot(a, b)).sum::<f64>();
        let (a, b) = (sum(gradients::pairs(&pull(&u), &v)), sum(gradients::pairs(&u, &expected)));
        assert!((a - b).abs() < 1e-6 * b.abs().max(1.0), "{a} instead of {b}");
        assert_close("jvp", &jvp(|x| f(x), at, &v).1, &expected);
    }

    #[test]
    fn operations_on_arrays_have_pull_backs() {
        for x in [cube(2, 3, 4), cube(1, 1, 1), cube(2, 3, 1)] {
            check_first(|x: &Cube| x.exp().order(K).apply_array(TimesSum).at(K).eval(), &x);
            check_first(|x: &Cube| (x.order(I).apply_array(TimesSum).at(I) * x).sum(J), &x);
        }
        let x = cube(2, 3, 4);
        let text = message(|| vjp(|x: &Cube| x.order(K).apply_array(Largest), &x));
        assert!(
            text.contains("no gradient can be taken through `largest`")
                && text.contains("implement `pull_back` in its `impl ArrayOp`"),
            "{text}"
        );
        let text = message(|| hvp(|x: &Cube| x.order(K).apply_array(TimesSum).at(K).sum((I, J, K)), &x, &x));
        assert!(text.contains("no gradient of a gradient can be taken through `times_sum`"), "{text}");
    }

    /// Solves `a x = b` for a lower triangular `a`.
    struct SolveLower;

    impl ArrayOp<(f64, f64)> for SolveLower {
        type In = (U2, U1);
        type Out = U1;
        type Elem = f64;
        const NAME: &'static str = "solve_lower";

        fn one(&self, (a, b): (ArrayView2<'_, f64>, ArrayView1<'_, f64>)) -> Array1<f64> {
            let mut x = b.to_owned();
            for i in 0..x.len() {
                let known: f64 = (0..i).map(|j| a[[i, j]] * x[j]).sum();
                x[i] = (x[i] - known) / a[[i, i]];
            }
            x
        }

        /// `db` solves `a^T db = dx`, and `da` is the lower triangle of `-db x^T`.
        fn pull_back(&self) -> Option<PullBackOf<Self, (f64, f64)>> {
            Some(PullBackOf::<Self, (f64, f64)>::new(|(a, _), x, dx| {
                let n = x.len();
                let mut db = dx.to_owned();
                for i in (0..n).rev() {
                    let known: f64 = (i + 1..n).map(|j| a[[j, i]] * db[j]).sum();
                    db[i] = (db[i] - known) / a[[i, i]];
                }
                let da = Array2::from_shape_fn((n, n), |(i, j)| if j <= i { -db[i] * x[j] } else { 0.0 });
                (da, db)
            }))
        }
    }

    #[test]
    fn operations_on_several_arrays_have_pull_backs() {
        // Each operand lacks a dim of the other.
        type Both = (Cube, Tensor<f64, (J, L)>);
        let solve = |(a, b): &Both| apply_arrays((a.order((J, K)), b.order(J)), SolveLower).at(J).eval();
        let b = positive(&zeros((J.of(3), L.of(4))), 7);
        check_first(solve, &(cube(2, 3, 3), b.clone()));
        // Both operands have a common batch dim.
        let a = cube(2, 3, 3);
        let one =
            |b: &Matrix| apply_arrays((a.clone().order((J, K)), b.exp().order(J)), SolveLower).at(J).sum(I);
        check_first(one, &matrix(2, 3));
    }

    /// An element type that programs do not know.
    #[derive(Clone, Copy, Debug, Default)]
    enum Sign {
        #[default]
        Plus,
        Minus,
    }

    impl Sign {
        fn factor(self) -> f64 {
            if matches!(self, Sign::Plus) { 1.0 } else { -1.0 }
        }
    }

    /// The operation borrows a `Cell`, so it is not `Send`.
    struct Signed<'a> {
        calls: &'a Cell<usize>,
    }

    impl ArrayOp<(f64, Sign, u8)> for Signed<'_> {
        type In = (U1, U1, U0);
        type Out = U1;
        type Elem = f64;
        const NAME: &'static str = "signed";

        fn one(
            &self,
            (x, signs, times): (ArrayView1<'_, f64>, ArrayView1<'_, Sign>, ArrayView0<'_, u8>),
        ) -> Array1<f64> {
            self.calls.set(self.calls.get() + 1);
            &x * &signs.mapv(Sign::factor) * f64::from(*times.into_scalar())
        }

        fn pull_back(&self) -> Option<PullBackOf<Self, (f64, Sign, u8)>> {
            Some(PullBackOf::<Self, (f64, Sign, u8)>::new(|(_, signs, times), _, dy| {
                let dx = &dy * &signs.mapv(Sign::factor) * f64::from(*times.into_scalar());
                (dx, signs.to_owned(), times.to_owned())
            }))
        }
    }

    /// A `bool` result needs no pull-back.
    struct IsLargest;

    impl ArrayOp<f64> for IsLargest {
        type In = U1;
        type Out = U1;
        type Elem = bool;
        const NAME: &'static str = "is_largest";

        fn one(&self, x: ArrayView1<'_, f64>) -> Array1<bool> {
            let largest = x.iter().copied().fold(f64::MIN, f64::max);
            x.mapv(|x| x == largest)
        }
    }

    #[test]
    fn operations_on_arrays_of_other_types() {
        let calls = Cell::new(0);
        let signs = [Sign::Plus, Sign::Minus, Sign::Minus];
        let times = from_vec(I.of(2), vec![2u8, 5]);
        let signed = |x: &Matrix| {
            apply_arrays((x.exp().order(J), signs.at(..), &times), Signed { calls: &calls }).at(J).eval()
        };
        check_first(signed, &matrix(2, 3));
        calls.set(0);
        let (dx, plan) = explain(|| grad(|x| signed(x).sum((I, J)), &matrix(2, 3)));
        assert_eq!(calls.get(), 2);
        let is_call =
            |step: &PlanStep| matches!(step, PlanStep::Calls { function: "signed", calls: 2, bytes: 48, .. });
        assert_eq!(plan.steps.iter().filter(|step| is_call(step)).count(), 1, "{plan}");
        let expected = signed(&matrix(2, 3));
        assert_eq!(dx.order((I, J)), expected.order((I, J)));
        // Booleans are constants.
        let x = cube(2, 3, 4);
        let largest = |x: &Cube| select(x.order(K).apply_array(IsLargest).at(K), x * x, x * 3.0).eval();
        check_first(largest, &x);
        let dx = grad(|x| (x.order(K).apply_array(IsLargest).at(K).cast::<f64>() * 2.0).sum((I, J, K)), &x);
        assert!(dx.order((I, J, K)).iter().all(|&dx| dx == 0.0));
    }
}

mod cuts {
    use super::*;

    #[test]
    fn detached_values_are_constants() {
        let x = &matrix(3, 4);
        let dx = grad(|x| (x.detach() * x).sum((I, J)), x);
        assert_eq!(dx.order((I, J)), x.order((I, J)));
        let dx = grad(|x| ((x * 2.0).exp().detach() * x).sum((I, J)), x);
        assert_eq!(dx.order((I, J)), (x * 2.0).exp().order((I, J)));
        let dx =
            grad(|x| (x.slice(J, 1..).detach().sum(J) * x).sum((I, J)) + x.clone().detach().sum((I, J)), x);
        let expected = x.slice(J, 1..).sum(J) + zeros::<f64, _>(J.of(4));
        assert_eq!(dx.order((I, J)), expected.order((I, J)));
        // Detached elements can be read as numbers.
        let dx = grad(
            |x| {
                let sum: f64 = x.sum((I, J)).detach().order(());
                (x * sum).sum((I, J))
            },
            x,
        );
        assert!(dx.order((I, J)).iter().all(|&dx| dx == x.sum((I, J)).order(())));
    }

    type Pair = (Matrix, Tensor<f64, (J,)>);

    #[test]
    fn functions_with_custom_pull_backs() {
        // Derivatives of any order are correct, because the pull-back consists of tensor
        // operations.
        let own = |(x, w): &Pair| {
            custom_vjp(
                |(x, w)| (x * w).exp().eval(),
                |(x, w), y, dy| ((dy * y * w).eval(), (dy * y * x).sum(I)),
                (x, w),
            )
        };
        let both = (matrix(3, 4), positive(&zeros(J.of(4)), 3));
        check(own, &both);
        check(|both: &Pair| (own(both) * &both.0).sum(J), &both);
        let two = |x: &Matrix| {
            custom_vjp(
                |x| (x.sin().eval(), (x * x).sum(J)),
                |x, _, (ds, dq)| (ds * x.cos() + x * dq * 2.0).eval(),
                x,
            )
        };
        check(two, &both.0);
        check(|x: &Matrix| two(x).1, &both.0);
        // The pull-back decides the gradient, even if the function's own gradient differs.
        let dx =
            grad(|x| custom_vjp(|x| x.round().eval(), |_, _, dy| (dy * 3.0).eval(), x).sum((I, J)), &both.0);
        assert!(dx.order((I, J)).iter().all(|&dx| dx == 3.0));
    }

    #[test]
    fn what_is_none_of_the_inputs_is_an_error() {
        let both = (matrix(3, 4), positive(&zeros(J.of(4)), 3));
        let text = message(|| {
            vjp(
                |(x, w): &Pair| {
                    let w = w.clone();
                    checkpoint(move |x| (x * &w).eval(), x)
                },
                &both,
            )
        });
        assert!(text.contains("`checkpoint`") && text.contains("not one of its inputs"), "{text}");
        let text =
            message(|| vjp(|(x, w): &Pair| custom_vjp(|x| (x * w).eval(), |_, _, dy| dy.clone(), x), &both));
        assert!(text.contains("`custom_vjp`") && text.contains("not one of its inputs"), "{text}");
        // The same error occurs if all inputs are constant.
        let constant = &both.0;
        let text = message(|| {
            vjp(
                |w: &Tensor<f64, (J,)>| custom_vjp(|x| (x * w).eval(), |_, _, dy| dy.clone(), constant),
                &both.1,
            )
        });
        assert!(text.contains("`custom_vjp`") && text.contains("not one of its inputs"), "{text}");
        let text = message(|| {
            vjp(
                |w: &Tensor<f64, (J,)>| {
                    let w = w.clone();
                    checkpoint(move |x| (x * &w).eval(), constant)
                },
                &both.1,
            )
        });
        assert!(text.contains("`checkpoint`") && text.contains("not one of its inputs"), "{text}");
    }

    #[test]
    fn checkpoints_have_the_same_gradients() {
        let layer = |(x, w): &Pair| (x * w).tanh().softmax(J);
        let both = (matrix(3, 4), positive(&zeros(J.of(4)), 3));
        check(|(x, w): &Pair| checkpoint(layer, (x, w)), &both);
        check(
            |(x, w): &Pair| {
                let mut x = x.clone();
                for _ in 0..3 {
                    x = checkpoint(layer, (&x, w));
                }
                (x * w).sum(J)
            },
            &both,
        );
        // Without tracing, the function itself runs.
        let y = try_checkpoint(layer, (&both.0, &both.1)).unwrap();
        assert_eq!(y.order((I, J)), layer(&both).order((I, J)));
        check(
            |(x, w): &Pair| {
                checkpoint(move |(x, w): &Pair| checkpoint(layer, (&checkpoint(layer, (x, w)), w)), (x, w))
            },
            &both,
        );
    }

    /// A long chain of checkpoints is dropped without recursion.
    #[test]
    fn long_chains() {
        let x = matrix(1, 1);
        let dx = grad(
            |x| {
                let mut y = x.clone();
                for _ in 0..20_000 {
                    y = checkpoint(|y: &Matrix| (y * 1.0).eval(), &y);
                }
                y.sum((I, J))
            },
            &x,
        );
        assert_eq!(dx.order((I, J))[[0, 0]], 1.0);
    }
}

/// Gradients with respect to `&mut w`: the variables are in the memory of `w` itself.
mod in_place {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use typed_dims::grad::{value_and_grad, value_and_grad_with};
    use typed_dims::ndarray::array;
    use typed_dims::optim::{Optimizer, Sgd};

    #[derive(Parameters, Clone)]
    struct Model {
        weight: Matrix,
        layers: Vec<Option<Tensor<f32, (I,)>>>,
        index: Tensor<usize, (I,)>,
        #[parameters(constant)]
        power: i32,
    }

    impl Model {
        fn new() -> Self {
            let layers = vec![None, Some(from_fn(I.of(2), |i| 0.5 + i as f32))];
            Model { weight: matrix(2, 3), layers, index: from_fn(I.of(2), |i| i), power: 3 }
        }

        fn loss(&self) -> Tensor<f64, ()> {
            let weights = (&self.weight).powi(self.power).sum((I, J));
            let layer = self.layers[1].as_ref().unwrap().square().sum(I).cast::<f64>();
            (weights + layer + self.index.sum(I).cast::<f64>()).eval()
        }

        fn elements(&self) -> (Vec<f64>, Vec<f32>) {
            let layer = self.layers[1].as_ref().unwrap();
            (self.weight.view().order((I, J)).into_raw_vec_and_offset().0, layer.view().order(I).to_vec())
        }
    }

    /// Checks that the tensors are constants: they can be modified, and no gradient flows through
    /// them.
    fn assert_is_constant(model: &mut Model) {
        let w: Tensor<f64, ()> = full((), 2.0);
        let loss = |w: &Tensor<f64, ()>| (w * model.weight.sum((I, J)) * model.loss()).eval();
        let expected = model.weight.sum((I, J)).order(()) * model.loss().order(());
        assert_close("by a constant", &grad(loss, &w), &full((), expected));
        let elements = model.elements();
        let still = model.zero();
        Sgd::new(1.0).step(model, &still);
        assert_eq!(model.elements(), elements);
    }

    #[test]
    fn the_gradient_is_the_same_and_the_model_too() {
        let mut model = Model::new();
        let elements = model.elements();
        let expected = value_and_grad(Model::loss, &model);
        for _ in 0..3 {
            let (value, gradient) = value_and_grad(Model::loss, &mut model);
            assert_eq!(value, expected.0);
            assert_eq!(gradient.elements(), expected.1.elements());
            assert_eq!((gradient.index.view().order(I), gradient.power), (array![0, 0], 3));
            assert_eq!((model.elements(), model.index.view().order(I)), (elements.clone(), array![0, 1]));
            assert_is_constant(&mut model);
        }
    }

    #[test]
    fn memory_that_others_share_is_theirs() {
        let mut w = matrix(2, 3);
        let constant = w.clone();
        let expected = (2.0 * &w).order((I, J));
        let gradient = grad(|w| (w * w + &constant * &constant).sum((I, J)), &mut w);
        assert_eq!(gradient.order((I, J)), expected);
        // A clone that the function returns keeps its value.
        let mut w = matrix(2, 3);
        let (_, _, kept) = value_and_grad_with(|w| (w.square().sum((I, J)), w.clone()), &mut w);
        let gradient = (-1.0 * &w).eval();
        Sgd::new(1.0).step(&mut w, &gradient);
        assert_eq!((2.0 * kept.detach()).order((I, J)), w.order((I, J)));
        // Two tensors that share memory are two variables.
        let mut both = [constant.clone(), constant];
        let [one, other] = grad(|[a, b]| (a * b * b).sum((I, J)), &mut both);
        assert_close("the first", &one, &(&both[0]).square().eval());
        assert_close("the second", &other, &(2.0 * (&both[0]).square()).eval());
    }

    #[test]
    fn a_panic_leaves_constants() {
        let mut model = Model::new();
        let elements = model.elements();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            grad(
                |model: &Model| {
                    let loss = model.loss();
                    assert!(model.power == 0, "no loss");
                    loss
                },
                &mut model,
            )
        }));
        assert!(panicked.is_err());
        // If the loss does not depend on some parameters, the others become constants again too.
        let unused = grad::try_grad(|model| model.weight.sum((I, J)), &mut model);
        assert!(unused.is_err_and(|error| error.to_string().contains("layers.1")));
        assert_eq!(model.elements(), elements);
        assert_is_constant(&mut model);
    }

    #[test]
    fn tuples_scalars_and_broadcasts() {
        let (mut a, b, mut c) = (matrix(2, 3), matrix(2, 3), full((), 2.0));
        let loss = |a: &Matrix, b: &Matrix, c: &Tensor<f64, ()>| (a * b.square() * c).sum((I, J));
        let expected = grad(|(a, b, c)| loss(a, b, c), (&a, &b, &c));
        let found = grad(|(a, b, c)| loss(a, b, c), (&mut a, &b, &mut c));
        assert_eq!(found.0.order((I, J)), expected.0.order((I, J)));
        assert_eq!(found.1.order((I, J)), expected.1.order((I, J)));
        assert_eq!(found.2.order(()), expected.2.order(()));
        // If an element is at several positions, each position has a gradient.
        let line: Tensor<f64, (J,)> = from_fn(J.of(3), |j| j as f64);
        let mut spread: Matrix = line.expand(I.of(2)).eval();
        let by = grad(|x| (x * &a).sum((I, J)), &mut spread);
        assert_eq!(by.order((I, J)), a.order((I, J)));
        let mut empty = matrix(0, 3);
        assert_eq!(grad(|x| x.sum((I, J)), &mut empty).order((I, J)).dim(), (0, 3));
    }

    #[test]
    fn earlier_traces_are_not_affected() {
        let start = matrix(2, 3);
        let (_, _, mut kept) = value_and_grad_with(|w| (w.square().sum((I, J)), w.clone()), &start);
        for _ in 0..3 {
            let gradient = grad(|w| w.square().sum((I, J)), &mut kept);
            assert_close("2 w", &gradient.detach(), &(2.0 * &start).eval());
        }
        // An inner call fails; the outer variable is still a variable.
        let found = grad(
            |x: &Matrix| {
                let mut both = (x.clone(), (x * 1.0).eval());
                let unused = grad::try_grad(|both| (&both.1).square().sum((I, J)), &mut both);
                assert!(unused.is_err());
                ((&both.0).square() + (&both.1).square()).sum((I, J))
            },
            &start,
        );
        assert_close("4 x", &found, &(4.0 * &start).eval());
    }

    /// The inner variable depends on the outer one, even after the inner call.
    #[test]
    fn gradients_within_gradients() {
        let x = matrix(2, 3);
        let of = |in_place: bool| {
            grad(
                |x: &Matrix| {
                    let mut y = (x * x).eval();
                    let inner = |y: &Matrix| y.powi(3).sum((I, J));
                    let dy = if in_place { grad(inner, &mut y) } else { grad(inner, &y) };
                    (dy * y).sum((I, J))
                },
                &x,
            )
        };
        // The outer loss is 3 y^3 = 3 x^6.
        assert_close("18 x^5", &of(true), &(18.0 * x.view().powi(5)).eval());
        assert_eq!(of(true).order((I, J)), of(false).order((I, J)));
        let mut outer = x.clone();
        let found = grad(|x| grad(|x| x.powi(3).sum((I, J)), x).sum((I, J)), &mut outer);
        assert_close("6 x", &found, &(6.0 * &x).eval());
        assert_eq!(outer.order((I, J)), x.order((I, J)));
    }
}

/// Functions that are parameters can be passed on.
#[test]
fn functions_that_are_parameters() {
    use typed_dims::grad::{ScalarLoss, jacobian, loss_and_grad, value_and_grad, value_and_grad_with};
    type Line = Tensor<f64, (I,)>;
    fn value<P: Parameters>(f: impl Fn(&P) -> Tensor<f64, ()>, by: &mut P) -> f64 {
        value_and_grad(f, by).0
    }
    fn once<P: Parameters, F: FnOnce(&P) -> L, L: ScalarLoss<Elem = f64>>(f: F, by: &P) -> f64 {
        value_and_grad(f, by).0
    }
    fn of_two<P: Parameters, Q: Parameters>(
        f: impl FnOnce((&P, &Q)) -> Tensor<f64, ()>,
        by: (&P, &Q),
    ) -> (P, Q) {
        grad(f, by)
    }
    fn with<X>(f: impl Fn(&Line) -> (Tensor<f64, ()>, X), by: &Line) -> X {
        value_and_grad_with(f, by).2
    }
    fn all(f: impl Fn(&Line) -> Tensor<f64, ()> + Copy, by: &Line) -> [Line; 4] {
        let slope = jacobian(f, by);
        [grad(f, by), loss_and_grad(f, by).1, hvp(f, by, by), (slope + jvp(f, by, by).1).eval()]
    }
    fn outer(f: impl Fn(&Line) -> Line, by: &Line) -> Line {
        let (y, pull) = vjp(f, by);
        pull(&y)
    }
    let x: Line = from_vec(I.of(2), vec![1.0, 2.0]);
    assert_eq!(value(|x: &Line| x.square().sum(I), &mut x.clone()), 5.0);
    assert_eq!(once(|x: &Line| x.square().sum(I), &x), 5.0);
    assert_eq!(of_two(|(a, b): (&Line, &Line)| (a * b).sum(I), (&x, &x)), (x.clone(), x.clone()));
    assert_eq!(with(|x: &Line| (x.sum(I), 3), &x), 3);
    let [slope, same, product, sum] = all(|x: &Line| x.square().sum(I), &x);
    assert_eq!((&slope, &product), (&same, &slope));
    assert_eq!(sum.order(I).to_vec(), [12.0, 14.0]);
    assert_eq!(outer(|x| (x * 3.0).eval(), &x), (&x * 9.0).eval());
}

/// A function of twelve values has a derivative for each. A recorded function also takes twelve.
#[test]
fn twelve_values_at_once() {
    type Line = Tensor<f64, (I,)>;
    type Twelve<'a> = (
        &'a Line,
        &'a Line,
        &'a Line,
        &'a Line,
        &'a Line,
        &'a Line,
        &'a Line,
        &'a Line,
        &'a Line,
        &'a Line,
        &'a Line,
        &'a Line,
    );
    let x: Line = positive(&zeros(I.of(2)), 3);
    let all = (&x, &x, &x, &x, &x, &x, &x, &x, &x, &x, &x, &x);
    let sum = |(a, b, c, d, e, f, g, h, i, j, k, l): Twelve<'_>| -> Line {
        (a + b + c + d + e + f + g + h + i + j + k + l * l).eval()
    };
    let slopes = grad(|all: Twelve<'_>| sum(all).sum(I), all);
    assert_eq!((&slopes.0, &slopes.10), (&ones(I.of(2)), &ones(I.of(2))));
    assert_eq!(slopes.11, (&x * 2.0).eval());
    let program = typed_dims::program::record(sum, all).expect("a sum is recorded");
    assert_eq!(program.call(all), sum(all));
}

/// `f16` has no number above 65504, but sums are multiplied by counts and constants before they are
/// rounded.
#[cfg(feature = "half")]
#[test]
fn large_factors_of_sums_in_half_precision() {
    use half::f16;
    type Halves = Tensor<f16, (I, J)>;
    let (number, many) = (f16::from_f32, 1 << 17);
    let small = number(1.0 / 64.0);
    let a: Halves = full((I.of(2), J.of(2)), small);
    let b: Tensor<f16, (J, K)> = full((J.of(2), K.of(2)), small);
    let c: Tensor<f16, (I, K)> = full((I.of(2), K.of(2)), small);
    // Each slope is the sum of two products, times 2^17.
    let expected: Halves = full((I.of(2), J.of(2)), number(64.0));
    let counted = |a: &Halves| (a * &b * c.view().expand(L.of(many))).sum((I, J, K, L));
    assert_eq!(counted(&a), full((), number(4.0)));
    assert_eq!(grad(counted, &a), expected);
    let scaled = |a: &Halves| (a * number(256.0) * &b * number(512.0) * &c).sum((I, J, K));
    assert_eq!(scaled(&a), full((), number(4.0)));
    assert_eq!(grad(scaled, &a), expected);
}
