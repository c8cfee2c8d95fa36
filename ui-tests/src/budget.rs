//! Limits on the messages: their length, and the names that they may contain.

/// The maximum number of lines that a message may have.
pub const MOST_LINES: usize = 15;

/// The cases whose messages may be longer, because of notes and suggestions by rustc, with the
/// maximum number of lines of each.
pub const LONGER: &[(&str, usize)] = &[
    ("fail/binding/method_of_an_array", 48),
    ("fail/scopes/local_dim_in_a_detached_thread", 18),
    ("fail/scopes/local_dim_in_a_thread", 19),
    ("fail/generic/generic_dim_of_any_role", 18),
    ("fail/generic/generic_dims_in_the_order_of_another_crate", 17),
    ("fail/gradients/by_a_moved_struct", 18),
    ("fail/gradients/by_a_moved_tensor", 18),
    ("fail/layers/layer_norm_of_a_dim_that_is_no_tuple", 16),
    ("fail/load/deserialized_dim_named_twice", 24),
    ("fail/load/deserialized_dims_in_no_order_of_a_set", 22),
    ("fail/training/step_of_a_struct_without_the_derive", 17),
    ("fail/operators/field_moved_by_a_method", 21),
    ("fail/operators/tensor_used_after_a_method", 19),
    ("fail/operators/sqrt_of_integers", 16),
];

/// Traces of internal types that no message may contain, except in the topic `hostile`.
pub const INTERNALS: &[&str] = &[
    "Merge",
    "RemoveAll",
    "RemoveStep",
    "RemoveNext",
    "NeverBound",
    "FirstWith",
    "Satisfies",
    "DividesInto",
    "NestedPairs",
    "Compare",
    "OrElse",
    "SizesTogether",
    "UnionAll",
    "BinderList as",
    " as List>",
    "::List",
    "::Key",
    "Keys",
    "DimInfo",
    "DimKey",
    "UInt<",
    "UTerm",
    "digits",
    "AxisBlock",
    "Cons<",
    "Nothing",
    "__private",
    "type mismatch resolving `<(",
    ", ())",
];

/// The problems with the golden message of a case.
pub fn complaints(case: &str, message: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    let lines = message.lines().count();
    let most = LONGER.iter().find(|(longer, _)| *longer == case).map_or(MOST_LINES, |&(_, most)| most);
    if lines > most {
        complaints.push(format!("{lines} lines, {most} are allowed"));
    }
    let errors = message.lines().filter(|line| line.starts_with("error")).count();
    if errors != 1 {
        complaints.push(format!("{errors} errors, there must be one"));
    }
    if message.lines().any(|line| line.starts_with("warning")) {
        complaints.push("a warning in addition to the error".to_owned());
    }
    // These programs name internal traits themselves.
    let names_it_itself = case.starts_with("fail/hostile/");
    for internal in INTERNALS {
        if message.contains(internal) && !names_it_itself {
            complaints.push(format!("contains `{internal}`"));
        }
    }
    complaints
}
