//! The parts of a fallible function, and its panicking twin.

use crate::Refusal;
use crate::tokens::{between_commas, flat, is_sign, outside_angles, source, with_commas};
use proc_macro::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};

/// A function `try_name` that returns a `Result`.
pub struct Function {
    /// The `doc` attributes.
    pub docs: Vec<TokenStream>,
    /// The other attributes.
    pub attributes: TokenStream,
    /// All tokens after the attributes. The last one is the body, or the semicolon of a required
    /// trait method.
    tokens: Vec<TokenTree>,
    /// The position of the name in `tokens`.
    name: usize,
    /// The position of the parameter list.
    list: usize,
    /// The position of `where`, or of the last token if there is no `where`.
    bounds: usize,
    parameters: Vec<Vec<TokenTree>>,
    /// The value type of the `Result`.
    value: Vec<TokenTree>,
}

impl Function {
    pub fn read(function: TokenStream) -> Result<Self, Refusal> {
        let mut tokens: Vec<_> = function.into_iter().collect();
        let (mut docs, mut attributes) = (Vec::new(), TokenStream::new());
        while let [sign, TokenTree::Group(content), ..] = &tokens[..]
            && is_sign(sign, '#')
        {
            let is_doc = flat(content.stream()).first().is_some_and(|name| name.to_string() == "doc");
            let attribute: TokenStream = tokens.drain(..2).collect();
            if is_doc { docs.push(attribute) } else { attributes.extend(attribute) }
        }

        let none = || Refusal(Span::call_site(), "`#[panicking_twin]` belongs on a function");
        let name = 1 + tokens.iter().position(|token| token.to_string() == "fn").ok_or_else(none)?;
        let list = name + outside_angles(&tokens[name..], is_list).ok_or_else(none)?;
        let at = tokens[name].span();
        if !tokens[name].to_string().starts_with("try_") {
            return Err(Refusal(at, "the name of a function with a twin must begin with `try_`"));
        }
        let end = tokens.len() - 1;
        let bounds = tokens[..end].iter().rposition(|token| token.to_string() == "where").unwrap_or(end);
        let value = value_of(&tokens[list + 1..bounds])
            .ok_or(Refusal(at, "a function with a twin must return a `Result<.., ..>`"))?;
        let TokenTree::Group(group) = &tokens[list] else { return Err(none()) };
        let parameters: Vec<_> = between_commas(group.stream()).into_iter().map(without_mut).collect();
        match parameters.iter().find(|parameter| name_of(parameter).is_none()) {
            Some(none) => {
                Err(Refusal(none[0].span(), "a parameter of a function with a twin must have a name"))
            }
            None => Ok(Function { docs, attributes, tokens, name, list, bounds, parameters, value }),
        }
    }

    /// The names of the twin and of the function.
    pub fn names(&self) -> [String; 2] {
        let name = self.tokens[self.name].to_string();
        [name.strip_prefix("try_").unwrap_or(&name).to_owned(), name]
    }

    /// Whether the function belongs to a type or a trait: it has `self`, or its signature mentions
    /// `Self`.
    pub fn is_associated(&self) -> bool {
        self.has_self() || names_self_type(&self.tokens[..self.tokens.len() - 1])
    }

    fn has_self(&self) -> bool {
        let first = self.parameters.first().and_then(|first| name_of(first));
        first.is_some_and(|name| name.to_string() == "self")
    }

    /// The function without its attributes.
    pub fn itself(&self) -> TokenStream {
        self.tokens.iter().cloned().collect()
    }

    /// The panicking form, without its attributes.
    pub fn twin(&self) -> TokenStream {
        // Both names have the same span, so that rustc's message about an unmet bound quotes only
        // the line of the bounds.
        let name = Ident::new(&self.names()[0], self.tokens[self.name].span());
        let mut twin: TokenStream = self.tokens[..self.name].iter().cloned().collect();
        twin.extend([TokenTree::Ident(name)]);
        twin.extend(self.tokens[self.name + 1..self.list].iter().cloned());
        twin.extend([group(Delimiter::Parenthesis, with_commas(self.parameters.iter().cloned()))]);
        if !matches!(&self.value[..], [TokenTree::Group(unit)] if unit.stream().is_empty()) {
            twin.extend(source("->").into_iter().chain(self.value.iter().cloned()));
        }
        twin.extend(self.tokens[self.bounds..self.tokens.len() - 1].iter().cloned());
        let unwrapped = [group(Delimiter::Parenthesis, self.call())];
        let body = source("crate::error::unwrap").into_iter().chain(unwrapped).collect();
        twin.extend([group(Delimiter::Brace, body)]);
        twin
    }

    /// The call of the function, such as `self.try_name(a, b)`.
    fn call(&self) -> TokenStream {
        let mut names = self.parameters.iter().filter_map(|parameter| name_of(parameter));
        let mut call = TokenStream::new();
        if self.has_self() {
            call.extend(names.next().into_iter().chain(source(".")));
        } else if self.is_associated() {
            call.extend(source("Self::"));
        }
        let arguments = group(Delimiter::Parenthesis, with_commas(names.map(|name| vec![name])));
        call.extend([self.tokens[self.name].clone(), arguments]);
        call
    }
}

/// Removes the `mut` of a binding, which is irrelevant to the caller.
fn without_mut(mut parameter: Vec<TokenTree>) -> Vec<TokenTree> {
    if parameter[0].to_string() == "mut" {
        parameter.remove(0);
    }
    parameter
}

/// `self` or the name of a parameter; `None` for any other pattern.
fn name_of(parameter: &[TokenTree]) -> Option<TokenTree> {
    let pattern = parameter.split(|token| is_sign(token, ':')).next()?;
    match pattern {
        [.., last] if last.to_string() == "self" => Some(last.clone()),
        [TokenTree::Ident(name)] if name.to_string() != "_" => Some(TokenTree::Ident(name.clone())),
        _ => None,
    }
}

/// The `T` in `-> Result<T, E>`.
fn value_of(returned: &[TokenTree]) -> Option<Vec<TokenTree>> {
    let open = returned.iter().position(|token| is_sign(token, '<'))?;
    let is_result = returned[open - 1].to_string() == "Result";
    let arguments = between_commas(returned[open + 1..returned.len() - 1].iter().cloned());
    arguments.into_iter().next().filter(|_| is_result)
}

fn names_self_type(tokens: &[TokenTree]) -> bool {
    tokens.iter().any(|token| match token {
        TokenTree::Group(group) => names_self_type(&group.stream().into_iter().collect::<Vec<_>>()),
        token => token.to_string() == "Self",
    })
}

fn is_list(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis)
}

fn group(delimiter: Delimiter, content: TokenStream) -> TokenTree {
    TokenTree::Group(Group::new(delimiter, content))
}
