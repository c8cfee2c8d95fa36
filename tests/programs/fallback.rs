//! Functions that must be called once for each example.

use super::suite::{Batch, Feat, Group, Key, Seq};
use typed_dims::batch::map_each;
use typed_dims::fallible::try_map_each;
use typed_dims::ndarray::{Array1, Array3};
use typed_dims::pipeline::plan::explain::PlanStep;
use typed_dims::prelude::*;

fn numbers(n: usize, m: usize, size: usize) -> Array3<f32> {
    Array3::from_shape_fn((n, m, size), |(n, m, at)| ((n * 7 + m * 5 + at * 11) % 13) as f32)
}

/// Stands for a third-party function that takes only arrays.
fn sorted_array(x: &Array1<f32>) -> Array1<f32> {
    let mut x = x.to_vec();
    x.sort_by(f32::total_cmp);
    x.into()
}

#[batched]
fn sorted(x: &Tensor<f32, (Seq,)>) -> Tensor<f32, (Seq,)> {
    map_each(x, |x| sorted_array(&x.order(Seq)).into_tensor(Seq))
}

#[test]
fn a_function_of_arrays_is_called_for_each_example() {
    let x = numbers(3, 2, 5);
    let (y, plan) = explain(|| sorted(x.view().into_owned().into_tensor((Batch, Group, Seq))));
    let [PlanStep::Calls { calls: 6, bytes: 120, .. }] = plan.steps[..] else { panic!("{plan}") };
    assert!(plan.to_string().contains("loop of 6 calls, one for each example"), "{plan}");
    let y = y.order((Batch, Group, Seq));
    for (row, expected) in y.rows().into_iter().zip(x.rows()) {
        assert_eq!(row.to_owned(), sorted_array(&expected.to_owned()));
    }
}

/// The square root by Newton's method. The number of steps depends on the input.
#[batched]
fn root(x: &Tensor<f32, ()>) -> (Tensor<f32, ()>, Tensor<usize, ()>) {
    fn steps(x: f32, guess: f32, count: usize) -> (f32, usize) {
        let next = 0.5 * (guess + x / guess);
        if (next - guess).abs() < 1e-6 * next { (next, count) } else { steps(x, next, count + 1) }
    }
    let roots = map_each(x, |x| full((), steps(x.order(()), 1.0, 1).0));
    let counts = map_each(x, |x| full((), steps(x.order(()), 1.0, 1).1));
    (roots, counts)
}

#[test]
fn a_recursion_that_depends_on_data() {
    let x = from_fn((Batch.of(2), Group.of(3)), |(n, m)| 1.0 + 100.0 * (n * 3 + m) as f32);
    let (roots, counts) = root(&x);
    assert!((roots - (&x).sqrt()).abs().max((Batch, Group)).order(()) < 1e-5);
    let counts = counts.order((Batch, Group));
    assert!(counts[[0, 0]] < counts[[1, 2]]);
}

#[test]
fn several_tensors_and_what_is_the_same_for_all() {
    let x = numbers(3, 2, 4).into_tensor((Batch, Group, Seq));
    let y = numbers(3, 2, 5).into_tensor((Batch, Group, Key));
    let w = numbers(1, 1, 4).into_tensor((Batch, Group, Seq));
    let w = (&w).index(Batch, 0).index(Group, 0).eval();
    let (out, plan) = explain(|| {
        batched((Batch, Group), (&x, &y), |(x, y)| {
            map_each((x, y), |(x, y)| (x * &w).sum(Seq) * y.max(Key) * y)
        })
    });
    let [PlanStep::Calls { calls: 6, steps, .. }, ..] = &plan.steps[..] else { panic!("{plan}") };
    assert_eq!(steps.len(), 6 * 3, "{plan}");
    let out: Tensor<f32, (Batch, Group, Key)> = out;
    let expected = (&x * &w).sum(Seq) * y.max(Key) * &y;
    assert_eq!(out.order((Batch, Group, Key)), expected.order((Batch, Group, Key)));
}

#[test]
fn by_hand_and_with_positional_axes() {
    let x = numbers(3, 2, 4).into_tensor((Batch, Group, Seq));
    let each = map_each(&x.clone().seal((Group, Seq)), |x| x.sum(Group).order(Seq).at(..).eval());
    let out = each.unseal().order(Batch);
    assert_eq!(out, x.sum(Group).order((Batch, Seq)));
}

#[test]
fn results_must_be_equally_large() {
    let x = numbers(2, 2, 4).into_tensor((Batch, Group, Seq));
    let mut size = 2;
    let error = try_map_each(&x.clone().seal(Seq), |_| {
        size += 1;
        Ok(ones::<f32, _>(Feat.of(size)))
    });
    let what = error.err().unwrap().to_string();
    assert_eq!(what, "the results of single examples differ: dim `Feat` = 3, but then dim `Feat` = 4");
}

#[test]
fn the_first_error_is_the_result() {
    let x = numbers(2, 2, 4).into_tensor((Batch, Group, Seq));
    let error = try_map_each(&x.clone().seal(Seq), |x| x.try_index(Seq, 7).map(|x| x.eval()));
    assert!(error.err().unwrap().to_string().contains("index 7"));
}

#[test]
fn without_examples_sizes_come_from_the_tensors() {
    let x = numbers(0, 2, 4).into_tensor((Batch, Group, Seq));
    let same = map_each(&x.clone().seal(Seq), |x| x * 2.0).unseal().order((Batch, Group, Seq));
    assert_eq!(same.shape(), [0, 2, 4]);
    let error = try_map_each(&x.clone().seal(Seq), |_| Ok(ones::<f32, _>(Feat.of(2))));
    let what = error.err().unwrap().to_string();
    assert_eq!(what, "there are no examples, so the size of `Feat` is unknown");
}
