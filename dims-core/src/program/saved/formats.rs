//! Saved programs in the formats of `serde`, with a version number.

use super::{SavedContent, SavedProgram};
use crate::error::DimError;
use crate::grad::parameters::{Parameters, Path, Walk};
use crate::program::inputs::RecordInputs;
use crate::program::open::OpenDims;
use crate::program::record::Program;
use crate::program::result::strided;
use crate::tensors::named::Named;
use crate::types::rank::Rank;
use crate::types::set::Dims;
use alloc::string::String;
use core::fmt;
use core::marker::PhantomData;
use kernels::memory::axes::Axis;
use kernels::scalar::Element;
use kernels::trace::Listing;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeStruct, Serializer};

/// The version of the format that this library writes and reads.
const VERSION: u32 = 1;

const FIELDS: &[&str] = &["version", "content", "open", "listing", "result"];

impl SavedProgram {
    fn write<F: Serializer, R: Serialize>(
        &self,
        serializer: F,
        result: Option<&R>,
    ) -> Result<F::Ok, F::Error> {
        let fields = FIELDS.len() - usize::from(result.is_none());
        let mut program = serializer.serialize_struct("Program", fields)?;
        program.serialize_field("version", &VERSION)?;
        program.serialize_field("content", &self.content)?;
        program.serialize_field("open", &self.open)?;
        program.serialize_field("listing", &self.listing)?;
        if let Some(result) = result {
            program.serialize_field("result", result)?;
        }
        program.end()
    }
}

impl Serialize for SavedProgram {
    fn serialize<F: Serializer>(&self, serializer: F) -> Result<F::Ok, F::Error> {
        self.write(serializer, None::<&()>)
    }
}

impl<'de> Deserialize<'de> for SavedProgram {
    fn deserialize<F: Deserializer<'de>>(deserializer: F) -> Result<Self, F::Error> {
        let read = ProgramFields::<IgnoredAny> { needs_result: false, result: PhantomData };
        Ok(deserializer.deserialize_struct("Program", &FIELDS[..4], read)?.0)
    }
}

/// Writes the version of the format, the program, and a result of the program. Axes of the result
/// that have no static size are written with size 0.
///
/// Layers and optimizers do not implement the traits of `serde`. If such a value is a result, save
/// [`Program::to_saved`] instead.
///
/// ```
/// use typed_dims::prelude::*;
/// use typed_dims::program::{Program, record};
///
/// dims! { pub struct Row; pub struct Col; }
/// type Matrix = Tensor<f32, (Row, Col)>;
/// type Means = Tensor<f32, (Row,)>;
///
/// let x: Matrix = randn((Row.of(2), Col.of(3)), 1);
/// let program = record(|x: &Matrix| x.view().mean(Col), &x)?;
/// let text = serde_json::to_string(&program)?;
///
/// let loaded: Program<&Matrix, Means> = serde_json::from_str(&text)?;
/// assert!(loaded == program);
/// assert_eq!(loaded.call(&x), x.mean(Col));
/// assert_eq!(loaded.to_string(), program.to_string());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// Returns an error if the program [cannot be saved](Program::to_saved).
impl<In, Out: Parameters + Serialize> Serialize for Program<In, Out> {
    fn serialize<F: Serializer>(&self, serializer: F) -> Result<F::Ok, F::Error> {
        let failed = |error: DimError| serde::ser::Error::custom(error);
        let saved = self.to_saved().map_err(failed)?;
        let result = Out::walk([&self.result], &mut Path::new(), &mut WithoutElements).map_err(failed)?;
        saved.write(serializer, Some(&result))
    }
}

/// Reads a program, and checks everything that its steps rely on. Returns an error for damaged data
/// and for data of another version. The inputs have the type `In`: their paths, sizes and settings,
/// and the names and the order of their dims, are checked when the program is called.
impl<'de, In: RecordInputs, Out: Parameters + Deserialize<'de>> Deserialize<'de> for Program<In, Out> {
    fn deserialize<F: Deserializer<'de>>(deserializer: F) -> Result<Self, F::Error> {
        let read = ProgramFields::<Out> { needs_result: true, result: PhantomData };
        let (saved, result) = deserializer.deserialize_struct("Program", FIELDS, read)?;
        let result = result.ok_or_else(|| F::Error::missing_field("result"))?;
        saved.restored(&result, false).map_err(F::Error::custom)
    }
}

/// Replaces the tensors of a result with tensors that have as few elements as their types allow.
struct WithoutElements;

impl Walk<1> for WithoutElements {
    type Error = DimError;
    const STATE: bool = true;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        _: &Path,
        [tensor]: [&Named<T, S, R>; 1],
    ) -> Result<Named<T, S, R>, DimError> {
        let keys = S::KEYS.as_slice();
        let change = |at: usize, axis: &mut Axis| {
            let size = keys.get(at).and_then(|key| key.fixed).unwrap_or(0);
            *axis = Axis::new(size, 0);
        };
        Ok(strided(tensor, alloc::vec![T::default()], 0, &change, None))
    }
}

/// Reads the fields of a program.
struct ProgramFields<R> {
    needs_result: bool,
    result: PhantomData<R>,
}

impl<'de, R: Deserialize<'de>> Visitor<'de> for ProgramFields<R> {
    type Value = (SavedProgram, Option<R>);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a saved program")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let missing = |field| A::Error::missing_field(field);
        check_version(fields.next_element()?.ok_or_else(|| missing("version"))?)?;
        let content: SavedContent = fields.next_element()?.ok_or_else(|| missing("content"))?;
        let open: Option<OpenDims> = fields.next_element()?.ok_or_else(|| missing("open"))?;
        let listing: Listing = fields.next_element()?.ok_or_else(|| missing("listing"))?;
        let result = if self.needs_result { fields.next_element()? } else { None };
        Ok((SavedProgram { content, open, listing }, result))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let (mut version, mut content, mut open, mut listing, mut result) = (None, None, None, None, None);
        while let Some(field) = fields.next_key::<String>()? {
            match field.as_str() {
                "version" => {
                    // (Check it first if possible, because other fields may differ between
                    // versions.)
                    version = Some(fields.next_value()?);
                    check_version(version.unwrap_or(0))?;
                }
                "content" => content = Some(fields.next_value()?),
                "open" => open = fields.next_value()?,
                "listing" => listing = Some(fields.next_value()?),
                "result" if self.needs_result => result = Some(fields.next_value()?),
                _ => drop(fields.next_value::<IgnoredAny>()?),
            }
        }
        let missing = |field| A::Error::missing_field(field);
        version.ok_or_else(|| missing("version"))?;
        let content: SavedContent = content.ok_or_else(|| missing("content"))?;
        let listing: Listing = listing.ok_or_else(|| missing("listing"))?;
        Ok((SavedProgram { content, open, listing }, result))
    }
}

fn check_version<F: Error>(version: u32) -> Result<(), F> {
    if version == VERSION {
        return Ok(());
    }
    Err(F::custom(format!(
        "the program was saved in version {version} of the format, but this library reads version {VERSION}"
    )))
}
