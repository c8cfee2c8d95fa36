//! The attribute `#[panicking_twin]`, by which a fallible function of `typed-dims-core` gets a form that panics. Internal to `typed-dims`.

mod docs;
mod function;
mod tokens;

use docs::Docs;
use function::Function;
use proc_macro::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use tokens::{Refusal, flat, text_of};

/// Writes the panicking form of a function `try_name`: `name`, with the same parameters and bounds. It returns the value, or panics at the
/// caller's place with the text of the error.
///
/// ```
/// # mod error {
/// #     #[track_caller]
/// #     pub fn unwrap<T, E: std::fmt::Display>(result: Result<T, E>) -> T {
/// #         result.unwrap_or_else(|error| panic!("{error}"))
/// #     }
/// # }
/// # use typed_dims_twins::panicking_twin;
/// /// The quotient.
/// #[panicking_twin("so is a divisor of 0")]
/// fn try_divide(a: u32, by: u32) -> Result<u32, String> {
///     a.checked_div(by).ok_or(format!("{a} / {by}"))
/// }
///
/// # fn main() {
/// assert_eq!(divide(6, 3), 2);
/// assert!(try_divide(6, 0).is_err());
/// # }
/// ```
///
/// It stands on functions, on methods of `impl` blocks, and on methods of traits, with a body or without. A function without `self` that
/// names `Self` is an associated one. The crate has a function `error::unwrap`, which returns the value or panics.
///
/// # Documentation
///
/// The documentation is that of the panicking form, but for a section `# Errors`, which is that of `try_name`. The macro adds
///
/// * to `name` the section `# Panics`, "Where `try_name` returns an error", unless it has one;
/// * to `try_name` the line "As `name`, but what sizes decide is an error". `#[panicking_twin("so is ..")]` appends to it, and
///   `#[panicking_twin(but = "..")]` replaces what comes after the "but".
///
/// Both forms get `#[track_caller]`, and all attributes other than `doc`.
#[proc_macro_attribute]
pub fn panicking_twin(arguments: TokenStream, function: TokenStream) -> TokenStream {
    let twins = difference(arguments).and_then(|but| Ok(written(&Function::read(function.clone())?, &but)));
    twins.unwrap_or_else(|refusal| [refusal.into_tokens(), function].into_iter().collect())
}

/// How the documentation of `try_name` says that it differs, from the arguments of the attribute.
fn difference(arguments: TokenStream) -> Result<String, Refusal> {
    const WHAT: &str = "what sizes decide is an error";
    let arguments = flat(arguments);
    let text = arguments.last().and_then(text_of);
    match (&arguments[..], text) {
        ([], _) => Ok(WHAT.to_owned()),
        ([_], Some(also)) => Ok(format!("{WHAT}; {also}")),
        ([name, _, _], Some(but)) if name.to_string() == "but" => Ok(but),
        ([first, ..], _) => {
            Err(Refusal::new(first.span(), "`#[panicking_twin(\"so is ..\")]`, or `(but = \"..\")`"))
        }
    }
}

/// Both forms of a function.
fn written(function: &Function, but: &str) -> TokenStream {
    let name = function.name.to_string();
    let name = name.trim_start_matches("try_");
    // Both names come from one place, so that rustc quotes the line of the bounds alone.
    let twin = TokenTree::Ident(Ident::new(name, function.name.span()));
    let docs = Docs::split(&function.docs);
    let link = |name: &str| {
        let path = if function.is_associated() { "Self::" } else { "fn@" };
        format!("[`{name}`]({path}{name})")
    };

    let mut out = TokenStream::new();
    out.extend(docs.of_the_twin(&format!("Where {} returns an error.", link(&function.name.to_string()))));
    out.extend(function.attributes.clone());
    out.extend(source("#[track_caller]"));
    out.extend(function.before_the_name.clone());
    out.extend([twin]);
    out.extend(function.generics.clone());
    out.extend([group(Delimiter::Parenthesis, function.parameters_of_the_twin())]);
    out.extend(function.value_type());
    out.extend(function.bounds.clone());
    let call = group(Delimiter::Parenthesis, function.call());
    let body = source("crate::error::unwrap").into_iter().chain([call]).collect();
    out.extend([group(Delimiter::Brace, body)]);

    out.extend(docs.of_the_original(&format!("As {}, but {but}.", link(name))));
    out.extend(function.attributes.clone());
    out.extend(source("#[track_caller]"));
    out.extend(function.signature_and_body.clone());
    out
}

/// Code of the macro's own.
fn source(code: &str) -> TokenStream {
    code.parse().expect("Rust")
}

fn group(delimiter: Delimiter, stream: TokenStream) -> TokenTree {
    let mut group = Group::new(delimiter, stream);
    group.set_span(Span::call_site());
    TokenTree::Group(group)
}
