//! Training in half precision, with state in `f32`.

use super::*;
use half::{bf16, f16};
use typed_dims::grad::grad;
use typed_dims::optim::{Accumulator, Average};
use typed_dims::types::scalar::CastTo;

const LEN: usize = 37;

type Row1<T> = Tensor<T, (Row,)>;

/// Pseudorandom numbers that vary with position and step, some of them small.
fn drawn<T: Real>(step: usize) -> Row1<T> {
    from_fn(Row.of(LEN), |at| T::from(noise(at, step) * 10f64.powi(-(at as i32 % 5))).unwrap())
}

fn wide<T: Real>(tensor: &Row1<T>) -> Row1<f32> {
    tensor.view().map(|a: T| a.to_f32().unwrap()).eval()
}

fn numbers<T: Real>(tensor: &Row1<T>) -> Vec<f32> {
    wide(tensor).order(Row).to_vec()
}

/// Compares 1,000 steps in half precision with the same steps in single precision.
fn compare<T: Real, H: Optimizer<Row1<T>>, O: Optimizer<Row1<f32>>>(mut half: H, mut single: O)
where
    f32: CastTo<T>,
{
    let mut p = drawn::<T>(0);
    let mut exact = wide(&p);
    for step in 1..=1000 {
        let gradient = drawn::<T>(step);
        half.step(&mut p, &gradient);
        single.step(&mut exact, &wide(&gradient));
        let rounded = numbers(&(&exact).cast::<T>().eval());
        assert_eq!(numbers(&p), rounded, "step {step}");
    }
    let kept = half.state().parameter("").unwrap();
    assert_eq!(kept.master().unwrap().tensor::<f32, (Row,)>().unwrap(), exact);
    for (half, single) in kept.moments().iter().zip(single.state().parameter("").unwrap().moments()) {
        let of = |moment: &typed_dims::optim::StateTensor| {
            let whole = moment.tensor::<f32, (Row,)>().map(|moment| moment.order(Row).to_vec());
            whole.or_else(|| Some(vec![moment.tensor::<f32, ()>()?.order(())])).unwrap()
        };
        assert_eq!(of(half), of(single));
    }
}

#[test]
fn steps_are_those_of_single_precision_rounded() {
    fn all<T: Real>()
    where
        f32: CastTo<T>,
    {
        compare::<T, _, _>(Sgd::new(1e-3), Sgd::new(1e-3));
        let momentum = (Sgd::new(1e-3).momentum(0.9), Sgd::new(1e-3).momentum(0.9).weight_decay(0.0));
        compare::<T, _, _>(momentum.0, momentum.1);
        compare::<T, _, _>(Adam::new(1e-3), Adam::new(1e-3));
        compare::<T, _, _>(AdamW::new(1e-3), AdamW::new(1e-3));
        compare::<T, _, _>(Lion::new(1e-4), Lion::new(1e-4));
        compare::<T, _, _>(RmsProp::new(1e-3), RmsProp::new(1e-3));
        compare::<T, _, _>(Adagrad::new(1e-2), Adagrad::new(1e-2));
        compare::<T, _, _>(NAdam::new(1e-3), NAdam::new(1e-3));
        compare::<T, _, _>(RAdam::new(1e-3), RAdam::new(1e-3));
        compare::<T, _, _>(Lamb::new(1e-3), Lamb::new(1e-3));
        compare::<T, _, _>(Adafactor::new(1e-3), Adafactor::new(1e-3));
    }
    all::<f16>();
    all::<bf16>();
}

/// Errors are those for `f32` and `f64`.
#[test]
fn an_outer_gradient_of_halves_is_refused() {
    fn all<T: Real>() {
        gradients::check_step::<T, _>(Sgd::new(0.1));
        gradients::check_step::<T, _>(Adam::new(0.1));
        gradients::check_step::<T, _>(Lamb::new(0.1));
        gradients::check_step::<T, _>(Adafactor::new(0.1));
        gradients::check_sums::<T>();
    }
    all::<f16>();
    all::<bf16>();
}

/// Master weights are the converted parameter, whose axes are stored in another order here.
#[test]
fn master_weights_have_a_gradient() {
    type Weight = Matrix<f16>;
    let master = |sgd: &Sgd<Weight>| -> Matrix<f32> {
        let master = sgd.state().parameters()[0].master().expect("the parameter has master weights");
        master.tensor().expect("of these dims")
    };
    let loss = |w: &Weight| -> Tensor<f32, ()> {
        let mut sgd = Sgd::new(0.1);
        sgd.prepare(w);
        // Twice the master weights.
        let slope = grad(|sgd: &Sgd<Weight>| master(sgd).square().sum((Row, Column)), &sgd);
        master(&slope).sum((Row, Column))
    };
    let w: Weight = first::<f16>().order((Column, Row)).into_tensor((Column, Row));
    assert_eq!(elements(&grad(loss, &w)), [2.0; 12]);
}

/// Compares each step with Adam's formulas in double precision.
#[test]
fn adam_in_f16_follows_the_formula() {
    let mut p = full(Row.of(1), f16::ONE);
    let mut optimizer = Adam::new(1e-3);
    let (mut w, mut m, mut v) = (1.0_f64, 0.0_f64, 0.0_f64);
    for step in 1..=1000_usize {
        // The squares of such gradients are 0 in half precision.
        let g = f16::from_f64(1e-4 * (0.5 + noise(3, step)));
        optimizer.step(&mut p, &full(Row.of(1), g));
        let g = g.to_f64();
        m = 0.9 * m + 0.1 * g;
        v = 0.999 * v + 0.001 * g * g;
        let correction = |beta: f64| 1.0 - beta.powi(step as i32);
        w -= 1e-3 * (m / correction(0.9)) / ((v / correction(0.999)).sqrt() + 1e-8);
        let found = p.view().order(Row)[0].to_f64();
        assert!((found - w).abs() < 6e-4, "step {step}: {found} instead of {w}");
    }
    assert!((w - 1.0).abs() > 1e-2, "the parameter does not move");
}

#[test]
fn steps_begin_with_what_the_user_has_changed() {
    let mut p = full(Row.of(3), bf16::ONE);
    let gradient = full(Row.of(3), bf16::ONE);
    let mut optimizer = Sgd::new(5e-4);
    let master = |optimizer: &Sgd<Row1<bf16>>| {
        let kept = optimizer.state().parameter("").unwrap();
        kept.master().unwrap().tensor::<f32, (Row,)>().unwrap().order(Row).to_vec()
    };
    optimizer.step(&mut p, &gradient);
    assert_eq!(master(&optimizer), [1.0 - 5e-4; 3]);
    // The first element is changed; the others are set to the values that they have.
    p = from_vec(Row.of(3), vec![bf16::from_f32(5.0), bf16::ONE, p.view().order(Row)[2]]);
    optimizer.step(&mut p, &gradient);
    assert_eq!(master(&optimizer), [5.0 - 5e-4, 1.0 - 5e-4 - 5e-4, 1.0 - 5e-4 - 5e-4]);
    assert_eq!(numbers(&p), [5.0, 1.0, 1.0]);
    // NaN stays until the user replaces it.
    p = full(Row.of(3), bf16::NAN);
    optimizer.step(&mut p, &gradient);
    assert!(master(&optimizer).iter().all(|a| a.is_nan()));
    p = full(Row.of(3), bf16::ONE);
    optimizer.step(&mut p, &gradient);
    assert_eq!(master(&optimizer), [1.0 - 5e-4; 3]);
}

#[test]
fn without_master_weights_each_step_is_rounded() {
    let (mut p, gradient) = (full(Row.of(3), f16::ONE), full(Row.of(3), f16::from_f32(0.3)));
    let mut optimizer = Sgd::new(0.1).master_weights(false);
    optimizer.step(&mut p, &gradient);
    let expected = f16::from_f32(1.0 - 0.1 * f16::from_f32(0.3).to_f32());
    assert_eq!(p.view().order(Row)[2], expected);
    assert!(optimizer.state().parameter("").unwrap().master().is_none());
    // The moments have single precision anyway.
    let mut adam = Adam::new(0.1).master_weights(false);
    adam.step(&mut p, &full(Row.of(3), f16::from_f32(1e-4)));
    let kept = adam.state().parameter("").unwrap();
    let square = kept.moments()[1].tensor::<f32, (Row,)>().unwrap().order(Row)[0];
    assert!((square - 1e-11).abs() < 1e-13, "{square}");
    // The master weights can be dropped and created again.
    let mut adam = Adam::new(1e-5);
    adam.step(&mut p, &gradient);
    let mut adam = adam.master_weights(false);
    adam.step(&mut p, &gradient);
    assert!(adam.state().parameter("").unwrap().master().is_none());
    let mut adam = adam.master_weights(true);
    adam.step(&mut p, &gradient);
    assert!(adam.state().parameter("").unwrap().master().is_some());
}

#[test]
fn the_order_in_memory_does_not_matter_for_masters() {
    let number = |at: usize| f16::from_f64(noise(at, 1));
    let (rows, gradient) = (matrix::<f16>(|at| number(at).to_f64()), matrix::<f16>(|at| noise(at, 2)));
    let transposed = || {
        let columns = rows.view().order((Column, Row));
        columns.into_tensor((Column, Row))
    };
    let (mut one, mut other) = (rows.clone(), transposed());
    let mut optimizers = [Adam::new(0.1), Adam::new(0.1)];
    for step in 0..6 {
        if step == 3 {
            // From here on, the memory order of this parameter differs from that of its state.
            other = other.view().order((Row, Column)).into_tensor((Row, Column));
        }
        optimizers[0].step(&mut one, &gradient);
        optimizers[1].step(&mut other, &gradient);
        assert_eq!(elements(&one), elements(&other));
    }
}

#[test]
fn large_tensors_take_the_same_step_as_small_ones_in_half_precision() {
    let n = 300_007;
    let number = |at: usize| f16::from_f64((0.37 * at as f64).sin());
    let mut large = from_fn(Row.of(n), number);
    let gradient = from_fn(Row.of(n), |at| number(at + 1));
    let mut optimizer = AdamW::new(0.1);
    (0..2).for_each(|_| optimizer.step(&mut large, &gradient));
    let large = large.order(Row);
    for at in [0, 1, 1023, 1024, n / 3, n / 2, n - 1] {
        let (mut small, mut optimizer) = (full(Row.of(1), number(at)), AdamW::new(0.1));
        (0..2).for_each(|_| optimizer.step(&mut small, &full(Row.of(1), number(at + 1))));
        assert_eq!(large[at], small.order(Row)[0]);
    }
}

#[test]
fn an_average_of_half_precision_moves() {
    fn of<T: Real>() {
        let (mut average, mut exact) = (Average::new(0.999), Average::new(0.999));
        for step in 0..1000 {
            let p = full(Row.of(2), T::from(if step == 0 { 1.0 } else { 2.0 }).unwrap());
            average.update(&p);
            exact.update(&wide(&p));
        }
        let exact = exact.into_value().unwrap().order(Row)[0];
        assert!((exact - (2.0 - 0.999_f32.powi(999))).abs() < 1e-4);
        assert_eq!(average.value().unwrap().view().order(Row)[1], T::from(exact).unwrap());
    }
    of::<f16>();
    of::<bf16>();
}

#[test]
fn gradients_of_half_precision_are_accumulated() {
    fn of<T: Real>() {
        let mut gradients = Accumulator::new();
        (0..4096).for_each(|_| gradients.add(full(Row.of(2), T::one())));
        assert_eq!(gradients.count(), 4096);
        assert_eq!(numbers(&gradients.take().unwrap()), [1.0, 1.0]);
        // The sum of the gradients may exceed the largest number of the type.
        let largest = T::max_value();
        (0..3).for_each(|_| gradients.add(full(Row.of(2), largest)));
        assert_eq!(gradients.take().unwrap().order(Row)[0], largest);
        // `take` resets the sum.
        gradients.add(full(Row.of(2), T::one()));
        assert_eq!(numbers(&gradients.take().unwrap()), [1.0, 1.0]);
    }
    of::<f16>();
}

#[test]
fn each_parameter_has_state_of_its_own_type() {
    let mut value = (full(Row.of(2), f16::ONE), ones::<f32, _>(Row.of(2)), ones::<f64, _>(Row.of(2)));
    let gradient = value.clone();
    let mut optimizer = AdamW::new(0.1);
    optimizer.step(&mut value, &gradient);
    let state = optimizer.state();
    let kept = |name: &str| state.parameter(name).unwrap();
    assert!(kept("0").moments()[0].tensor::<f32, (Row,)>().is_some());
    assert!(kept("1").moments()[0].tensor::<f32, (Row,)>().is_some());
    assert!(kept("2").moments()[0].tensor::<f64, (Row,)>().is_some());
    let masters = ["0", "1", "2"].map(|name| kept(name).master().is_some());
    assert_eq!(masters, [true, false, false]);
}
