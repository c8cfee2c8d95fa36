//! Suggestions for misspelled names.

/// The candidate nearest to `name`, if one is near enough.
pub fn nearest<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let most = if name.chars().count() < 3 { 1 } else { 2 };
    candidates
        .into_iter()
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|&(distance, candidate)| {
            let letters = name.chars().count().max(candidate.chars().count());
            let other_case = || name.to_lowercase() == candidate.to_lowercase();
            distance > 0 && (distance <= most && distance < letters || other_case())
        })
        .min_by_key(|&(distance, candidate)| (distance, candidate.len().abs_diff(name.len())))
        .map(|(_, candidate)| candidate)
}

/// The smallest number of letters to insert, remove or change to turn `a` into `b`.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// `` ; did you mean `h2`? ``, or an empty string if no candidate is near.
pub fn hint<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> String {
    nearest(name, candidates).map_or(String::new(), |near| format!("; did you mean `{near}`?"))
}

/// A number of things: `1 operand`, `2 operands`.
pub fn counted(count: usize, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

/// Names as a list: `` `a`, `b` and `c` ``.
pub fn list(names: &[String]) -> String {
    match names {
        [] => "none".into(),
        [name] => format!("`{name}`"),
        [names @ .., last] => {
            let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
            format!("{} and `{last}`", names.join(", "))
        }
    }
}
