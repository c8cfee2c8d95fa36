//! What a message may cost its reader.

/// The most lines that a message may have.
pub const MOST_LINES: usize = 15;

/// Messages of which rustc's own parts are longer than that, and cannot be left out: the bound of a method beside its signature, the bound
/// that it proposes for a type parameter, and how a thread's closure came to hold the dim. The number is that of their lines.
pub const LONGER: &[(&str, usize)] = &[
    ("fail/generic/sum_of_elements_without_a_bound", 18),
    ("fail/scopes/local_dim_in_a_detached_thread", 18),
    ("fail/scopes/local_dim_in_a_thread", 19),
    ("fail/sizes/declared_dim_as_a_value_alone", 16),
    ("fail/sizes/declared_dim_ordered_alone", 16),
    ("fail/sizes/declared_dim_summed_alone", 16),
    ("fail/sizes/declared_dim_times_a_tensor_without_it", 16),
    ("fail/sizes/expanded_along_a_dim_without_a_size", 16),
];

/// Names of the machinery, of which no message may speak.
pub const INTERNALS: &[&str] = &[
    "Merge",
    "RemoveAll",
    "RemoveStep",
    "RemoveNext",
    "NeverBound",
    "HasStep",
    "Compare",
    "OrElse",
    "SizeProduct",
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

/// What is wrong with the golden message of a case, if anything.
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
        complaints.push("a warning beside the error".to_owned());
    }
    for internal in INTERNALS {
        if message.contains(internal) {
            complaints.push(format!("speaks of `{internal}`"));
        }
    }
    complaints
}
