//! Refuses macro input that is nested too deeply. syn parses, visits and drops its input
//! recursively, on rustc's stack, which a macro cannot enlarge. So the depth is checked before
//! anything is parsed.

use proc_macro2::{Delimiter, Punct, Spacing, Span, TokenStream, TokenTree};
use std::cmp::Reverse;
use std::iter::Peekable;
use std::vec;

/// The greatest cost that is accepted. The cost of a token estimates how much stack its nesting
/// takes: about 2 KB per unit in an unoptimized macro. rustc has 8 MB.
const MOST: usize = 3000;

/// The cost of a pair of brackets.
const GROUP: usize = 16;

/// The cost of `<`, which may open type arguments.
const ANGLE: usize = 24;

/// The cost of a prefix operator or a keyword.
const PREFIX: usize = 8;

/// The cost of most other signs, and the extra cost of brackets after an operand.
const SIGN: usize = 2;

/// Returns an error if a macro's input is nested too deeply to parse.
pub fn check(tokens: TokenStream) -> syn::Result<()> {
    match deepest(tokens) {
        None => Ok(()),
        Some(place) => {
            let what = "brackets and operators are nested too deeply here for a macro to read: compute a part first, and name it with `let`";
            Err(syn::Error::new(place, what))
        }
    }
}

/// The tokens within one pair of brackets, or of the whole input, that are not visited yet.
struct Level {
    tokens: Peekable<vec::IntoIter<TokenTree>>,
    /// The cost of the brackets and of the tokens around them.
    outside: usize,
    /// The cost so far: `outside`, and the cost of the preceding tokens of this expression.
    cost: usize,
    /// Whether the previous token ends an operand.
    operand: bool,
    /// Constructs without brackets that are open here.
    open: Vec<Open>,
    /// The positions of matching `<` and `>`, last first. All other `<` and `>` are operators or
    /// parts of arrows.
    angles: Vec<usize>,
    position: usize,
}

/// A construct that may contain commas.
enum Open {
    /// The parameters of a closure, with the cost up to the first `|`.
    Closure(usize),
    /// The arguments of a type, with the cost before `<`.
    Angle(usize),
}

impl Level {
    fn new(tokens: TokenStream, outside: usize) -> Self {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let angles = angles(&tokens);
        let tokens = tokens.into_iter().peekable();
        Level { tokens, outside, cost: outside, operand: false, open: Vec::new(), angles, position: 0 }
    }

    /// The cost before each part of a comma-separated list.
    fn around(&self) -> usize {
        match self.open.last() {
            Some(Open::Closure(cost)) => *cost,
            Some(Open::Angle(cost)) => cost + ANGLE,
            None => self.outside,
        }
    }

    fn next(&mut self) -> Option<TokenTree> {
        self.position += 1;
        self.tokens.next()
    }

    /// Whether the token that `next` returned last belongs to a pair of `<` and `>`.
    fn is_angle(&mut self) -> bool {
        self.angles.pop_if(|at| *at + 1 == self.position).is_some()
    }

    fn sign(&mut self, sign: &Punct) {
        let joins = |next: char, level: &mut Self| {
            sign.spacing() == Spacing::Joint
                && matches!(level.tokens.peek(), Some(TokenTree::Punct(then)) if then.as_char() == next)
        };
        let operand = self.operand;
        self.operand = sign.as_char() == '?';
        match sign.as_char() {
            ',' => self.cost = self.around(),
            ';' => {
                self.open.clear();
                self.cost = self.outside;
            }
            // This `=>` follows the pattern of a match arm, so a `|` before it opened no closure.
            '=' if joins('>', self) => {
                while let Some(Open::Closure(_)) = self.open.last() {
                    self.open.pop();
                }
                self.cost += SIGN;
            }
            '|' if matches!(self.open.last(), Some(Open::Closure(_))) => {
                self.open.pop();
                self.cost += SIGN;
            }
            '|' if !operand => {
                self.cost += PREFIX;
                self.open.push(Open::Closure(self.cost));
            }
            // The second half of `||` does not open a closure.
            '|' if joins('|', self) => {
                self.cost += SIGN;
                self.next();
            }
            '<' if self.is_angle() => {
                self.open.push(Open::Angle(self.cost));
                self.cost += ANGLE;
            }
            '<' => self.cost += ANGLE,
            '>' if self.is_angle() => {
                while let Some(Open::Closure(_)) = self.open.pop() {}
                self.cost += SIGN;
            }
            '>' => self.cost += SIGN,
            _ => self.cost += if operand { SIGN } else { PREFIX },
        }
    }
}

/// The positions of matching `<` and `>`, last first.
fn angles(tokens: &[TokenTree]) -> Vec<usize> {
    let (mut unclosed, mut pairs) = (Vec::new(), Vec::new());
    let mut arrow = false;
    for (at, token) in tokens.iter().enumerate() {
        let TokenTree::Punct(sign) = token else {
            arrow = false;
            continue;
        };
        match sign.as_char() {
            ';' => unclosed.clear(),
            '<' => unclosed.push(at),
            '>' if !arrow => {
                if let Some(opened) = unclosed.pop() {
                    pairs.extend([opened, at]);
                }
            }
            _ => {}
        }
        arrow = matches!(sign.as_char(), '-' | '=') && sign.spacing() == Spacing::Joint;
    }
    pairs.sort_unstable_by_key(|&at| Reverse(at));
    pairs
}

/// The first token that is nested too deeply. This is a loop, not a recursion, because the input
/// may have any depth.
fn deepest(tokens: TokenStream) -> Option<Span> {
    let mut levels = vec![Level::new(tokens, 0)];
    while let Some(level) = levels.last_mut() {
        let Some(token) = level.next() else {
            levels.pop();
            continue;
        };
        let (mut inner, operand) = (None, level.operand);
        match &token {
            TokenTree::Punct(sign) => level.sign(sign),
            TokenTree::Ident(name) => {
                let word = is_keyword(&name.to_string());
                level.cost += if word { PREFIX } else { 0 };
                level.operand = !word;
            }
            TokenTree::Literal(_) => level.operand = true,
            TokenTree::Group(group) => {
                level.cost += if operand { SIGN } else { 0 };
                inner = Some(Level::new(group.stream(), level.cost + GROUP));
                level.operand = true;
                // After a block, an item or a match arm, a new expression starts.
                let mut ends = || match level.tokens.peek() {
                    Some(TokenTree::Ident(next)) => next != "else" && next != "as",
                    Some(TokenTree::Punct(next)) => next.as_char() == '#',
                    Some(TokenTree::Literal(_)) => true,
                    _ => false,
                };
                if group.delimiter() == Delimiter::Brace && ends() {
                    (level.cost, level.operand) = (level.outside, false);
                    level.open.clear();
                }
            }
        }
        if level.cost > MOST || inner.as_ref().is_some_and(|inner| inner.outside > MOST) {
            return Some(match &token {
                TokenTree::Group(group) => group.span_open(),
                token => token.span(),
            });
        }
        levels.extend(inner);
    }
    None
}

/// Whether an expression, a type or a pattern follows this word, rather than an operator.
fn is_keyword(word: &str) -> bool {
    const WORDS: [&str; 16] = [
        "as", "async", "break", "const", "dyn", "else", "for", "if", "impl", "let", "loop", "match", "move",
        "return", "unsafe", "while",
    ];
    WORDS.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::check;
    use proc_macro2::TokenStream;

    fn is_read(code: &str) -> bool {
        check(code.parse::<TokenStream>().expect("the brackets match")).is_ok()
    }

    fn nested(open: &str, inner: &str, close: &str, times: usize) -> String {
        format!("{}{inner}{}", open.repeat(times), close.repeat(times))
    }

    #[test]
    fn what_is_nested_too_deep_is_refused() {
        for (open, inner, close) in [
            ("(", "x", ")"),
            ("- ", "x", ""),
            ("Vec<", "u8", ">"),
            ("f(", "x", ")"),
            ("{ ", "x", " }"),
            ("|a,| ", "x", ""),
            ("|(a, b), c,| ", "x", ""),
            ("move |a: Pair<u8, u8>, b| ", "x", ""),
            ("|| ", "x", ""),
            ("Pair<u8, ", "u8", ">"),
            ("Pair<u8, Fn(u8) -> u8, ", "u8", ", u8>"),
        ] {
            assert!(is_read(&nested(open, inner, close, 100)), "{open}");
            assert!(!is_read(&nested(open, inner, close, 1000)), "{open}");
            assert!(!is_read(&nested(open, inner, close, 100_000)), "{open}");
        }
        assert!(is_read(&format!("a[i]{}", " + a[i]".repeat(500))));
        assert!(!is_read(&format!("a[i]{}", " + a[i]".repeat(2000))));
        assert!(!is_read(&format!("x{}", ".exp()".repeat(2000))));
    }

    #[test]
    fn what_stands_side_by_side_may_be_long() {
        for part in [
            "i, ",
            "let x = a + b;",
            "if x < y { f(x) } ",
            "fn f<T>(x: T) -> T { x } ",
            "A => {} ",
            "/// a\nfn f() {}\n",
            "x < y, ",
            "x > y, ",
            "a || b, ",
            "a | b, ",
            "|a, b| a + b, ",
            "| A | B => x, ",
            "A | B => |a| a, ",
            "a: Pair<u8, u8>, ",
            "a: Fn(u8) -> u8, ",
            "let x: Pair<u8, u8> = |a, b| a < b;",
        ] {
            assert!(is_read(&part.repeat(10_000)), "{part}");
        }
    }
}
