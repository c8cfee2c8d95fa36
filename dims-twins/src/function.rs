//! The parts of a function.

use crate::docs::attribute_of;
use crate::tokens::{Angles, Refusal, between_commas, flat, is_sign};
use proc_macro::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};

/// A function `try_name` that returns a `Result`.
pub struct Function {
    /// Its attributes `doc`, without the `#`.
    pub docs: Vec<Group>,
    /// Its other attributes.
    pub attributes: TokenStream,
    /// `pub fn`.
    pub before_the_name: TokenStream,
    pub name: Ident,
    /// `<..>`, or nothing.
    pub generics: TokenStream,
    /// `where ..`, or nothing.
    pub bounds: TokenStream,
    /// The function without its attributes.
    pub signature_and_body: TokenStream,
    receiver: Option<Receiver>,
    parameters: Vec<Parameter>,
    /// What the `Result` has where there is no error.
    value: Vec<TokenTree>,
    names_self_type: bool,
}

/// `self`, `&self`, ..
struct Receiver {
    tokens: Vec<TokenTree>,
    name: Ident,
}

struct Parameter {
    name: Ident,
    /// `: T`.
    of_type: Vec<TokenTree>,
}

impl Function {
    pub fn read(function: TokenStream) -> Result<Self, Refusal> {
        let mut tokens: Vec<_> = function.into_iter().collect();
        let (docs, attributes) = attributes(&mut tokens);
        let signature_and_body = tokens.iter().cloned().collect();

        let keyword = position(&tokens, |token| token.to_string() == "fn");
        let list = position_outside_angles(&tokens, |token| is_group(token, Delimiter::Parenthesis));
        let (Some(keyword), Some(list)) = (keyword, list.filter(|&list| keyword < Some(list))) else {
            return Err(Refusal::new(Span::call_site(), "`#[panicking_twin]` stands on a function"));
        };
        let (TokenTree::Ident(name), TokenTree::Group(parameters)) = (&tokens[keyword + 1], &tokens[list])
        else {
            unreachable!("`fn` is followed by a name, and the list of parameters is a group");
        };
        if !name.to_string().starts_with("try_") {
            return Err(Refusal::new(name.span(), "the name of a function with a twin begins with `try_`"));
        }
        // (The body is the last token, or the semicolon of a method that a trait requires.)
        let after = &tokens[list + 1..tokens.len() - 1];
        let bounds = position(after, |token| token.to_string() == "where").unwrap_or(after.len());
        let value = value_of(&after[..bounds])
            .ok_or_else(|| Refusal::new(name.span(), "a function with a twin returns a `Result<.., ..>`"))?;

        let mut parts = between_commas(parameters.stream());
        let receiver = parts.first().and_then(|part| Receiver::read(part));
        parts.drain(..usize::from(receiver.is_some()));
        Ok(Function {
            docs,
            attributes,
            before_the_name: tokens[..=keyword].iter().cloned().collect(),
            name: name.clone(),
            generics: tokens[keyword + 2..list].iter().cloned().collect(),
            bounds: after[bounds..].iter().cloned().collect(),
            signature_and_body,
            receiver,
            parameters: parts.into_iter().map(Parameter::read).collect::<Result<_, _>>()?,
            value,
            names_self_type: names_self_type(&tokens[keyword..tokens.len() - 1]),
        })
    }

    /// Whether it belongs to a type or a trait.
    pub fn is_associated(&self) -> bool {
        self.receiver.is_some() || self.names_self_type
    }

    pub fn parameters_of_the_twin(&self) -> TokenStream {
        let receiver = self.receiver.iter().map(|receiver| receiver.tokens.clone());
        let others = self.parameters.iter().map(|parameter| {
            [TokenTree::Ident(parameter.name.clone())].into_iter().chain(parameter.of_type.clone()).collect()
        });
        with_commas(receiver.chain(others))
    }

    /// `-> T`, or nothing for `()`.
    pub fn value_type(&self) -> TokenStream {
        match &self.value[..] {
            [TokenTree::Group(unit)] if unit.stream().is_empty() => TokenStream::new(),
            value => "->".parse::<TokenStream>().expect("Rust").into_iter().chain(value.to_vec()).collect(),
        }
    }

    /// `self.try_name(a, b)`.
    pub fn call(&self) -> TokenStream {
        let mut call = TokenStream::new();
        if let Some(receiver) = &self.receiver {
            call.extend([TokenTree::Ident(receiver.name.clone())]);
            call.extend(".".parse::<TokenStream>());
        } else if self.names_self_type {
            call.extend("Self::".parse::<TokenStream>());
        }
        let arguments =
            self.parameters.iter().map(|parameter| vec![TokenTree::Ident(parameter.name.clone())]);
        call.extend([
            TokenTree::Ident(self.name.clone()),
            TokenTree::Group(Group::new(Delimiter::Parenthesis, with_commas(arguments))),
        ]);
        call
    }
}

impl Receiver {
    fn read(tokens: &[TokenTree]) -> Option<Self> {
        let type_at = position(tokens, |token| is_sign(token, ':')).unwrap_or(tokens.len());
        let name = tokens[..type_at].iter().find_map(|token| match token {
            TokenTree::Ident(name) if name.to_string() == "self" => Some(name.clone()),
            _ => None,
        })?;
        Some(Receiver { tokens: without_mut(tokens).to_vec(), name })
    }
}

impl Parameter {
    fn read(tokens: Vec<TokenTree>) -> Result<Self, Refusal> {
        match without_mut(&tokens) {
            [TokenTree::Ident(name), colon, ..] if is_sign(colon, ':') && name.to_string() != "_" => {
                let of_type = without_mut(&tokens)[1..].to_vec();
                Ok(Parameter { name: name.clone(), of_type })
            }
            _ => Err(Refusal::new(tokens[0].span(), "a parameter of a function with a twin has a name")),
        }
    }
}

/// Without the `mut` of a binding, which does not concern the caller.
fn without_mut(tokens: &[TokenTree]) -> &[TokenTree] {
    match tokens {
        [first, rest @ ..] if first.to_string() == "mut" => rest,
        all => all,
    }
}

/// Takes the attributes from the front: those of documentation, and the others.
fn attributes(tokens: &mut Vec<TokenTree>) -> (Vec<Group>, TokenStream) {
    let (mut docs, mut others) = (Vec::new(), TokenStream::new());
    while let [sign, TokenTree::Group(content), ..] = &tokens[..]
        && is_sign(sign, '#')
    {
        if flat(content.stream()).first().is_some_and(|name| name.to_string() == "doc") {
            docs.push(content.clone());
        } else {
            others.extend(attribute_of(content.clone()));
        }
        tokens.drain(..2);
    }
    (docs, others)
}

/// The `T` of `-> Result<T, E>`.
fn value_of(returned: &[TokenTree]) -> Option<Vec<TokenTree>> {
    let open = position(returned, |token| is_sign(token, '<'))?;
    let [arguments @ .., _] = &returned[open + 1..] else { return None };
    let is_result = returned[open - 1].to_string() == "Result";
    between_commas(arguments.iter().cloned()).into_iter().next().filter(|_| is_result)
}

fn with_commas(parts: impl Iterator<Item = Vec<TokenTree>>) -> TokenStream {
    let comma = || ",".parse::<TokenStream>().expect("Rust");
    parts.flat_map(|part| part.into_iter().chain(comma())).collect()
}

fn names_self_type(tokens: &[TokenTree]) -> bool {
    tokens.iter().any(|token| match token {
        TokenTree::Group(group) => names_self_type(&group.stream().into_iter().collect::<Vec<_>>()),
        token => token.to_string() == "Self",
    })
}

fn is_group(token: &TokenTree, delimiter: Delimiter) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == delimiter)
}

fn position(tokens: &[TokenTree], is: impl Fn(&TokenTree) -> bool) -> Option<usize> {
    tokens.iter().position(is)
}

/// As [`position`], after the first `fn`, among tokens in no angle brackets.
fn position_outside_angles(tokens: &[TokenTree], is: impl Fn(&TokenTree) -> bool) -> Option<usize> {
    let start = position(tokens, |token| token.to_string() == "fn")?;
    let mut angles = Angles::default();
    let found = tokens[start..].iter().position(|token| angles.after(token) == 0 && is(token))?;
    Some(start + found)
}
