//! Modes: the events that they receive, and the output of the library's own modes.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use typed_dims::grad::value_and_grad;
use typed_dims::mode::{self, CheckFinite, Counts, FreedMemory, Log, Mode, PeakMemory, Ran};
use typed_dims::pipeline::plan::explain::{Plan, PlanStep};
use typed_dims::prelude::*;

dims! {
    struct Example;
    struct Pixel;
    struct Hidden;
    struct Class;
}

/// A user's mode: the events it received, each in a few words.
#[derive(Default)]
struct Heard(Vec<String>);

impl Mode for Heard {
    fn ran(&mut self, ran: &Ran<'_>) {
        let bytes =
            ran.result().map_or("not reported".to_string(), |result| format!("{} bytes", result.bytes()));
        let gradient = if ran.is_backward { " (gradient)" } else { "" };
        self.0.push(format!("{}{gradient}: {bytes}", ran.step.kind()));
    }

    fn freed(&mut self, freed: &FreedMemory) {
        self.0.push(format!("freed {} bytes", freed.bytes));
    }
}

fn heard<T>(f: impl FnOnce() -> T) -> (T, Vec<String>) {
    let mut mode = Heard::default();
    let result = mode::with(&mut mode, f);
    (result, mode.0)
}

/// All results: their elements, their addresses, and whether the caller provided their memory.
#[derive(Default)]
struct Results(Vec<(Vec<f64>, usize, bool)>);

impl Mode for Results {
    fn ran(&mut self, ran: &Ran<'_>) {
        for result in ran.results {
            self.0.push((
                result.values().expect("the elements are numbers").collect(),
                result.address(),
                result.is_given(),
            ));
        }
    }
}

fn results<T>(f: impl FnOnce() -> T) -> (T, Vec<(Vec<f64>, usize, bool)>) {
    let mut mode = Results::default();
    let result = mode::with(&mut mode, f);
    (result, mode.0)
}

#[derive(Parameters, Clone, Debug)]
struct Network {
    up: Tensor<f32, (Pixel, Hidden)>,
    bias: Tensor<f32, (Hidden,)>,
    down: Tensor<f32, (Hidden, Class)>,
}

fn network() -> Network {
    Network {
        up: from_fn((Pixel.of(6), Hidden.of(5)), |(p, h)| ((7 * p + 3 * h) % 5) as f32 * 0.25 - 0.5),
        bias: zeros(Hidden.of(5)),
        down: from_fn((Hidden.of(5), Class.of(3)), |(h, c)| ((5 * h + 2 * c) % 7) as f32 * 0.25 - 0.75),
    }
}

fn images() -> Tensor<f32, (Example, Pixel)> {
    from_fn((Example.of(4), Pixel.of(6)), |(e, p)| ((e + 2 * p) % 3) as f32)
}

/// The loss, and the source lines of the product with `down` and of the mean of squares.
fn loss(net: &Network, x: &Tensor<f32, (Example, Pixel)>) -> (Tensor<f32, ()>, [u32; 2]) {
    let hidden = (x.contract(&net.up, Pixel) + &net.bias).tanh();
    let (scores, product) = (hidden.contract(&net.down, Hidden), line!());
    let (mean, squares) = (scores.square().mean((Example, Class)), line!());
    (mean, [product, squares])
}

mod order {
    use super::*;

    #[test]
    fn steps_come_after_they_ran_and_before_what_they_read_is_freed() {
        let x = images();
        let (y, heard) = heard(|| {
            let twice = (&x * 2.0).eval();
            let sum = (&twice + &x).sum(Pixel);
            drop(twice);
            sum
        });
        assert_eq!(heard, ["elementwise: 96 bytes", "reduction: 16 bytes", "freed 96 bytes"]);
        drop(y);
    }

    #[test]
    fn an_operand_that_is_used_up_is_freed_after_the_step() {
        let x = images();
        let (_, heard) = heard(|| (&x * 2.0).eval().cast::<f64>().eval());
        assert_eq!(heard[..3], ["elementwise: 96 bytes", "elementwise: 192 bytes", "freed 96 bytes"]);
    }

    #[test]
    fn a_result_is_the_memory_of_the_tensor() {
        dims!(i = 100);
        let x = from_fn::<f32, _>(i, |i| i as f32);
        let (y, found) = results(|| (&x + 1.0).eval());
        let (values, address, is_given) = &found[0];
        assert_eq!((&values[..4], *is_given, found.len()), (&[1.0, 2.0, 3.0, 4.0][..], false, 1));
        let (z, again) = results(|| (y * 2.0).eval());
        assert_eq!(again[0].1, *address, "the result is computed in the same place");
        assert_eq!(z.order(i)[99], 200.0);
    }

    #[test]
    fn elements_are_of_their_type() {
        struct Typed(usize);
        impl Mode for Typed {
            fn ran(&mut self, ran: &Ran<'_>) {
                let result = ran.result().expect("the step has a result");
                assert!(result.elements::<f64>().is_none() && result.elements::<u32>().is_none());
                assert_eq!((result.element(), result.len(), result.bytes()), ("f32", 3, 12));
                self.0 += result.elements::<f32>().expect("the elements are f32").len();
            }
        }
        let x = array![1.0f32, 2.0, 3.0];
        dims!(i);
        let mut typed = Typed(0);
        mode::with(&mut typed, || (x.at(i) * 2.0).order(i));
        assert_eq!(typed.0, 3);
    }

    #[test]
    fn arrays_scalars_and_places_are_told() {
        dims!(i, j, k);
        let (a, b) = (array![[1.0, 2.0], [3.0, 4.0]], array![[1.0, 0.0], [0.0, 2.0]]);
        let (ab, found) = results(|| (a.at((i, k)) * b.at((k, j))).sum(k).order((j, i)));
        assert_eq!(found.last().expect("a step ran").0, ab.iter().copied().collect::<Vec<f64>>());
        let (product, found) = results(|| einsum!(a[i, k] * b[k, j] => [i, j]));
        assert_eq!(found.last().expect("a step ran").0, product.iter().copied().collect::<Vec<f64>>());
        let (moved, found) = results(|| rearrange!(a, a b -> b a));
        assert_eq!(found.last().expect("a step ran").0, moved.iter().copied().collect::<Vec<f64>>());
        let (joined, found) = results(|| rearrange!([&a, &b], n h w -> h (n w)));
        assert_eq!(found.last().expect("a step ran").0, joined.iter().copied().collect::<Vec<f64>>());
        let (most, found) = results(|| reduce!(a, a b -> a, max));
        assert_eq!(found.last().expect("a step ran").0, most.iter().copied().collect::<Vec<f64>>());
        let (sum, found) = results(|| a.at((i, j)).sum((i, j)).order(()));
        assert_eq!(found.last().expect("a step ran").0, [sum]);

        let mut out = Array2::<f64>::zeros((2, 2));
        let address = out.as_ptr().addr();
        let written = |f: &mut dyn FnMut(&mut Array2<f64>)| {
            let (_, found) = results(|| f(&mut out));
            let (values, own, is_given) = found.last().expect("a step ran").clone();
            assert_eq!((values, own, is_given), (out.iter().copied().collect(), address, true));
        };
        let mut written = written;
        written(&mut |out| (a.at((i, k)) * b.at((k, j))).sum_into(k, out, (i, j)));
        written(&mut |out| (a.at((i, j)) + 1.0).order_into(out, (i, j)));
        written(&mut |out| a.at((i, j)).order_into(out, (j, i)));
        written(&mut |out| out.at_mut((i, j)).add_assign(b.at((j, i))));
    }

    #[test]
    fn joined_parts_and_lines_are_told() {
        let x = images();
        let (y, found) = results(|| concat(Example, [&x, &x]));
        let (joined, _, _) = found.last().expect("a step ran");
        assert_eq!((joined.len(), found.len(), y.size(Example)), (48, 1, 8));
        let (y, found) = results(|| x.softmax(Pixel));
        assert_eq!((found[0].0.len(), found.len()), (24, 1));
        assert!((found[0].0.iter().sum::<f64>() - 4.0).abs() < 1e-5);
        let ((sorted, order), found) = results(|| y.sort_with_indices(Pixel));
        let [(values, ..), (indices, ..)] = &found[found.len() - 2..] else { unreachable!() };
        let elements = sorted.order((Example, Pixel));
        assert_eq!(*values, elements.iter().map(|&x| x.into()).collect::<Vec<f64>>());
        assert_eq!(*indices, order.order((Example, Pixel)).iter().map(|&x| x as f64).collect::<Vec<f64>>());
    }
}

mod nesting {
    use super::*;

    #[test]
    fn all_modes_hear_each_step() {
        let x = images();
        let (mut outer, mut inner) = (Counts::default(), Counts::default());
        let mut plan = Plan::default();
        mode::with(&mut outer, || {
            drop((&x * 2.0).eval());
            mode::with(&mut inner, || mode::with(&mut plan, || (&x * 3.0).sum(Pixel)));
            (&x * 4.0).eval()
        });
        assert_eq!((outer.steps(), inner.steps(), plan.steps.len()), (3, 1, 1));
        assert_eq!(outer.of("elementwise").operations, 48);
    }

    #[test]
    fn the_outermost_mode_hears_a_step_first() {
        thread_local! { static ORDER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) }; }
        struct Named(u8);
        impl Mode for Named {
            fn ran(&mut self, _: &Ran<'_>) {
                ORDER.with_borrow_mut(|order| order.push(self.0));
            }
        }
        let x = images();
        mode::with(&mut Named(1), || mode::with(&mut Named(2), || (&x * 2.0).eval()));
        assert_eq!(ORDER.take(), [1, 2]);
    }

    #[test]
    fn what_a_mode_runs_itself_is_not_heard() {
        struct Runs(Vec<f32>, Counts);
        impl Mode for Runs {
            fn ran(&mut self, ran: &Ran<'_>) {
                let elements = ran
                    .result()
                    .and_then(|result| result.elements::<f32>())
                    .expect("the result is f32")
                    .to_vec();
                dims!(i);
                let largest = |x: &[f32]| x.at(i).max(i).order(());
                // A mode that is entered here does hear the steps of `largest`.
                self.0.push(mode::with(&mut self.1, || largest(&elements)));
            }
        }
        let x = images();
        let (mut runs, mut counts) = (Runs(Vec::new(), Counts::default()), Counts::default());
        mode::with(&mut counts, || mode::with(&mut runs, || ((&x * 2.0).eval(), (&x * 3.0).eval())));
        assert_eq!((counts.steps(), runs.0, runs.1.steps()), (2, vec![4.0, 6.0], 2));
    }

    #[test]
    fn explain_sees_its_own_steps() {
        let x = images();
        let ((_, inner), outer) = explain(|| {
            let (_, inner) = explain(|| (&x * 2.0).eval());
            ((&x * 3.0).sum(Pixel), inner)
        });
        assert_eq!((inner.steps.len(), outer.steps.len()), (1, 2));
    }

    #[test]
    fn steps_of_calls_are_heard_and_belong_to_the_loop() {
        fn sum(x: &Tensor<f32, (Pixel,)>) -> Tensor<f32, ()> {
            x.sum(Pixel)
        }
        let x = images();
        let mut plan = Plan::default();
        let (sums, heard) = heard(|| mode::with(&mut plan, || vmap(sum, Example)(&x)));
        assert_eq!(sums.size(Example), 4);
        assert!(heard.iter().filter(|text| *text == "reduction: 4 bytes").count() == 4, "{heard:?}");
        assert_eq!(heard.iter().filter(|text| text.starts_with("calls")).count(), 1);
        let Some(PlanStep::Calls { steps, .. }) = plan.steps.last() else { panic!("{plan}") };
        assert_eq!(steps.len(), 4);
    }
}

mod borders {
    use super::*;

    #[test]
    fn a_panic_leaves_nothing_behind() {
        let x = images();
        let mut counts = Counts::default();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            mode::with(&mut counts, || {
                drop((&x * 2.0).eval());
                drop((&x).map(|x: f32| if x > 1.0 { panic!("on purpose") } else { x }).eval());
            });
        }));
        assert!(panicked.is_err());
        drop((&x * 2.0).eval());
        assert_eq!(counts.steps(), 1, "the step that panicked is not counted");
        let ((), counts) = mode::count(|| drop((&x * 2.0).eval()));
        assert_eq!(counts.steps(), 1);
    }

    #[test]
    fn a_mode_that_panics_leaves_nothing_behind() {
        struct Panics;
        impl Mode for Panics {
            fn ran(&mut self, _: &Ran<'_>) {
                panic!("on purpose");
            }
        }
        let x = images();
        let mut outer = Counts::default();
        let panicked = mode::with(&mut outer, || {
            let panicked =
                catch_unwind(AssertUnwindSafe(|| mode::with(&mut Panics, || drop((&x * 2.0).eval()))));
            drop((&x * 2.0).eval());
            panicked
        });
        assert!(panicked.is_err());
        assert_eq!(outer.steps(), 2);
    }

    #[test]
    fn an_error_is_no_step() {
        let (x, y) = (images(), ones::<f32, _>((Example.of(4), Pixel.of(7))));
        let (result, counts) =
            mode::count(|| typed_dims::pipeline::execute::reduce::Reductions::try_eval(&x + &y));
        assert!(result.is_err());
        assert_eq!(counts.steps(), 0);
    }

    #[test]
    fn other_threads_are_not_heard() {
        let x = images();
        let (inner, outer) = mode::count(|| {
            std::thread::scope(|scope| {
                let other = scope.spawn(|| mode::count(|| (&x * 2.0).sum(Pixel)).1);
                drop((&x * 2.0).eval());
                other.join().expect("the thread does not panic")
            })
        });
        assert_eq!((inner.of("reduction").steps, inner.steps()), (1, 1));
        assert_eq!((outer.of("elementwise").steps, outer.steps()), (1, 1));
    }
}

mod gradients {
    use super::*;

    /// The number of gradient steps for each line of this file, and the number of its other steps.
    #[derive(Default)]
    struct BackwardLines(BTreeMap<u32, usize>, usize);

    impl Mode for BackwardLines {
        fn ran(&mut self, ran: &Ran<'_>) {
            let Some(place) = ran.place.filter(|place| place.file() == file!()) else { return };
            if ran.is_backward {
                *self.0.entry(place.line()).or_default() += 1;
            } else {
                self.1 += 1;
            }
        }
    }

    #[test]
    fn steps_of_gradients_are_heard_with_the_place_of_the_step_that_they_belong_to() {
        let (net, x) = (network(), images());
        let mut lines = BackwardLines::default();
        let mut places = [0; 2];
        let (value, gradient) = mode::with(&mut lines, || {
            value_and_grad(
                |net| {
                    let (loss, own) = loss(net, &x);
                    places = own;
                    loss
                },
                &net,
            )
        });
        assert!(value.is_finite() && gradient.up.sum((Pixel, Hidden)).order(()).is_finite());
        let [product, squares] = places;
        assert!(lines.1 >= 4, "forward steps are heard as well");
        assert!(lines.0.contains_key(&squares), "{:?}", lines.0);
        assert!(
            lines.0.get(&product).is_some_and(|&steps| steps >= 2),
            "the product has a gradient step for each operand: {:?}",
            lines.0
        );
    }

    #[test]
    fn results_of_gradients_are_told() {
        let (net, x) = (network(), images());
        let ((_, gradient), found) = results(|| value_and_grad(|net| loss(net, &x).0, &net));
        let down: Vec<f64> = gradient.down.order((Hidden, Class)).iter().map(|&x| x.into()).collect();
        assert!(
            found.iter().any(|(values, _, _)| *values == down),
            "the gradient with respect to `down` is the result of a step"
        );
    }

    #[test]
    fn a_gradient_that_is_not_finite_is_found_at_the_line_of_its_step() {
        // All forward results are finite, but the slope of the square root at 0 is not.
        let up = network().up;
        let x = zeros::<f32, _>((Example.of(4), Pixel.of(6)));
        let mut line = 0;
        let error = mode::check_finite(|| {
            value_and_grad(
                |up| {
                    let hidden = x.contract(up, Pixel);
                    let root = (hidden.sqrt().eval(), line = line!()).0;
                    root.sum((Example, Hidden))
                },
                &up,
            )
        })
        .unwrap_err();
        let place = error.place.expect("the step has a place");
        assert_eq!((place.file(), place.line(), error.is_backward), (file!(), line, true), "{error}");
        assert!(error.to_string().contains(&format!("(gradient, at {}:{line}:", file!())), "{error}");
    }
}

mod of_the_library {
    use super::*;

    #[test]
    fn count_adds_up_steps_operations_and_bytes() {
        let net = network();
        let x = images();
        let (scores, counts) = mode::count(|| {
            let hidden = (x.contract(&net.up, Pixel) + &net.bias).relu();
            hidden.contract(&net.down, Hidden)
        });
        assert_eq!(scores.dims(), [("Example", 4), ("Class", 3)]);
        let (product, elementwise) = (counts.of("product"), counts.of("elementwise"));
        assert_eq!((product.steps, product.operations), (2, 2 * (4 * 6 * 5 + 4 * 5 * 3)), "{counts}");
        assert_eq!((elementwise.steps, elementwise.operations, elementwise.bytes), (1, 20, 80), "{counts}");
        assert_eq!(counts.to_string().lines().count(), 4, "a header, two kinds and a total:\n{counts}");
        assert_eq!((counts.backward().steps, counts.total().bytes), (0, product.bytes + 80));
        let (_, counts) = mode::count(|| {
            value_and_grad(|up| x.contract(up, Pixel).square().sum((Example, Hidden)), &net.up)
        });
        assert!(counts.backward().operations >= 2 * 4 * 6 * 5, "{counts}");
        assert!(counts.to_string().contains("product (gradient)"), "{counts}");
    }

    #[test]
    fn check_finite_finds_the_first_step_the_element_and_the_line() {
        let x = from_vec(Pixel.of(4), vec![1.0f32, 4.0, -1.0, 0.0]);
        let mut line = 0;
        let error = mode::check_finite(|| {
            let twice = (&x * 2.0).eval();
            let roots = (twice.sqrt().eval(), line = line!()).0;
            (roots + 1.0).eval()
        })
        .unwrap_err();
        assert!(error.value.is_nan());
        assert_eq!((error.element, error.len, error.is_backward), (2, 4, false));
        let place = error.place.expect("the step has a place");
        assert_eq!((place.file(), place.line()), (file!(), line), "{error}");
        assert!(error.to_string().contains("sqrt"), "{error}");
        assert!(mode::check_finite(|| (&x * 2.0).eval()).is_ok());
    }

    #[test]
    fn check_finite_looks_into_half_precision_and_complex_numbers() {
        use typed_dims::mode::check_finite;
        dims!(i = 2);
        let big = from_vec(i, vec![1.0f32, 1e6]);
        let complex = (&big).map(|x: f32| num_complex::Complex::new(x, f32::NAN)).eval();
        assert_eq!(check_finite(|| (&complex * &complex).eval()).unwrap_err().element, 0);
        #[cfg(feature = "half")]
        assert_eq!(check_finite(|| (&big).cast::<half::f16>().eval()).unwrap_err().element, 1);
    }

    #[test]
    fn check_finite_nests_with_others() {
        let x = from_vec(Pixel.of(2), vec![1.0f32, 0.0]);
        let (mut finite, mut counts) = (CheckFinite::default(), Counts::default());
        mode::with(&mut finite, || mode::with(&mut counts, || ((&x).ln().eval() + 1.0).eval()));
        assert_eq!((finite.found().map(|found| found.element), counts.steps()), (Some(1), 2));
    }

    #[test]
    fn log_writes_each_step_on_a_line_as_it_runs() {
        let x = images();
        let mut bytes = Vec::new();
        mode::log(&mut bytes, || ((&x * 2.0).eval(), x.sum(Pixel)));
        let text = String::from_utf8(bytes).expect("the log is UTF-8");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with("elementwise mul(tensor, 2.0); loops [24]"), "{text}");
        assert!(lines[1].starts_with("sum over 6 of tensor") && lines[1].contains(file!()), "{text}");
        let mut text = String::new();
        mode::with(&mut Log::to_text(&mut text), || (&x * 2.0).eval());
        assert_eq!(text.lines().count(), 1);
    }

    #[test]
    fn peak_memory_is_what_results_have_at_one_time() {
        let x = ones::<f32, _>(Pixel.of(1000));
        let (_, peak) = mode::peak_memory(|| {
            for _ in 0..5 {
                drop((&x * 2.0).eval());
            }
        });
        assert_eq!(peak, 4000, "each result is freed before the next");
        let (_, peak) = mode::peak_memory(|| ((&x * 2.0).eval(), (&x * 3.0).eval()));
        assert_eq!(peak, 8000, "both results exist at once");
        let (_, peak) = mode::peak_memory(|| ((((&x * 2.0).eval() + 1.0).eval()) * 3.0).eval());
        assert_eq!(peak, 4000, "the results share one place");
        let (_, peak) = mode::peak_memory(|| {
            let twice = (&x * 2.0).eval();
            let shared = twice.clone();
            drop(twice);
            ((&x * 3.0).eval(), shared)
        });
        assert_eq!(peak, 8000, "a clone keeps the memory");
        let (_, peak) = mode::peak_memory(|| {
            let first = (&x * 2.0).order(Pixel);
            let second = (&x * 3.0).order(Pixel);
            (first, second)
        });
        assert_eq!(peak, 4000, "an array does not count after `order` has returned it");
    }

    #[test]
    fn memory_of_gradients_is_freed_in_the_end() {
        let (net, x) = (network(), images());
        let mut peak = PeakMemory::default();
        mode::with(&mut peak, || {
            let (value, gradient) = value_and_grad(|net| loss(net, &x).0, &net);
            assert!(value > 0.0);
            drop(gradient);
        });
        assert!(peak.peak() > 0);
        assert_eq!(peak.now(), 0);
    }
}

mod of_programs {
    use super::*;
    use typed_dims::grad::grad;
    use typed_dims::program::record;

    type Images = Tensor<f32, (Example, Pixel)>;

    fn of_images<Y>(f: impl Fn(&Images) -> Y) -> impl Fn(&Images) -> Y {
        f
    }

    /// The steps of a function, and those of its program, which computes the same elements.
    macro_rules! steps {
        ($f:expr) => {{
            let (f, x) = (of_images($f), images());
            let program = record(&f, &x).expect("the function can be recorded");
            let (expected, of_function) = explain(|| f(&x));
            let (y, of_program) = explain(|| program.call(&x));
            assert_eq!(y, expected);
            assert!(mode::peak_memory(|| program.call(&x)).1 > 0);
            [of_function.steps, of_program.steps]
        }};
    }

    /// Checks that modes see the same results if `call_into` writes them into the caller's memory.
    /// They must be infinite for zeros.
    macro_rules! check_given {
        ($f:expr) => {{
            let (f, x): (_, Images) = (of_images($f), zeros((Example.of(4), Pixel.of(6))));
            let program = record(&f, &x).expect("the function can be recorded");
            let (mut y, of_call) = results(|| program.call(&x));
            let (_, given) = results(|| program.call_into(&x, &mut y));
            let elements = of_call.into_iter().map(|(elements, ..)| (elements, true)).collect::<Vec<_>>();
            let found = given.into_iter().map(|(elements, _, is_given)| (elements, is_given));
            assert_eq!(found.collect::<Vec<_>>(), elements);
            let error =
                mode::check_finite(|| program.call_into(&x, &mut y)).expect_err("`ln(0)` is infinite");
            assert_eq!(error.value, f64::NEG_INFINITY);
            assert_eq!(mode::peak_memory(|| program.call_into(&x, &mut y)).1, 0);
        }};
    }

    #[test]
    fn modes_see_each_step() {
        let check = |[function, program]: [Vec<PlanStep>; 2]| {
            let kinds = |steps: &[PlanStep]| steps.iter().map(PlanStep::kind).collect::<Vec<_>>();
            let bytes = |steps: &[PlanStep]| steps.iter().map(PlanStep::bytes).collect::<Vec<_>>();
            assert_eq!(kinds(&function), kinds(&program), "{program:?}");
            assert_eq!(bytes(&function), bytes(&program), "{program:?}");
        };
        check(steps!(|x: &Images| x.softmax(Pixel).sum(Example)));
        check(steps!(|x: &Images| x.exp().mean(Example)));
        check(steps!(|x: &Images| x.max(Pixel).exp().eval()));
        check(steps!(|x: &Images| (1.0 / (x.var(Pixel) + 1.0)).eval()));
        check(steps!(|x: &Images| (x.layer_norm(Pixel, 1e-5) * 2.0).eval()));
        check(steps!(|x: &Images| x.cumsum(Pixel).log_softmax(Pixel)));
        let (f, x) = (of_images(|x| x.softmax(Pixel).sum(Example)), images());
        let program = record(&f, &x).expect("the function can be recorded");
        let (_, peak) = mode::peak_memory(|| f(&x));
        assert_eq!((mode::peak_memory(|| program.call(&x)).1, peak), (peak, 120));
        // Results in the caller's memory.
        check_given!(|x| x.ln().eval());
        check_given!(|x| x.ln().sum(Example));
        check_given!(|x| {
            let logarithms = x.ln().eval();
            (logarithms.view().sum(Pixel), logarithms)
        });
        // The function also copies the elements that it sorts.
        let [_, program] = steps!(|x: &Images| x.sort(Pixel).cumsum(Pixel));
        assert_eq!(program.iter().map(PlanStep::kind).collect::<Vec<_>>(), ["lines", "reduction"]);
    }

    #[test]
    fn steps_have_their_source_locations_and_results() {
        let zeros: Images = zeros((Example.of(4), Pixel.of(6)));
        let (mean, line) = (|x: &Images| x.ln().mean(Example), line!());
        let program = record(mean, &zeros).expect("the function can be recorded");
        let error = mode::check_finite(|| program.call(&zeros)).expect_err("ln(0) is infinite");
        assert_eq!((error.element, error.len, error.value), (0, 6, f64::NEG_INFINITY));
        let place = error.place.expect("the step has a place");
        assert_eq!((place.file(), place.line()), (file!(), line), "{error}");

        let program = record(|x: &Images| x.softmax(Pixel).sort(Pixel), &zeros).expect("it can be recorded");
        let mut bytes = Vec::new();
        let (y, counts) = mode::count(|| mode::log(&mut bytes, || program.call(&zeros)));
        assert_eq!((counts.steps(), counts.of("lines").steps), (2, 1));
        let text = String::from_utf8(bytes).expect("the log is UTF-8");
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("softmax over 6 of x0") && lines[0].contains(file!()), "{text}");
        assert!(lines[1].starts_with("sort of 4 lines of 6"), "{text}");
        let (_, found) = results(|| program.call(&zeros));
        let last = found.last().expect("a step ran");
        assert_eq!(last.0, y.order((Example, Pixel)).iter().map(|&x| x.into()).collect::<Vec<f64>>());
    }

    #[test]
    fn steps_of_gradients_are_seen_as_well() {
        let x = images();
        let slopes = |x: &Images| grad(|x: &Images| x.softmax(Pixel).square().sum((Example, Pixel)), x);
        let program = record(slopes, &x).expect("the function can be recorded");
        let (_, plan) = explain(|| program.call(&x));
        let text = plan.to_string();
        assert!(
            text.contains("softmax over 6 of x0") && text.contains("gradient of softmax of 4 lines"),
            "{text}"
        );
    }
}

/// A user's mode in a few lines: how many nonzero elements of the results of gradient steps have
/// each power of ten.
#[derive(Default)]
struct GradientSizes(BTreeMap<i32, usize>);

impl Mode for GradientSizes {
    fn ran(&mut self, ran: &Ran<'_>) {
        if !ran.is_backward {
            return;
        }
        for value in ran.results.iter().filter_map(|result| result.values()).flatten().filter(|&x| x != 0.0) {
            *self.0.entry(value.abs().log10().floor() as i32).or_default() += 1;
        }
    }
}

#[test]
fn a_users_mode_of_few_lines() {
    let (net, x) = (network(), images());
    let mut sizes = GradientSizes::default();
    mode::with(&mut sizes, || {
        value_and_grad(|up| (x.contract(up, Pixel) * 1e-3).square().sum((Example, Hidden)), &net.up)
    });
    assert!(sizes.0.keys().all(|&power| power < 0), "{:?}", sizes.0);
    assert!(sizes.0.values().sum::<usize>() >= 20, "{:?}", sizes.0);
}
