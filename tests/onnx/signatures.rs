//! `onnx_dims!`: models as dims and structs.

use typed_dims::nn::pool::Pooling;
use typed_dims::operators::window::Window;
use typed_dims::prelude::*;
use typed_dims::types::role::Role;

mod classifier {
    typed_dims::onnx_dims!("tests/onnx/models/classifier.onnx");
}

dims! {
    pub struct Batch;
    pub struct Token: DataTime;
}

mod decoder {
    typed_dims::onnx_dims!(
        "tests/onnx/models/decoder.onnx",
        input_ids: [use super::Batch, use super::Token],
        mask: [_, _, Other],
        hidden: [_Rows, Columns],
        "logits": [_, _, Vocabulary],
    );
}

mod batch_of_four {
    typed_dims::onnx_dims!("tests/onnx/models/classifier.onnx", DataBatch = 4, "H" = 8, image: [_, Channel, _, _]);
}

mod kinds {
    typed_dims::onnx_dims!("tests/onnx/models/kinds.onnx");
}

fn names<D: Brand<Role: Role>>() -> &'static [&'static str] {
    D::Role::NAMES
}

#[test]
fn dims_have_names_sizes_and_roles() {
    use classifier::{H, ImageAxis1, LogitsAxis1, N, W};
    assert_eq!((ImageAxis1::SIZE, LogitsAxis1::SIZE), (3, 10));
    assert_eq!(
        [names::<N>(), names::<ImageAxis1>(), names::<H>(), names::<W>()].concat(),
        ["DATA_BATCH", "DATA_CHANNEL", "DATA_FEATURE", "DATA_FEATURE"]
    );
    assert!(names::<LogitsAxis1>().is_empty());
    // A denotation outside the standard gives no role.
    assert!(names::<decoder::Vocabulary>().is_empty());
}

/// A size in the call sets all open axes with the given denotation or name.
#[test]
fn sizes_are_given_in_the_call() {
    use batch_of_four::{Channel, H, Inputs, N, Outputs, W};
    assert_eq!((N::SIZE, Channel::SIZE, H::SIZE), (4, 3, 8));
    let (image,) = Inputs { image: ones::<f32, _>((N, Channel, H, W.of(5))) }.into_arrays();
    assert_eq!(image.dim(), (4, 3, 8, 5));
    assert!(Outputs::try_from_arrays((Array2::zeros((4, 10)),)).is_ok());
    let error = Outputs::try_from_arrays((Array2::zeros((3, 10)),)).unwrap_err();
    assert!(error.to_string().starts_with("dim `N` has the static size 4, but was given size 3"), "{error}");
}

#[test]
fn inputs_go_out_in_the_model_s_order() {
    use classifier::{H, ImageAxis1 as C, Inputs, N, W};
    let image =
        from_fn((N.of(2), C, H.of(4), W.of(6)), |(n, c, h, w)| (n * 1000 + c * 100 + h * 10 + w) as f32);
    let expected = image.clone().order((N, C, H, W));
    let turned = image.clone().order((W, N, H, C)).into_tensor((W, N, H, C));
    for image in [image, turned] {
        let (array,): (Array4<f32>,) = Inputs { image }.into_arrays();
        assert_eq!(array, expected);
    }
    assert_eq!(Inputs::NAMES, ["image"]);
}

#[test]
fn outputs_come_in() {
    use classifier::{LogitsAxis1 as Class, N, Outputs};
    let outputs = Outputs::from_arrays((Array2::from_shape_fn((2, 10), |(n, class)| (n + class) as f32),));
    assert_eq!(outputs.logits.max(Class).order(N).to_vec(), [9.0, 10.0]);
    assert!(format!("{outputs:?}").contains("logits"));
    let error = Outputs::try_from_arrays((Array2::zeros((2, 11)),)).unwrap_err();
    assert!(
        error.to_string().starts_with("dim `LogitsAxis1` has the static size 10, but was given size 11"),
        "{error}"
    );
}

/// Pooling accepts the axes that the model denotes as features.
#[test]
fn roles_count() {
    use classifier::{H, ImageAxis1 as C, Inputs, N, W};
    let inputs = Inputs { image: ones::<f32, _>((N.of(1), C, H.of(4), W.of(4))) };
    let half = inputs.image.avg_pool((H, W), 2, &Window::new().stride(2));
    assert_eq!((half.size(H), half.size(W)), (2, 2));
}

#[test]
fn names_that_are_given_and_dims_that_are_declared_elsewhere() {
    use decoder::{
        _Rows, Columns, Inputs, Other, Outputs, PastPlusSeq, Present0Axis2, Present0Axis3, Vocabulary,
    };
    let mask = |tokens| full((Batch.of(2), Token.of(5), Other.of(tokens)), true);
    let inputs = Inputs {
        input_ids: zeros::<i64, _>((Batch.of(2), Token.of(5))),
        mask: mask(5),
        r#type: full((), half::f16::from_f32(0.5)),
    };
    let (ids, mask, kind) = inputs.into_arrays();
    assert_eq!((ids.dim(), mask.dim(), kind.to_f32()), ((2, 5), (2, 5, 5), 0.5));
    assert_eq!(Inputs::NAMES, ["input.ids", "mask", "type"]);

    let outputs = Outputs::from_arrays((
        Array3::<f32>::zeros((2, 5, 32000)),
        Array2::<f32>::zeros((7, 8)),
        Array4::<half::bf16>::zeros((2, 9, 3, 64)),
    ));
    let mut dims = outputs.logits.dims();
    dims.sort();
    assert_eq!(dims, [("Batch", 2), ("Token", 5), ("Vocabulary", 32000)]);
    assert_eq!((outputs.hidden.size(_Rows), outputs.hidden.size(Columns)), (7, 8));
    assert_eq!((outputs.present_0.size(PastPlusSeq), outputs.present_0.size(Present0Axis2)), (9, 3));
    assert_eq!((Present0Axis3::SIZE, Vocabulary::SIZE), (64, 32000));
}

#[test]
fn sizes_meet_across_tensors() {
    use decoder::{Inputs, Other};
    let inputs = |batch, tokens, others| Inputs {
        input_ids: zeros::<i64, _>((Batch.of(2), Token.of(5))),
        mask: full((Batch.of(batch), Token.of(tokens), Other.of(others)), true),
        r#type: full((), half::f16::ZERO),
    };
    assert!(inputs(2, 5, 5).try_into_arrays().is_ok());
    let error = inputs(3, 5, 5).try_into_arrays().unwrap_err();
    assert_eq!(error.to_string(), "dim `Batch` has size 2 in `input.ids`, but 3 in `mask`");
    let error = inputs(2, 6, 6).try_into_arrays().unwrap_err();
    assert_eq!(error.to_string(), "dim `Token` has size 5 in `input.ids`, but 6 in `mask`");
    let error = inputs(2, 5, 9).try_into_arrays().unwrap_err();
    assert_eq!(
        error.to_string(),
        "dims `Token` and `Other` have the sizes 5 and 9, but are both `seq` in the model"
    );
    let arrays = (Array2::zeros((2, 5)), Array3::from_elem((3, 5, 5), true), half::f16::ZERO);
    assert!(Inputs::try_from_arrays(arrays).is_err());
}

#[test]
fn elements_of_all_types_and_many_axes() {
    use kinds::{A, C, D, E, F, Inputs, ManyAxis2, N, Outputs};
    let names = [
        "f32", "u8", "i8", "u16", "i16", "i32", "i64", "bool", "f16", "f64", "u32", "u64", "c32", "c64",
        "bf16",
    ];
    assert_eq!(Inputs::NAMES, names);
    let n = || N.of(2);
    let inputs = Inputs {
        f32: ones(n()),
        u8: ones(n()),
        i8: ones(n()),
        u16: ones(n()),
        i16: ones(n()),
        i32: ones(n()),
        i64: ones(n()),
        bool: full(n(), true),
        f16: ones(n()),
        f64: ones(n()),
        u32: ones(n()),
        u64: ones(n()),
        c32: ones(n()),
        c64: ones(n()),
        bf16: ones(n()),
    };
    let arrays = inputs.clone().into_arrays();
    assert_eq!(Inputs::from_arrays(arrays).c64, inputs.c64);
    assert_eq!(ManyAxis2::SIZE, 0);
    let many = zeros::<f32, _>((N.of(1), A.of(2), ManyAxis2, C.of(1), D.of(1), E.of(2), F.of(3)));
    let (array,): (ArrayD<f32>,) = Outputs { many }.into_arrays();
    assert_eq!(array.shape(), [1, 2, 0, 1, 1, 2, 3]);
    assert_eq!(Outputs::from_arrays((array,)).many.size(F), 3);
    let error = Outputs::try_from_arrays((ArrayD::zeros(vec![2, 2]),)).unwrap_err();
    assert_eq!(error.to_string(), "the array has 2 axes, but 7 were bound");
}
