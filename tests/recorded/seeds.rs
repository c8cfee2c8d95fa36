//! Functions with a seed among their inputs: for the seed of each call, the program draws the same
//! elements as the function.

use crate::{Batch, Class, Floats, Labels, Seq, Width, floats};
use half::{bf16, f16};
use typed_dims::batch::vmap;
use typed_dims::creation::random::{
    Seed, bernoulli, categorical, permutation, rand_like, randn_like, split, try_bernoulli,
};
use typed_dims::grad::{checkpoint, grad, loss_and_grad, vjp};
use typed_dims::init;
use typed_dims::prelude::*;
use typed_dims::program::record;

type SeedTensor = Tensor<u64, ()>;

/// Seeds of recordings and calls. Three of them exceed `isize::MAX`.
const SEEDS: [u64; 6] = [3, 0, u64::MAX, (1 << 63) + 5, 4, 1 << 63];

fn seed(number: u64) -> SeedTensor {
    full((), number)
}

/// Records a function with one seed. For every seed, the program must return what the function
/// returns, whether the function takes the seed as a tensor or as a number.
macro_rules! same {
    ($(|$seed:ident| $f:expr;)*) => {$({
        let of_tensor = |$seed: &SeedTensor| $f;
        let of_number = |$seed: u64| $f;
        let program = record(of_tensor, &seed(SEEDS[0])).expect("the function can be recorded");
        assert!(program.steps() > 0);
        for number in SEEDS {
            let expected = of_number(number);
            assert_eq!(of_tensor(&seed(number)), expected, "{}, with the seed {number}", stringify!($f));
            assert_eq!(program.call(&seed(number)), expected, "{}, called with {number}", stringify!($f));
        }
    })*};
}

#[test]
fn every_way_to_draw_is_a_step_of_its_seed() {
    let x = &floats(1);
    let (wide, narrow, short) = (&x.cast::<f64>().eval(), &x.cast::<f16>().eval(), &x.cast::<bf16>().eval());
    let (p, own_p) = (&x.sigmoid().eval(), &short.sigmoid().eval());
    same! {
        |seed| rand::<f32, _>((Batch.of(4), Width.of(6)), seed);
        |seed| rand::<f64, _>((Width.of(3), Batch.of(4)), seed);
        |seed| rand::<f16, _>(Batch.of(4000), seed);
        |seed| rand::<bf16, _>(Batch.of(4000), seed);
        |seed| randn::<f32, _>((Batch.of(4), Width.of(6)), seed);
        |seed| randn::<f64, _>(Batch.of(7), seed);
        |seed| randn::<f16, _>((Width.of(3), Batch.of(4)), seed);
        |seed| randn::<f32, _>((), seed);
        |seed| rand_like(x, seed);
        |seed| rand_like(wide, seed);
        |seed| rand_like(narrow, seed);
        |seed| randn_like(x, seed);
        |seed| randn_like(short, seed);
        |seed| x.dropout(0.4, seed);
        |seed| wide.dropout(0.4, seed);
        |seed| narrow.dropout(0.4, seed);
        |seed| short.dropout(0.0, seed);
        |seed| x.dropout(1.0, seed);
        |seed| bernoulli(p, seed);
        |seed| bernoulli(wide.sigmoid(), seed);
        |seed| bernoulli(own_p, seed);
        |seed| categorical(x, Width, seed);
        |seed| categorical(wide, Batch, seed);
        |seed| categorical(narrow, Width, seed);
        |seed| categorical((short * bf16::from_f32(0.01)).eval(), Batch, seed);
        |seed| permutation(Batch.of(50), seed);
        |seed| permutation(Batch.of(1), seed);
        |seed| x.take(Batch, permutation(Batch.of(4), seed)).eval();
        |seed| rand_like(x, seed).argsort(Width);
        |seed| (x.dropout(0.5, seed) + randn(Width.of(6), seed)).exp().sum(Batch);
    }
}

/// Large logits in half precision are far apart, so the noise must not be rounded to their type.
#[test]
fn halves_are_drawn_as_f32_are() {
    let (halves, wide) = (
        full((Batch.of(200), Width.of(2)), bf16::from_f32(300.0)),
        full((Batch.of(200), Width.of(2)), 300.0_f32),
    );
    let expected = categorical(&wide, Width, 3);
    let of_both = (&expected).cast::<i32>().sum(Batch).order(());
    assert!((60..140).contains(&of_both), "{of_both} of 200");
    assert_eq!(categorical(&halves, Width, 3), expected);
    let drawn = |(x, seed): (&Tensor<bf16, (Batch, Width)>, &SeedTensor)| categorical(x, Width, seed);
    let program = record(drawn, (&halves, &seed(1))).unwrap();
    assert_eq!(program.call((&halves, &seed(3))), expected);
}

#[test]
fn nothing_is_drawn_for_no_elements() {
    let x = zeros::<f32, _>((Batch.of(0), Width.of(6)));
    let program = record(
        |seed: &SeedTensor| {
            (
                rand::<f32, _>((Width.of(2), Batch.of(0)), seed),
                rand_like(&x, seed),
                (&x).dropout(0.5, seed),
                bernoulli(&x, seed),
                categorical(&x, Width, seed),
                permutation(Batch.of(0), seed),
            )
        },
        &seed(1),
    )
    .unwrap();
    let (a, b, c, d, e, f) = program.call(&seed(2));
    assert_eq!([a.size(Batch), b.size(Batch), c.size(Batch), d.size(Batch)], [0; 4]);
    assert_eq!((e.size(Batch), f.size(Batch)), (0, 0));
}

#[test]
fn a_seed_can_be_computed() {
    same! {
        |seed| randn::<f32, _>(Batch.of(5), Seed::from(seed).split(0));
        |seed| randn::<f32, _>(Batch.of(5), Seed::from(seed).split(u64::MAX).split(7));
        |seed| Seed::from(seed).split(9).to_tensor();
        |seed| {
            let seed: Seed = seed.into();
            (rand::<f32, _>(Batch.of(5), &seed) + randn(Batch.of(5), seed)).eval()
        };
    }
    // Integers wrap around.
    let odd = 0x9E37_79B9_7F4A_7C15_u64;
    type Step = fn(&SeedTensor) -> SeedTensor;
    let steps: [(Step, fn(u64) -> u64); 6] = [
        (|seed| (seed + 1).eval(), |seed| seed.wrapping_add(1)),
        (|seed| (seed - 1).eval(), |seed| seed.wrapping_sub(1)),
        (|seed| (seed * 0x9E37_79B9_7F4A_7C15).eval(), |seed| seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)),
        (|seed| (seed * 3 + u64::MAX).eval(), |seed| seed.wrapping_mul(3).wrapping_sub(1)),
        (|seed| (seed * seed).eval(), |seed| seed.wrapping_mul(seed)),
        (|seed| select(seed.eq(u64::MAX), 5, seed).eval(), |seed| if seed == u64::MAX { 5 } else { seed }),
    ];
    for (number, (of_tensor, of_number)) in steps.into_iter().enumerate() {
        let f = |seed: &SeedTensor| {
            let next = of_tensor(seed);
            (randn::<f64, _>(Batch.of(5), &next), next)
        };
        let program = record(f, &seed(SEEDS[0])).unwrap();
        for first in SEEDS.into_iter().chain([odd]) {
            let (drawn, next) = program.call(&seed(first));
            assert_eq!(next.order(()), of_number(first), "step {number}, seed {first}");
            assert_eq!(drawn, randn(Batch.of(5), of_number(first)), "step {number}, seed {first}");
        }
    }
    // The seed can be an element of a tensor of seeds.
    let many = |numbers: [u64; 3]| from_vec(Batch.of(3), numbers.to_vec());
    let f = |seeds: &Tensor<u64, (Batch,)>| randn::<f32, _>(Width.of(4), seeds.index(Batch, 1).eval());
    let program = record(f, &many([1, 2, 3])).unwrap();
    assert_eq!(program.call(&many([7, u64::MAX, 9])), randn(Width.of(4), u64::MAX));
}

#[test]
fn a_seed_moves_on() {
    let step = |x: &Floats, seed: &SeedTensor| ((x + randn_like(x, seed)).eval(), (seed + 1).eval());
    let program = record(|(x, seed)| step(x, seed), (&floats(1), &seed(3))).unwrap();
    let (mut x, mut own) = (floats(2), seed(u64::MAX - 1));
    for number in [u64::MAX - 1, u64::MAX, 0, 1] {
        let expected = (&x + randn_like(&x, number)).eval();
        let (next, next_seed) = program.call((&x, &own));
        assert_eq!(next, expected);
        (x, own) = (next, next_seed);
    }
    assert_eq!(own.order(()), 2);
}

#[test]
fn dropout_leaves_out_the_same_elements_of_a_gradient() {
    let loss = |x: &Floats, w: &Floats, seed: &SeedTensor| {
        let hidden = (x * w).tanh().dropout(0.3, seed);
        let other = (hidden * w).dropout(0.6, (seed * 5 + 1).eval());
        other.square().sum((Batch, Width))
    };
    let step = |w: &Floats, x: &Floats, seed: &SeedTensor| loss_and_grad(|w: &Floats| loss(x, w, seed), w);
    let (first_w, first_x) = (floats(1), floats(2));
    let all = record(|(w, x, seed)| step(w, x, seed), (&first_w, &first_x, &seed(SEEDS[0]))).unwrap();
    let seeds = record(|seed: &SeedTensor| step(&first_w, &first_x, seed), &seed(SEEDS[0])).unwrap();
    for number in SEEDS {
        assert_eq!(seeds.call(&seed(number)), step(&first_w, &first_x, &seed(number)));
        let (w, x) = (floats(5), floats(6));
        assert_eq!(all.call((&w, &x, &seed(number))), step(&w, &x, &seed(number)));
    }
    // Half precision, a constant cotangent, and second derivatives.
    type Halves = Tensor<f16, (Batch, Width)>;
    let x: Halves = floats(3).cast::<f16>().eval();
    let slope = |seed: &SeedTensor| grad(|x: &Halves| x.dropout(0.5, seed).sum((Batch, Width)), &x);
    let pulled = |seed: &SeedTensor| {
        let (_, pull) = vjp(|x: &Floats| x.dropout(0.5, seed), &first_x);
        pull(&first_w)
    };
    let second = |seed: &SeedTensor| {
        let slope = |x: &Floats| {
            grad(|x: &Floats| x.dropout(0.5, seed).exp().sum((Batch, Width)), x).sum((Batch, Width))
        };
        grad(slope, &first_x)
    };
    let (of_halves, of_pull, of_second) = (
        record(slope, &seed(SEEDS[0])).unwrap(),
        record(pulled, &seed(SEEDS[0])).unwrap(),
        record(second, &seed(SEEDS[0])).unwrap(),
    );
    for number in SEEDS {
        let own = seed(number);
        assert_eq!(of_halves.call(&own), slope(&own));
        assert_eq!(of_pull.call(&own), pulled(&own));
        assert_eq!(of_second.call(&own), second(&own));
    }
}

#[test]
fn probabilities_and_scores_are_inputs_as_well() {
    let draw = |x: &Floats, seed: &SeedTensor| {
        let halves = x.cast::<f16>().eval();
        (
            bernoulli(x.sigmoid(), seed),
            categorical(x * 2.0, Width, seed),
            categorical((&halves * f16::from_f32(0.01)).eval(), Width, seed),
            bernoulli(x.sigmoid(), 5),
            categorical(x, Batch, 5),
            categorical(&halves, Batch, 5),
        )
    };
    let program = record(|(x, seed)| draw(x, seed), (&floats(1), &seed(SEEDS[0]))).unwrap();
    for number in SEEDS {
        let x = floats(number ^ 77);
        assert_eq!(program.call((&x, &seed(number))), draw(&x, &seed(number)));
    }
    // Many scores are equal, so the rounding of score plus noise to `bf16` decides which sum is the
    // greatest.
    type Scores = Tensor<bf16, (Batch, Width)>;
    let scores = |seed: u64| -> Scores {
        (rand::<f32, _>((Batch.of(1000), Width.of(100)), seed) * 4.0).floor().cast::<bf16>().eval()
    };
    let program = record(
        |(scores, seed): (&Scores, &SeedTensor)| categorical(scores, Width, seed),
        (&scores(1), &seed(2)),
    )
    .unwrap();
    let (other, own) = (scores(8), seed(9));
    assert_eq!(program.call((&other, &own)), categorical(&other, Width, 9));
    // A call can pass a wrong probability.
    let f = |(p, seed): (&Floats, &SeedTensor)| bernoulli(p, seed);
    let program = record(f, (&rand_like(&floats(1), 1), &seed(1))).unwrap();
    let wrong = full((Batch.of(4), Width.of(6)), 1.5_f32);
    let error = program.try_call((&wrong, &seed(1))).expect_err("the probability is wrong").to_string();
    assert_eq!(error, "`bernoulli` with the probability 1.5: it must be between 0 and 1");
    assert_eq!(try_bernoulli(&wrong, 1).expect_err("the probability is wrong").to_string(), error);
    // Draws have no derivative with respect to their probabilities.
    let gated = |x: &Floats, seed: &SeedTensor| {
        grad(|x: &Floats| select(bernoulli(x.sigmoid(), seed), x.square(), x * 3.0).sum((Batch, Width)), x)
    };
    let program = record(|(x, seed)| gated(x, seed), (&floats(1), &seed(1))).unwrap();
    for number in SEEDS {
        let x = floats(number ^ 5);
        assert_eq!(program.call((&x, &seed(number))), gated(&x, &seed(number)));
    }
}

#[test]
fn a_seed_of_no_recorded_function_is_a_number() {
    let x = floats(1);
    for number in SEEDS {
        let own = seed(number);
        let program = record(|x: &Floats| x.dropout(0.5, &own), &x).unwrap();
        assert_eq!(program.call(&floats(2)), floats(2).dropout(0.5, number));
        let slope = |own: Seed| grad(|x: &Floats| x.dropout(0.5, &own).square().sum((Batch, Width)), &x);
        assert_eq!(slope(own.into()), slope(number.into()));
        assert_eq!(Seed::from(number).split(3).to_tensor().order(()), split(number, 3));
    }
    // After a recording, its seeds are constants.
    let mut kept = None;
    let f = |own: &SeedTensor| {
        kept = Some((Seed::from(own).split(1), Seed::from(own)));
        randn::<f32, _>(Width.of(3), own)
    };
    record(f, &seed(7)).unwrap();
    let (part, whole) = kept.unwrap();
    assert_eq!(part.split(2).to_tensor().order(()), split(split(7, 1), 2));
    assert_eq!(rand::<f32, _>(Width.of(3), whole), rand(Width.of(3), 7));
}

#[test]
fn examples_of_a_batch_draw_different_numbers() {
    type Row = Tensor<f32, (Width,)>;
    let noisy = |x: &Row, seed: &SeedTensor| (x.dropout(0.3, seed) + randn_like(x, seed)).eval();
    let each = |x: &Floats, seed: &SeedTensor| vmap(|x: &Row| noisy(x, seed), Batch)(x);
    let program = record(|(x, seed)| each(x, seed), (&floats(1), &seed(SEEDS[0]))).unwrap();
    for number in SEEDS {
        let x = floats(2);
        let expected = ((&x).dropout(0.3, number) + randn_like(&x, number)).eval();
        assert_eq!(each(&x, &seed(number)), expected);
        assert_eq!(program.call((&x, &seed(number))), expected);
    }
    // With a seed for each example.
    type Seeds = Tensor<u64, (Batch,)>;
    let each = |x: &Floats, seeds: &Seeds| {
        vmap(|x: &Row, seed: &SeedTensor| noisy(x, &(seed + 1).eval()), Batch)((x, seeds))
    };
    let seeds = |first: u64| -> Seeds { from_vec(Batch.of(4), (0..4).map(|at| first << at).collect()) };
    let program = record(|(x, seeds)| each(x, seeds), (&floats(1), &seeds(9))).unwrap();
    for first in [3, 0, u64::MAX] {
        assert_eq!(program.call((&floats(2), &seeds(first))), each(&floats(2), &seeds(first)));
    }
}

#[test]
fn a_step_of_a_training_is_recorded_with_its_seed() {
    type Weights = Tensor<f32, (Width, Class)>;
    let first: Weights = init::he_normal((Width.of(6), Class.of(5)), Width, 1);
    fn loss(w: &Weights, x: &Floats, labels: &Labels, seed: &SeedTensor) -> Tensor<f32, ()> {
        let seed = Seed::from(seed);
        let x = x.take(Batch, permutation(Seq.of(4), seed.split(0))).rename(Seq, Batch).eval();
        let scores = (x.dropout(0.2, seed.split(1)) * w).sum(Width);
        scores.cross_entropy(Class, labels).mean(Batch)
    }
    let step = |w: &Weights, x: &Floats, labels: &Labels, seed: &SeedTensor| {
        let plain = grad(|w: &Weights| loss(w, x, labels, seed), w);
        let again = grad(
            |w: &Weights| checkpoint(|(w, x, labels, seed)| loss(w, x, labels, seed), (w, x, labels, seed)),
            w,
        );
        ((w - &plain * 0.1).eval(), again, (seed + 1).eval())
    };
    let labels = crate::labels(1);
    let program =
        record(|(w, x, labels, seed)| step(w, x, labels, seed), (&first, &floats(1), &labels, &seed(1)))
            .unwrap();
    let (mut w, mut own) = (first, seed(u64::MAX));
    for number in 0..4 {
        let (x, labels) = (floats(number), crate::labels(number));
        let (expected, expected_again, _) = step(&w, &x, &labels, &seed(u64::MAX.wrapping_add(number)));
        let (next, again, next_seed) = program.call((&w, &x, &labels, &own));
        let most = |a: &Weights, b: &Weights| (a - b).abs().max((Width, Class)).order(());
        assert!(most(&next, &expected) < 1e-6 && most(&again, &expected_again) < 1e-6);
        (w, own) = (next, next_seed);
    }
}

#[test]
fn a_draw_is_one_step() {
    let program = record(|seed: &SeedTensor| rand::<f32, _>(Batch.of(3), seed), &seed(1)).unwrap();
    assert_eq!(program.steps(), 1);
    let program = record(|(x, seed): (&Floats, &SeedTensor)| x.dropout(0.5, seed), (&floats(1), &seed(1)));
    // The elements are copied first, because `dropout` writes over them.
    assert!(program.unwrap().steps() <= 2);
}
