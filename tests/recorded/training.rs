//! Recorded training steps: clipping, schedules, optimizers, averages and sums of gradients, and
//! running statistics. State is both an input and a result.

use typed_dims::grad::{grad, loss_and_grad};
use typed_dims::nn::{BatchNorm, LayerNorm, Linear};
use typed_dims::optim::{
    Accumulator, Adafactor, Adagrad, Adam, AdamW, Average, Lamb, Lion, NAdam, Optimizer, RAdam, RmsProp,
    Schedule, Sgd, clip_by_global_norm, clip_by_value, global_norm,
};
use typed_dims::prelude::*;
use typed_dims::program::{jit, record};
use typed_dims::types::scalar::Real;

dims! {
    struct Row;
    struct Feature;
    struct Inner;
    struct Class;
}

/// The axes of `a` are stored in another order than those of computed tensors.
#[derive(Parameters, Clone)]
struct Weights<T: Real> {
    a: Tensor<T, (Row, Feature)>,
    b: Tensor<T, (Feature,)>,
    count: Tensor<i64, (Feature,)>,
}

fn weights<T: Real>(seed: u64) -> Weights<T> {
    let drawn = randn::<T, _>((Row.of(3), Feature.of(5)), seed);
    let transposed = drawn.view().order((Feature, Row));
    Weights {
        a: transposed.into_tensor((Feature, Row)),
        b: randn(Feature.of(5), seed + 1),
        count: from_fn(Feature.of(5), |at| at as i64),
    }
}

/// All elements, as bits.
fn bits<P: Parameters>(of: &P) -> Vec<(String, Vec<u64>)> {
    use typed_dims::grad::parameters::{Path, Visitor};
    use typed_dims::types::rank::Rank;
    use typed_dims::types::scalar::Element;
    struct Bits(Vec<(String, Vec<u64>)>);
    impl Visitor<0, 1> for Bits {
        type Error = DimError;

        fn tensor<T: Element, S: Dims, R: Rank>(
            &mut self,
            path: &Path,
            _: [&mut Named<T, S, R>; 0],
            [tensor]: [&Named<T, S, R>; 1],
        ) -> Result<(), DimError> {
            // The elements are in the order of the dims.
            let own = tensor.view().eval();
            let text: Vec<u64> = own
                .memory()
                .iter()
                .map(|element| {
                    let element: &dyn std::any::Any = element;
                    let single = element.downcast_ref::<f32>().map(|a| u64::from(a.to_bits()));
                    single
                        .or_else(|| element.downcast_ref::<f64>().map(|a| a.to_bits()))
                        .or_else(|| element.downcast_ref::<u64>().copied())
                        .or_else(|| element.downcast_ref::<i64>().map(|&a| a as u64))
                        .or_else(|| element.downcast_ref::<half::f16>().map(|a| u64::from(a.to_bits())))
                        .or_else(|| element.downcast_ref::<half::bf16>().map(|a| u64::from(a.to_bits())))
                        .expect("the element type is one that the test uses")
                })
                .collect();
            self.0.push((path.to_string(), text));
            Ok(())
        }
    }
    let mut bits = Bits(Vec::new());
    P::visit([], [of], &mut Path::new(), &mut bits).expect("the parameters can be visited");
    bits.0
}

/// Records the first step, which starts without moments, and the second step. Both programs must
/// return the bits of `step`, the second program for several steps in sequence.
fn goes_on<T: Real, O: Optimizer<Weights<T>> + Parameters + Clone>(name: &str, optimizer: O) {
    type State<T, O> = (Weights<T>, O);
    fn step<T: Real, O: Optimizer<Weights<T>> + Clone>(
        (weights, optimizer): &State<T, O>,
        gradient: &Weights<T>,
    ) -> State<T, O> {
        let (mut weights, mut optimizer) = (weights.clone(), optimizer.clone());
        optimizer.step(&mut weights, gradient);
        (weights, optimizer)
    }
    let start = (weights::<T>(1), optimizer);
    let first = record(|(state, g): (&State<T, O>, &Weights<T>)| step(state, g), (&start, &weights::<T>(2)))
        .expect("the first step is recorded");
    let other = (weights::<T>(10), start.1.clone());
    let found = first.call((&other, &weights::<T>(11)));
    let mut state = step(&other, &weights(11));
    assert_eq!(bits(&found), bits(&state), "{name}, the first step");
    let loaded = crate::reloaded(&first, &found);
    assert_eq!(
        bits(&loaded.call((&other, &weights::<T>(11)))),
        bits(&state),
        "{name}, the first step, loaded"
    );

    let later = record(|(state, g): (&State<T, O>, &Weights<T>)| step(state, g), (&state, &weights::<T>(2)))
        .expect("a later step is recorded");
    let later = crate::reloaded(&later, &state);
    for seed in 20..26 {
        let found = later.call((&state, &weights::<T>(seed)));
        state = step(&state, &weights(seed));
        assert_eq!(bits(&found), bits(&state), "{name}, the step with seed {seed}");
    }
    assert_eq!(state.1.steps(), 7);
    #[cfg(feature = "pjrt")]
    goes_on_on_xla(name, state, &step::<T, O>);
}

/// Runs three steps on XLA, with the state on the device, and compares the states.
#[cfg(feature = "pjrt")]
fn goes_on_on_xla<T: Real, O: Optimizer<Weights<T>> + Parameters + Clone>(
    name: &str,
    state: (Weights<T>, O),
    step: &dyn Fn(&(Weights<T>, O), &Weights<T>) -> (Weights<T>, O),
) {
    let Some(pjrt) = xla_tests::plugin(1) else { return };
    // In a list, the state is a single result, whatever its type.
    type States<T, O> = Vec<(Weights<T>, O)>;
    let mut states: States<T, O> = vec![state];
    let many = |(states, g): (&States<T, O>, &Weights<T>)| vec![step(&states[0], g)];
    let program = record(many, (&states, &weights::<T>(2))).expect("the function can be recorded");
    let run = pjrt.compile(&program).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut on_device = pjrt.put(&states).unwrap_or_else(|error| panic!("{name}: {error}"));
    let tolerance = 8.0 * T::epsilon().to_f64().expect("epsilon fits into `f64`");
    for seed in 30..33 {
        on_device = run.call((&on_device, &weights(seed))).unwrap_or_else(|error| panic!("{name}: {error}"));
        states = vec![step(&states[0], &weights(seed))];
        xla_tests::assert_near(&xla_tests::read(&on_device), &states, tolerance, name);
    }
}

/// Checks all optimizers, with schedules and settings.
fn all_go_on<T: Real>()
where
    Weights<T>: Parameters,
{
    let rate = Schedule::cosine(0.1, 5).warm_up(2);
    goes_on::<T, _>("sgd", Sgd::new(0.1));
    goes_on::<T, _>("sgd with decay", Sgd::new(Schedule::step(0.1, 2, 0.5)).weight_decay(0.1));
    goes_on::<T, _>("momentum", Sgd::new(rate).momentum(0.9));
    goes_on::<T, _>("nesterov", Sgd::new(Schedule::one_cycle(0.1, 6)).momentum(0.9).nesterov());
    goes_on::<T, _>("adam", Adam::new(rate));
    goes_on::<T, _>("adam with decay", Adam::new(0.01).weight_decay(0.1));
    goes_on::<T, _>("adamw", AdamW::new(Schedule::cosine_to(0.1, 0.01, 4)));
    goes_on::<T, _>("lion", Lion::new(rate).weight_decay(0.1));
    goes_on::<T, _>("without masters", AdamW::new(rate).master_weights(false));
    let mut frozen = Adam::new(0.1);
    frozen.freeze("b");
    goes_on::<T, _>("frozen", frozen);
    goes_on::<T, _>("dampening", Sgd::new(Schedule::linear(0.1, 0.0, 9)).momentum(0.9).dampening(0.3));
    goes_on::<T, _>("amsgrad", Adam::new(Schedule::cosine_restarts(0.1, 0.0, 2, 2)).amsgrad().maximize());
    goes_on::<T, _>("rmsprop", RmsProp::new(Schedule::multi_step(0.01, &[2, 4], 0.5)));
    goes_on::<T, _>("rmsprop, centered", RmsProp::new(0.01).centered().momentum(0.9).epsilon(1e-3));
    goes_on::<T, _>("adagrad", Adagrad::new(0.1).rate_decay(0.1));
    goes_on::<T, _>("nadam", NAdam::new(0.1));
    goes_on::<T, _>("radam", RAdam::new(0.1).betas(0.8, 0.6));
    goes_on::<T, _>("lamb", Lamb::new(rate).weight_decay(0.1));
    goes_on::<T, _>("lamb without masters", Lamb::new(rate).master_weights(false));
    goes_on::<T, _>("adafactor", Adafactor::new(rate).relative_step().weight_decay(0.1));
    let factored = Adafactor::new(0.1).min_dim_size_to_factor(2);
    goes_on::<T, _>("adafactor, factored", factored.clone());
    goes_on::<T, _>("adafactor with momentum", factored.clone().momentum(0.9).maximize());
    goes_on::<T, _>("adafactor without masters", factored.master_weights(false));
    let grouped = AdamW::new(rate).no_decay(|p| p.rank() < 2);
    goes_on::<T, _>(
        "groups",
        grouped.group("a", |group| group.rate(Schedule::step(0.1, 2, 0.5)).rate_factor(0.5)),
    );
}

#[test]
fn optimizers_go_on_as_their_steps() {
    all_go_on::<f32>();
    all_go_on::<f64>();
}

#[test]
fn optimizers_of_halves_go_on_as_their_steps() {
    all_go_on::<half::f16>();
    all_go_on::<half::bf16>();
}

#[test]
fn a_parameter_that_is_thawed_has_its_own_steps() {
    let step = |state: &(Weights<f32>, Adam<Weights<f32>>), gradient: &Weights<f32>| {
        let (mut weights, mut adam) = state.clone();
        adam.step(&mut weights, gradient);
        (weights, adam)
    };
    let mut state = (weights(1), Adam::new(0.1));
    state = step(&state, &weights(2));
    state.1.freeze("b");
    state = step(&state, &weights(3));
    state.1.unfreeze("b");
    let program =
        record(|(state, g)| step(state, g), (&state, &weights(4))).expect("the function can be recorded");
    for seed in 5..9 {
        let found = program.call((&state, &weights(seed)));
        state = step(&state, &weights(seed));
        assert_eq!(bits(&found), bits(&state));
    }
    assert_eq!((state.1.state().steps_of("a"), state.1.state().steps_of("b")), (6, 5));
}

/// A recorded step has a derivative, unlike a step in place.
#[test]
fn an_outer_gradient_through_a_recorded_step() {
    let slope = |w: &Tensor<f64, (Feature,)>| -> Tensor<f64, ()> {
        let loss = |h: &Tensor<f64, ()>| {
            let mut p = w.clone();
            let gradient = grad(|p| (p.square() * h).sum(Feature), &p);
            Sgd::new(0.1).step(&mut p, &gradient);
            p.square().sum(Feature)
        };
        let h: Tensor<f64, ()> = full((), 1.0);
        grad(loss, &h)
    };
    let weight = |seed: u64| -> Tensor<f64, (Feature,)> { randn(Feature.of(5), seed) };
    let program = record(slope, &weight(1)).expect("the function can be recorded");
    // The step yields `w (1 - 0.2 h)`. The derivative of the sum of the squares, at `h = 1`, is
    // `2 * 0.8 * -0.2` times the sum of `w^2`, up to a few roundings.
    let expected = -0.32 * weight(2).square().sum(Feature).order(());
    let found = program.call(&weight(2)).order(());
    assert!((found - expected).abs() < 1e-13 * expected.abs(), "{found} instead of {expected}");
}

/// A step is recorded if the number of steps is an input, even if no operand depends on inputs.
#[test]
fn an_outer_gradient_through_a_step_of_a_recorded_optimizer() {
    type Weight = Tensor<f64, (Feature,)>;
    let weight: Weight = ones(Feature.of(4));
    let slope = |sgd: &Sgd<Weight>| -> Tensor<f64, ()> {
        let loss = |h: &Tensor<f64, ()>| {
            let (mut p, mut sgd) = (weight.clone(), sgd.clone());
            sgd.step(&mut p, &(&weight * h).eval());
            p.square().sum(Feature)
        };
        let h: Tensor<f64, ()> = full((), 1.0);
        grad(loss, &h)
    };
    let mut sgd = Sgd::new(Schedule::step(0.5, 1, 0.5));
    sgd.prepare(&weight);
    let program = record(slope, &sgd).expect("the function can be recorded");
    // With the rate `r`, each element is `1 - r h`. The derivative of the sum of the four squares,
    // at `h = 1`, is `-8 r (1 - r)`.
    assert_eq!(program.call(&sgd).order(()), -2.0);
    sgd.step(&mut weight.clone(), &weight);
    assert_eq!(program.call(&sgd).order(()), -1.5);
}

#[test]
fn clipping_is_recorded() {
    fn all<T: Real>() {
        let clipped = |most: f64| {
            move |gradient: &Weights<T>| {
                let mut gradient = gradient.clone();
                let norm = clip_by_global_norm(&mut gradient, most);
                (gradient, norm)
            }
        };
        for most in [0.5, 1e3, f64::INFINITY, 0.0] {
            let f = clipped(most);
            let program = record(f, &weights::<T>(1)).expect("the function can be recorded");
            for seed in [2, 3] {
                let mut other = weights::<T>(seed);
                other.b = other.b.map_elements(|x: T| x + x + x);
                assert_eq!(bits(&program.call(&other)), bits(&f(&other)));
            }
        }
        let limited = |gradient: &Weights<T>| {
            let mut gradient = gradient.clone();
            clip_by_value(&mut gradient, 0.5);
            (gradient.clone(), global_norm(&gradient))
        };
        let program = record(limited, &weights::<T>(1)).expect("the function can be recorded");
        let mut other = weights::<T>(4);
        other.b = from_fn(Feature.of(5), |at| if at == 2 { T::nan() } else { T::infinity() });
        assert_eq!(bits(&program.call(&other)), bits(&limited(&other)));
    }
    all::<f32>();
    all::<f64>();
    all::<half::f16>();
    all::<half::bf16>();
}

#[test]
fn averages_and_sums_of_gradients_are_recorded() {
    fn all<T: Real>() {
        type Sums<T> = (Average<Weights<T>>, Accumulator<Weights<T>>);
        let step = |sums: &Sums<T>, gradient: &Weights<T>| {
            let (mut average, mut sum) = sums.clone();
            average.update(gradient);
            sum.add(gradient.clone());
            (average, sum)
        };
        let mut sums: Sums<T> = (Average::new(0.9), Accumulator::new());
        for seed in 1..3 {
            sums = step(&sums, &weights(seed));
        }
        let program = record(|(sums, g)| step(sums, g), (&sums, &weights::<T>(7)))
            .expect("the function can be recorded");
        for seed in 10..14 {
            let found = program.call((&sums, &weights::<T>(seed)));
            sums = step(&sums, &weights(seed));
            assert_eq!(bits(&found), bits(&sums));
        }
        let mean = |sum: &Accumulator<Weights<T>>| sum.clone().take().expect("there are gradients");
        let program = record(mean, &sums.1).expect("the function can be recorded");
        let mut more = sums.1.clone();
        more.add(weights(20));
        // The number of gradients is an input.
        for sum in [&sums.1, &more] {
            assert_eq!(bits(&program.call(sum)), bits(&mean(sum)));
        }
    }
    all::<f32>();
    all::<f64>();
    all::<half::f16>();
    all::<half::bf16>();
}

#[derive(Parameters, Clone)]
struct Network {
    inner: Linear<(Feature,), (Inner,)>,
    norm: LayerNorm<(Inner,)>,
    outer: Linear<(Inner,), (Class,)>,
}

type Examples = Tensor<f32, (Row, Feature)>;
type Labels = Tensor<usize, (Row,)>;

impl Network {
    fn loss(&self, x: &Examples, y: &Labels) -> Tensor<f32, ()> {
        let h: Tensor<f32, (Row, Inner)> = self.inner.apply(x);
        let h: Tensor<f32, (Row, Inner)> = self.norm.apply(&h.relu().eval());
        let scores: Tensor<f32, (Row, Class)> = self.outer.apply(&h);
        scores.cross_entropy(Class, y).mean(Row)
    }
}

#[test]
fn a_whole_step_is_recorded() {
    type State = (Network, AdamW<Network>, Average<Network>);
    fn step((network, adam, average): &State, x: &Examples, y: &Labels) -> (State, Tensor<f32, ()>) {
        let (mut network, mut adam, mut average) = (network.clone(), adam.clone(), average.clone());
        let (loss, mut gradient) = loss_and_grad(|network: &Network| network.loss(x, y), &network);
        clip_by_global_norm(&mut gradient, 0.1);
        adam.step(&mut network, &gradient);
        average.update(&network);
        ((network, adam, average), loss)
    }
    let network = Network {
        inner: Linear::new(Feature.of(5), Inner.of(8), 1),
        norm: LayerNorm::new(Inner.of(8)),
        outer: Linear::new(Inner.of(8), Class.of(3), 2),
    };
    let batch = |seed: u64| -> (Examples, Labels) {
        let x: Examples = randn((Row.of(6), Feature.of(5)), seed);
        let y = x.view().slice(Feature, 0..3).argmax(Feature);
        (x, y)
    };
    let mut state: State = (network, AdamW::new(Schedule::constant(0.05).warm_up(3)), Average::new(0.9));
    let (x, y) = batch(1);
    state = step(&state, &x, &y).0;
    let program = record(|(state, x, y)| step(state, x, y), (&state, &x, &y)).expect("a step is recorded");
    let (mut own, mut losses) = (state.clone(), Vec::new());
    for seed in 0..30 {
        let (x, y) = batch(seed);
        let expected = step(&state, &x, &y);
        let found = program.call((&own, &x, &y));
        losses.push(expected.1.clone().order(()));
        assert!((found.1.order(()) - losses[losses.len() - 1]).abs() < 1e-4);
        (own, state) = (found.0, expected.0);
    }
    assert!(losses[29] < 0.7 * losses[0], "{losses:?}");
    assert_eq!(own.1.steps(), 31);
}

#[test]
fn running_statistics_are_recorded() {
    type Norm = BatchNorm<(Feature,)>;
    fn step(norm: &Norm, x: &Examples) -> (Norm, Examples) {
        let mut norm = norm.clone();
        let (y, moments) = norm.train(x, Row);
        norm.remember(&moments);
        (norm, y)
    }
    let x = |seed| -> Examples { randn((Row.of(6), Feature.of(5)), seed) };
    let mut norm = Norm::new(Feature.of(5));
    let program = record(|(norm, x)| step(norm, x), (&norm, &x(1))).expect("the function can be recorded");
    for seed in 2..6 {
        let (found, y) = program.call((&norm, &x(seed)));
        let expected = step(&norm, &x(seed));
        let near = |a: &Tensor<f32, (Feature,)>, b: &Tensor<f32, (Feature,)>| {
            assert!((a - b).abs().max(Feature).order(()) < 1e-6);
        };
        near(&found.running_mean, &expected.0.running_mean);
        near(&found.running_var, &expected.0.running_var);
        assert!((y - expected.1).abs().max((Row, Feature)).order(()) < 1e-5);
        norm = expected.0;
    }
}

fn stepped<O: Optimizer<Weights<f32>>>(
    (mut weights, mut optimizer): (Weights<f32>, O),
    gradient: &Weights<f32>,
) -> (Weights<f32>, O) {
    optimizer.step(&mut weights, gradient);
    (weights, optimizer)
}

#[test]
fn settings_that_change_between_calls_are_recorded_again() {
    type State = (Weights<f32>, Adam<Weights<f32>>);
    let train = jit::<(State, &Weights<f32>), _>(|(state, gradient)| stepped(state, gradient));
    let (mut own, mut expected): (State, State) =
        ((weights(1), Adam::new(0.1)), (weights(1), Adam::new(0.1)));
    for step in 0..12 {
        for optimizer in [&mut own.1, &mut expected.1] {
            match step {
                0 => optimizer.freeze("b"),
                3 => optimizer.unfreeze("b"),
                5 => optimizer.set_rate(Schedule::cosine(0.5, 9)),
                8 => optimizer.freeze("a"),
                _ => {}
            }
        }
        let gradient = weights(100 + step);
        own = train.call((own, &gradient));
        expected = stepped(expected, &gradient);
        assert_eq!(bits(&own), bits(&expected), "step {step}");
        assert_eq!(own.1.rate(), expected.1.rate());
    }
    assert_eq!(own.1.state().steps_of("b"), expected.1.state().steps_of("b"));
    // One program for each of: no moments; moments of `a`; `b` thawed, without moments; `b` with
    // moments; another rate; `a` frozen; fewer steps of `a` than of the optimizer.
    assert_eq!(train.programs(), 7);
}

#[test]
fn a_program_is_for_the_settings_that_it_was_recorded_with() {
    fn refused<O: Optimizer<Weights<f32>> + Parameters + Clone>(first: O, other: O, expected: &str) {
        let step = |(state, gradient): (&(Weights<f32>, O), &Weights<f32>)| stepped(state.clone(), gradient);
        let program =
            record(step, (&(weights(1), first.clone()), &weights(2))).expect("the function can be recorded");
        program.call((&(weights(3), first), &weights(4)));
        let error = program.try_call((&(weights(3), other), &weights(4))).err().expect("the settings differ");
        assert_eq!(error.to_string(), expected);
    }
    let end = "record it again; `jit` does so by itself";
    let of = |name: &str, found: &str, recorded: &str| {
        format!("`{name}` of input `0.1` is {found}, but the program was recorded for {recorded}: {end}")
    };
    refused(Sgd::new(0.1), Sgd::new(0.1).nesterov().momentum(0.9), &of("momentum", "0.9", "0.0"));
    refused(Sgd::new(0.1), Sgd::new(0.1).weight_decay(0.5), &of("weight_decay", "0.5", "0.0"));
    refused(Lion::new(0.1), Lion::new(0.1).betas(0.5, 0.9), &of("betas", "(0.5, 0.9)", "(0.9, 0.99)"));
    let mut frozen = AdamW::new(0.1);
    frozen.freeze("b");
    refused(AdamW::new(0.1), frozen, &of("frozen", "[\"b\"]", "[]"));
    refused(Adam::new(0.1), Adam::new(0.1).amsgrad(), &of("amsgrad", "true", "false"));
    let step = |(average, own): (&Average<Weights<f32>>, &Weights<f32>)| {
        let mut average = average.clone();
        average.update(own);
        average
    };
    let program = record(step, (&Average::new(0.9), &weights(1))).expect("the function can be recorded");
    let error = program.try_call((&Average::new(0.5), &weights(1))).err().expect("the settings differ");
    assert_eq!(
        error.to_string(),
        format!("`decay` of input `0` is 0.5, but the program was recorded for 0.9: {end}")
    );
}
