//! Elements: operands and their indices.

use super::ast;
use super::node::{Element, Node};
use super::tokens::{INDICES, is_same, unwrap};
use super::valid::Checker;
use crate::key::expansion;
use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Error, Expr, ExprIndex, ExprLit, Lit};

impl Checker {
    /// `a[i, j]`, or `a[i][j]`.
    pub(super) fn element(&mut self, index: &ExprIndex) -> Node {
        let mut brackets = vec![index];
        while let Expr::Index(inner) = &*brackets[brackets.len() - 1].expr
            && self.loops_in(inner.index.to_token_stream())
        {
            brackets.push(inner);
        }
        let base = &brackets[brackets.len() - 1].expr;
        let mut indices = Vec::new();
        for brackets in brackets.iter().rev() {
            match wrapped(&brackets.index).map(ast::indices) {
                Some(Ok(list)) => {
                    for one in &list {
                        indices.push(self.index(one));
                    }
                }
                Some(Err(error)) => return self.error(error),
                // Brackets after braces may begin a new expression, so `tokens::wrap` does not wrap them.
                None => {
                    let what = "put parentheses around an operand that has braces: `({ a })[i]`";
                    return self.error(Error::new(brackets.index.span(), what));
                }
            }
        }
        let operand = self.operand(base);
        let text = unwrap(quote!(#index)).to_string();
        let last = unwrap(quote!(#base)).into_iter().last();
        let end = last.map_or_else(|| index.index.span(), |token| token.span());
        let brackets = index.index.span();
        Node::Element(Element { operand, indices, text: compact(&text), base: end, brackets })
    }

    fn index(&mut self, expr: &Expr) -> Node {
        if let Expr::Range(range) = expr {
            let message = "an index picks one element: write a range after the name of a loop, `[i in 1..n]`";
            return self.error(Error::new_spanned(range.limits, message));
        }
        match expr {
            Expr::Lit(ExprLit { lit: Lit::Int(_), .. }) => {}
            Expr::Lit(literal) => {
                return self.error(Error::new_spanned(literal, "an index must be an integer"));
            }
            Expr::Tuple(tuple) => {
                return self
                    .error(Error::new_spanned(tuple, "write the indices without parentheses: `a[i, j]`"));
            }
            Expr::Array(array) => {
                let message = "write all indices in one pair of brackets: `a[i, j]`";
                return self.error(Error::new(array.bracket_token.span.join(), message));
            }
            _ => {}
        }
        if let Some(error) = self.without_dollar(expr) {
            return self.error(error);
        }
        self.node(expr)
    }

    /// The error for `i` where the loop is the dim `$i`.
    pub(super) fn without_dollar(&self, expr: &Expr) -> Option<Error> {
        let Expr::Path(path) = expr else { return None };
        let name = path.path.get_ident().filter(|name| self.meaning(name).is_none())?;
        let is_dim = self.loops.iter().any(|one| one.outer && is_same(&one.name, name));
        is_dim.then(|| {
            Error::new(
                name.span(),
                format!("this loop runs over the dim `{name}`: write `${name}` here, too"),
            )
        })
    }

    /// The position of an operand. Equal names and fields are one operand.
    fn operand(&mut self, base: &Expr) -> usize {
        let code = self.rust(base, "an operand");
        if let Expr::Lit(literal) = base {
            self.mistakes.at(literal, "a literal has no elements");
        }
        let place = is_place(base).then(|| identity(code.clone()));
        if let Some(known) = self.operands.iter().position(|(known, _)| known.is_some() && *known == place) {
            return known;
        }
        self.operands.push((place, code));
        self.operands.len() - 1
    }

    /// Whether an element mentions no loop, so that it is the same in every iteration. Then its
    /// operand may be anything that Rust can index.
    pub(super) fn is_fixed_element(&self, expr: &Expr) -> bool {
        matches!(expr, Expr::Index(_)) && !self.loops_in(expr.to_token_stream())
    }
}

/// The content of brackets that [`tokens::wrap`](super::tokens::wrap) has wrapped in a call of the
/// macro [`INDICES`]. `None` for other brackets.
pub fn wrapped(index: &Expr) -> Option<TokenStream> {
    match index {
        Expr::Macro(call) if call.mac.path.is_ident(INDICES) => Some(call.mac.tokens.clone()),
        _ => None,
    }
}

/// Whether an operand is a name or a field, so that two occurrences are the same operand.
fn is_place(base: &Expr) -> bool {
    match base {
        Expr::Path(_) => true,
        Expr::Field(field) => is_place(&field.base),
        Expr::Paren(inner) => is_place(&inner.expr),
        _ => false,
    }
}

/// The text of a place, with the macro expansion that each name comes from. A variable of a
/// `macro_rules!` macro, or of the comprehension itself, may have the same name as another one.
fn identity(code: TokenStream) -> String {
    let of_token = |token: TokenTree| match token {
        TokenTree::Ident(name) => format!("{}#{} ", name.unraw(), expansion(name.span())),
        TokenTree::Group(group) => format!("({})", identity(group.stream())),
        token => token.to_string(),
    };
    code.into_iter().map(of_token).collect()
}

/// The text of tokens, with conventional spacing: `a[i, j]` instead of `a [i , j]`.
pub fn compact(text: &str) -> String {
    let mut out = text.to_owned();
    for (spaced, tight) in [
        (" [", "["),
        ("[ ", "["),
        (" ]", "]"),
        (" ,", ","),
        (" .", "."),
        (". ", "."),
        (" (", "("),
        ("( ", "("),
        (" )", ")"),
    ] {
        out = out.replace(spaced, tight);
    }
    out
}
