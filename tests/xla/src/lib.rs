//! Helpers for the tests on XLA: find a PJRT plugin, read results from its devices, and compare
//! them with the library's own results.

use typed_dims::grad::Parameters;
use typed_dims::program::engine::tensors_of;
use typed_dims_kernels::program::code::DType;
use typed_dims_xla::{OnDevice, Pjrt, PjrtOptions, XlaError};

/// A plugin for the CPU with this number of devices, or a plugin for the platform in
/// `TYPED_DIMS_TEST_PLATFORM`. Without such a plugin, prints a notice and returns `None`.
pub fn plugin(devices: usize) -> Option<Pjrt> {
    let platform = std::env::var("TYPED_DIMS_TEST_PLATFORM").unwrap_or_else(|_| "cpu".into());
    match Pjrt::find_with(PjrtOptions::new().platform(platform).cpu_devices(devices)) {
        Ok(pjrt) => Some(pjrt),
        Err(error @ XlaError::PluginNotFound { .. }) => {
            println!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// The elements of each tensor, as `f64`.
pub fn numbers<P: Parameters>(value: &P) -> Vec<Vec<f64>> {
    let (tensors, _) = tensors_of(value).expect("programs know the types");
    let numbers = tensors.iter().map(|own| {
        let bytes = own.bytes();
        macro_rules! of {
            ($t:ty) => {
                bytes
                    .chunks_exact(size_of::<$t>())
                    .map(|own| <$t>::from_le_bytes(own.try_into().expect("the bytes are an element")) as f64)
                    .collect()
            };
        }
        match own.tensor.dtype {
            DType::F32 => of!(f32),
            DType::F64 => of!(f64),
            DType::Bool | DType::U8 => of!(u8),
            DType::I8 => of!(i8),
            DType::I16 => of!(i16),
            DType::U16 => of!(u16),
            DType::I32 => of!(i32),
            DType::U32 => of!(u32),
            DType::I64 | DType::Isize => of!(i64),
            DType::U64 | DType::Usize => of!(u64),
            DType::F16 => half(&bytes, 10),
            DType::Bf16 => half(&bytes, 7),
        }
    });
    numbers.collect()
}

/// Decodes 16-bit floats with this many mantissa bits.
fn half(bytes: &[u8], mantissa: u32) -> Vec<f64> {
    let number = |own: &[u8]| {
        let bits = u16::from_le_bytes([own[0], own[1]]);
        let exponent_bits = 15 - mantissa;
        let (sign, exponent) = (bits >> 15, (bits >> mantissa) & ((1 << exponent_bits) - 1));
        let rest = f64::from(bits & ((1 << mantissa) - 1)) / f64::from(1u32 << mantissa);
        let bias = (1 << (exponent_bits - 1)) - 1;
        let size = match exponent {
            0 => rest * 2f64.powi(1 - bias),
            own if own == (1 << exponent_bits) - 1 => {
                if rest == 0.0 {
                    f64::INFINITY
                } else {
                    f64::NAN
                }
            }
            own => (1.0 + rest) * 2f64.powi(i32::from(own) - bias),
        };
        if sign == 1 { -size } else { size }
    };
    bytes.chunks_exact(2).map(number).collect()
}

/// Panics unless the numbers of two values are close. A number may differ by `tolerance` times the
/// greatest finite magnitude expected in its tensor, or by `tolerance` if that magnitude is below
/// 1.
pub fn assert_near<P: Parameters>(found: &P, expected: &P, tolerance: f64, what: &str) {
    let (found, expected) = (numbers(found), numbers(expected));
    assert_eq!(found.len(), expected.len(), "{what}: the values differ in the number of tensors");
    for (tensor, (found, expected)) in found.iter().zip(&expected).enumerate() {
        assert_eq!(found.len(), expected.len(), "{what}: tensor {tensor} has another length than expected");
        let greatest =
            expected.iter().filter(|own| own.is_finite()).fold(1.0f64, |best, own| best.max(own.abs()));
        for (at, (&found, &expected)) in found.iter().zip(expected).enumerate() {
            let is_same = found == expected || found.is_nan() && expected.is_nan();
            let is_near = (found - expected).abs() <= tolerance * greatest;
            assert!(
                is_same || is_near,
                "{what}: element {at} of tensor {tensor} is {found} instead of {expected}"
            );
        }
    }
}

/// Reads a value from devices.
pub fn read<P: Parameters>(value: &OnDevice<P>) -> P {
    value.to_host().unwrap_or_else(|error| panic!("{error}"))
}
