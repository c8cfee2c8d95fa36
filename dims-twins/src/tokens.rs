//! What all that reads tokens needs.

use proc_macro::{Delimiter, Group, Literal, Spacing, Span, TokenStream, TokenTree};

/// Why an attribute cannot stand where it does.
pub struct Refusal {
    at: Span,
    why: String,
}

impl Refusal {
    pub fn new(at: Span, why: &str) -> Self {
        Refusal { at, why: why.to_owned() }
    }

    /// An error of rustc's at the place of the mistake.
    pub fn into_tokens(self) -> TokenStream {
        let text = TokenTree::Literal(Literal::string(&self.why));
        let group = TokenTree::Group(Group::new(Delimiter::Brace, text.into()));
        let tokens =
            "::core::compile_error!".parse::<TokenStream>().expect("Rust").into_iter().chain([group]);
        tokens
            .map(|mut token| {
                token.set_span(self.at);
                token
            })
            .collect()
    }
}

/// The tokens, without the invisible groups that fragments of a `macro_rules` stand in.
pub fn flat(tokens: TokenStream) -> Vec<TokenTree> {
    let each = |token| match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::None => flat(group.stream()),
        token => vec![token],
    };
    tokens.into_iter().flat_map(each).collect()
}

/// The text of a string literal. (Escapes stay as they are.)
pub fn text_of(token: &TokenTree) -> Option<String> {
    let TokenTree::Literal(literal) = token else { return None };
    let literal = literal.to_string();
    let (_, text) = literal.split_once('"')?;
    text.rsplit_once('"').map(|(text, _)| text.to_owned())
}

/// Whether this is the sign.
pub fn is_sign(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == sign)
}

/// Counts the angle brackets that are open. (Those of `->` are none.)
#[derive(Default)]
pub struct Angles {
    open: usize,
    after_a_dash: bool,
}

impl Angles {
    /// How many brackets are open after a further token.
    pub fn after(&mut self, token: &TokenTree) -> usize {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == '<' => self.open += 1,
            TokenTree::Punct(punct) if punct.as_char() == '>' && !self.after_a_dash => {
                self.open = self.open.saturating_sub(1);
            }
            _ => {}
        }
        self.after_a_dash = matches!(
            token,
            TokenTree::Punct(punct) if punct.as_char() == '-' && punct.spacing() == Spacing::Joint
        );
        self.open
    }
}

/// What stands between the commas that are in no angle brackets.
pub fn between_commas(tokens: impl IntoIterator<Item = TokenTree>) -> Vec<Vec<TokenTree>> {
    let mut parts = vec![Vec::new()];
    let mut angles = Angles::default();
    for token in tokens {
        if angles.after(&token) == 0 && is_sign(&token, ',') {
            parts.push(Vec::new());
        } else {
            parts.last_mut().expect("there is one from the start").push(token);
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}
