//! Parses the arguments of a call: operands, a pattern, a reduction, and sizes.

use super::axes::Table;
use super::errors::Errors;
use super::lex;
use super::near::hint;
use super::plan::home;
use super::words::{Notation, Words};
use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::spanned::Spanned;
use syn::{Expr, ExprClosure, ExprLit, Lit, LitStr, Result, Token, parse_quote_spanned};

/// `h = 2`
pub struct Size {
    pub name: Ident,
    pub value: Expr,
}

/// A reduction and its span.
pub struct Op {
    pub name: String,
    pub span: Span,
    /// The user's function, if the reduction is a closure.
    pub closure: Option<ExprClosure>,
}

/// The arguments of a macro.
pub struct Call {
    pub operands: Vec<Expr>,
    pub words: Words,
    pub op: Option<Op>,
    pub sizes: Vec<Size>,
}

/// The arguments that a macro takes.
#[derive(Clone, Copy)]
pub struct Form {
    /// The name of the macro, for messages.
    pub name: &'static str,
    /// An example of a call, for messages.
    pub example: &'static str,
    /// Whether a reduction follows the pattern.
    pub op: bool,
    /// The number of operands, or `None` if it is the number of arrays on the left of the pattern.
    pub operands: Option<usize>,
}

pub fn parse(input: ParseStream<'_>, form: &Form, errors: &mut Errors) -> Result<Call> {
    let mut operands = vec![operand(input, form)?];
    let count = form.operands.or_else(|| count_operands(input));
    while count.is_none_or(|count| operands.len() < count) && !input.peek(LitStr) {
        operands.push(operand(input, form)?);
    }
    let (words, op) = if input.peek(LitStr) {
        let literal: LitStr = input.parse()?;
        let words = lex::string(&literal, Notation::Names, errors);
        let op = if form.op { Some(reduction(input, form, errors)?) } else { None };
        (words, op)
    } else {
        bare(input, form, errors)?
    };
    let mut sizes = sizes(input)?;
    sizes_of_dims(&words, &mut sizes);
    Ok(Call { operands, words, op: op.flatten(), sizes })
}

fn operand(input: ParseStream<'_>, form: &Form) -> Result<Expr> {
    if input.is_empty() {
        return Err(missing(format!("expected an array and a pattern: `{}`", form.example)));
    }
    let start = input.span();
    let expr: Expr = input.parse().map_err(|_| {
        syn::Error::new(start, format!("expected an array and then a pattern: `{}`", form.example))
    })?;
    if let Expr::Lit(ExprLit { lit: Lit::Str(literal), .. }) = &expr {
        let what = format!("the array comes first, and then the pattern: `{}`", form.example);
        return Err(syn::Error::new(literal.span(), what));
    }
    if input.is_empty() {
        return Err(missing(format!("expected `,` and a pattern: `{}`", form.example)));
    }
    if !input.peek(Token![,]) {
        return Err(
            input.error(format!("expected `,` between the array and the pattern: `{}`", form.example))
        );
    }
    input.parse::<Token![,]>()?;
    Ok(expr)
}

/// An error about something missing at the end of a call.
pub fn missing(what: String) -> syn::Error {
    syn::Error::new(Span::call_site(), what)
}

/// The number of operands before a pattern: the number of arrays to the left of `->`. So `x` and
/// `y` are the operands in `x, y, a, b -> ..`. `None` if the pattern is a string: everything before
/// it is an operand.
fn count_operands(input: ParseStream<'_>) -> Option<usize> {
    let fork = input.fork();
    let (mut commas, mut last) = (0, ' ');
    while let Ok(token) = fork.parse::<TokenTree>() {
        let this = match &token {
            TokenTree::Punct(punct) => punct.as_char(),
            _ => ' ',
        };
        match (last, this) {
            ('-', '>') => return Some(commas / 2 + 1),
            (_, ',') => {
                commas += 1;
                if fork.peek(LitStr) {
                    return None;
                }
            }
            _ => {}
        }
        last = this;
    }
    Some(1)
}

/// A pattern of tokens, and a reduction if the macro takes one, up to the end or to a size.
fn bare(input: ParseStream<'_>, form: &Form, errors: &mut Errors) -> Result<(Words, Option<Option<Op>>)> {
    let mut tokens: Vec<TokenTree> = Vec::new();
    while !input.is_empty() && !size_follows(input) {
        // The parameters of a closure may have types.
        let closure = tokens.iter().any(|token| matches!(token, TokenTree::Punct(p) if p.as_char() == '|'));
        if let Some((name, colon)) = colon_follows(input).filter(|_| !closure) {
            let what = format!("write the size of an axis with `=`: `{name} = 2`");
            return Err(syn::Error::new(colon, what));
        }
        tokens.push(input.parse()?);
    }
    let trailing = matches!(tokens.last(), Some(TokenTree::Punct(punct)) if punct.as_char() == ',');
    if trailing {
        tokens.pop();
    }
    let mut op = None;
    if form.op {
        let arrow =
            tokens.iter().position(|token| matches!(token, TokenTree::Punct(p) if p.as_char() == '>'));
        let is = |token: &TokenTree, char| matches!(token, TokenTree::Punct(p) if p.as_char() == char);
        // A closure may contain commas.
        let closure = tokens.windows(2).position(|pair| {
            let begins = is(&pair[1], '|') || matches!(&pair[1], TokenTree::Ident(name) if name == "move");
            is(&pair[0], ',') && begins
        });
        let comma = closure.or_else(|| tokens.iter().rposition(|token| is(token, ',')));
        match comma.filter(|&comma| arrow.is_none_or(|arrow| comma > arrow)) {
            Some(comma) => {
                let name: TokenStream = tokens[comma + 1..].iter().cloned().collect();
                let span = tokens.get(comma + 1).map_or_else(|| tokens[comma].span(), TokenTree::span);
                tokens.truncate(comma);
                op = Some(op_named(name, span));
            }
            None => {
                let span = tokens.last().map_or_else(Span::call_site, TokenTree::span);
                errors.span(span, format!("expected a reduction after the pattern: `{}`", form.example));
            }
        }
    }
    let end = tokens.last().map_or_else(Span::call_site, TokenTree::span);
    Ok((lex::tokens(tokens.into_iter().collect(), Notation::Names, end, errors), Some(op)))
}

fn op_named(tokens: TokenStream, span: Span) -> Op {
    let mut expr = syn::parse2::<Expr>(tokens.clone());
    // A closure that a `macro_rules!` macro passes on is in parentheses.
    while let Ok(Expr::Paren(inner)) = expr {
        expr = Ok(*inner.expr);
    }
    if let Ok(Expr::Closure(closure)) = expr {
        return Op { name: String::new(), span, closure: Some(closure) };
    }
    let name = match syn::parse2::<LitStr>(tokens.clone()) {
        Ok(literal) => literal.value(),
        Err(_) => tokens.to_string().replace(" :: ", "::").replace("& ", "&"),
    };
    Op { name: name.trim_start_matches("r#").to_owned(), span, closure: None }
}

/// Parses the reduction after a pattern in a string: `, max`.
fn reduction(input: ParseStream<'_>, form: &Form, errors: &mut Errors) -> Result<Option<Op>> {
    if !input.peek(Token![,]) || size_follows(input) {
        let what = format!("expected a reduction after the pattern: `{}`", form.example);
        errors.span(if input.is_empty() { Span::call_site() } else { input.span() }, what);
        return Ok(None);
    }
    input.parse::<Token![,]>()?;
    if input.is_empty() {
        errors.span(Span::call_site(), format!("expected a reduction after the pattern: `{}`", form.example));
        return Ok(None);
    }
    if input.peek(Token![|]) || input.peek(Token![||]) || input.peek(Token![move]) {
        let closure: ExprClosure = input.parse()?;
        return Ok(Some(op_named(closure.to_token_stream(), closure.span())));
    }
    let token: TokenTree = input.parse()?;
    Ok(Some(op_named(token.to_token_stream(), token.span())))
}

fn size_follows(input: ParseStream<'_>) -> bool {
    let fork = input.fork();
    fork.parse::<Token![,]>().is_ok()
        && fork.call(Ident::parse_any).is_ok()
        && fork.peek(Token![=])
        && !fork.peek(Token![==])
        && !fork.peek(Token![=>])
}

/// `, h: 2`, a mistaken form of `, h = 2`.
fn colon_follows(input: ParseStream<'_>) -> Option<(Ident, Span)> {
    let fork = input.fork();
    fork.parse::<Token![,]>().ok()?;
    let name = fork.call(Ident::parse_any).ok()?;
    let colon = fork.peek(Token![:]) && !fork.peek(Token![::]);
    colon.then(|| (name, fork.span()))
}

/// `, h = 2, w = 3`
pub fn sizes(input: ParseStream<'_>) -> Result<Vec<Size>> {
    let mut sizes = Vec::new();
    while !input.is_empty() {
        if !input.peek(Token![,]) {
            return Err(input.error("expected `,` and the size of an axis, `h = 2`"));
        }
        input.parse::<Token![,]>()?;
        if input.is_empty() {
            break;
        }
        if !size_name_follows(input) {
            return Err(input.error("expected the size of an axis: `h = 2`"));
        }
        let name = input.call(Ident::parse_any)?;
        input.parse::<Token![=]>()?;
        if input.is_empty() {
            return Err(syn::Error::new(name.span(), format!("expected a size: `{name} = 2`")));
        }
        sizes.push(Size { name, value: input.parse()? });
    }
    Ok(sizes)
}

/// Gives axes `$n` the size of the dim `n`. If `n` is not a dim, rustc reports an error at it.
fn sizes_of_dims(words: &Words, sizes: &mut Vec<Size>) {
    for (at, dim) in words.outer.iter().enumerate() {
        if !words.outer[..at].contains(dim) {
            let home = home();
            let value = parse_quote_spanned!(dim.span()=> #home::dim_size(#dim));
            sizes.push(Size { name: dim.clone(), value });
        }
    }
}

/// Whether the input starts with a size, `h = 2`.
pub fn size_name_follows(input: ParseStream<'_>) -> bool {
    let fork = input.fork();
    fork.call(Ident::parse_any).is_ok() && fork.peek(Token![=]) && !fork.peek(Token![==])
}

/// The sizes that a call gives, by the index of the axis. Reports names that the pattern lacks, and
/// duplicates.
pub fn given(sizes: &[Size], table: &Table, errors: &mut Errors) -> Vec<(usize, syn::Expr)> {
    let mut given: Vec<(usize, syn::Expr)> = Vec::new();
    for size in sizes {
        let name = size.name.to_string();
        let name = name.strip_prefix("r#").unwrap_or(&name);
        match table.find(name) {
            None => {
                let hint = hint(name, table.names());
                errors.span(size.name.span(), format!("the pattern has no axis `{name}`{hint}"));
            }
            Some(axis) if given.iter().any(|(own, _)| *own == axis) => {
                errors.span(size.name.span(), format!("the size of `{name}` is given twice"));
            }
            Some(axis) => given.push((axis, size.value.clone())),
        }
    }
    given
}
