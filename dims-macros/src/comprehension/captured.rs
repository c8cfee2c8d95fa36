//! Captured code: Rust code that does not depend on loops. It may use names from outside the macro,
//! and names bound by `let`s whose values are captured code, too.

use super::tokens::{OUTER, is_dot, is_keyword, is_same, unwrap};
use super::valid::{Checker, Meaning};
use proc_macro2::{Group, Ident, TokenStream, TokenTree};
use quote::ToTokens;

impl Checker {
    /// Code without loops. Names bound by the macro's `let`s are replaced by their names in the
    /// expansion.
    pub fn rust(&mut self, code: &impl ToTokens, what: &str) -> TokenStream {
        self.rust_but(code, what, &[])
    }

    /// Like `rust`, except that the names in `hidden` belong to the code itself.
    pub fn rust_but(&mut self, code: &impl ToTokens, what: &str, hidden: &[Ident]) -> TokenStream {
        // Code that depends on several loops gets one error.
        let before = std::mem::replace(&mut self.reported, false);
        let code = self.renamed(unwrap(code.to_token_stream()), Some(what), hidden);
        self.reported = before;
        code
    }

    /// `what` describes the code, if loops in it are refused. In the arguments of other macros,
    /// names can have other meanings, so [`macro_call`](Self::macro_call) looks for loops there,
    /// and only in macros that it knows.
    fn renamed(&mut self, tokens: TokenStream, what: Option<&str>, hidden: &[Ident]) -> TokenStream {
        let mut out = TokenStream::new();
        let (mut earlier, mut before, mut after_dot) = (None, None, false);
        for token in tokens {
            let dot = is_dot(&token, before.as_ref());
            let called = match &earlier {
                Some(TokenTree::Ident(name)) if is_punct(before.as_ref(), '!') && !is_keyword(name) => {
                    Some(name.clone())
                }
                _ => None,
            };
            earlier = before.replace(token.clone());
            out.extend([match token {
                TokenTree::Ident(name) if !after_dot && !hidden.iter().any(|own| is_same(own, &name)) => {
                    TokenTree::Ident(self.name(name, what))
                }
                TokenTree::Punct(punct) if punct.as_char() == '$' => {
                    if let Some(what) = what {
                        if !std::mem::replace(&mut self.reported, true) {
                            self.mistakes.at(&punct, format!("{what} cannot depend on a dim"));
                        }
                        continue;
                    }
                    TokenTree::Punct(punct)
                }
                TokenTree::Group(group) => {
                    if let (Some(called), Some(_), false) = (&called, what, self.reported)
                        && let Some(error) = self.macro_call(called, group.stream(), hidden)
                    {
                        self.reported = true;
                        self.mistakes.add(error);
                    }
                    let content = self.renamed(group.stream(), what.filter(|_| called.is_none()), hidden);
                    let mut new = Group::new(group.delimiter(), content);
                    new.set_span(group.span());
                    TokenTree::Group(new)
                }
                token => token,
            }]);
            after_dot = dot;
        }
        out
    }

    fn name(&mut self, name: Ident, what: Option<&str>) -> Ident {
        let refused = match (self.meaning(&name), what) {
            (Some(Meaning::Rust(own)), _) => {
                let mut own = own.clone();
                own.set_span(own.span().located_at(name.span()));
                return own;
            }
            (Some(Meaning::Loop(_)), Some(what)) => format!("{what} cannot depend on the loop `{name}`"),
            (Some(Meaning::Local(_)), Some(what)) => {
                format!("{what} cannot depend on `{name}`, which is computed from elements or loop variables")
            }
            _ => return name,
        };
        if !std::mem::replace(&mut self.reported, true) {
            self.mistakes.at(&name, refused);
        }
        name
    }

    /// Whether code mentions anything that depends on a loop.
    pub fn loops_in(&self, tokens: TokenStream) -> bool {
        let (mut before, mut after_dot) = (None, false);
        tokens.into_iter().any(|token| {
            let dot = is_dot(&token, before.as_ref());
            before = Some(token.clone());
            let found = match token {
                TokenTree::Ident(name) => {
                    name == OUTER
                        || !after_dot
                            && matches!(self.meaning(&name), Some(Meaning::Loop(_) | Meaning::Local(_)))
                }
                TokenTree::Group(group) => self.loops_in(group.stream()),
                _ => false,
            };
            after_dot = dot;
            found
        })
    }
}

fn is_punct(token: Option<&TokenTree>, char: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == char)
}
