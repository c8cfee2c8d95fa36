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

/// At the position of an old element, the neighbors of this element are not read.
#[test]
fn interpolation_keeps_elements_beside_infinite_ones() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let (linear, cubic) = (Interpolation::linear(), Interpolation::cubic());
    let aligned = |how: Interpolation| how.align_corners();
    let check = |x: &[f64], how: Interpolation, expected: &[f64]| {
        let x = from_vec(Row.of(x.len()), x.to_vec());
        let y = x.view().interpolate(Row, expected.len(), how).order(Row).to_vec();
        assert_eq!(format!("{y:?}"), format!("{expected:?}"), "{how:?}");
    };
    check(&[1.0, inf], aligned(linear), &[1.0, inf, inf]);
    check(&[inf, 1.0], aligned(linear), &[inf, inf, 1.0]);
    check(&[0.0, -inf, -inf], aligned(linear), &[0.0, -inf, -inf, -inf, -inf]);
    check(&[0.0, -inf, -inf], linear, &[0.0, -inf, -inf, -inf, -inf, -inf]);
    check(&[inf, 2.0, nan, 4.0, -inf], linear, &[inf, 2.0, nan, 4.0, -inf]);
    check(&[inf, 2.0, nan], linear, &[2.0]);
    for how in [cubic, aligned(cubic)] {
        check(&[inf, 2.0, nan, 4.0, -inf], how, &[inf, 2.0, nan, 4.0, -inf]);
    }
    check(&[1.0, 2.0, 3.0, nan], aligned(cubic), &[1.0, 1.40625, 2.0, nan, 3.0, nan, nan]);
    // The least numbers have no halves.
    check(&[5e-324, 1.5e-323, 5e-324], linear, &[5e-324, 1.5e-323, 5e-324]);
    check(&[5e-324, 1.5e-323, 5e-324], aligned(cubic), &[5e-324, 1.5e-323, 5e-324]);
    // All positions are whole, for many sizes.
    for len in 2..40 {
        for how in [linear, cubic] {
            let of = |at: usize| if at % 3 == 1 { inf } else { at as f64 };
            let x: Vec<f64> = (0..len).map(of).collect();
            check(&x, how, &x);
            check(&x, aligned(how), &x);
            let sparse: Vec<f64> =
                (0..7 * (len - 1) + 1).map(|at| if at % 7 == 0 { (at / 7) as f64 } else { inf }).collect();
            let every_seventh: Vec<f64> = (0..len).map(|at| at as f64).collect();
            check(&sparse, aligned(how), &every_seventh);
        }
    }
    // The gradient of an element that is kept is 1.
    let x = from_vec(Row.of(3), vec![1.0, 2.0, inf]);
    for how in [linear, cubic] {
        let slopes = grad(|x| x.interpolate(Row, 3, how).index(Row, 1).eval(), &x);
        assert_eq!(slopes.order(Row).to_vec(), [0.0, 1.0, 0.0]);
    }
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
