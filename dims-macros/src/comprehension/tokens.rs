//! Rewrites brackets after an operand before syn parses them: syn cannot parse `a[i, k]`, but it
//! can parse `a[__indices!{i, k}]`.

use crate::key::expansion;
use proc_macro2::{Delimiter, Group, Ident, Punct, Spacing, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use std::collections::HashSet;
use syn::ext::IdentExt;
use syn::spanned::Spanned;

/// The macro that stands for a list of indices.
pub const INDICES: &str = "__indices";
/// The macro that stands for `$name`.
pub const OUTER: &str = "__outer";
/// The reductions, by the names of their methods.
pub const REDUCTIONS: [&str; 14] = [
    "sum",
    "prod",
    "mean",
    "max",
    "min",
    "argmax",
    "argmin",
    "any",
    "all",
    "count",
    "var",
    "std",
    "norm",
    "logsumexp",
];

/// Wraps the content of brackets after an operand in a call of the macro [`INDICES`], and `$name` in
/// a call of the macro [`OUTER`].
pub fn wrap(tokens: TokenStream) -> TokenStream {
    let mut out = TokenStream::new();
    let mut tokens = tokens.into_iter().peekable();
    let mut operand = false;
    let mut bang = false;
    while let Some(token) = tokens.next() {
        let mut is_bang = false;
        let is_operand = match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket && operand => {
                let name = Ident::new(INDICES, group.span());
                let content = group.stream();
                out.extend([regrouped(&group, quote!(#name!{#content}))]);
                true
            }
            // Leave the arguments of other macros alone.
            TokenTree::Group(group) if bang => {
                out.extend([TokenTree::Group(group)]);
                true
            }
            TokenTree::Group(group) => {
                out.extend([regrouped(&group, wrap(group.stream()))]);
                group.delimiter() != Delimiter::Brace
            }
            TokenTree::Punct(punct)
                if punct.as_char() == '$' && matches!(tokens.peek(), Some(TokenTree::Ident(_))) =>
            {
                let Some(TokenTree::Ident(name)) = tokens.next() else { unreachable!("a name was seen") };
                let outer = Ident::new(OUTER, name.span());
                out.extend(quote_spanned!(name.span()=> #outer!{#name}));
                true
            }
            TokenTree::Punct(punct) => {
                is_bang = punct.as_char() == '!' && operand;
                let operand = punct.as_char() == '?';
                out.extend([TokenTree::Punct(punct)]);
                operand
            }
            TokenTree::Ident(ident) => {
                let operand = !is_keyword(&ident);
                out.extend([TokenTree::Ident(ident)]);
                operand
            }
            // The `0` of `pair.0[i]`. A literal that is indexed itself is refused when the operand
            // is checked.
            TokenTree::Literal(literal) => {
                out.extend([TokenTree::Literal(literal)]);
                true
            }
        };
        (operand, bang) = (is_operand, is_bang);
    }
    out
}

/// Undoes [`wrap`].
pub fn unwrap(tokens: TokenStream) -> TokenStream {
    let mut out = TokenStream::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Ident(ident) if ident == INDICES || ident == OUTER => {
                tokens.next();
                let Some(TokenTree::Group(group)) = tokens.next() else {
                    unreachable!("wrapped tokens are a group")
                };
                if ident == OUTER {
                    out.extend([TokenTree::Punct(Punct::new('$', Spacing::Alone))]);
                }
                out.extend(group.stream());
            }
            TokenTree::Group(group) => out.extend([regrouped(&group, unwrap(group.stream()))]),
            token => out.extend([token]),
        }
    }
    out
}

/// The source of every operand that is a name, or a path of named fields such as `a.b`, for calls
/// with errors. Excludes names that the call itself binds.
pub fn bases(tokens: TokenStream) -> Vec<TokenStream> {
    let (mut found, mut own) = (Vec::new(), HashSet::new());
    collect_own(tokens.clone(), &mut own);
    collect_bases(tokens, &mut found);
    found.retain(|base| {
        let first = base.clone().into_iter().next();
        !matches!(first, Some(TokenTree::Ident(name)) if own.contains(&name.to_string()))
    });
    found
}

/// Collects the names after `let`, and the names in brackets that are a whole entry or stand before
/// `in`, such as the loops in `[i, j in 0..3]`.
fn collect_own(tokens: TokenStream, own: &mut HashSet<String>) {
    let is = |token: Option<&TokenTree>, char| matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == char);
    let word =
        |token: Option<&TokenTree>, word| matches!(token, Some(TokenTree::Ident(ident)) if ident == word);
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Ident(name) if at > 0 && word(tokens.get(at - 1), "let") => {
                own.insert(name.to_string());
            }
            TokenTree::Group(group) => {
                if group.delimiter() == Delimiter::Bracket {
                    let content: Vec<TokenTree> = group.stream().into_iter().collect();
                    for (at, token) in content.iter().enumerate() {
                        let (before, after) = (at.checked_sub(1).map(|at| &content[at]), content.get(at + 1));
                        if let TokenTree::Ident(name) = token
                            && (before.is_none() || is(before, ','))
                            && (after.is_none() || is(after, ',') || word(after, "in"))
                        {
                            own.insert(name.to_string());
                        }
                    }
                }
                collect_own(group.stream(), own);
            }
            _ => {}
        }
    }
}

fn collect_bases(tokens: TokenStream, found: &mut Vec<TokenStream>) {
    let mut base: Vec<TokenTree> = Vec::new();
    let (mut after_dot, mut before) = (false, None);
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let dot = is_dot(&token, before.as_ref());
        before = Some(token.clone());
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket && !base.is_empty() => {
                let reduction = matches!(tokens.peek(), Some(TokenTree::Group(next)) if next.delimiter() == Delimiter::Parenthesis);
                let named = matches!(&base[..], [TokenTree::Ident(name)] if is_reduction(name));
                if !reduction && !named {
                    found.push(base.drain(..).collect());
                }
                base.clear();
                collect_bases(group.stream(), found);
            }
            TokenTree::Group(group) => {
                base.clear();
                collect_bases(group.stream(), found);
            }
            TokenTree::Ident(ident) if !is_keyword(&ident) => {
                if !after_dot {
                    base.clear();
                }
                base.push(TokenTree::Ident(ident));
            }
            TokenTree::Punct(punct) if dot && !base.is_empty() => base.push(TokenTree::Punct(punct)),
            _ => base.clear(),
        }
        after_dot = dot;
    }
}

/// Whether a token is the dot of a field or a method, not the end of `..`.
pub fn is_dot(token: &TokenTree, before: Option<&TokenTree>) -> bool {
    let dot = |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == '.');
    dot(token) && !before.is_some_and(dot)
}

/// The number of `<` of generic arguments that are still open after `token`; `open` is the number
/// before it. A `<` after an operand does not count: it compares or shifts.
pub fn generics_open(open: usize, before: Option<&TokenTree>, token: &TokenTree) -> usize {
    let TokenTree::Punct(sign) = token else { return open };
    let begins = match before {
        Some(TokenTree::Ident(word)) => is_keyword(word),
        Some(TokenTree::Punct(sign)) => sign.as_char() != '<',
        Some(_) => false,
        None => true,
    };
    let arrow = matches!(before, Some(TokenTree::Punct(minus)) if minus.as_char() == '-');
    match sign.as_char() {
        '<' if open > 0 || begins => open + 1,
        '>' if !arrow => open.saturating_sub(1),
        _ => open,
    }
}

fn regrouped(group: &Group, content: TokenStream) -> TokenTree {
    let mut new = Group::new(group.delimiter(), content);
    new.set_span(group.span());
    TokenTree::Group(new)
}

/// Whether brackets after a name are probably those of an incomplete reduction.
fn is_reduction(name: &Ident) -> bool {
    REDUCTIONS.iter().any(|known| name == known)
}

/// Whether a word cannot be an operand or the name of a macro.
pub fn is_keyword(ident: &Ident) -> bool {
    const NO_OPERANDS: [&str; 16] = [
        "as", "break", "const", "dyn", "else", "if", "impl", "in", "let", "loop", "match", "move", "mut",
        "ref", "return", "while",
    ];
    NO_OPERANDS.iter().any(|keyword| ident == keyword)
}

/// Whether two names are the same variable: as for rustc, names from different expansions of
/// `macro_rules!` macros are different, even if their texts are equal.
pub fn is_same(a: &Ident, b: &Ident) -> bool {
    a.unraw() == b.unraw() && expansion(a.span()) == expansion(b.span())
}

/// Whether `name` can stand for the variable that `known` declares in a call. Names from different
/// expansions qualify if the call mentions `known` only once: then a `macro_rules!` macro declares
/// it for the code that is passed to the macro.
pub fn stands_for(name: &Ident, known: &Ident, call: &TokenStream) -> bool {
    name.unraw() == known.unraw() && (is_same(name, known) || times(known, call.clone()) < 2)
}

/// The number of times that code mentions a name.
fn times(name: &Ident, code: TokenStream) -> usize {
    let of_token = |token: TokenTree| match token {
        TokenTree::Ident(other) => usize::from(is_same(name, &other)),
        TokenTree::Group(group) => times(name, group.stream()),
        _ => 0,
    };
    code.into_iter().map(of_token).sum()
}

/// Code in parentheses, so that no adjacent operator binds to a part of it. A single token needs
/// none.
pub fn grouped(code: TokenStream) -> TokenStream {
    if code.clone().into_iter().nth(1).is_none() { code } else { parens(code) }
}

/// Code in parentheses.
pub fn parens(code: TokenStream) -> TokenStream {
    let place = code.span();
    let mut group = Group::new(Delimiter::Parenthesis, code);
    group.set_span(Span::mixed_site().located_at(place));
    TokenTree::Group(group).into_token_stream()
}

/// The identifier with the macro's hygiene, at the user's span.
pub fn own(name: &Ident) -> Ident {
    own_at(name, name.span())
}

/// Like [`own`], at another span.
pub fn own_at(name: &Ident, place: Span) -> Ident {
    let mut own = name.clone();
    own.set_span(Span::mixed_site().located_at(place));
    own
}
