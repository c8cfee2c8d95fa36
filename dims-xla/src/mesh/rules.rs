//! The rules of a sharding as a type, and the compile-time check of a value's tensors.

use super::MeshAxis;
use std::marker::PhantomData;
use typed_dims::grad::Parameters;
use typed_dims::grad::parameters::TensorSets;
use typed_dims::types::brand::Brand;
use typed_dims::types::set::DimKey;

/// The rules that [`Sharding::shard`](super::Sharding::shard) has added, as a type: `()`, or a pair
/// of the earlier rules and [`Along`].
pub trait ShardRules {
    /// The rules as data.
    #[doc(hidden)]
    const LIST: RuleList;
}

/// The rule that splits a dim along an axis of the mesh.
#[derive(Debug)]
pub struct Along<D, A>(PhantomData<(D, A)>);

/// Rules as data.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct RuleList {
    /// The last rule: the id of the dim, its name, and the mesh axis.
    last: Option<(u64, &'static str, &'static str)>,
    /// The rules before it.
    before: &'static [RuleList],
}

impl ShardRules for () {
    const LIST: RuleList = RuleList { last: None, before: &[] };
}

impl<R: ShardRules, D: Brand, A: MeshAxis> ShardRules for (R, Along<D, A>) {
    const LIST: RuleList = RuleList { last: Some((D::ID, D::NAME, A::NAME)), before: &[R::LIST] };
}

impl RuleList {
    /// The mesh axis of a dim.
    const fn axis(&self, dim: &DimKey) -> Option<&'static str> {
        let mut list = self;
        while let Some((id, _, axis)) = list.last {
            if id == dim.id {
                return Some(axis);
            }
            list = &list.before[0];
        }
        None
    }
}

/// Two dims of one tensor that are split along one mesh axis.
struct Conflict {
    dims: [&'static str; 2],
    axis: &'static str,
}

const fn conflict(tensors: &TensorSets, rules: &RuleList) -> Option<Conflict> {
    let keys = tensors.keys.as_slice();
    let mut at = 0;
    while at < keys.len() {
        if let Some(axis) = rules.axis(&keys[at]) {
            let mut before = 0;
            while before < at {
                if let Some(other) = rules.axis(&keys[before])
                    && same_text(axis, other)
                {
                    return Some(Conflict { dims: [keys[before].name, keys[at].name], axis });
                }
                before += 1;
            }
        }
        at += 1;
    }
    let mut part = 0;
    while part < tensors.parts.len() {
        let found = conflict(&tensors.parts[part], rules);
        if found.is_some() {
            return found;
        }
        part += 1;
    }
    None
}

/// Fails to compile if two dims of one tensor of `P` are split along one mesh axis.
#[track_caller]
pub(crate) const fn check<P: Parameters, R: ShardRules>(role: &str) {
    if let Some(Conflict { dims: [a, b], axis }) = conflict(&P::TENSORS, &R::LIST) {
        let text = Text::new()
            .with(role)
            .with(" has the dims `")
            .with(a)
            .with("` and `")
            .with(b)
            .with("`, and both are split along the mesh axis `")
            .with(axis)
            .with("`: split one of them along another axis, or not at all");
        panic!("{}", text.as_str());
    }
}

/// Fails to compile if two dims of a tensor in an input or a result are split along one mesh axis.
#[track_caller]
pub(crate) const fn check_program<In: Parameters, Out: Parameters, R: ShardRules>() {
    check::<In, R>("the input");
    check::<Out, R>("the result");
}

const fn same_text(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut at = 0;
    while at < a.len() {
        if a[at] != b[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// Text that is assembled at compile time.
struct Text {
    bytes: [u8; 1024],
    len: usize,
}

impl Text {
    const fn new() -> Self {
        Text { bytes: [0; 1024], len: 0 }
    }

    /// Appends a text, if there is room for it.
    const fn with(mut self, text: &str) -> Self {
        let text = text.as_bytes();
        let mut at = 0;
        while at < text.len() && self.len + text.len() - at <= self.bytes.len() {
            self.bytes[self.len] = text[at];
            (self.len, at) = (self.len + 1, at + 1);
        }
        self
    }

    const fn as_str(&self) -> &str {
        match std::str::from_utf8(self.bytes.split_at(self.len).0) {
            Ok(text) => text,
            Err(_) => "two dims of a tensor are split along one mesh axis",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use typed_dims::prelude::*;

    crate::mesh! { struct Data; struct Model; }
    dims! { struct Row; struct Col; struct Other; }

    type Net = (Tensor<f32, (Row,)>, Vec<Tensor<f32, (Row, Col)>>);
    type Apart = (((), Along<Row, Data>), Along<Col, Model>);
    type Together = ((((), Along<Row, Data>), Along<Other, Model>), Along<Col, Data>);

    const _: () = check::<Net, Apart>("the input");

    #[test]
    fn a_conflict_is_found_in_parts() {
        let found = conflict(&<Net as Parameters>::TENSORS, &<Together as ShardRules>::LIST).unwrap();
        assert_eq!((found.dims, found.axis), (["Row", "Col"], "Data"));
        let message = std::panic::catch_unwind(|| check::<Net, Together>("the input")).unwrap_err();
        assert_eq!(
            message.downcast_ref::<String>().map(String::as_str),
            Some(
                "the input has the dims `Row` and `Col`, and both are split along the mesh axis `Data`: split one of them along another axis, or not at all"
            )
        );
    }

    #[test]
    fn long_names_do_not_panic() {
        let text = Text::new().with(&"a".repeat(1000)).with(&"b".repeat(1000));
        assert_eq!(text.as_str().len(), 1000);
    }
}
