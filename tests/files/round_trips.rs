use super::{Feat, In, Out, counted};
use ndarray::{Array2, array};
use std::fmt::Debug;
use typed_dims::file::{AlignedBytes, MappedFile, Stored, npy, npz, safetensors};
use typed_dims::ndarray;
use typed_dims::optim::checkpoint::{Checkpoint, Saved};
use typed_dims::prelude::*;

fn all_formats<T: Stored + PartialEq + Debug>(values: &[T; 6], in_safetensors: bool, in_npy: bool) {
    let tensor = Array2::from_shape_vec((2, 3), values.to_vec()).unwrap().into_tensor((Out, In));
    let expected = (&tensor).order((Out, In));
    if in_safetensors {
        let mut file = safetensors::SafetensorsWriter::new();
        file.put("x", &tensor).unwrap();
        let file =
            safetensors::SafetensorsReader::new(AlignedBytes::copied(&file.to_bytes().unwrap()).unwrap())
                .unwrap();
        let back: Tensor<T, (Out, In)> = file.get("x").unwrap().load().unwrap();
        assert_eq!(back.order((Out, In)), expected);
        assert_eq!(file.get("x").unwrap().view::<T, (Out, In)>().unwrap().order((Out, In)), expected);
    } else {
        assert!(safetensors::SafetensorsWriter::new().put("x", &tensor).is_err());
    }
    if in_npy {
        let bytes = npy::to_bytes(&tensor).unwrap();
        assert_eq!(
            bytes.len(),
            128 + size_of_val(values),
            "elements are aligned behind a header of 128 bytes"
        );
        let file = npy::NpyReader::new(AlignedBytes::copied(&bytes).unwrap()).unwrap();
        assert_eq!(file.get().unwrap().names(), Some(vec!["Out", "In"]));
        let back: Tensor<T, (Out, In)> = file.get().unwrap().load().unwrap();
        assert_eq!(back.order((Out, In)), expected);
        for writer in [npz::NpzWriter::new(), npz::NpzWriter::compressed()] {
            let mut file = writer;
            file.put("x", &tensor).unwrap();
            let mut file = npz::NpzReader::new(file.into_bytes().unwrap()).unwrap();
            assert_eq!(file.tensors(), ["x"]);
            let back: Tensor<T, (Out, In)> = file.get("x").unwrap().get().unwrap().load().unwrap();
            assert_eq!(back.order((Out, In)), expected);
            let back: Tensor<T, (Out, In)> = file.load("x").unwrap();
            assert_eq!(back.order((Out, In)), expected);
        }
    } else {
        assert!(npy::to_bytes(&tensor).is_err());
    }
}

#[test]
fn all_element_types() {
    use num_complex::Complex;
    all_formats(&[true, false, false, true, true, false], true, true);
    all_formats(&[0u8, 1, 2, 3, 254, 255], true, true);
    all_formats(&[0u16, 1, 2, 3, 254, u16::MAX], true, true);
    all_formats(&[0u32, 1, 2, 3, 254, u32::MAX], true, true);
    all_formats(&[0u64, 1, 2, 3, 254, u64::MAX], true, true);
    all_formats(&[0usize, 1, 2, 3, 254, usize::MAX], true, true);
    all_formats(&[0i8, 1, 2, 3, -127, -128], true, true);
    all_formats(&[0i16, 1, 2, 3, -127, i16::MIN], true, true);
    all_formats(&[0i32, 1, 2, 3, -127, i32::MIN], true, true);
    all_formats(&[0i64, 1, 2, 3, -127, i64::MIN], true, true);
    all_formats(&[0isize, 1, 2, 3, -127, isize::MIN], true, true);
    all_formats(&[0f32, -0.0, 0.1, f32::MAX, f32::INFINITY, f32::MIN_POSITIVE], true, true);
    all_formats(&[0f64, -0.0, 0.1, f64::MAX, f64::INFINITY, f64::MIN_POSITIVE], true, true);
    let parts = |re: f32| Complex::new(re, -re);
    all_formats(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0].map(parts), true, true);
    all_formats(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0].map(|re: f64| Complex::new(re, 2.0)), false, true);
    #[cfg(feature = "half")]
    {
        let values = [0.0f32, 1.0, -2.0, 3.5, 4.0, 5.0];
        all_formats(&values.map(half::f16::from_f32), true, true);
        all_formats(&values.map(half::bf16::from_f32), true, false);
    }
}

#[test]
fn no_axes_and_no_elements() {
    let scalar = full((), 2.5f32);
    let file = npy::NpyReader::new(npy::to_bytes(&scalar).unwrap()).unwrap();
    let back: Tensor<f32, ()> = file.get().unwrap().load().unwrap();
    assert_eq!(back.order(()), 2.5);
    let mut file = safetensors::SafetensorsWriter::new();
    file.put("none", counted(0)).unwrap().put("one", &scalar).unwrap();
    let file = safetensors::SafetensorsReader::new(file.to_bytes().unwrap()).unwrap();
    assert_eq!(file.tensors(), ["none", "one"]);
    let none: Tensor<f32, (Out, In)> = file.get("none").unwrap().load().unwrap();
    assert_eq!(none.dims(), [("Out", 0), ("In", 3)]);
    let one: Tensor<f32, ()> = file.get("one").unwrap().load().unwrap();
    assert_eq!(one.order(()), 2.5);
}

#[test]
fn files_without_tensors() {
    let bytes = safetensors::SafetensorsWriter::new().to_bytes().unwrap();
    assert!(safetensors::SafetensorsReader::new(bytes).unwrap().tensors().is_empty());
    let bytes = npz::NpzWriter::new().into_bytes().unwrap();
    assert!(npz::NpzReader::new(bytes).unwrap().tensors().is_empty());
    let bytes = Checkpoint::new().to_bytes().unwrap();
    assert!(Saved::new(bytes).is_ok());
}

#[test]
fn expressions_and_local_dims() {
    dims!(i, j);
    let a = array![[1.0f32, 2.0], [3.0, 4.0]];
    let bytes = npy::to_bytes(a.at((j, i)) + 1.0).unwrap();
    let file = npy::NpyReader::new(bytes).unwrap();
    assert_eq!(file.get().unwrap().names(), Some(vec!["i", "j"]));
    assert_eq!(file.get().unwrap().load_as::<f32, _>((i, j)).unwrap().order((j, i)), &a + 1.0);
}

/// Files on disk, read and mapped. A mapped view borrows the memory of the file.
#[test]
fn mapped_files_are_views() {
    let dir = tempfile::tempdir().unwrap();
    let (one, many) = (dir.path().join("x.npy"), dir.path().join("x.safetensors"));
    npy::save(&one, counted(5)).unwrap();
    let mut file = safetensors::SafetensorsWriter::new();
    file.put("flag", full(Feat.of(3), true)).unwrap().put("x", counted(5)).unwrap().note("by", "us").unwrap();
    file.save(&many).unwrap();
    let expected = counted(5).order((Out, In));

    // SAFETY: the files do not change.
    let (mapped, mapped_many) =
        unsafe { (MappedFile::open(&one).unwrap(), MappedFile::open(&many).unwrap()) };
    let file = npy::NpyReader::new(mapped).unwrap();
    let view: Named<f32, (Out, In), _, _> = file.get().unwrap().view().unwrap();
    let (sum, plan) = explain(|| view.sum((Out, In)).order(()));
    assert_eq!((sum, plan.steps.len()), (105.0, 1), "{plan}");
    assert_eq!(view.order((Out, In)), expected);
    let file = safetensors::SafetensorsReader::new(mapped_many).unwrap();
    assert_eq!(file.get("x").unwrap().view_as::<f32, _>((Out, In)).unwrap().order((Out, In)), expected);

    let back: Tensor<f32, (Out, In)> =
        safetensors::SafetensorsReader::open(&many).unwrap().get("x").unwrap().load().unwrap();
    assert_eq!(back.order((Out, In)), expected);
    let back: Tensor<f32, (Out, In)> = npy::NpyReader::open(&one).unwrap().get().unwrap().load().unwrap();
    assert_eq!(back.order((Out, In)), expected);
    assert!(
        npy::NpyReader::open(dir.path().join("none.npy")).err().unwrap().to_string().contains("none.npy")
    );
}

#[test]
fn misaligned_elements_are_copied_but_not_viewed() {
    let bytes = npy::to_bytes(counted(2)).unwrap();
    // At an odd address.
    let mut shifted = vec![0u64; bytes.len() / 8 + 2];
    let shifted: &mut [u8] = bytemuck::cast_slice_mut(&mut shifted);
    shifted[1..=bytes.len()].copy_from_slice(&bytes);
    let file = npy::NpyReader::new(&shifted[1..=bytes.len()]).unwrap();
    let error = file.get().unwrap().view::<f32, (Out, In)>().err().unwrap().to_string();
    assert!(
        error.contains("its elements are not aligned in memory; `load` or `load_as` makes a copy"),
        "{error}"
    );
    let back: Tensor<f32, (Out, In)> = file.get().unwrap().load().unwrap();
    assert_eq!(back.order((Out, In)), counted(2).order((Out, In)));
}

/// Files that NumPy writes on big-endian machines, and in Fortran order.
#[test]
fn orders_of_bytes_and_of_axes() {
    let header = |descr: &str, fortran: &str| {
        let text = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': (2, 3), }}\n");
        [b"\x93NUMPY\x01\x00", &(text.len() as u16).to_le_bytes()[..], text.as_bytes()].concat()
    };
    let big: Vec<u8> = (0..6).flat_map(|at| (at as f32).to_be_bytes()).collect();
    let file = npy::NpyReader::new([header(">f4", "False"), big].concat()).unwrap();
    let back = file.get().unwrap().load_as::<f32, _>((Out, In)).unwrap();
    assert_eq!(back.order((Out, In)), counted(2).order((Out, In)));
    assert!(file.get().unwrap().view_as::<f32, _>((Out, In)).is_err());

    let columns: Vec<u8> = [0, 3, 1, 4, 2, 5].iter().flat_map(|&at| (at as f32).to_le_bytes()).collect();
    let file = npy::NpyReader::new([header("<f4", "True"), columns].concat()).unwrap();
    let back = file.get().unwrap().load_as::<f32, _>((Out, In)).unwrap();
    assert_eq!(back.order((Out, In)), counted(2).order((Out, In)));
}

#[test]
fn axes_in_another_order() {
    let w = counted(2);
    let columns_first = w.view().order((In, Out));
    let entry = |file: &npy::NpyReader<Vec<u8>>| {
        let entry = file.get().unwrap();
        assert_eq!((entry.sizes(), entry.names()), (&[3, 2][..], Some(vec!["In", "Out"])));
        assert_eq!(entry.load::<f32, <(Out, In) as SetOf>::Set>().unwrap(), w);
        assert_eq!(entry.array::<f32>().unwrap(), columns_first.clone().into_dyn());
    };
    entry(&npy::NpyReader::new(npy::to_bytes_as(&w, (In, Out)).unwrap()).unwrap());
    let mut file = npz::NpzWriter::new();
    file.put_as("w", &w * 1.0, (In, Out)).unwrap();
    let mut file = npz::NpzReader::new(file.into_bytes().unwrap()).unwrap();
    assert_eq!(file.load_as::<f32, _>("w", (In, Out)).unwrap(), w);
    let mut file = safetensors::SafetensorsWriter::new();
    file.put_as("w", &w, (In, Out)).unwrap();
    let file = safetensors::SafetensorsReader::new(file.to_bytes().unwrap()).unwrap();
    let found = file.get("w").unwrap();
    assert_eq!(found.sizes(), [3, 2]);
    assert_eq!(found.load::<f32, <(Out, In) as SetOf>::Set>().unwrap(), w);

    let error = npy::to_bytes_as(&w, (In, Out.of(7))).unwrap_err().to_string();
    assert!(error.contains("`Out`") && error.contains('7'), "{error}");
}

#[test]
fn arrays_have_no_names() {
    let a = ndarray::Array3::from_shape_fn((2, 3, 4), |(i, j, k)| (i * 12 + j * 4 + k) as i32);
    let turned = a.view().permuted_axes([2, 0, 1]);
    let mut numpy = npz::NpzWriter::compressed();
    numpy.put_array("a", &a).unwrap().put_array("turned", &turned).unwrap();
    numpy.put_array("number", &ndarray::arr0(7i32)).unwrap();
    let mut numpy = npz::NpzReader::new(numpy.into_bytes().unwrap()).unwrap();
    let mut other = safetensors::SafetensorsWriter::new();
    other.put_array("a", &a).unwrap().put_array("turned", &turned).unwrap();
    other.put_array("number", &ndarray::arr0(7i32)).unwrap();
    let other = safetensors::SafetensorsReader::new(other.to_bytes().unwrap()).unwrap();
    for (name, expected) in [
        ("a", a.clone().into_dyn()),
        ("turned", turned.to_owned().into_dyn()),
        ("number", ndarray::arr0(7i32).into_dyn()),
    ] {
        let file = numpy.get(name).unwrap();
        for entry in [file.get().unwrap(), other.get(name).unwrap()] {
            assert_eq!(entry.names(), None);
            assert_eq!(entry.array::<i32>().unwrap(), expected);
            let error = entry.array::<f32>().unwrap_err().to_string();
            assert!(
                error.ends_with("of type i32 in the file, but `f32` was asked for: load it as `i32`, and convert it by `.cast::<f32>()`"),
                "{error}"
            );
        }
    }
}

/// `element_type` returns the name of the type in the file.
#[test]
fn floats_of_eight_bits_are_bytes() {
    use ::safetensors::Dtype;
    use ::safetensors::tensor::TensorView as Array;
    let bytes = [0x38_u8, 0x40, 0xb8, 0x7f, 0x00, 0x01];
    for (dtype, name) in [(Dtype::F8_E4M3, "F8_E4M3"), (Dtype::F8_E5M2, "F8_E5M2")] {
        let array = Array::new(dtype, vec![2, 3], &bytes).expect("the sizes fit");
        let file = ::safetensors::serialize([("x", array)], None).expect("the array is well-formed");
        let file = safetensors::SafetensorsReader::new(&file).expect("the file is well-formed");
        let entry = file.get("x").expect("the tensor is in the file");
        assert_eq!(entry.element_type(), name);
        let x: Tensor<u8, (Out, In)> = entry.load_as((Out, In)).expect("the elements are bytes");
        assert_eq!(x.order((Out, In)), ndarray::array![[0x38, 0x40, 0xb8], [0x7f, 0x00, 0x01]]);
        let error = entry.load_as::<f32, _>((Out, In)).expect_err("the element types differ").to_string();
        assert!(error.contains(&format!("has elements of type {name} in the file")), "{error}");
    }
}
