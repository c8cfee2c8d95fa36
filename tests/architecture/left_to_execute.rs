//! Operators leave the running of steps to `execute`.

use crate::source::files;
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::fmt::Write;

/// Folders of `dims-core/src` whose files describe operations, and leave running them to `execute`.
const OPERATORS: [&str; 4] = ["operators/", "macros/", "laid/", "batch/"];

/// The tasks that are left to `execute`, with the names that they use. Three names have exceptions:
/// `record::Writer`, to which expressions write themselves, is allowed. `step` counts only as
/// `expr::step`, and `note` only as a call of a function, not of a method.
const LEFT_TO_EXECUTE: [(&str, &[&str]); 4] = [
    ("recording", &["record", "step", "ExprStep", "StepOfParts"]),
    ("memory of results", &["reserve", "InParts", "allocate"]),
    ("notes for plans", &["note", "aside"]),
    ("checks for listeners", &["is_active", "is_heard", "is_known", "is_traced", "traced"]),
];

#[test]
fn operators_say_what_is_to_run() {
    let mut wrong = String::new();
    for (file, text) in files("dims-core") {
        if !OPERATORS.iter().any(|folder| file.starts_with(folder)) {
            continue;
        }
        let mut words = Vec::new();
        words_of(text.parse().expect("the file is valid Rust"), &mut words);
        for (what, names) in LEFT_TO_EXECUTE {
            for &name in names {
                let is_named = (0..words.len()).any(|at| words[at] == name && is_left(&words, at));
                if is_named {
                    writeln!(wrong, "dims-core/src/{file} names `{name}`: leave {what} to `execute`")
                        .unwrap();
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "what operators leave to the layer that runs steps is listed at the top of tests/architecture/left_to_execute.rs\n{wrong}"
    );
}

/// Whether the word at this position names a task left to `execute`.
fn is_left(words: &[String], at: usize) -> bool {
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    match word(at) {
        "record" => [word(at + 1), word(at + 2), word(at + 3)] != [":", ":", "Writer"],
        "step" => at > 2 && [word(at - 3), word(at - 2), word(at - 1)] == ["expr", ":", ":"],
        "note" => word(at + 1) == "(" && (at == 0 || ![".", "fn"].contains(&word(at - 1))),
        _ => true,
    }
}

/// All words of a piece of code, including punctuation and opening brackets, without comments and
/// literals.
fn words_of(tokens: TokenStream, words: &mut Vec<String>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                let open = match group.delimiter() {
                    Delimiter::Parenthesis => "(",
                    Delimiter::Brace => "{",
                    Delimiter::Bracket => "[",
                    Delimiter::None => "",
                };
                words.push(open.to_owned());
                words_of(group.stream(), words);
            }
            TokenTree::Literal(_) => {}
            token => words.push(token.to_string()),
        }
    }
}
