//! How saved recordings write element types and bytes.

use super::SavedBytes;
use crate::ops::code::DType;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

/// Types are written by name, so that saved data does not depend on the enabled features.
impl Serialize for DType {
    fn serialize<F: Serializer>(&self, serializer: F) -> Result<F::Ok, F::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for DType {
    fn deserialize<F: Deserializer<'de>>(deserializer: F) -> Result<Self, F::Error> {
        struct Name;
        impl Visitor<'_> for Name {
            type Value = DType;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of an element type")
            }

            fn visit_str<F: Error>(self, name: &str) -> Result<DType, F> {
                DType::named(name).ok_or_else(|| {
                    F::custom(format!(
                        "this library has no element type `{name}` (`f16` and `bf16` need the feature `half`)"
                    ))
                })
            }
        }
        deserializer.deserialize_str(Name)
    }
}

/// Bytes are written as hexadecimal digits in human-readable formats.
impl Serialize for SavedBytes {
    fn serialize<F: Serializer>(&self, serializer: F) -> Result<F::Ok, F::Error> {
        if !serializer.is_human_readable() {
            return serializer.serialize_bytes(&self.0);
        }
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digit = |digit: u8| char::from(DIGITS[usize::from(digit)]);
        let text: String = self.0.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect();
        serializer.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for SavedBytes {
    fn deserialize<F: Deserializer<'de>>(deserializer: F) -> Result<Self, F::Error> {
        if deserializer.is_human_readable() {
            deserializer.deserialize_str(Bytes)
        } else {
            deserializer.deserialize_byte_buf(Bytes)
        }
    }
}

struct Bytes;

impl<'de> Visitor<'de> for Bytes {
    type Value = SavedBytes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes, or hexadecimal digits")
    }

    fn visit_str<F: Error>(self, text: &str) -> Result<SavedBytes, F> {
        let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
        let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
            return Err(F::custom("the number of hexadecimal digits must be even"));
        };
        let bytes = pairs.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?));
        let bytes: Option<Vec<u8>> = bytes.collect();
        bytes.map(SavedBytes).ok_or_else(|| F::custom("bytes must be hexadecimal digits"))
    }

    fn visit_bytes<F: Error>(self, bytes: &[u8]) -> Result<SavedBytes, F> {
        Ok(SavedBytes(bytes.to_vec()))
    }

    fn visit_byte_buf<F: Error>(self, bytes: Vec<u8>) -> Result<SavedBytes, F> {
        Ok(SavedBytes(bytes))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut bytes: A) -> Result<SavedBytes, A::Error> {
        // The length that a format announces is not trusted.
        let mut data = Vec::new();
        while let Some(byte) = bytes.next_element()? {
            data.push(byte);
        }
        Ok(SavedBytes(data))
    }
}
