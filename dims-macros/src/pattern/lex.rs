//! Splits a pattern into words, from tokens or from a string, which may be in numpy's notation.

use super::errors::Errors;
use super::words::{Notation, Place, Word, Words};
use proc_macro2::{Delimiter, Punct, Spacing, Span, TokenStream, TokenTree};
use syn::LitStr;
use unicode_ident::{is_xid_continue, is_xid_start};

/// The words of a pattern written as tokens.
pub fn tokens(tokens: TokenStream, notation: Notation, end: Span, errors: &mut Errors) -> Words {
    let mut words =
        Words { words: Vec::new(), text: None, end: Place { span: end, range: None }, outer: Vec::new() };
    read(tokens, notation, &mut words, errors);
    if let Some((_, place)) = words.words.last() {
        words.end = place.clone();
    }
    words
}

fn read(tokens: TokenStream, notation: Notation, words: &mut Words, errors: &mut Errors) {
    let mut tokens = tokens.into_iter().peekable();
    // The name or number before this token.
    let mut name: Option<Span> = None;
    while let Some(token) = tokens.next() {
        let before = name.take();
        if let TokenTree::Ident(_) | TokenTree::Literal(_) = token {
            name = Some(token.span());
        }
        let place = Place { span: token.span(), range: None };
        let is = |token: &TokenTree, sign: char| matches!(token, TokenTree::Punct(p) if p.as_char() == sign);
        let mut next = |sign: char| match tokens.next_if(|token| is(token, sign)) {
            Some(TokenTree::Punct(punct)) => Some(punct),
            _ => None,
        };
        // A sign of several characters must not contain a space.
        let joint = |punct: &Punct| punct.spacing() == Spacing::Joint;
        let word = match &token {
            TokenTree::Group(group) => match group.delimiter() {
                Delimiter::None => {
                    read(group.stream(), notation, words, errors);
                    continue;
                }
                Delimiter::Parenthesis => {
                    words.words.push((Word::Open, Place { span: group.span_open(), range: None }));
                    read(group.stream(), notation, words, errors);
                    words.words.push((Word::Close, Place { span: group.span_close(), range: None }));
                    continue;
                }
                Delimiter::Bracket if notation == Notation::Coordinates => {
                    let text = group.stream().to_string();
                    match text.parse::<usize>() {
                        Ok(1..) => {
                            words.words.push((
                                Word::Name(format!("[{text}]")),
                                Place { span: group.span_open(), range: None },
                            ));
                        }
                        _ => errors.at(words, &place, COORDINATES),
                    }
                    continue;
                }
                Delimiter::Bracket | Delimiter::Brace => {
                    errors.at(words, &place, "group axes with parentheses: `(h w)`");
                    continue;
                }
            },
            TokenTree::Ident(ident) => {
                let name = ident.to_string();
                match name.strip_prefix("r#").unwrap_or(&name) {
                    "_" => Word::Under,
                    name => named(name, words, &place, errors),
                }
            }
            TokenTree::Literal(literal) => {
                let text = literal.to_string();
                match text.parse() {
                    Ok(number) => Word::Number(number),
                    Err(_) => {
                        errors.at(words, &place, malformed(&text));
                        continue;
                    }
                }
            }
            TokenTree::Punct(punct) => match punct.as_char() {
                ',' => Word::Comma,
                '+' => Word::Plus,
                // The name after `$` is an ordinary axis.
                '$' => match tokens.peek() {
                    Some(TokenTree::Ident(dim)) => {
                        words.outer.push(dim.clone());
                        continue;
                    }
                    _ => {
                        errors.at(words, &place, "expected the name of a dim after `$`: `$n`");
                        continue;
                    }
                },
                '*' => Word::Star,
                '-' if next('>').is_some() => {
                    if !joint(punct) {
                        errors.at(words, &place, SPACED_ARROW);
                    }
                    Word::Arrow
                }
                '=' if next('>').is_some() => {
                    errors.at(words, &place, WRONG_ARROW);
                    Word::Arrow
                }
                '.' => {
                    let (second, third) = (next('.'), next('.'));
                    if !joint(punct) || !second.is_some_and(|second| joint(&second)) || third.is_none() {
                        errors.at(words, &place, "expected `...`: three dots stand for any number of axes");
                    }
                    let after = match tokens.peek() {
                        Some(next @ (TokenTree::Ident(_) | TokenTree::Literal(_))) => Some(next.span()),
                        _ => None,
                    };
                    let end = third.map_or(place.span, |third| third.span());
                    if before.is_some_and(|before| touch(before, place.span))
                        || after.is_some_and(|after| touch(end, after))
                    {
                        errors.at(words, &place, DOTS_IN_A_NAME);
                    }
                    Word::Dots
                }
                other => {
                    errors.at(words, &place, unexpected(other, words));
                    continue;
                }
            },
        };
        words.words.push((word, place));
    }
}

/// The words of a string literal.
pub fn string(literal: &LitStr, notation: Notation, errors: &mut Errors) -> Words {
    let text = literal.value();
    let chars: Vec<char> = text.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).collect();
    let span = literal.span();
    let place = |start: usize, end: usize| Place { span, range: Some((start, end)) };
    let mut words = Words {
        words: Vec::new(),
        text: Some(chars.iter().collect()),
        end: place(chars.len(), chars.len() + 1),
        outer: Vec::new(),
    };
    let mut at = 0;
    while at < chars.len() {
        let start = at;
        let c = chars[at];
        at += 1;
        let run = |mut end: usize, of: &dyn Fn(char) -> bool| {
            while end < chars.len() && of(chars[end]) {
                end += 1;
            }
            end
        };
        let word = match c {
            ' ' => continue,
            '(' => Word::Open,
            ')' => Word::Close,
            '[' if notation == Notation::Coordinates => {
                at = chars[at..].iter().position(|&c| c == ']').map_or(chars.len(), |close| at + close + 1);
                let text: String = chars[start + 1..(at - 1).max(start + 1)].iter().collect();
                match text.trim().parse::<usize>() {
                    Ok(number @ 1..) if chars[at - 1] == ']' => Word::Name(format!("[{number}]")),
                    _ => {
                        errors.at(&words, &place(start, at), COORDINATES);
                        continue;
                    }
                }
            }
            ',' => Word::Comma,
            '+' => Word::Plus,
            '*' => Word::Star,
            '…' => Word::Dots,
            '.' => {
                at = run(at, &|c| c == '.');
                if at - start != 3 {
                    let what = "expected `...`: three dots stand for any number of axes";
                    errors.at(&words, &place(start, at), what);
                }
                let beside = |at: Option<&char>| at.is_some_and(|&c| is_xid_continue(c));
                let before = start.checked_sub(1).and_then(|before| chars.get(before));
                if notation != Notation::Letters && (beside(before) || beside(chars.get(at))) {
                    errors.at(&words, &place(start, at), DOTS_IN_A_NAME);
                }
                Word::Dots
            }
            '-' if chars.get(at) == Some(&'>') => {
                at += 1;
                Word::Arrow
            }
            '-' if spaced_arrow(&chars[at..]).is_some() => {
                at += spaced_arrow(&chars[at..]).unwrap_or(0);
                errors.at(&words, &place(start, at), SPACED_ARROW);
                Word::Arrow
            }
            '=' if chars.get(at) == Some(&'>') => {
                at += 1;
                errors.at(&words, &place(start, at), WRONG_ARROW);
                Word::Arrow
            }
            c if notation == Notation::Letters && is_xid_start(c) => Word::Name(c.to_string()),
            c if notation == Notation::Letters && is_xid_continue(c) => {
                errors.at(
                    &words,
                    &place(start, at),
                    format!("`{c}` is not an index: each index is one letter"),
                );
                continue;
            }
            '_' if !chars.get(at).is_some_and(|&c| is_xid_continue(c)) => Word::Under,
            c if c.is_ascii_digit() => {
                at = run(at, &is_xid_continue);
                let text: String = chars[start..at].iter().collect();
                match text.parse() {
                    Ok(number) => Word::Number(number),
                    Err(_) => {
                        errors.at(&words, &place(start, at), malformed(&text));
                        continue;
                    }
                }
            }
            c if is_xid_start(c) || c == '_' => {
                at = run(at, &is_xid_continue);
                let text: String = chars[start..at].iter().collect();
                named(&text, &words, &place(start, at), errors)
            }
            c => {
                errors.at(&words, &place(start, at), unexpected(c, &words));
                continue;
            }
        };
        words.words.push((word, place(start, at)));
    }
    if notation == Notation::Letters
        && let Some((start, end)) = name_among_names(&chars)
    {
        let name: String = chars[start..end].iter().collect();
        let what = format!(
            "each letter of `{name}` would be an index here: a pattern of names comes after its operands, `einsum!(a, b, \"row inner, inner col -> row col\")`"
        );
        errors.at(&words, &place(start, end), what);
    }
    words
}

/// A word of three or more letters, next to a space and another word: this pattern has names, not
/// letters.
fn name_among_names(chars: &[char]) -> Option<(usize, usize)> {
    let is_letter = |at: usize| chars.get(at).is_some_and(|&c| is_xid_continue(c));
    let mut at = 0;
    while at < chars.len() {
        let end = (at..=chars.len()).find(|&end| !is_letter(end)).expect("there is no letter after the end");
        let before =
            chars[..at].iter().rposition(|&c| c != ' ').is_some_and(|last| last + 1 < at && is_letter(last));
        let after =
            chars[end..].iter().position(|&c| c != ' ').is_some_and(|next| next > 0 && is_letter(end + next));
        if end - at >= 3 && (before || after) {
            return Some((at, end));
        }
        at = end + 1;
    }
    None
}

/// As in einops, a name must not start or end with `_`: `_` stands for an unused axis.
fn named(name: &str, words: &Words, place: &Place, errors: &mut Errors) -> Word {
    if name.starts_with('_') || name.ends_with('_') {
        errors.at(words, place, format!("the name of an axis cannot start or end with `_`: rename `{name}`"));
    }
    Word::Name(name.to_owned())
}

const COORDINATES: &str = "brackets contain the number of coordinates of a position: in `yx[p [2]]`, each position along `p` has two";

const DOTS_IN_A_NAME: &str = "put a space between `...` and the axis next to it";

/// Whether two tokens are adjacent. Always `false` in unit tests, where tokens have no positions.
fn touch(first: Span, second: Span) -> bool {
    if !proc_macro::is_available() {
        return false;
    }
    let (end, start) = (first.unwrap().end(), second.unwrap().start());
    (end.line(), end.column()) == (start.line(), start.column())
}

const SPACED_ARROW: &str = "expected `->` between the two sides of the pattern, without a space in the arrow";

/// The number of characters after the `-` of an arrow that contains spaces.
fn spaced_arrow(after_minus: &[char]) -> Option<usize> {
    let at = after_minus.iter().position(|&c| c != ' ')?;
    (after_minus[at] == '>').then_some(at + 1)
}

const WRONG_ARROW: &str = "expected `->` between the two sides of the pattern, found `=>`";

fn malformed(text: &str) -> String {
    format!(
        "`{text}` is neither the name nor the size of an axis: names start with a letter, and sizes are whole numbers"
    )
}

fn unexpected(c: char, before: &Words) -> String {
    match c {
        '-' if before.words.iter().any(|(word, _)| *word == Word::Arrow) => {
            "expected an axis, found `-`: sizes are whole numbers, without a sign".into()
        }
        '-' | '>' => "expected `->` between the two sides of the pattern".into(),
        ';' => "expected a comma between arrays or a space between axes, found `;`".into(),
        '=' => "expected an axis, found `=`: sizes follow the pattern, `, h = 2`".into(),
        '[' | ']' | '{' | '}' => "group axes with parentheses: `(h w)`".into(),
        c => format!("expected an axis (a name, a number, `...`, or a group in parentheses), found `{c}`"),
    }
}
