//! `serde` support (feature `serde`): a tensor without positional axes is written as the names of
//! its dims, their sizes, and its elements in the order of these dims.
//!
//! Dims are read by name, in any order, because dims of different `dims!` have no fixed order.
//! Deserializing is an error if the names are not those of the type, if a size is not the static
//! size of its dim, if a dim and its prime have different sizes, or if the number of sizes or
//! elements is wrong. A tensor with two dims of the same name can be neither written nor read. The
//! dims of the type must be sorted, as those of every `Tensor<T, ..>` are.
//!
//! Complex elements are written as pairs, and elements of half precision as their bits, in a `u16`.
//! The format decides what it can represent: `serde_json` writes NaN and infinities of `f32` and
//! `f64` as `null`, without an error, and then cannot read the tensor.

use crate::expr::Expr;
use crate::expr::step::check_unrecorded;
use crate::plan::shape::volume;
use crate::storage::Evaluated;
use crate::tensors::named::Named;
use crate::types::rank::Rank0;
use crate::types::set::{DimKey, Dims, Sorted};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;
use kernels::scalar::Element;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeStruct, Serializer};

const FIELDS: &[&str] = &["dims", "sizes", "elements"];

impl<T: Element + Serialize, S: Dims, E: Expr<Elem = T>> Serialize for Named<T, S, Rank0, E> {
    fn serialize<F: Serializer>(&self, serializer: F) -> Result<F::Ok, F::Error> {
        check_unrecorded(&self.expr, "serialize").map_err(serde::ser::Error::custom)?;
        check_names(S::KEYS.as_slice()).map_err(serde::ser::Error::custom)?;
        let (elements, shape) = self.elements().map_err(serde::ser::Error::custom)?;
        let names: Vec<&str> = S::KEYS.as_slice().iter().map(|key| key.name).collect();
        let mut tensor = serializer.serialize_struct("Tensor", FIELDS.len())?;
        tensor.serialize_field("dims", &names)?;
        tensor.serialize_field("sizes", shape.sizes())?;
        tensor.serialize_field("elements", &elements)?;
        tensor.end()
    }
}

impl<'de, T: Element + Deserialize<'de>, S: Sorted> Deserialize<'de> for Named<T, S> {
    fn deserialize<F: Deserializer<'de>>(deserializer: F) -> Result<Self, F::Error> {
        deserializer.deserialize_struct("Tensor", FIELDS, Fields(PhantomData))
    }
}

struct Fields<T, S>(PhantomData<(T, S)>);

impl<'de, T: Element + Deserialize<'de>, S: Dims> Visitor<'de> for Fields<T, S> {
    type Value = Named<T, S>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a tensor: the names of its dims, their sizes, and its elements")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let missing = |field| A::Error::missing_field(field);
        let names = fields.next_element()?.ok_or_else(|| missing("dims"))?;
        let sizes = fields.next_element()?.ok_or_else(|| missing("sizes"))?;
        let elements = fields.next_element()?.ok_or_else(|| missing("elements"))?;
        assemble(names, sizes, elements)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let (mut names, mut sizes, mut elements) = (None, None, None);
        while let Some(field) = fields.next_key::<String>()? {
            let is_second = match field.as_str() {
                "dims" => names.replace(fields.next_value()?).is_some(),
                "sizes" => sizes.replace(fields.next_value()?).is_some(),
                "elements" => elements.replace(fields.next_value()?).is_some(),
                _ => {
                    fields.next_value::<IgnoredAny>()?;
                    false
                }
            };
            if is_second {
                return Err(A::Error::custom(format!("duplicate field `{field}`")));
            }
        }
        let missing = |field| A::Error::missing_field(field);
        assemble(
            names.ok_or_else(|| missing("dims"))?,
            sizes.ok_or_else(|| missing("sizes"))?,
            elements.ok_or_else(|| missing("elements"))?,
        )
    }
}

/// The tensor, if the names are those of `S`, and the sizes fit `S` and the elements.
fn assemble<T: Element, S: Dims, F: Error>(
    names: Vec<String>,
    sizes: Vec<usize>,
    elements: Vec<T>,
) -> Result<Named<T, S>, F> {
    let keys = S::KEYS.as_slice();
    let order = positions(&names, keys).map_err(F::custom)?;
    for (key, &size) in order.iter().map(|&at| &keys[at]).zip(&sizes) {
        if let Some(fixed) = key.fixed.filter(|&fixed| fixed != size) {
            let name = key.name;
            return Err(F::custom(format!(
                "dim `{name}` has the static size {fixed}, but size {size} was read"
            )));
        }
    }
    let expected = volume(sizes.iter().copied(), size_of::<T>().max(1));
    if sizes.len() != keys.len() || expected != Some(elements.len()) {
        let found = elements.len();
        return Err(F::custom(format!(
            "{found} elements do not fill a tensor with dims {names:?} of sizes {sizes:?}"
        )));
    }
    let axis = |at| order.iter().position(|&own| own == at).expect("each dim has an axis");
    S::KEYS.check_primes(|at| (sizes[axis(at)], None)).map_err(F::custom)?;
    Ok(Named::from_expr(Evaluated::in_order(elements, &order, &sizes).with_origin(None)))
}

/// Checks that no two dims have the same name.
fn check_names(keys: &[DimKey]) -> Result<(), String> {
    match DimKey::repeated_name(keys.iter()) {
        Some(name) => Err(format!("two dims named `{name}` cannot be told apart: rename one of them")),
        None => Ok(()),
    }
}

/// The position of each name among the keys. An error if the names are not those of the keys, each
/// once.
fn positions(names: &[String], keys: &[DimKey]) -> Result<Vec<usize>, String> {
    check_names(keys)?;
    let position = |name: &String| keys.iter().position(|key| key.name == name.as_str());
    let order: Vec<usize> = names.iter().filter_map(position).collect();
    if names.len() != keys.len() || (0..keys.len()).any(|at| !order.contains(&at)) {
        let expected: Vec<&str> = keys.iter().map(|key| key.name).collect();
        return Err(format!("expected a tensor with dims {expected:?}, found one with dims {names:?}"));
    }
    Ok(order)
}
