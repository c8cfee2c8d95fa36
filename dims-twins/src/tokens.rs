//! Helpers for reading and writing tokens.

use proc_macro::{Delimiter, Spacing, TokenStream, TokenTree};

pub fn source(code: &str) -> TokenStream {
    code.parse().expect("Rust")
}

/// The tokens, without the invisible groups around fragments that a `macro_rules` macro inserts.
pub fn flat(tokens: TokenStream) -> Vec<TokenTree> {
    let each = |token| match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::None => flat(group.stream()),
        token => vec![token],
    };
    tokens.into_iter().flat_map(each).collect()
}

/// The text of a string literal. Escapes are not decoded.
pub fn text_of(token: &TokenTree) -> Option<String> {
    let TokenTree::Literal(literal) = token else { return None };
    let literal = literal.to_string();
    let (_, text) = literal.split_once('"')?;
    text.rsplit_once('"').map(|(text, _)| text.to_owned())
}

pub fn is_sign(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == sign)
}

/// The position of the first token outside angle brackets for which `is` returns true. The `>` of
/// `->` does not count as a bracket.
pub fn outside_angles(tokens: &[TokenTree], is: impl Fn(&TokenTree) -> bool) -> Option<usize> {
    let (mut open, mut after_a_dash) = (0_usize, false);
    tokens.iter().position(|token| {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == '<' => open += 1,
            TokenTree::Punct(punct) if punct.as_char() == '>' && !after_a_dash => open = open.saturating_sub(1),
            _ => {}
        }
        after_a_dash = matches!(token, TokenTree::Punct(punct) if punct.as_char() == '-' && punct.spacing() == Spacing::Joint);
        open == 0 && is(token)
    })
}

/// The parts between the commas outside angle brackets.
pub fn between_commas(tokens: impl IntoIterator<Item = TokenTree>) -> Vec<Vec<TokenTree>> {
    let mut rest: Vec<_> = tokens.into_iter().collect();
    let mut parts = Vec::new();
    while !rest.is_empty() {
        let len = outside_angles(&rest, |token| is_sign(token, ',')).unwrap_or(rest.len());
        parts.push(rest.drain(..len).collect());
        rest.drain(..rest.len().min(1));
    }
    parts
}

pub fn with_commas(parts: impl Iterator<Item = Vec<TokenTree>>) -> TokenStream {
    parts.flat_map(|part| part.into_iter().chain(source(","))).collect()
}
