//! What a message may cost its reader.

/// The most lines that a message may have.
pub const MOST_LINES: usize = 15;

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

/// What is wrong with a golden message, if anything.
pub fn complaints(message: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    let lines = message.lines().count();
    if lines > MOST_LINES {
        complaints.push(format!("{lines} lines, {MOST_LINES} are allowed"));
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
