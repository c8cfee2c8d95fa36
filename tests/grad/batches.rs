//! Gradients combined with batches, loops, threads, and other gradients.

use crate::gradients::{assert_close, check};
use std::thread;
use typed_dims::grad::{checkpoint, grad, hvp, jvp, try_vjp, value_and_grad, vjp};
use typed_dims::pipeline::plan::explain::PlanStep;
use typed_dims::prelude::*;

dims! { struct Example; struct Group; struct Feat; struct Out; struct Hidden; struct Seq; }

type X = Tensor<f64, (Example, Feat)>;
type W = Tensor<f64, (Feat, Out)>;
type B = Tensor<f64, (Out,)>;

fn x() -> X {
    randn((Example.of(4), Feat.of(3)), 1)
}

fn w() -> W {
    randn((Feat.of(3), Out.of(2)), 2)
}

fn b() -> B {
    randn(Out.of(2), 3)
}

/// The loss of one example.
fn loss(w: &W, b: &B, x: &Tensor<f64, (Feat,)>) -> Tensor<f64, ()> {
    ((x * w).sum(Feat) + b).tanh().square().sum(Out)
}

/// The gradients of all examples, one call each.
fn one_by_one(w: &W, b: &B, x: &X) -> (Tensor<f64, (Example, Feat, Out)>, Tensor<f64, (Example, Out)>) {
    let all = (0..x.size(Example)).map(|example| {
        let x = x.view().index(Example, example as isize).eval();
        grad(|(w, b)| loss(w, b, &x), (w, b))
    });
    let (dw, db): (Vec<W>, Vec<B>) = all.unzip();
    (stack(Example, dw), stack(Example, db))
}

mod per_example {
    use super::*;

    /// Parameters that are repeated along a bound dim get a gradient for each position.
    fn repeated(w: &W, b: &B, x: &X) -> (Tensor<f64, (Example, Feat, Out)>, Tensor<f64, (Example, Out)>) {
        let examples = x.size(Example);
        let (w, b) = (w.expand(Example.of(examples)).eval(), b.expand(Example.of(examples)).eval());
        grad(|(w, b)| ((x * w).sum(Feat) + b).tanh().square().sum((Example, Out)), (&w, &b))
    }

    #[test]
    fn under_a_bound_dim() {
        let (x, w, b) = (x(), w(), b());
        let (found, expected) = (repeated(&w, &b, &x), one_by_one(&w, &b, &x));
        assert_close("per example", &found, &expected);
    }

    #[test]
    fn in_one_contraction() {
        let x = randn::<f64, _>((Example.of(4), Seq.of(50), Feat.of(30)), 1);
        let w = randn::<f64, _>((Feat.of(30), Out.of(20)), 2);
        let repeated = w.view().expand(Example.of(4)).eval();
        let gradient = || grad(|w| (&x * w).sum(Feat).square().sum((Example, Seq, Out)), &repeated);
        let (dw, plan) = explain(gradient);
        // One product forward and one backward, batched over the examples.
        let products = plan.steps.iter().filter(|step| matches!(step, PlanStep::Product { batch: 4, .. }));
        assert_eq!(products.count(), 2, "{plan}");
        // Steps of the gradient have dim names, and the location of the original step.
        let text = plan.to_string();
        let expected = "(Example, Out, Seq) x (Example, Seq, Feat) -> (Example, Feat, Out): 20 x 50 x 30, 4 times (gradient, at tests/grad/batches.rs:";
        assert!(text.contains(expected), "{text}");
        let expected = (&x * (&x * &w).sum(Feat) * 2.0).sum(Seq);
        assert_close("per example", &dw, &expected);
    }

    #[test]
    fn by_vmap() {
        let (x, w, b) = (x(), w(), b());
        let slopes = |x: &Tensor<f64, (Feat,)>| grad(|(w, b)| loss(w, b, x), (&w, &b));
        let found = vmap(slopes, Example)(x.view());
        assert_close("per example", &found, &one_by_one(&w, &b, &x));
        // A gradient in a function that is called once for all examples.
        let slopes = |x: &Tensor<f64, (Feat, Rest<_>)>, w: &Tensor<f64, (Feat, Out, Rest<_>)>| {
            grad(|w| (x * w).sum(Feat).tanh().square().sum(Out), w)
        };
        let zero = zeros(Out.of(2));
        let found = vmap(slopes, Example)((x.view(), w.view().expand(Example.of(4))));
        assert_close("per example", &found, &one_by_one(&w, &zero, &x).0);
    }

    /// Written for one example.
    #[batched]
    fn slopes(
        w: &Tensor<f64, (Feat, Out)>,
        b: &Tensor<f64, (Out,)>,
        x: &Tensor<f64, (Feat,)>,
    ) -> (Tensor<f64, (Feat, Out)>, Tensor<f64, (Out,)>) {
        grad(|(w, b)| ((x * w).sum(Feat) + b).tanh().square().sum(Out), (w, b))
    }

    /// The value, and its derivative in the direction of the input.
    #[batched]
    fn scaled(x: &Tensor<f64, (Feat,)>) -> (Tensor<f64, (Feat,)>, Tensor<f64, (Feat,)>) {
        jvp(|x| (x.sin() * x.sum(Feat)).eval(), x, x)
    }

    /// The derivative in a direction that is computed, so that the input is copied, too.
    #[batched]
    fn along_cosines(x: &Tensor<f64, (Feat,)>) -> Tensor<f64, (Feat,)> {
        let dx = x.cos().eval();
        jvp(|x| (x.sin() * x.sum(Feat)).eval(), &x.eval(), &dx).1
    }

    /// The Hessian of a loss, times a direction.
    #[batched]
    fn curvature(x: &Tensor<f64, (Feat,)>, v: &Tensor<f64, (Feat,)>) -> Tensor<f64, (Feat,)> {
        jvp(|x| grad(|x| (x.sin() * x.sum(Feat)).sum(Feat), x), x, v).1
    }

    /// The value, pulled back.
    #[batched]
    fn pulled(x: &Tensor<f64, (Feat,)>) -> Tensor<f64, (Feat,)> {
        let (y, pull) = vjp(|x| (x.sin() * x.sum(Feat)).eval(), x);
        pull(&y)
    }

    #[test]
    fn in_a_batched_function() {
        let (x, w, b) = (x(), w(), b());
        let one = x.view().index(Example, 1).eval();
        assert_close("one example", &slopes(&w, &b, &one), &grad(|(w, b)| loss(w, b, &one), (&w, &b)));
        assert_close("per example", &slopes(&w, &b, &x), &one_by_one(&w, &b, &x));
        // Parameters for each group, with the same examples for all groups.
        let groups = randn::<f64, _>((Group.of(2), Feat.of(3), Out.of(2)), 4);
        let (dw, db) = slopes(&groups, &b, &x);
        for group in 0..2 {
            let expected = one_by_one(&groups.view().index(Group, group).eval(), &b, &x);
            let found = (dw.view().index(Group, group).eval(), db.view().index(Group, group).eval());
            assert_close("per example and group", &found, &expected);
        }
        // One call for all examples, however many there are.
        let steps = |x: &X| explain(|| slopes(&w, &b, x)).1.steps.len();
        assert_eq!(steps(&x), steps(&randn((Example.of(9), Feat.of(3)), 5)));
    }

    #[test]
    fn other_derivatives_in_a_batched_function() {
        let x = x();
        let f = |x: &Tensor<f64, (Feat,)>| (x.sin() * x.sum(Feat)).eval();
        let ((value, slope), gradient) = (scaled(&x), pulled(&x));
        for example in 0..4 {
            let one = x.view().index(Example, example).eval();
            let part = |all: &X| all.view().index(Example, example).eval();
            assert_close("jvp", &(part(&value), part(&slope)), &jvp(f, &one, &one));
            let (y, pull) = vjp(f, &one);
            assert_close("vjp", &part(&gradient), &pull(&y));
        }
        let v: X = randn((Example.of(4), Feat.of(3)), 6);
        let (slope, product) = (along_cosines(&x), curvature(&x, &v));
        for example in 0..4 {
            let part = |all: &X| all.view().index(Example, example).eval();
            let one = part(&x);
            assert_close("jvp", &part(&slope), &jvp(f, &one, &(&one).cos().eval()).1);
            let expected = hvp(|x| (x.sin() * x.sum(Feat)).sum(Feat), &one, &part(&v));
            assert_close("hvp", &part(&product), &expected);
        }
    }

    #[test]
    fn of_second_order() {
        // These functions return gradients, which `check` differentiates again.
        let all = |(w, b, x): &(W, B, X)| slopes(w, b, x);
        check(all, &(w(), b(), x()));
        check(|(w, b, x): &(W, B, X)| repeated(w, b, x), &(w(), b(), x()));
    }

    fn energies<R: Dims>(x: &Tensor<f64, (Feat, Rest<R>)>) -> Tensor<f64, (Feat, Rest<R>)> {
        grad(|x| x.powi(3).sum(Feat), x)
    }

    #[test]
    fn under_a_rest() {
        let x = x();
        let expected = ((&x).square() * 3.0).eval();
        assert_close("rest", &batched(Example, x.clone(), |x| energies(&x)), &expected);
        assert_close("rest", &vmap(energies, Example)(&x), &expected);
    }
}

mod gradients_of_batches {
    use super::*;

    /// Written for one example.
    #[batched]
    fn layer(w: &Tensor<f64, (Feat, Out)>, x: &Tensor<f64, (Feat,)>) -> Tensor<f64, (Out,)> {
        (x * w).sum(Feat).tanh()
    }

    #[test]
    fn of_a_batched_function() {
        check(|(w, x): &(W, X)| layer(w, x), &(w(), x()));
        check(|(w, x): &(W, X)| layer(w, x.view().index(Example, 1)), &(w(), x()));
    }

    #[test]
    fn of_vmap() {
        let f = |w: &W| {
            let one = |x: &Tensor<f64, (Feat,)>| (x * w).sum(Feat).tanh().eval();
            vmap(one, Example)(x())
        };
        check(f, &w());
        let f = |(w, x): &(W, X)| {
            batched(Example, (w.clone(), x.clone()), |(w, x)| (x * w).sum(Feat).tanh().eval())
        };
        check(f, &(w(), x()));
        let f = |(w, x): &(W, X)| {
            let one = |x: &Tensor<f64, (Feat, Rest<_>)>, w: &Tensor<f64, (Feat, Out, Rest<_>)>| {
                (x * w).sum(Feat).tanh().eval()
            };
            vmap(one, Example)((x, w.view().expand(Example.of(4))))
        };
        check(f, &(w(), x()));
    }
}

mod loops {
    use super::*;

    type Line = Tensor<f64, (Hidden,)>;
    type Square = Tensor<f64, (Hidden, Out)>;

    fn step(x: &Line, w: &Square) -> Line {
        ((x * w).sum(Hidden).rename(Out, Hidden) + x).tanh().eval()
    }

    #[test]
    fn checkpoints() {
        let inputs = (randn(Hidden.of(3), 1), randn::<f64, _>((Hidden.of(3), Out.of(3)), 2));
        let kept = |(x, w): &(Line, Square)| (0..4).fold(x.clone(), |x, _| step(&x, w));
        let again = |(x, w): &(Line, Square)| {
            (0..4).fold(x.clone(), |x, _| checkpoint(|(x, w): &(Line, Square)| step(x, w), (&x, w)))
        };
        check(again, &inputs);
        let dy = randn(Hidden.of(3), 3);
        assert_close("checkpoint", &vjp(again, &inputs).1(&dy), &vjp(kept, &inputs).1(&dy));
        let nested = |(x, w): &(Line, Square)| {
            let twice = |(x, w): &(Line, Square)| {
                let once = checkpoint(|(x, w): &(Line, Square)| step(x, w), (x, w));
                step(&once, w)
            };
            (0..2).fold(x.clone(), |x, _| checkpoint(twice, (&x, w)))
        };
        check(nested, &inputs);
    }
}

mod losses {
    use super::*;

    #[test]
    fn several_on_one_trace() {
        let (x, w) = (x(), w());
        type Y = Tensor<f64, (Example, Out)>;
        let first = |y: &Y| y.square().sum((Example, Out));
        let second = |y: &Y| y.sin().sum((Example, Out));
        let layer = |w: &W| (&x * w).sum(Feat).tanh().eval();
        // The function runs once, and several cotangents are pulled back.
        let (values, pull) = vjp(
            |w| {
                let y = layer(w);
                (first(&y), second(&y))
            },
            &w,
        );
        let one = || full((), 1.0);
        let of_first = grad(|w| first(&layer(w)), &w);
        let of_second = grad(|w| second(&layer(w)), &w);
        assert_close("first", &pull(&(one(), full((), 0.0))), &of_first);
        assert_close("second", &pull(&(full((), 0.0), one())), &of_second);
        assert_close("both", &pull(&(one(), one())), &(of_first + of_second).eval());
        assert_close("values", &values, &(first(&layer(&w)), second(&layer(&w))));
    }

    #[test]
    fn one_within_another() {
        // The inner gradient is with respect to `x`, a constant of the outer one. The inner loss
        // depends on `x` and on `w`.
        let (x, w) = (x(), w());
        let loss =
            |w: &W| grad(|x| (x * w).sum(Feat).tanh().sum((Example, Out)), &x).square().sum((Example, Feat));
        let (value, dw) = value_and_grad(loss, &w);
        assert_eq!(value, loss(&w).order(()));
        assert_close("gradient", &dw, &grad(loss, &w));
        check(|w: &W| loss(w), &w);
        let slopes = |w: &W| jvp(|y| jvp(|y| (y * w).sum(Feat).tanh().eval(), y, &x).1, &x, &x).1;
        check(slopes, &w);
        assert!(value_and_grad(|w| slopes(w).sum((Example, Out)), &w).0.is_finite());
    }

    #[test]
    fn of_one_element() {
        let x = x();
        // The loss is an element of a tensor in memory.
        let dx = grad(|x| x.exp().eval().index(Example, 1).index(Feat, 2), &x);
        let expected = select(Example.eq(1) & Feat.eq(2), x.exp(), 0.0).eval();
        assert_close("one element", &dx, &expected);
    }
}

mod threads {
    use super::*;

    #[test]
    fn gradients_in_several_threads() {
        let (x, w, b) = (x(), w(), b());
        let expected = one_by_one(&w, &b, &x).0;
        thread::scope(|scope| {
            for example in 0..4 {
                let (x, w, b, expected) = (&x, &w, &b, &expected);
                scope.spawn(move || {
                    for _ in 0..20 {
                        let x = x.view().index(Example, example).eval();
                        let dw = grad(|w| loss(w, b, &x), w);
                        assert_close("in a thread", &dw, &expected.view().index(Example, example).eval());
                    }
                });
            }
        });
    }

    #[test]
    fn one_trace_in_several_threads() {
        let f = |(w, x): &(W, X)| {
            let parts = thread::scope(|scope| {
                let threads = [0, 2].map(|start| {
                    let part = x.view().slice(Example, start..start + 2);
                    scope.spawn(move || (part * w).sum(Feat).tanh().eval())
                });
                threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
            });
            concat(Example, parts)
        };
        check(f, &(w(), x()));
        // A pull-back that another thread calls.
        let (w, x) = (w(), x());
        let (y, pull) = try_vjp(|w| (&x * w).sum(Feat).tanh().eval(), &w).unwrap();
        let dw = thread::scope(|scope| scope.spawn(|| pull.call(&y)).join().unwrap());
        assert_close("pulled elsewhere", &dw, &pull.call(&y));
    }
}
