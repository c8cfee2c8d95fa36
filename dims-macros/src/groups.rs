//! Keeps an expression in one piece when a `macro_rules!` macro passes it on.
//!
//! A `$x:expr` in the tokens of a call arrives in a group without delimiters. rustc drops such
//! groups when they pass through a procedural macro, so that `$x * 2`, with `a + b` for `$x`, would
//! become `a + b * 2`.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use syn::Expr;

/// The tokens of a call, with parentheses around the expressions that need them.
pub fn visible(tokens: TokenStream) -> TokenStream {
    if !has_invisible(tokens.clone()) {
        return tokens;
    }
    let mut out = TokenStream::new();
    for token in tokens {
        let TokenTree::Group(group) = token else {
            out.extend([token]);
            continue;
        };
        let content = visible(group.stream());
        let (mut delimiter, mut span) = (group.delimiter(), group.span());
        if delimiter == Delimiter::None {
            match syn::parse2::<Expr>(content.clone()) {
                Ok(expr) if is_compound(&expr) => {
                    delimiter = Delimiter::Parenthesis;
                    span = Span::mixed_site().located_at(span);
                }
                Ok(_) => {
                    out.extend(content);
                    continue;
                }
                // A type or a pattern.
                Err(_) => {}
            }
        } else if !has_invisible(group.stream()) {
            // Keep the group: a new one would lose the spans of its delimiters.
            out.extend([TokenTree::Group(group)]);
            continue;
        }
        let mut group = Group::new(delimiter, content);
        group.set_span(span);
        out.extend([TokenTree::Group(group)]);
    }
    out
}

fn has_invisible(tokens: TokenStream) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::None || has_invisible(group.stream()),
        _ => false,
    })
}

/// Whether an adjacent operator could bind to a part of an expression.
fn is_compound(expr: &Expr) -> bool {
    !matches!(
        expr,
        Expr::Array(_)
            | Expr::Block(_)
            | Expr::Call(_)
            | Expr::Field(_)
            | Expr::Index(_)
            | Expr::Infer(_)
            | Expr::Lit(_)
            | Expr::Macro(_)
            | Expr::MethodCall(_)
            | Expr::Paren(_)
            | Expr::Path(_)
            | Expr::Tuple(_)
    )
}
