//! Which form a line of documentation belongs to.

use crate::tokens::{flat, text_of};
use proc_macro::{Delimiter, Group, Literal, Punct, Spacing, TokenStream, TokenTree};

/// The documentation of a function, split between its two forms.
pub struct Docs {
    /// All but the section `# Errors`.
    twin: TokenStream,
    /// That section.
    errors: TokenStream,
    says_when_it_panics: bool,
}

impl Docs {
    /// Splits `#[doc = ".."]` attributes.
    pub fn split(attributes: &[Group]) -> Self {
        let mut docs =
            Docs { twin: TokenStream::new(), errors: TokenStream::new(), says_when_it_panics: false };
        let (mut in_code, mut in_errors) = (false, false);
        for attribute in attributes {
            let tokens = flat(attribute.stream());
            let line = tokens.get(2).and_then(text_of).unwrap_or_default();
            let line = line.trim();
            if line.starts_with("```") {
                in_code = !in_code;
            } else if !in_code && line.starts_with("# ") {
                in_errors = line == "# Errors";
                docs.says_when_it_panics |= line == "# Panics";
            }
            let part = if in_errors { &mut docs.errors } else { &mut docs.twin };
            part.extend(attribute_of(attribute.clone()));
        }
        docs
    }

    /// The documentation of the panicking form, which panics where `panics` says.
    pub fn of_the_twin(&self, panics: &str) -> TokenStream {
        let own = ["", "# Panics", "", panics].map(line);
        let own = own.into_iter().flatten().filter(|_| !self.says_when_it_panics);
        self.twin.clone().into_iter().chain(own).collect()
    }

    /// The documentation of the fallible form, which begins with a line.
    pub fn of_the_original(&self, first: &str) -> TokenStream {
        [line(first), line(""), self.errors.clone()].into_iter().collect()
    }
}

/// A line of documentation, indented by a space as those of `///` are.
fn line(text: &str) -> TokenStream {
    let doc: TokenStream = "doc =".parse().expect("Rust");
    let text = TokenTree::Literal(Literal::string(&format!(" {text}")));
    attribute_of(Group::new(Delimiter::Bracket, doc.into_iter().chain([text]).collect()))
}

/// `#[..]`.
pub fn attribute_of(content: Group) -> TokenStream {
    let sign = TokenTree::Punct(Punct::new('#', Spacing::Alone));
    [sign, TokenTree::Group(content)].into_iter().collect()
}
