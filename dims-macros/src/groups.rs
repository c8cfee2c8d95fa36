//! Keeps an expression in one piece when a `macro_rules!` macro passes it on.
//!
//! A `$x:expr` in the tokens of a call arrives in a group without delimiters. rustc drops such
//! groups when they pass through a procedural macro, so that `$x * 2`, with `a + b` for `$x`, would
//! become `a + b * 2`.

use proc_macro2::{Delimiter, Group, Spacing, Span, TokenStream, TokenTree};
use std::mem;
use syn::visit_mut::{self, VisitMut};
use syn::{Expr, ExprParen, Macro, Type, TypeParen, UnOp, token};

/// The tokens of a call, with parentheses around the expressions that need them.
pub fn visible(tokens: TokenStream) -> TokenStream {
    if !has_invisible(tokens.clone()) {
        return tokens;
    }
    let mut out = TokenStream::new();
    let mut tokens = tokens.into_iter().peekable();
    let (mut after_as, mut after_hash) = (false, false);
    while let Some(token) = tokens.next() {
        let is_as = matches!(&token, TokenTree::Ident(word) if word == "as");
        let is_hash = is_sign(Some(&token), '#') || after_hash && is_sign(Some(&token), '!');
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
                out.extend(captured(&group, after_as, tokens.peek()));
            }
            // A new group loses the spans of its delimiters, so it is made only if it is needed.
            // The content of an attribute, `#[$meta]` or `#![$meta]`, is not an expression.
            TokenTree::Group(group) if has_invisible(group.stream()) && !after_hash => {
                let mut new = Group::new(group.delimiter(), visible(group.stream()));
                new.set_span(group.span());
                out.extend([TokenTree::Group(new)]);
            }
            token => out.extend([token]),
        }
        (after_as, after_hash) = (is_as, is_hash);
    }
    out
}

/// The content of a group without delimiters, given whether it follows an `as`, and the next token.
fn captured(group: &Group, after_as: bool, after: Option<&TokenTree>) -> TokenStream {
    let content = visible(group.stream());
    let (delimiter, span) = match syn::parse2::<Expr>(content.clone()) {
        Ok(expr) if needs_parens(&expr, after_as, after) => {
            (Delimiter::Parenthesis, Span::mixed_site().located_at(group.span()))
        }
        Ok(_) => return content,
        // A type or a pattern.
        Err(_) => (Delimiter::None, group.span()),
    };
    let mut group = Group::new(delimiter, content);
    group.set_span(span);
    TokenTree::Group(group).into()
}

/// Whether one of the tokens before and after an expression could bind to a part of it.
fn needs_parens(expr: &Expr, after_as: bool, after: Option<&TokenTree>) -> bool {
    match expr {
        // In `x as $ty < y`, the sign would open the arguments of the type.
        Expr::Path(_) => after_as && is_sign(after, '<'),
        // In `$function(x)`, with `a.b` for `$function`, `b` would be called as a method.
        Expr::Field(_) => {
            matches!(after, Some(TokenTree::Group(next)) if next.delimiter() == Delimiter::Parenthesis)
        }
        // A negative number needs them only before `.`. Elsewhere, it may be the end of a range in
        // a pattern, where parentheses are not allowed.
        Expr::Unary(minus) if matches!((&minus.op, &*minus.expr), (UnOp::Neg(_), Expr::Lit(_))) => {
            matches!(after, Some(TokenTree::Punct(dot)) if dot.as_char() == '.' && dot.spacing() == Spacing::Alone)
        }
        expr => is_compound(expr),
    }
}

fn is_sign(token: Option<&TokenTree>, sign: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == sign)
}

/// Replaces the groups in a parsed item by their content, as [`visible`] does with those in a call.
/// [`visible`] itself cannot be used here, because it treats everything that parses as an
/// expression as one, even a type or a statement.
pub struct Ungroup;

impl VisitMut for Ungroup {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        visit_mut::visit_expr_mut(self, expr);
        // syn would put a `let` into parentheses.
        if let Expr::Group(group) = expr
            && !matches!(*group.expr, Expr::Let(_))
        {
            let attrs = mem::take(&mut group.attrs);
            let paren_token = token::Paren(Span::mixed_site().located_at(group.group_token.span));
            let inner = mem::replace(&mut group.expr, Box::new(Expr::Verbatim(TokenStream::new())));
            *expr = if is_compound(&inner) || !attrs.is_empty() {
                Expr::Paren(ExprParen { attrs, paren_token, expr: inner })
            } else {
                *inner
            };
        }
    }

    fn visit_type_mut(&mut self, ty: &mut Type) {
        visit_mut::visit_type_mut(self, ty);
        if let Type::Group(group) = ty {
            let paren_token = token::Paren(Span::mixed_site().located_at(group.group_token.span));
            let elem = mem::replace(&mut group.elem, Box::new(Type::Verbatim(TokenStream::new())));
            // In `&$ty`, with `dyn A + B` for `$ty`, the type needs parentheses.
            let has_plus = match &*elem {
                Type::TraitObject(ty) => ty.bounds.len() > 1,
                Type::ImplTrait(ty) => ty.bounds.len() > 1,
                _ => false,
            };
            *ty = if has_plus { Type::Paren(TypeParen { paren_token, elem }) } else { *elem };
        }
    }

    fn visit_macro_mut(&mut self, call: &mut Macro) {
        call.tokens = visible(mem::take(&mut call.tokens));
    }
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
            | Expr::Let(_)
            | Expr::Lit(_)
            | Expr::Macro(_)
            | Expr::MethodCall(_)
            | Expr::Paren(_)
            | Expr::Path(_)
            | Expr::Tuple(_)
    )
}
