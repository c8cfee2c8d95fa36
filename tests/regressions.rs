//! Regression tests.

use ndarray::{Array1, arr0, array};
use std::collections::HashSet;
use std::sync::Mutex;
use std::thread::ThreadId;
use typed_dims::prelude::*;

dims! {
    struct Left;
    struct Right;
    struct Whole;
}

/// The text of a panic.
fn panic_text<T>(f: impl FnOnce() -> T) -> String {
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f));
    let payload = result.err().expect("the call panics");
    payload.downcast_ref::<String>().expect("the message is text").clone()
}

#[test]
fn closures_in_an_index_stay_on_the_callers_thread() {
    let table = Array1::from_iter(0..1 << 20);
    let threads: Mutex<HashSet<ThreadId>> = Mutex::default();
    dims!(i = table.len());
    let ids = i.map(|position| {
        threads.lock().unwrap().insert(std::thread::current().id());
        position
    });
    let out = table.at(ids).order(i);
    assert_eq!(out, table);
    assert_eq!(threads.into_inner().unwrap(), HashSet::from([std::thread::current().id()]));
}

#[test]
fn select_takes_what_its_condition_says_however_it_rounds() {
    // For some of these elements, `exp` with fused multiply-add differs in the last bit from `exp`
    // without it.
    let x = Array1::from_iter((0..20_000).map(|value| value as f32 * 0.0005 - 5.0));
    let table = Array1::from_iter(0..20_000);
    dims!(i);
    let positions = i.map(|position| position);
    let exp = x.at(i).exp().eval();
    let out = select(x.at(i).exp().ge(&exp), table.at(positions), -1).order(i);
    assert_eq!(out, table);
}

#[test]
fn empty_results_of_sizes_that_cannot_be_counted_are_errors_with_names() {
    const HUGE: usize = 1 << (usize::BITS * 5 / 8);
    let text = panic_text(|| zeros::<f32, _>((Left.of(0), Right.of(HUGE), Whole.of(HUGE))));
    assert!(text.contains(&format!("`Right` = {HUGE}")), "{text}");

    let (none, one) = (Array1::<f32>::zeros(0), arr0(1.0f32));
    let many = one.broadcast(HUGE).unwrap();
    dims!(i, j, k);
    let (x, y, z) = (none.at(i), many.at(j), many.at(k));
    let expected = DimError::TooLarge { dims: format!("dims `i` = 0, `j` = {HUGE}, `k` = {HUGE}") };
    assert_eq!((x * y * z).try_order((i, j, k)).unwrap_err(), expected);
    assert_eq!((x * y * z).try_eval().unwrap_err(), expected);
    assert_eq!((x * y * z).try_softmax(i).unwrap_err(), expected);
    assert!(panic_text(|| (x * y * z).order((j, k, i))).contains("`j`"));
    assert!(panic_text(|| (x * y * z).order(((j, k, i),))).contains("`j`"));
}

#[test]
fn a_result_that_memory_does_not_hold_is_an_error_with_names() {
    const WIDE: usize = 1 << (usize::BITS / 4 + 7);
    let one = arr0(1.0);
    let many = one.broadcast(WIDE).unwrap();
    dims!(i, j, two = 2);
    let large = many.at(i) * many.at(j);
    let expected = DimError::TooLarge { dims: format!("dims `i` = {WIDE}, `j` = {WIDE}") };
    assert_eq!(large.try_eval().unwrap_err(), expected);
    assert_eq!((large + two.cast::<f64>()).try_max(two).unwrap_err(), expected);
    let text = panic_text(|| ones::<f64, _>((Left.of(WIDE), Right.of(WIDE))));
    assert!(text.contains(&format!("`Left` = {WIDE}")), "{text}");
}

#[test]
fn a_literal_less_a_dim_is_an_index() {
    let a = array![0, 1, 2, 3];
    dims!(i, j);
    assert_eq!(a.at(3 - i).order(i), array![3, 2, 1, 0]);
    assert_eq!(a.at(a.len() - 1 - j).order(j), array![3, 2, 1, 0]);
}

/// Sums over 4096 products, with and without a scale. `f16` cannot count past 2048, and its
/// greatest number is 65504.
#[cfg(feature = "half")]
#[test]
fn products_of_half_precision_are_summed_in_single_precision() {
    use half::f16;
    use ndarray::Array2;
    let (ones, tens) = (f16::from_f32(1.0), f16::from_f32(10.0));
    let a = Array2::from_elem((2, 4096), ones);
    let b = Array2::from_elem((2, 4096), tens);
    dims!(i, j, k);
    let sums = (a.at((i, k)) * a.at((j, k))).sum(k).order((i, j));
    assert!(sums.iter().all(|&sum| sum == f16::from_f32(4096.0)), "{sums}");
    let scaled = (b.at((i, k)) * b.at((j, k)) * f16::from_f32(0.125)).sum(k).order((i, j));
    assert!(scaled.iter().all(|&sum| sum == f16::from_f32(51200.0)), "{scaled}");
}

/// Half precisions can neither count nor add up this many elements, and the share of the numbers
/// among all elements can be smaller than all of their values.
#[cfg(feature = "half")]
#[test]
fn means_of_the_numbers_in_half_precision() {
    use half::f16;
    dims!(i);
    let halves = ndarray::Array1::from_elem(70_000, f16::from_f32(0.5));
    assert_eq!(halves.at(i).nanmean(i).order(()), f16::from_f32(0.5));
    assert_eq!(halves.at(i).nanvar(i).order(()), f16::ZERO);
    let mut few = ndarray::Array1::from_elem(100_000, f16::NAN);
    (few[0], few[1]) = (f16::from_f32(1e-4), f16::from_f32(3e-4));
    dims!(i);
    assert_eq!(few.at(i).nanmean(i).order(()), f16::from_f32(2e-4));
    assert!(few.at(i).nansum(i).order(()) > f16::ZERO);
    // Here `f16` does not have the squares.
    assert_eq!(few.at(i).nanstd(i).order(()), (few[1] - few[0]) * f16::from_f32(0.5));
    let many = array![300.0, f32::NAN, -300.0].mapv(f16::from_f32);
    dims!(j);
    assert_eq!(many.at(j).nanstd(j).order(()), f16::from_f32(300.0));
}

/// Only NaN is a missing number, although the distance of an infinite element from the mean is NaN.
#[test]
fn variances_of_infinite_elements_are_nan() {
    const INF: f64 = f64::INFINITY;
    const NAN: f64 = f64::NAN;
    let x = array![[INF, INF, NAN], [INF, 1.0, NAN], [-INF, INF, 0.0], [1.0, NAN, 3.0], [1e308, NAN, 1e308]];
    let x: Tensor<f64, (Left, Right)> = x.into_tensor((Left, Right));
    let f = |x: &Tensor<f64, (Left, Right)>| (x.nanvar(Right), x.nanstd(Right));
    let program = typed_dims::program::record(f, &x).expect("the function can be recorded");
    for (variances, roots) in [f(&x), program.call(&x)] {
        for found in [variances.order(Left), roots.order(Left)] {
            assert!(found.iter().take(3).all(|own| own.is_nan()), "{found}");
            // The mean of the last line overflows.
            assert_eq!(found.to_vec()[3..], [1.0, INF]);
        }
    }
    #[cfg(feature = "half")]
    {
        let x = x.cast::<half::f16>().eval();
        let found = x.slice(Left, ..4).nanvar(Right).order(Left);
        assert!(found.iter().take(3).all(|own| own.is_nan()), "{found}");
        assert_eq!(found[3], half::f16::ONE);
    }
}

/// As with `std`, although the squares of the distances underflow.
#[test]
fn the_slope_of_a_standard_deviation_of_zero_is_zero() {
    use typed_dims::grad::grad;
    for least in [0.0, 1e-310] {
        let x: Tensor<f64, (Left,)> = array![0.0, f64::NAN, least].into_tensor(Left);
        assert_eq!(x.nanstd(Left).order(()), 0.0);
        assert_eq!(grad(|x: &Tensor<f64, (Left,)>| x.nanstd(Left), &x).order(Left), array![0.0, 0.0, 0.0]);
        let x: Tensor<f64, (Left,)> = array![0.0, least].into_tensor(Left);
        assert_eq!(grad(|x: &Tensor<f64, (Left,)>| x.std(Left), &x).order(Left), array![0.0, 0.0]);
    }
}

/// The variance of finite elements is infinite, not NaN, if their squares overflow.
#[test]
fn normalized_lines_of_large_elements_are_zero() {
    for large in [1e20f32, 1e35, 1e38] {
        let x = array![0.0, 0.0, large];
        let x = x.at(Left);
        assert_eq!(x.layer_norm(Left, 1e-5).order(Left), array![0.0, 0.0, 0.0], "{large}");
    }
}

/// Matrices times vectors: sums that `bf16` cannot accumulate, and sums with partial sums outside
/// the range of `f16`.
#[cfg(feature = "half")]
#[test]
fn long_lines_of_half_precision_are_summed_in_single_precision() {
    use half::{bf16, f16};
    use ndarray::{Array1, Array2};
    let (a, b) =
        (Array2::from_elem((2, 8192), bf16::from_f32(1.023_437_5)), Array1::from_elem(8192, bf16::ONE));
    dims!(i, k);
    assert!((a.at((i, k)) * b.at(k)).sum(k).order(i).iter().all(|&sum| sum == bf16::from_f32(8384.0)));
    let hundreds =
        Array2::from_shape_fn((2, 16384), |(_, k)| f16::from_f32(if k < 8192 { 100.0 } else { -100.0 }));
    let ones = Array1::from_elem(16384, f16::ONE);
    dims!(j, l);
    assert!((hundreds.at((j, l)) * ones.at(l)).sum(l).order(j).iter().all(|&sum| sum == f16::ZERO));
}

/// Half precisions do not have the numbers of elements of such windows.
#[cfg(feature = "half")]
#[test]
fn means_of_long_windows_in_half_precision() {
    use half::f16;
    const LEN: usize = 65_536;
    let x = full(Left.of(LEN), f16::ONE);
    let means = x.avg_pool_without_padding(Left, LEN + 1, &Window::new().padding(1));
    assert_eq!(means.order(Left), array![f16::ONE, f16::ONE]);
}

/// `f16` has no number above 65504, and no positive one below 6e-8: neither the products of these
/// elements, nor those of the norms.
#[cfg(feature = "half")]
#[test]
fn gradients_of_cosines_in_half_precision() {
    use half::f16;
    use typed_dims::grad::{grad, value_and_grad};
    type Halves = Tensor<f16, (Left,)>;
    let line = |numbers: [f32; 4]| -> Halves { from_vec(Left.of(4), numbers.map(f16::from_f32).to_vec()) };
    let (x, y) = (line([256.0; 4]), line([256.0, 256.0, 256.0, -256.0]));
    let cosine = |x: &Halves| x.cosine_similarity(&y, Left, f16::ZERO);
    let slopes = line([1.0, 1.0, 1.0, -3.0].map(|slope| slope / 2048.0));
    let (value, found) = value_and_grad(cosine, &x);
    assert_eq!(value, f16::from_f32(0.5));
    assert_eq!(found, slopes);
    let program = typed_dims::program::record(|x: &Halves| grad(cosine, x), &x);
    assert_eq!(program.expect("the gradient can be recorded").call(&x), slopes);

    let small = line([2_f32.powi(-14); 4]);
    let cosine = |x: &Halves| x.cosine_similarity(&small, Left, f16::ZERO);
    assert_eq!(value_and_grad(cosine, &small).0, f16::ONE);
}

/// With dropout, attention also computes its scores in single precision: `f16` does not have the
/// first scores, and `bf16` rounds the second ones to the same number.
#[cfg(feature = "half")]
#[test]
fn attention_with_dropout_in_half_precision() {
    use half::{bf16, f16};
    use typed_dims::grad::grad;
    use typed_dims::operators::attention::Attend;
    type Queries = Tensor<f16, (Left, Whole)>;
    let large = f16::from_f32(256.0);
    let q: Queries = full((Left.of(1), Whole.of(4)), large);
    let k = full((Right.of(2), Whole.of(4)), large);
    let v = from_vec(Right.of(2), [1.0, 3.0].map(f16::from_f32).to_vec());
    assert_eq!(Attend::new(Whole, Right).apply(&q, &k, &v).order(Left), array![f16::from_f32(2.0)]);
    let noisy = |q: &Queries| Attend::new(Whole, Right).dropout(0.0, 7).apply(q, &k, &v);
    assert_eq!(noisy(&q).order(Left), array![f16::from_f32(2.0)]);
    // The keys are equal, so the query does not matter.
    let slopes = grad(|q: &Queries| noisy(q).sum(Left), &q);
    assert_eq!(slopes.abs().max((Left, Whole)).order(()), f16::ZERO);

    let numbers = |numbers: &[f32]| numbers.iter().copied().map(bf16::from_f32).collect::<Vec<_>>();
    let q = from_vec((Left.of(1), Whole.of(2)), numbers(&[8.0, 0.25]));
    let k = from_vec((Right.of(2), Whole.of(2)), numbers(&[8.0, 0.0, 8.0, 1.0]));
    let v = from_vec(Right.of(2), numbers(&[0.0, 1.0]));
    // The scores are 64 and 64.25.
    let share = array![bf16::from_f32(1.0 / (1.0 + (-0.25_f32).exp()))];
    let settings = || Attend::new(Whole, Right).scale(bf16::ONE);
    assert_eq!(settings().apply(&q, &k, &v).order(Left), share);
    assert_eq!(settings().dropout(0.0, 7).apply(&q, &k, &v).order(Left), share);
}

/// `f16` does not have the sums of these losses, weights and logarithms.
#[cfg(feature = "half")]
#[test]
fn means_of_losses_in_half_precision() {
    use half::f16;
    use typed_dims::nn::CrossEntropy;
    let logits = zeros::<f16, _>((Left.of(65_536), Right.of(4)));
    let losses = logits.cross_entropy_with(Right, &zeros::<usize, _>(Left.of(65_536)), CrossEntropy::new());
    assert_eq!(losses.mean(Left).order(()), losses.each().view().order(Left)[0]);

    let (logits, targets) = (zeros::<f16, _>((Left.of(2), Right.of(16_384))), zeros::<usize, _>(Left.of(2)));
    let plain = logits.cross_entropy(Right, &targets).eval();
    let weights = ones::<f16, _>(Right.of(16_384));
    let smooth = CrossEntropy::new().label_smoothing(0.5);
    assert_eq!(logits.cross_entropy_with(Right, &targets, smooth).each(), &plain);
    assert_eq!(logits.cross_entropy_with(Right, &targets, smooth.weights(&weights)).each(), &plain);
}

/// `f16` rounds this epsilon to 0, but then the elements would be 0 / 0.
#[cfg(feature = "half")]
#[test]
fn layers_normalize_constants_in_half_precision() {
    use half::f16;
    use typed_dims::nn::{BatchNorm, GroupNorm, LayerNorm, NoBias, RmsNorm};
    const EPSILON: f64 = 1e-12;
    let x: Tensor<f16, (Left, Right, Whole)> = zeros((Left.of(2), Right.of(4), Whole.of(3)));
    let size = Right.of(4);
    assert_eq!(LayerNorm::<(Right,), f16>::new(size).with_epsilon(EPSILON).apply(&x), x);
    assert_eq!(LayerNorm::<(Right,), f16, NoBias>::without_bias(size).with_epsilon(EPSILON).apply(&x), x);
    assert_eq!(RmsNorm::<(Right,), f16> { epsilon: EPSILON, ..RmsNorm::new(size) }.apply(&x), x);
    let norm = GroupNorm::<Right, 2, f16> { epsilon: EPSILON, ..GroupNorm::new(size) };
    assert_eq!(norm.apply(&x, Whole), x);
    let norm =
        BatchNorm::<(Right,), f16> { running_var: zeros(size), epsilon: EPSILON, ..BatchNorm::new(size) };
    assert_eq!(norm.apply(&x), x);
    assert_eq!(norm.train(&x, (Left, Whole)).0, x);
}

/// Factors are multiplied in the order of the source, before anything is added.
#[test]
fn sums_of_scaled_products_neither_overflow_nor_forget_that_they_are_empty() {
    let x = ndarray::Array1::from_elem(3, 1e20f32);
    dims!(i, j, k);
    let sum = (x.at(i) * 1e-30 * x.at(i)).sum(i).order(());
    assert!((sum - 3e10).abs() < 1e4, "{sum}");
    let (a, b) = (ndarray::Array2::<f32>::zeros((3, 0)), ndarray::Array1::<f32>::zeros(0));
    assert_eq!((a.at((j, k)) * f32::INFINITY * b.at(k)).sum(k).order(j), array![0.0, 0.0, 0.0]);
    assert_eq!((a.at((j, k)) * b.at(k)).sum(k).order(j), array![0.0, 0.0, 0.0]);
}

/// Dims of different `dims!` have no fixed order: it can change with the source.
#[cfg(feature = "serde")]
#[test]
fn dims_are_read_by_name_in_any_order() {
    let json = |dims: &str, sizes: &str, elements: &str| {
        format!(r#"{{"dims":[{dims}],"sizes":[{sizes}],"elements":[{elements}]}}"#)
    };
    type Matrix = Tensor<i32, (Left, Right)>;
    let text = json(r#""Right","Left""#, "3,2", "1,2,3,4,5,6");
    let x: Matrix = serde_json::from_str(&text).expect("the dims are those of the type");
    assert_eq!(x.dims(), [("Left", 2), ("Right", 3)]);
    assert_eq!(x.order((Left, Right)), array![[1, 3, 5], [2, 4, 6]]);

    let text = json(r#""Whole","Left","Right""#, "2,1,3", "1,2,3,4,5,6");
    let x: Tensor<i32, (Left, Right, Whole)> =
        serde_json::from_str(&text).expect("the dims are those of the type");
    assert_eq!(x.dims(), [("Left", 1), ("Right", 3), ("Whole", 2)]);
    assert_eq!(
        serde_json::to_string(&x).expect("the tensor can be written"),
        json(r#""Left","Right","Whole""#, "1,3,2", "1,4,2,5,3,6")
    );
    assert_eq!(x.order((Whole, Right, Left)), array![[[1], [2], [3]], [[4], [5], [6]]]);

    // Sizes are checked with the dims that they belong to.
    dims! { struct Row; struct Color = 3; }
    type Picture = Tensor<i32, (Row, Color)>;
    let x: Picture = serde_json::from_str(&json(r#""Color","Row""#, "3,2", "1,2,3,4,5,6")).unwrap();
    assert_eq!(x.order((Row, Color)), array![[1, 3, 5], [2, 4, 6]]);
    let text = json(r#""Color","Row""#, "2,3", "1,2,3,4,5,6");
    let error = serde_json::from_str::<Picture>(&text).unwrap_err().to_string();
    assert!(error.starts_with("dim `Color` has the static size 3, but size 2 was read"), "{error}");
    type Square = Tensor<i32, (Left, Right, Prime<Left>)>;
    let x: Square = serde_json::from_str(&json(r#""Left'","Right","Left""#, "2,1,2", "1,2,3,4")).unwrap();
    assert_eq!(x.order((Left, prime(Left), Right)), array![[[1], [3]], [[2], [4]]]);
    let text = json(r#""Left'","Left","Right""#, "2,1,2", "1,2,3,4");
    let error = serde_json::from_str::<Square>(&text).unwrap_err().to_string();
    assert!(error.starts_with("dim `Left` has size 1, but `Left'`"), "{error}");

    for names in [r#""Left""#, r#""Left","Left""#, r#""Left","Other""#, r#""Left","Right","Left""#] {
        let error = serde_json::from_str::<Matrix>(&json(names, "1,1", "1")).unwrap_err().to_string();
        assert!(error.starts_with(r#"expected a tensor with dims ["Left", "Right"], found"#), "{error}");
    }
    mod elsewhere {
        use typed_dims::prelude::*;
        dims! { pub struct Left; }
    }
    let apart = "two dims named `Left` cannot be told apart: rename one of them";
    let text = json(r#""Left","Left""#, "1,1", "1");
    let error = serde_json::from_str::<Tensor<i32, (Left, elsewhere::Left)>>(&text).unwrap_err().to_string();
    assert!(error.starts_with(apart), "{error}");
    let both = ones::<i32, _>((Left.of(1), elsewhere::Left.of(1)));
    assert_eq!(serde_json::to_string(&both).unwrap_err().to_string(), apart);
}

#[cfg(feature = "serde")]
#[test]
fn elements_of_complex_numbers_and_half_precision_are_read_as_written() {
    use num_complex::Complex;
    let x = from_vec(Left.of(2), vec![Complex::new(1.0f32, -2.5), Complex::new(-0.0, 0.5)]);
    let text = serde_json::to_string(&x).expect("the tensor can be written");
    assert!(text.contains("[1.0,-2.5]"), "{text}");
    let read: Tensor<Complex<f32>, (Left,)> = serde_json::from_str(&text).expect("the text is a tensor");
    assert_eq!(read, x);
    #[cfg(feature = "half")]
    {
        let x = from_vec(Left.of(3), vec![1.0f32, -0.1, f32::NAN]).cast::<half::f16>().eval();
        let text = serde_json::to_string(&x).expect("the tensor can be written");
        let read: Tensor<half::f16, (Left,)> = serde_json::from_str(&text).expect("the text is a tensor");
        let bits = |x: &Tensor<half::f16, (Left,)>| x.view().order(Left).mapv(half::f16::to_bits);
        assert_eq!(bits(&read), bits(&x));
        let x = from_vec(Left.of(2), vec![1.0f32, -0.1]).cast::<half::bf16>().eval();
        let text = serde_json::to_string(&x).expect("the tensor can be written");
        assert_eq!(serde_json::from_str::<Tensor<half::bf16, (Left,)>>(&text).expect("it is a tensor"), x);
    }
}

#[cfg(feature = "serde")]
#[test]
fn sizes_that_cannot_be_counted_are_not_read() {
    for sizes in ["[18446744073709551615,0]", "[0,18446744073709551615]", "[4294967296,4294967296]"] {
        let json = format!(r#"{{"dims":["Left","Right"],"sizes":{sizes},"elements":[]}}"#);
        let error = serde_json::from_str::<Tensor<f32, (Left, Right)>>(&json).unwrap_err();
        assert!(error.to_string().contains("Left"), "{error}");
    }
}

#[test]
#[allow(clippy::reversed_empty_ranges)] // a negative end counts from the end
fn inclusive_ranges_count_from_the_end_once() {
    let a = array![1, 2, 3];
    dims!(i);
    assert_eq!(a.at(0..=-1).positional_sizes(), [3]);
    assert_eq!(a.at(0..=-2).positional_sizes(), [2]);
    assert!(a.try_at(0..=-5).is_err());
    assert!(a.try_at(..=-5).is_err());
    assert_eq!(a.at(i).slice(i, 1..=-1).order(i), array![2, 3]);
    assert!(a.at(i).try_slice(i, 0..=-5).is_err());
}

/// The result of an expression can reuse the memory of an owned operand with the same number of
/// elements of the same type.
#[test]
fn owned_operands_are_read_before_they_are_overwritten() {
    let a = Array2::from_shape_fn((70, 600), |(i, j)| (i * 600 + j) as f64);
    let line = Array1::from_shape_fn(600, |j| j as f64);
    dims!(i, j, k);
    let own = || a.at((i, j)).map(|x| x).eval();
    let expected = a.mapv(|x| x * 2.0) + &line;
    assert_eq!((own() * 2.0 + line.at(j)).order((i, j)), expected);
    assert_eq!((own() * 2.0 + line.at(j)).order((j, i)), expected.t());
    // Two owned operands: one is overwritten, the other read.
    assert_eq!((own() - own() + line.at(j)).order((i, j)).row(3), line);
    // Operands with fewer dims than the result, or with elements of another type.
    let sums = || line.at(j).map(|x| x + 1.0).eval();
    assert_eq!((sums() + a.at((i, j))).order((i, j)), &a + &line.mapv(|x| x + 1.0));
    assert_eq!((own().cast::<f32>() + 1.0f32).order((i, j))[[69, 599]], 42_000.0);
    assert_eq!((own().cast::<i64>() + 1i64).order((i, j))[[69, 599]], 42_000);
    assert_eq!(own().gt(5.0).select(own(), -1.0).order((i, j))[[0, 5]], -1.0);
    // A positional axis of size 1 meets a longer one.
    let wide = Array2::<f64>::ones((3, 600));
    let thin = Array2::<f64>::ones((3, 1));
    let thin = (thin.at((k, ..)) * 2.0).eval();
    assert_eq!((thin + wide.at((k, ..)) * 1.0).order(k), Array2::from_elem((3, 600), 3.0));
}

/// A precision applies to the numbers. It must not truncate their text.
#[test]
fn debug_with_a_precision_rounds_numbers() {
    let x = from_vec(Left.of(2), vec![0.126, 1234.5]);
    assert_eq!(format!("{x:.2?}"), "[0.13, 1234.50]\nwith dims (Left: 2)");
    assert_eq!(format!("{x:9.1?}"), "[      0.1,    1234.5]\nwith dims (Left: 2)");
    assert_eq!(format!("{x:?}"), "[0.126, 1234.5]\nwith dims (Left: 2)");
}

#[test]
fn integers_of_128_bits() {
    let a = ndarray::array![[1_i128 << 100, 2, -7], [3, i128::MIN, 5]];
    dims!(i, j, k);
    let found = (2 * a.at((i, k)) * a.at((j, k))).sum(k).order((i, j));
    let expected = Array2::from_shape_fn((2, 2), |(i, j)| {
        (0..3).fold(0_i128, |sum, k| sum.wrapping_add(2_i128.wrapping_mul(a[(i, k)]).wrapping_mul(a[(j, k)])))
    });
    assert_eq!(found, expected);
    assert_eq!(einsum!("ik,jk->ij", a, a).mapv(|x| x.wrapping_mul(2)), expected);
    let low = a.at((i, k)).cast::<u128>();
    assert_eq!((low % 10_u128).max(k).order(i), ndarray::array![9, 8]);
    assert_eq!(a.at((i, k)).lt(0).cast::<i128>().sum((i, k)).order(()), 2);
}

/// A size that no array can have is not an unknown size, and an index that exceeds `isize` is not a
/// negative one.
#[test]
fn sizes_and_indices_beyond_all_others() {
    let x = ndarray::array![1_u8, 2, 3];
    let error = try_repeat!(x, a -> (a b), b = usize::MAX).unwrap_err();
    assert_eq!(error.to_string(), "a result with `a -> (a b)` does not fit into memory");
    let error = try_rearrange!(x, (a b) -> a b, a = usize::MAX).unwrap_err();
    let text = error.to_string();
    assert!(
        text.ends_with(&format!(
            "into `(a = {}, b)`: the product of the known sizes does not divide it",
            usize::MAX
        )),
        "{text}"
    );
    let last = ndarray::array![u128::MAX];
    let error = try_gather!(x[_], last[k] => k).unwrap_err();
    assert!(
        error.to_string().starts_with("index 170141183460469231731687303715884105727 of axis 0"),
        "{error}"
    );
}

/// The step between positions of which there is only one, and the steps in a tensor without elements.
#[test]
fn steps_that_no_loop_makes_do_not_overflow() {
    const HUGE: usize = 1 << (usize::BITS - 2);
    dims! { struct Channel; struct Row; struct Column; struct Kernel; }
    let x = from_vec((Channel.of(1), Row.of(1), Column.of(4)), vec![1, 2, 3, 4]);
    let weight = from_vec((Channel.of(1), Kernel.of(2)), vec![1, 10]);
    let spread = conv_transpose(&x, &weight, Channel, Row, Kernel, &Window::new().stride(HUGE));
    assert_eq!(spread.order((Row, Column)), array![[1, 2, 3, 4], [10, 20, 30, 40]]);

    dims!(none = 0, i = HUGE, j = 4);
    let error = zeros::<u8, _>(Left.of(0)).unflatten(Left, (none, i, j)).try_eval().unwrap_err();
    assert!(matches!(error, DimError::TooLarge { .. }), "{error}");
}

/// A variance of fewer elements than `ddof` has no positive divisor.
#[test]
fn variances_are_not_negative() {
    let var = |x: &[f64], ddof: f64| {
        dims!(j);
        x.at(j).var_with(j, ddof).order(())
    };
    assert_eq!(var(&[1.0, 3.0], 3.0), f64::INFINITY);
    assert!(var(&[1.0], 2.0).is_nan() && var(&[], 1.0).is_nan());
    assert_eq!(var(&[1.0, 3.0], 1.0), 2.0);
    let x: Tensor<f64, (Left,)> = from_vec(Left.of(2), vec![1.0, 3.0]);
    let slope = typed_dims::grad::grad(|x: &Tensor<f64, (Left,)>| x.var_with(Left, 3.0), &x);
    assert_eq!(slope.order(Left), array![f64::NEG_INFINITY, f64::INFINITY]);
    let x: Tensor<f64, (Left,)> = from_vec(Left.of(4), vec![1.0, 2.0, 3.0, 6.0]);
    let slope = typed_dims::grad::grad(|x: &Tensor<f64, (Left,)>| x.var_with(Left, 2.0), &x);
    assert_eq!(slope.order(Left), array![-2.0, -1.0, 0.0, 3.0]);
}

/// A static size may be any constant, and is then the same as a literal, also to the arithmetic of
/// types.
#[test]
fn constants_are_static_sizes() {
    const VOCABULARY: usize = 50_257;
    const fn padded(size: usize) -> usize {
        size.next_multiple_of(64)
    }
    dims! {
        struct Token = VOCABULARY;
        struct Padded = padded(VOCABULARY);
        struct Literal = 50_257;
        struct Head = { 12 - 8 };
        struct Width = 1 << 40;
        struct Labelled = 'size: { if VOCABULARY > 0 { break 'size 3 } else { 4 } };
    }
    assert_eq!((Token::SIZE, Padded::SIZE, Width::SIZE), (50_257, 50_304, 1 << 40));
    assert_eq!(Labelled::SIZE, 3);
    let x = ones::<f32, _>((Head, Token));
    assert_eq!(x.dims(), [("Token", 50_257), ("Head", 4)]);
    assert_eq!(x.rename(Token, Literal).size(Literal), 50_257);
}
