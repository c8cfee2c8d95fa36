//! Shape and data dimension must match: `[a b! c] (*) [a b! c] -> [a b! c]`.

use super::*;
use typed_dims::ndarray::array;

#[test]
fn any_pointwise_operation() {
    let (x, array) = (abc_along_b(), numbers());
    let (sum, class) = cost(|| -> Stream<i64, (A, B, C), B> { &x + &x });
    assert_eq!((sum.to_array(), class), (&array + &array, CostClass::Compute));
    assert_eq!((&x - (&x * &x)).to_array(), &array - &array * &array);
    assert_eq!(((&x + 1) / (&x + 1)).to_array(), array.mapv(|_| 1));
    assert_eq!(x.maximum(50).to_array(), array.mapv(|x| x.max(50)));
    assert_eq!(x.minimum(x.map(|_| 50)).to_array(), array.mapv(|x| x.min(50)));
    assert_eq!((-&x).to_array(), -&array);
    assert_eq!((7 - x.clone()).to_array(), 7 - &array);
    assert_eq!((&x % 7).to_array(), &array % 7);
    assert_eq!(x.cast::<f64>().to_array(), array.mapv(|x| x as f64));
    assert_eq!(x.zip_map(&x, |x, y| x > 2 * y - 50).to_array(), array.mapv(|x| x < 50));
}

#[test]
fn functions_of_floats() {
    let x = from_vec(A.of(4), vec![0.25f64, 1.0, 2.0, 4.0]).stream(A, A);
    let values = [0.25, 1.0, 2.0, 4.0].map(f64::from);
    let equals = |y: Stream<f64, (A,), A>, f: fn(f64) -> f64| {
        let expected = values.map(f);
        y.to_array()
            .iter()
            .zip(expected)
            .for_each(|(y, e)| assert!((y - e).abs() < 1e-12, "{y} instead of {e}"));
    };
    equals(x.exp(), f64::exp);
    equals(x.ln(), f64::ln);
    equals(x.sqrt(), f64::sqrt);
    equals(x.rsqrt(), |x| x.sqrt().recip());
    equals(x.recip(), f64::recip);
    equals(x.square(), |x| x * x);
    equals(x.tanh(), f64::tanh);
    equals(x.sigmoid(), |x| 1.0 / (1.0 + (-x).exp()));
    equals((x.clone() - 1.0).relu() + 1.0, |x| x.max(1.0));
    equals(x.silu(), |x| x / (1.0 + (-x).exp()));
    equals(2.0 / &x, |x| 2.0 / x);
}

#[test]
fn constants_have_no_data_dimension_and_so_match() {
    let x = abc_along_b();
    let row = from_vec(C.of(4), vec![1, 2, 3, 4]);
    let expected = numbers() + array![1, 2, 3, 4];
    assert_eq!((&x + &row).to_array(), expected);
    assert_eq!((x.clone() + (&row * 2 - &row)).to_array(), expected);
    // The dims of a constant are a set, but those of a stream have an order.
    let square = from_vec((A.of(2), B.of(2)), vec![1, 2, 3, 4]);
    let turned = (&square).stream((B, A), A);
    assert_eq!(turned.to_array(), array![[1, 3], [2, 4]]);
    assert_eq!((&turned * &square).to_array(), array![[1, 9], [4, 16]]);
}

#[test]
fn constants_on_the_left() {
    let x = abc_along_b();
    let row = from_vec(C.of(4), vec![1, 2, 3, 4]);
    let (difference, class) = cost(|| -> Stream<i64, (A, B, C), B> { &row - &x });
    assert_eq!((difference.to_array(), class), (array![1, 2, 3, 4] - numbers(), CostClass::Compute));
    assert_eq!((row.clone() + x.clone()).to_array(), array![1, 2, 3, 4] + numbers());
    assert_eq!(((&row * 2 - &row) * &x).to_array(), array![1, 2, 3, 4] * numbers());
    assert_eq!(((&row * 100) / (&x + 1)).to_array(), array![100, 200, 300, 400] / (numbers() + 1));
}

#[test]
fn constants_with_a_layout() {
    let x = abc_along_b();
    let row = from_vec(C.of(4), vec![1, 2, 3, 4]).laid(C);
    let expected = numbers() + array![1, 2, 3, 4];
    for sum in [&x + &row, &x + row.view(), &row + &x, row.view() + &x, x.clone() + row.clone(), row + x] {
        assert_eq!(sum.to_array(), expected);
    }
}

#[test]
fn sizes_that_differ_are_an_error() {
    let (x, y) = (abc_along_b(), abc_along_b().slice(C, ..3));
    let error = x.try_zip_map(&y, |x, y| x + y).unwrap_err();
    assert_eq!(error.to_string(), "dim `C` has size 4, but was also given size 3");
    assert_eq!(x.try_maximum(&y).unwrap_err(), error);
    assert_eq!(x.try_minimum(&y).unwrap_err(), error);
    assert_eq!(x.try_map(|x| x + 1), Ok(x + 1));
}

// Functions of tensors that name no dim, and that are not written for streams.
fn swish<B: Dims>(x: &Tensor<f64, (Rest<B>,)>) -> Tensor<f64, (Rest<B>,)> {
    (x * x.sigmoid()).eval()
}

fn is_large<B: Dims>(x: Tensor<i64, (Rest<B>,)>) -> Tensor<bool, (Rest<B>,)> {
    x.gt(50).eval()
}

fn logistic<S: Dims>(x: &Named<f64, S>) -> Named<f64, S> {
    x.sigmoid().eval()
}

#[test]
fn functions_of_tensors_that_name_no_dim() {
    let (x, array) = (abc_along_b(), numbers());
    let (large, class) = cost(|| -> Stream<bool, (A, B, C), B> { x.pointwise(is_large) });
    assert_eq!((large.to_array(), class), (array.mapv(|x| x > 50), CostClass::Compute));
    // The axes are in another order than the tensor's dims, and the result is an expression.
    let turned = array.view().permuted_axes([2, 0, 1]);
    let y: Stream<f64, (C, A, B), A> =
        array.clone().into_tensor((A, B, C)).stream((C, A, B), A).pointwise(|x| {
            let y = swish(&x.cast::<f64>().eval());
            y + 1.0
        });
    assert_eq!(y.pointwise(|y| logistic(&y)).to_array(), y.sigmoid().to_array());
    let expected = turned.mapv(|x| x as f64 / (1.0 + (-(x as f64)).exp()) + 1.0);
    y.to_array().iter().zip(&expected).for_each(|(y, e)| assert!((y - e).abs() < 1e-9, "{y} instead of {e}"));
}

#[test]
fn pointwise_functions_yield_the_sizes_of_their_stream() {
    let (x, y) = (abc_along_b(), abc_along_b().slice(C, ..3));
    let mut kept = None;
    x.pointwise(|x| {
        kept = Some(x.clone());
        x
    });
    let kept = kept.expect("the function was called");
    let error = y.try_pointwise(|_| kept).unwrap_err().to_string();
    assert_eq!(error, "a pointwise function yields sizes [2, 3, 4] for a stream of sizes [2, 3, 3]");
}
