//! Limits the number of parts of a file. A part may take only two bytes in the file but much more
//! in memory, so a small file could require a lot of memory. The file is scanned before it is
//! decoded.

/// The greatest total number of nodes, names, attributes, weights, types and axes.
pub const MOST_PARTS: usize = 2_000_000;

/// The kind of a message or a field.
#[derive(Clone, Copy)]
enum Kind {
    Model,
    Graph,
    Node,
    Attribute,
    ValueInfo,
    Type,
    TensorType,
    Shape,
    /// A name, or a message without parts.
    Leaf,
}

impl Kind {
    /// The kind of the field with this number in a message of kind `self`, if the field counts as a
    /// part.
    fn of(self, field: u64) -> Option<Kind> {
        Some(match (self, field) {
            (Kind::Model, 7) | (Kind::Attribute, 6) => Kind::Graph,
            (Kind::Graph, 1) => Kind::Node,
            (Kind::Graph, 11..=13) => Kind::ValueInfo,
            (Kind::Node, 5) => Kind::Attribute,
            (Kind::ValueInfo, 2) => Kind::Type,
            (Kind::Type, 1) => Kind::TensorType,
            (Kind::TensorType, 2) => Kind::Shape,
            (Kind::Model, 8)
            | (Kind::Graph, 5)
            | (Kind::Node, 1 | 2)
            | (Kind::Attribute, 5)
            | (Kind::Shape, 1) => Kind::Leaf,
            _ => return None,
        })
    }
}

/// Whether the file has too many parts. Format errors are left to the decoder, which reports them.
pub fn has_too_many_parts(file: &[u8]) -> bool {
    let mut left = MOST_PARTS;
    // An explicit stack, so that deep nesting cannot overflow the call stack.
    let mut messages = vec![(file, Kind::Model)];
    while let Some((mut bytes, kind)) = messages.pop() {
        while let Some((field, content)) = next(&mut bytes) {
            let Some(kind) = content.and_then(|_| kind.of(field)) else { continue };
            match left.checked_sub(1) {
                Some(fewer) => left = fewer,
                None => return true,
            }
            if !matches!(kind, Kind::Leaf) {
                messages.push((content.unwrap_or_default(), kind));
            }
        }
    }
    false
}

/// The number of the next field, and its content if it has a length; `None` at the end, and where
/// the format is invalid.
fn next<'a>(bytes: &mut &'a [u8]) -> Option<(u64, Option<&'a [u8]>)> {
    let key = varint(bytes)?;
    let skip = match key & 7 {
        0 => {
            varint(bytes)?;
            0
        }
        1 => 8,
        2 => {
            let len = usize::try_from(varint(bytes)?).ok()?;
            let (content, rest) = bytes.split_at_checked(len)?;
            *bytes = rest;
            return Some((key >> 3, Some(content)));
        }
        5 => 4,
        // A group, which the decoder skips. Its content still counts.
        3 | 4 => 0,
        _ => return None,
    };
    *bytes = bytes.get(skip..)?;
    Some((key >> 3, None))
}

/// A number, seven bits per byte.
fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..70).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}
