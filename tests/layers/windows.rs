//! Interpolation, pooling and other functions of images and lines, compared with PyTorch's.

use super::*;
use typed_dims::grad::grad;
use typed_dims::operators::interpolate::Interpolation;

type Images = Tensor<f64, (Batch, Channel, Row, Column)>;

/// Resizes to a larger height and a smaller width.
fn resized(case: &str, how: Interpolation) {
    let x: Images = array(20, (Batch.of(2), Channel.of(3), Row.of(4), Column.of(7)));
    let weights: Images = array(21, (Batch.of(2), Channel.of(3), Row.of(9), Column.of(5)));
    let resize = |x: &Images| x.interpolate((Row, Column), (9, 5), how).eval();
    let expected = Expected::of(case);
    expected.is(0, resize(&x).order((Batch, Channel, Row, Column)));
    let slopes = grad(|x| (resize(x) * &weights).sum((Batch, Channel, Row, Column)), &x);
    expected.is(1, slopes.order((Batch, Channel, Row, Column)));
}

#[test]
fn interpolation() {
    resized("bilinear", Interpolation::linear());
    resized("bilinear_corners", Interpolation::linear().align_corners());
    resized("bicubic", Interpolation::cubic());
    resized("bicubic_corners", Interpolation::cubic().align_corners());
}

#[test]
fn pooling_with_windows_behind_the_end() {
    let x: Images = array(20, (Batch.of(2), Channel.of(3), Row.of(6), Column.of(7)));
    let windows = Window::new().stride((2, 3)).padding((1, 0)).ceil();
    let expected = Expected::of("pools");
    let ordered = |y: Images| y.order((Batch, Channel, Row, Column));
    expected.is(0, ordered(x.view().max_pool((Row, Column), (3, 2), &windows).eval()));
    expected.is(1, ordered(x.view().avg_pool((Row, Column), (3, 2), &windows).eval()));
    expected.is(2, ordered(x.view().avg_pool_without_padding((Row, Column), (3, 2), &windows).eval()));
}

#[test]
fn reductions_without_nan() {
    let x = array(20, (Row.of(4), Column.of(6)));
    let missing = [[0, 1], [2, 3], [2, 5]];
    let x = from_fn((Row.of(4), Column.of(6)), |(row, column)| {
        if missing.contains(&[row, column]) {
            f64::NAN
        } else {
            x.view().index(Row, row).index(Column, column).order(())
        }
    });
    let expected = Expected::of("without_nan");
    expected.is(0, x.view().nansum(Column).order(Row));
    expected.is(1, x.nanmean(Column).order(Row));
}

#[test]
fn least_elements() {
    let x = array(20, (Row.of(3), Column.of(7)));
    let (values, positions) = x.topk_smallest(Column, 3);
    let expected = Expected::of("least");
    expected.is(0, values.order((Row, Column)));
    expected.is(1, positions.cast::<f64>().order((Row, Column)));
}
