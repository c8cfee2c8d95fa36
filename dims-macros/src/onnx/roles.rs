//! Roles of dims, and their ONNX denotations.

use proc_macro2::{Ident, Span};

/// Each standard role with its denotation.
const ROLES: [(&str, &str); 7] = [
    ("DataBatch", "DATA_BATCH"),
    ("DataChannel", "DATA_CHANNEL"),
    ("DataTime", "DATA_TIME"),
    ("DataFeature", "DATA_FEATURE"),
    ("FilterInChannel", "FILTER_IN_CHANNEL"),
    ("FilterOutChannel", "FILTER_OUT_CHANNEL"),
    ("FilterSpatial", "FILTER_SPATIAL"),
];

/// The role of a denotation. `None` for denotations outside of the standard.
pub fn role(denotation: Option<&str>) -> Option<Ident> {
    let denotation = denotation?;
    let (role, _) = ROLES.iter().find(|(_, own)| *own == denotation)?;
    Some(Ident::new(role, Span::call_site()))
}

pub fn denotation(role: &Ident) -> Option<&'static str> {
    ROLES.iter().find(|(own, _)| role == own).map(|&(_, denotation)| denotation)
}

/// All roles, for messages.
pub fn list() -> String {
    ROLES.map(|(role, _)| format!("`{role}`")).join(", ")
}
