//! The cross entropy with options, compared with PyTorch's.

use super::{Batch, Word, array};
use serde_json::Value;
use typed_dims::grad::value_and_grad;
use typed_dims::nn::loss::{ClassWeights, CrossEntropy, Unweighted};
use typed_dims::prelude::*;

dims! {
    struct Class;
}

type Logits = Tensor<f64, (Batch, Class)>;

/// The predictions and labels of `reference.py`.
fn given(ignored: bool) -> (Logits, Tensor<i64, (Batch,)>) {
    let logits = (array(0, (Batch.of(6), Class.of(4))) * 3.0).eval();
    let labels = if ignored { vec![3, 0, -1, 2, 1, -1] } else { vec![3, 0, 1, 2, 1, 0] };
    (logits, from_vec(Batch.of(6), labels))
}

fn weights() -> Tensor<f64, (Class,)> {
    from_vec(Class.of(4), vec![0.5, 2.0, 1.0, 0.0])
}

fn reference(case: &str) -> Vec<Vec<f64>> {
    let all: Value = serde_json::from_str(include_str!("reference.json")).expect("the file is JSON");
    serde_json::from_value(all[case].clone()).expect("the results are lists of numbers")
}

#[track_caller]
fn near(found: impl IntoIterator<Item = f64>, expected: &[f64], what: &str) {
    let found: Vec<f64> = found.into_iter().collect();
    assert_eq!(found.len(), expected.len(), "{what}");
    for (found, expected) in found.into_iter().zip(expected) {
        assert!((found - expected).abs() < 1e-12, "{what}: {found} instead of {expected}");
    }
}

fn compare<W: ClassWeights<f64, Class> + Clone>(name: &str, options: CrossEntropy<i64, W>) {
    let (logits, labels) = given(options.ignore_index.is_some());
    let [each, mean, gradient] = &reference(name)[..] else { panic!("{name} does not have three results") };
    let losses = logits.cross_entropy_with(Class, &labels, options.clone());
    near(losses.each().view().order(Batch), each, name);
    near([losses.mean(Batch).order(())], mean, name);
    near([losses.sum(Batch).order(())], &[each.iter().sum()], name);
    let loss = |x: &Logits| x.cross_entropy_with(Class, &labels, options.clone()).mean(Batch);
    let (value, found) = value_and_grad(loss, &logits);
    near([value], mean, name);
    near(found.order((Batch, Class)), gradient, name);
}

#[test]
fn options_agree_with_pytorch() {
    compare("cross_entropy", CrossEntropy::new());
    compare("ignored_cross_entropy", CrossEntropy::new().ignore_index(-1));
    compare("weighted_cross_entropy", CrossEntropy::new().weights(&weights()));
    compare("smooth_cross_entropy", CrossEntropy::new().label_smoothing(0.2));
    let all = CrossEntropy { ignore_index: Some(-1), label_smoothing: 0.3, weights: weights() };
    compare("full_cross_entropy", all);
}

#[test]
fn no_options_are_the_cross_entropy() {
    let (logits, labels) = given(false);
    let simple = logits.cross_entropy(Class, &labels).eval();
    let losses = logits.cross_entropy_with(Class, &labels, CrossEntropy::new());
    assert_eq!(losses.each(), &simple);
    assert_eq!(losses.weights().view().order(Batch), ndarray::Array1::<f64>::ones(6));
}

/// Targets that lack a dim of the predictions are broadcast along it.
#[test]
fn targets_can_lack_dims() {
    let logits = (array(1, (Batch.of(3), Word.of(2), Class.of(4))) * 2.0).eval();
    let labels = from_vec(Batch.of(3), vec![2_u8, 255, 0]);
    let options = || CrossEntropy::new().ignore_index(255).weights(weights()).label_smoothing(0.1);
    let all = logits.cross_entropy_with(Class, &labels, options());
    for word in 0..2 {
        let own = (&logits).index(Word, word).eval();
        let own = own.cross_entropy_with(Class, &labels, options());
        near(
            all.each().view().index(Word, word).order(Batch),
            &own.each().view().order(Batch).to_vec(),
            "each",
        );
        near([all.mean(Batch).index(Word, word).order(())], &[own.mean(Batch).order(())], "mean");
    }
    assert_eq!(
        all.weights().view().order((Batch, Word)),
        ndarray::array![[1.0, 1.0], [0.0, 0.0], [0.5, 0.5]]
    );
}

/// An ignored prediction does not affect the loss, even if it is NaN or infinite.
#[test]
fn ignored_predictions_can_be_anything() {
    let logits = from_vec((Batch.of(2), Class.of(2)), vec![0.0, 0.0, f64::NAN, f64::INFINITY]);
    let labels = from_vec(Batch.of(2), vec![1, -1]);
    let losses = logits.cross_entropy_with(Class, &labels, CrossEntropy::new().ignore_index(-1));
    assert_eq!(losses.each().view().order(Batch), ndarray::array![2_f64.ln(), 0.0]);
    assert_eq!(losses.mean(Batch).order(()), 2_f64.ln());
    // If all predictions are ignored, the mean is NaN.
    let none = from_vec(Batch.of(2), vec![-1, -1]);
    let losses = logits.cross_entropy_with(Class, &none, CrossEntropy::new().ignore_index(-1));
    assert!(losses.mean(Batch).order(()).is_nan());
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let (logits, labels) = given(true);
    let refused = |options: CrossEntropy<i64, Unweighted>| {
        logits.try_cross_entropy_with(Class, &labels, options).err().map(|error| error.to_string())
    };
    assert_eq!(
        refused(CrossEntropy::new().ignore_index(-1).label_smoothing(1.5)).unwrap(),
        "`cross_entropy` with the label smoothing 1.5: it must be between 0 and 1"
    );
    let out_of_range = refused(CrossEntropy::new()).expect("the label -1 is refused");
    let what = "index -1 of dim `Class`, given as a label, is out of range";
    assert!(out_of_range.contains(what), "{out_of_range}");
}

/// The error has both sizes and the lines that they come from, with and without label smoothing.
#[test]
fn each_class_has_a_weight() {
    let (logits, labels) = given(false);
    for (count, smoothing) in [(2, 0.0), (3, 0.1), (5, 0.0), (5, 0.1)] {
        let line = line!() + 1;
        let weights = ones::<f64, _>(Class.of(count));
        let options = CrossEntropy::new().weights(&weights).label_smoothing(smoothing);
        let error = logits.try_cross_entropy_with(Class, &labels, options);
        let error = error.expect_err("the sizes of `Class` differ").to_string();
        assert!(error.starts_with("dim `Class` has size 4 (at "), "{error}");
        assert!(error.contains(&format!("given size {count} (at {}:{line}:", file!())), "{error}");
        assert!(!error.contains("dims-core"), "{error}");
    }
}

#[test]
fn a_target_beyond_the_classes_is_refused() {
    let (logits, weights) = (given(false).0, weights());
    let labels = from_vec(Batch.of(6), vec![3_i64, 0, 4, 2, 1, 0]);
    let error = logits.try_cross_entropy_with(Class, &labels, CrossEntropy::new().weights(&weights));
    let error = error.expect_err("there is no class 4").to_string();
    let what = "index 4 of dim `Class`, given as a label, is out of range for an axis of size 4";
    assert!(error.contains(what) && !error.contains("padding"), "{error}");
}

/// A negative label is padding, not an index from the end.
#[test]
fn a_negative_label_is_refused_with_a_remedy() {
    let logits = given(false).0;
    for label in [-1, -100] {
        let labels = from_vec(Batch.of(6), vec![3_i64, 0, label, 2, 1, 0]);
        let remedy = format!(
            "; to leave out padding, use `cross_entropy_with` and `CrossEntropy::new().ignore_index({label})`"
        );
        let errors = [
            logits.cross_entropy(Class, &labels).try_eval().map(|_| ()).unwrap_err(),
            (&logits).log_softmax(Class).nll_loss(Class, &labels).try_eval().map(|_| ()).unwrap_err(),
            logits.try_cross_entropy_with(Class, &labels, CrossEntropy::new()).map(|_| ()).unwrap_err(),
        ];
        for error in errors {
            let error = error.to_string();
            let what = format!("index {label} of dim `Class`, given as a label, is out of range");
            assert!(error.starts_with(&what), "{error}");
            assert!(error.ends_with(&remedy), "{error}");
        }
    }
}

/// An error about sizes names the source lines where the operands got their sizes.
#[test]
fn targets_have_the_sizes_of_the_predictions() {
    let logits = given(false).0;
    let line = line!() + 1;
    let labels = from_vec(Batch.of(5), vec![0_i64; 5]);
    let error = logits.try_cross_entropy_with(Class, &labels, CrossEntropy::new());
    let error = error.expect_err("five labels for six predictions").to_string();
    assert!(error.starts_with("dim `Batch` has size 6 (at "), "{error}");
    assert!(error.contains(&format!("given size 5 (at {}:{line}:", file!())), "{error}");
}

/// A recorded loss can be called with other labels and weights.
#[test]
fn the_cross_entropy_with_options_is_recorded() {
    type Labels = Tensor<i64, (Batch,)>;
    type Weights = Tensor<f64, (Class,)>;
    let loss = |(x, labels, weights): (&Logits, &Labels, &Weights)| {
        let options = CrossEntropy::new().ignore_index(-1).weights(weights).label_smoothing(0.1);
        x.cross_entropy_with(Class, labels, options).mean(Batch)
    };
    let (logits, labels) = given(true);
    let program = typed_dims::program::record(loss, (&logits, &labels, &weights())).unwrap();
    let other = (array(5, (Batch.of(6), Class.of(4))), given(false).1, array(6, Class.of(4)).abs().eval());
    let (x, labels, weights) = (&other.0, &other.1, &other.2);
    let (found, expected) = (program.call((x, labels, weights)), loss((x, labels, weights)));
    assert_eq!(found.order(()), expected.order(()));
}
