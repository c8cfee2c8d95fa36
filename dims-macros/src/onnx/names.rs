//! Turns the names in a model into Rust names.

use proc_macro2::Span;
use syn::Ident;

/// `batch_size` as a dim: `BatchSize`. Arithmetic signs become words: `past + 1` is `PastPlus1`. In
/// a name without spaces, `-` only separates words.
pub fn dim(name: &str, span: Span) -> Ident {
    let mut text = String::new();
    for word in words(name) {
        let mut letters = word.chars();
        if let Some(first) = letters.next() {
            text.extend(first.to_uppercase());
            text.extend(letters);
        }
    }
    if !text.chars().next().is_some_and(char::is_alphabetic) {
        text.insert_str(0, "Dim");
    }
    ident(&text, span)
}

/// `input.1` as a field: `input_1`.
pub fn field(name: &str, span: Span) -> Ident {
    let mut text = words(name).join("_");
    // Names like `pixelValues` keep their case, but fields start with a lowercase letter.
    if let Some(first) = text.chars().next() {
        let rest = text[first.len_utf8()..].to_owned();
        text = first.to_lowercase().chain(rest.chars()).collect();
    }
    if !text.chars().next().is_some_and(char::is_alphabetic) {
        text.insert(0, '_');
    }
    if text == "_" {
        text.push_str("tensor");
    }
    ident(&text, span)
}

/// The words in the first `MOST` characters of a name: runs of letters and digits, and arithmetic
/// signs as words.
fn words(name: &str) -> Vec<String> {
    const MOST: usize = 64;
    let mut words = vec![String::new()];
    for letter in name.chars().take(MOST) {
        let sign = match letter {
            '+' => "plus",
            '-' if name.contains(' ') => "minus",
            '*' => "times",
            '/' => "over",
            _ => "",
        };
        if !sign.is_empty() {
            words.extend([sign.to_owned(), String::new()]);
        } else if is_part(letter) {
            words.last_mut().expect("there is a word").push(letter);
        } else {
            words.push(String::new());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Whether a letter can be in a word: it can be in a Rust name, and is not `_`.
fn is_part(letter: char) -> bool {
    letter != '_' && !letter.is_whitespace() && syn::parse_str::<Ident>(&format!("xx{letter}")).is_ok()
}

fn ident(text: &str, span: Span) -> Ident {
    let parses = |text: &str| syn::parse_str::<Ident>(text).is_ok();
    if parses(text) {
        Ident::new(text, span)
    } else if ["self", "Self", "super", "crate", "_"].contains(&text) || !parses(&format!("{text}_")) {
        Ident::new(
            &format!("_{}", text.chars().filter(char::is_ascii_alphanumeric).collect::<String>()),
            span,
        )
    } else {
        Ident::new_raw(text, span)
    }
}

#[cfg(test)]
mod tests {
    use proc_macro2::Span;

    #[test]
    fn names_of_models_become_names_in_rust() {
        let dim = |name| super::dim(name, Span::call_site()).to_string();
        let field = |name| super::field(name, Span::call_site()).to_string();
        for (name, as_dim, as_field) in [
            ("batch_size", "BatchSize", "batch_size"),
            ("N", "N", "n"),
            ("input.1", "Input1", "input_1"),
            ("past_len + 1", "PastLenPlus1", "past_len_plus_1"),
            ("a-b", "AB", "a_b"),
            ("images", "Images", "images"),
            ("onnx::Reshape_42", "OnnxReshape42", "onnx_Reshape_42"),
            ("7", "Dim7", "_7"),
            ("", "Dim", "_tensor"),
            ("type", "Type", "r#type"),
            ("self", "_Self", "_self"),
            ("NaN", "NaN", "naN"),
            ("größe", "Größe", "größe"),
            ("\u{202e}x\u{0}", "X", "x"),
            ("_", "Dim", "_tensor"),
            ("🦀", "Dim", "_tensor"),
        ] {
            assert_eq!((&*dim(name), &*field(name)), (as_dim, as_field), "{name:?}");
        }
        assert!(dim(&"x".repeat(10_000)).len() < 100);
    }
}
