//! Typed layouts: the order of axes in memory, in the type. What must not compile is in `ui-tests/fail/layouts`.

use typed_dims::ndarray::{Array3, array};
use typed_dims::plan::explain::Step;
use typed_dims::prelude::*;

dims! {
    /// Channels.
    pub struct C = 3;
    /// Rows.
    pub struct H;
    /// Columns.
    pub struct W;
}

fn image() -> Array3<f32> {
    Array3::from_shape_fn((2, 4, 3), |(h, w, c)| (h * 100 + w * 10 + c) as f32)
}

/// What takes pixels one by one.
fn first_pixel(image: &Laid<f32, (H, W, C)>) -> &[f32] {
    &image.as_slice()[..3]
}

#[test]
fn what_lies_so_is_not_moved() {
    let array = image();
    let start = array.as_ptr();
    let tensor = array.into_tensor((H, W, C));
    let (laid, plan) = explain(|| tensor.laid((H, W, C)));
    assert!(plan.steps.is_empty(), "{plan}");
    assert_eq!(first_pixel(&laid), [0.0, 1.0, 2.0]);
    assert_eq!(laid.sizes(), [2, 4, 3]);
    let (back, plan) = explain(|| laid.into_array());
    assert!(plan.steps.is_empty() && back.as_ptr() == start, "{plan}");
    assert_eq!(back, image());
}

#[test]
fn what_lies_otherwise_is_copied_once() {
    let tensor = image().into_tensor((H, W, C));
    let (planes, plan) = explain(|| tensor.laid((C, H, W)));
    let [Step::Copy { .. }] = plan.steps[..] else { panic!("{plan}") };
    assert_eq!(planes.as_slice()[..4], [0.0, 10.0, 20.0, 30.0]);
    let array: Array3<f32> = planes.clone().into_array();
    assert_eq!(array, image().permuted_axes([2, 0, 1]));
    let (_, plan) = explain(|| planes.into_inner().laid((C, H, W)));
    assert!(plan.steps.is_empty(), "{plan}");
}

#[test]
fn expressions_are_computed_in_the_order() {
    let tensor = image().into_tensor((H, W, C));
    let (laid, plan) = explain(|| (&tensor * 2.0 + 1.0).laid((W, C, H)));
    assert_eq!(plan.steps.len(), 1, "{plan}");
    assert_eq!(laid.as_slice()[..4], [1.0, 201.0, 3.0, 203.0]);
    // A tensor as any other.
    let sum: Tensor<f32, (C,)> = (&laid).sum((H, W));
    assert_eq!(sum.order(C), (&tensor * 2.0 + 1.0).sum((H, W)).order(C));
    let product = (&*laid * &tensor).sum((H, W, C)).order(());
    assert_eq!(product, image().mapv(|x| (x * 2.0 + 1.0) * x).sum());
}

#[test]
fn local_dims_and_few_axes() {
    dims!(i, j);
    let a = array![[1, 2, 3], [4, 5, 6]];
    assert_eq!(a.at((i, j)).laid((j, i)).into_vec(), [1, 4, 2, 5, 3, 6]);
    assert_eq!(a.at((i, j)).laid((j, i)).into_array(), a.t());
    assert_eq!(a.at((i, j)).sum(i).laid(j).into_array(), array![5, 7, 9]);
    assert_eq!(a.at((i, j)).sum((i, j)).laid(()).into_array(), 21);
    let empty = Array3::<f32>::zeros((0, 4, 3)).into_tensor((H, W, C)).laid((W, H, C));
    assert!(empty.as_slice().is_empty());
    assert_eq!(empty.sizes(), [4, 0, 3]);
}

#[test]
fn neighbours_merge_and_split_without_a_copy() {
    dims! { pub struct Pixel; pub struct Bytes = 12; pub struct H2 = 2; pub struct H1; }
    let laid = image().into_tensor((H, W, C)).laid((H, W, C));
    let start = laid.as_slice().as_ptr();
    let (pixels, plan) = explain(|| laid.merge((H, W), Pixel));
    let pixels: Laid<f32, (Pixel, C)> = pixels;
    assert_eq!(pixels.sizes(), [8, 3]);
    let lines: Laid<f32, (H, W, C)> = pixels.split(Pixel, (H.of(2), W));
    let bytes: Laid<f32, (H, Bytes)> = lines.merge((W, C), Bytes);
    let halves: Laid<f32, (H1, H2, Bytes)> = bytes.split(H, (H1, H2));
    assert!(plan.steps.is_empty() && halves.as_slice().as_ptr() == start, "{plan}");
    assert_eq!(
        (&halves).order((H1, H2, Bytes)).into_raw_vec_and_offset().0,
        image().into_raw_vec_and_offset().0
    );
    assert_eq!(halves.sizes(), [1, 2, 12]);
    dims!(other = 5, n);
    let laid = image().into_tensor((H, W, C)).laid((H, W, C));
    assert!(laid.clone().try_split(W, (n, other)).is_err());
    assert!(laid.try_merge((H, W), other).is_err());
}
