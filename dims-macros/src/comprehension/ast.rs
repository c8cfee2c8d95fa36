//! The syntax: `[i, j in 0..n] => body` and `body => [i, j]`.

use super::LoopNotation;
use super::tokens::{generics_open, wrap};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Block, Error, Expr, ExprBlock, Ident, Result, Stmt, Token, token};

/// A whole call.
pub struct ComprehensionCall {
    /// All tokens.
    pub tokens: TokenStream,
    /// The axes of the result.
    pub axes: Vec<ResultAxis>,
    /// The body, with its brackets [wrapped](super::tokens).
    pub body: Expr,
}

/// One axis of the result.
pub enum ResultAxis {
    One(LoopRef),
    /// `(i, j)`: several loops, flattened into one axis.
    Group(Vec<LoopRef>),
}

/// A loop where it is introduced: `i`, `i in 0..n`, or `$i`.
pub struct LoopRef {
    pub name: Ident,
    /// Whether it is a dim of the surrounding scope.
    pub outer: bool,
    pub range: Option<Expr>,
}

pub fn parse(input: TokenStream, notation: LoopNotation) -> Result<ComprehensionCall> {
    let mut tokens: Vec<TokenTree> = input.clone().into_iter().collect();
    let arrow = position_of_arrow(&tokens).ok_or_else(|| without_arrow(&tokens, notation))?;
    let right = tokens.split_off(arrow + 2);
    tokens.truncate(arrow);
    let (output, body) = match notation {
        LoopNotation::Tensor => (tokens, right),
        LoopNotation::Einsum => (right, tokens),
    };
    let brackets = match without_comma(output, notation).as_slice() {
        [TokenTree::Group(group)] if group.delimiter() == Delimiter::Bracket => group.clone(),
        [] => return Err(Error::new(proc_macro2::Span::call_site(), expected(notation))),
        [first, ..] => {
            let what = match notation {
                LoopNotation::Tensor => "write the loops in brackets: `tensor!([i, j] => a[i, j] + b[j])`",
                LoopNotation::Einsum => {
                    "write the indices of the result in brackets: `einsum!(a[i, k] * b[k, j] => [i, j])`"
                }
            };
            return Err(Error::new(first.span(), what));
        }
    };
    let axes = ResultAxis::list.parse2(brackets.stream()).map_err(|error| within(error, &brackets))?;
    let body = without_comma(body, LoopNotation::Einsum);
    let Some(last) = body.last() else {
        let side = if notation == LoopNotation::Tensor { "after" } else { "before" };
        return Err(Error::new_spanned(
            &brackets,
            format!("expected an expression {side} the `=>`: {}", example(notation)),
        ));
    };
    let end = last.span();
    let body = parse_body.parse2(wrap(body.into_iter().collect())).map_err(|error| {
        // syn has no span for something missing at the end.
        let at_end = error.to_string().starts_with("unexpected end of input");
        if at_end { Error::new(end, "expected an expression after this") } else { error }
    })?;
    Ok(ComprehensionCall { tokens: input, axes, body })
}

fn expected(notation: LoopNotation) -> String {
    let what = match notation {
        LoopNotation::Tensor => "expected loops and an expression",
        LoopNotation::Einsum => "expected an expression and the indices of its result",
    };
    format!("{what}: {}", example(notation))
}

fn example(notation: LoopNotation) -> &'static str {
    match notation {
        LoopNotation::Tensor => "`tensor!([i, j] => a[i, j] + b[j])`",
        LoopNotation::Einsum => "`einsum!(a[i, k] * b[k, j] => [i, j])`",
    }
}

/// The error for a call without `=>`. If another sign is in its place, the error points there.
fn without_arrow(tokens: &[TokenTree], notation: LoopNotation) -> Error {
    let is = |token: &TokenTree, char| matches!(token, TokenTree::Punct(punct) if punct.as_char() == char);
    let brackets = |token: &TokenTree| matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket);
    let (sign, at) = match (notation, tokens) {
        (LoopNotation::Tensor, [loops, minus, greater, ..])
            if brackets(loops) && is(minus, '-') && is(greater, '>') =>
        {
            ("->", minus)
        }
        (LoopNotation::Tensor, [loops, equal, ..]) if brackets(loops) && is(equal, '=') => ("=", equal),
        (LoopNotation::Tensor, [loops, next, ..]) if brackets(loops) => {
            return Error::new(
                next.span(),
                "expected `=>` after the loops: `tensor!([i, j] => a[i, j] + b[j])`",
            );
        }
        (LoopNotation::Einsum, [.., equal, result]) if brackets(result) && is(equal, '=') => ("=", equal),
        (LoopNotation::Einsum, [.., minus, greater, result])
            if brackets(result) && is(minus, '-') && is(greater, '>') =>
        {
            ("->", minus)
        }
        (LoopNotation::Einsum, [TokenTree::Ident(first), ..])
            if tokens.windows(2).any(|pair| is(&pair[0], '-') && is(&pair[1], '>'))
                && !tokens.iter().any(brackets) =>
        {
            let what = "write a pattern of letters in a string: `einsum!(\"ik,kj->ij\", a, b)`";
            return Error::new(first.span(), what);
        }
        (LoopNotation::Einsum, [first, rest @ ..]) if rest.iter().any(|token| is(token, ',')) => {
            let what = "write the pattern as a string, `einsum!(\"ik,kj->ij\", a, b)`, or index the operands, `einsum!(a[i, k] * b[k, j] => [i, j])`";
            return Error::new(first.span(), what);
        }
        (LoopNotation::Einsum, [.., last]) => return Error::new(last.span(), expected(notation)),
        _ => return Error::new(proc_macro2::Span::call_site(), expected(notation)),
    };
    Error::new(at.span(), format!("expected `=>`, found `{sign}`: {}", example(notation)))
}

/// The position of the `=>` outside of groups. The arms of a `match` are in braces.
fn position_of_arrow(tokens: &[TokenTree]) -> Option<usize> {
    let is = |token: &TokenTree, char| matches!(token, TokenTree::Punct(punct) if punct.as_char() == char);
    tokens.windows(2).position(|pair| is(&pair[0], '=') && is(&pair[1], '>'))
}

/// Drops a trailing comma, which argument lists may have, if `notation` is that of `einsum!`.
fn without_comma(mut tokens: Vec<TokenTree>, notation: LoopNotation) -> Vec<TokenTree> {
    let comma = matches!(tokens.last(), Some(TokenTree::Punct(punct)) if punct.as_char() == ',');
    if comma && notation == LoopNotation::Einsum {
        tokens.pop();
    }
    tokens
}

/// An error about the content of a group. If the group is empty, the error points at the group.
fn within(error: Error, group: &Group) -> Error {
    let nowhere = group.stream().is_empty();
    if nowhere { Error::new_spanned(group, error) } else { error }
}

/// An expression, or statements with an expression at the end.
fn parse_body(input: ParseStream<'_>) -> Result<Expr> {
    if !input.peek(Token![let]) {
        let body = input.parse()?;
        if !input.is_empty() {
            return Err(input.error("expected an operator, or the end of the expression"));
        }
        return Ok(body);
    }
    let stmts: Vec<Stmt> = input.call(Block::parse_within)?;
    let block = Block { brace_token: token::Brace::default(), stmts };
    Ok(Expr::Block(ExprBlock { attrs: Vec::new(), label: None, block }))
}

impl ResultAxis {
    fn list(input: ParseStream<'_>) -> Result<Vec<ResultAxis>> {
        separated(input, |input| {
            if input.peek(token::Paren) {
                let content;
                let parens = syn::parenthesized!(content in input);
                if content.is_empty() {
                    return Err(Error::new(parens.span.join(), LOOP_NAME));
                }
                return Ok(ResultAxis::Group(separated(&content, LoopRef::parse)?));
            }
            Ok(ResultAxis::One(input.parse()?))
        })
    }
}

/// Parses like [`Punctuated`], with an error about commas that mentions loops.
fn separated<T>(
    input: ParseStream<'_>,
    mut item: impl FnMut(ParseStream<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let mut items = Vec::new();
    while !input.is_empty() {
        items.push(item(input)?);
        if !input.is_empty() && !input.peek(Token![,]) {
            return Err(input.error("expected `,` between loops, or `in` and a range: `i in 0..n`"));
        }
        let _comma: Option<Token![,]> = input.parse()?;
    }
    Ok(items)
}

const LOOP_NAME: &str = "expected the name of a loop: `i`, `i in 0..n`, or `$i` for an existing dim";

impl Parse for LoopRef {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let dollar: Option<Token![$]> = input.parse()?;
        if input.peek(Token![_]) {
            return Err(input.error("a loop needs a name, not `_`"));
        }
        if !input.peek(Ident::peek_any) {
            return Err(input.error(LOOP_NAME));
        }
        let name: Ident = input.parse()?;
        let mut range = None;
        if input.peek(Token![in]) {
            input.parse::<Token![in]>()?;
            range = Some(parse_range(input)?);
        }
        Ok(LoopRef { name, outer: dollar.is_some(), range })
    }
}

/// The range of a loop, up to the next comma between loops.
fn parse_range(input: ParseStream<'_>) -> Result<Expr> {
    let mut tokens = TokenStream::new();
    // Generic arguments may contain commas.
    let (mut open, mut before) = (0, None);
    while !input.is_empty() && (open > 0 || !input.peek(Token![,])) {
        let token: TokenTree = input.parse()?;
        open = generics_open(open, before.as_ref(), &token);
        before = Some(token.clone());
        tokens.extend([token]);
    }
    if tokens.is_empty() {
        return Err(input.error("expected a range: `i in 0..n`"));
    }
    let mut range = syn::parse2(wrap(tokens))?;
    while let Expr::Paren(inner) = range {
        range = *inner.expr;
    }
    match &range {
        Expr::Range(bounds) if bounds.start.is_some() && bounds.end.is_some() => Ok(range),
        _ => Err(Error::new_spanned(
            super::tokens::unwrap(quote::quote!(#range)),
            "a loop runs over a range with both ends: `i in 0..n`",
        )),
    }
}

/// The indices in wrapped brackets.
pub fn indices(content: TokenStream) -> Result<Vec<Expr>> {
    let list = Punctuated::<Expr, Token![,]>::parse_terminated.parse2(wrap(content))?;
    Ok(list.into_iter().collect())
}

/// The loops in the wrapped brackets of a reduction.
pub fn loops(content: TokenStream) -> Result<Vec<LoopRef>> {
    (|input: ParseStream<'_>| separated(input, LoopRef::parse)).parse2(content)
}
