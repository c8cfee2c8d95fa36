//! The attribute `#[panicking_twin]`, which generates a panicking form of a fallible function in
//! `typed-dims-core`. Internal to `typed-dims`.

mod function;
mod tokens;

use function::Function;
use proc_macro::{Delimiter, Group, Literal, Span, TokenStream, TokenTree};
use tokens::{flat, source, text_of};

/// Generates the panicking form of a function `try_name`: `name`, with the same parameters and
/// bounds. It returns the value, or panics at the caller's location with the text of the error.
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
/// The attribute applies to functions, methods of `impl` blocks, and methods of traits, with or
/// without a body. A function without `self` whose signature mentions `Self` is treated as an
/// associated function. The crate must have a function `error::unwrap`, which returns the value or
/// panics.
///
/// # Documentation
///
/// The documentation belongs to the panicking form, except for a section `# Errors`, which belongs
/// to `try_name`. The attribute adds
///
/// * to `name`, the section `# Panics`, "If `try_name` returns an error", unless it has one;
/// * to `try_name`, the line "Like `name`, but sizes that do not match are an error", or "but
///   returns errors instead of panicking" if there is a section `# Errors`.
///   `#[panicking_twin("so is ..")]` appends to the first text, and `#[panicking_twin(but = "..")]`
///   replaces the text after "but".
///
/// Both forms get `#[track_caller]`, and all attributes except `doc`.
#[proc_macro_attribute]
pub fn panicking_twin(arguments: TokenStream, function: TokenStream) -> TokenStream {
    let twins = difference(arguments).and_then(|but| Ok(written(&Function::read(function.clone())?, but)));
    twins.unwrap_or_else(|refusal| [refusal.into_tokens(), function].into_iter().collect())
}

/// The reason why an attribute cannot be applied.
struct Refusal(Span, &'static str);

impl Refusal {
    fn into_tokens(self) -> TokenStream {
        let text = TokenTree::Literal(Literal::string(self.1));
        let error = source("::core::compile_error!").into_iter();
        let all = error.chain([TokenTree::Group(Group::new(Delimiter::Brace, text.into()))]);
        let at_the_mistake = |mut token: TokenTree| {
            token.set_span(self.0);
            token
        };
        all.map(at_the_mistake).collect()
    }
}

const SIZES: &str = "sizes that do not match are an error";

/// The text after "but" in the documentation of `try_name`, from the arguments of the attribute, if
/// it has any.
fn difference(arguments: TokenStream) -> Result<Option<String>, Refusal> {
    let arguments = flat(arguments);
    match (&arguments[..], arguments.last().and_then(text_of)) {
        ([], _) => Ok(None),
        ([_], Some(also)) => Ok(Some(format!("{SIZES}; {also}"))),
        ([name, _, _], Some(but)) if name.to_string() == "but" => Ok(Some(but)),
        ([first, ..], _) => Err(Refusal(first.span(), "`(\"so is ..\")` or `(but = \"..\")` is expected")),
    }
}

/// Both forms of a function.
fn written(function: &Function, but: Option<String>) -> TokenStream {
    let [twin, name] = function.names();
    let link = |name: &str| {
        let path = if function.is_associated() { "Self::" } else { "fn@" };
        format!("[`{name}`]({path}{name})")
    };
    let (docs, errors, says_when_it_panics) = split(&function.docs);
    let panics = ["", "# Panics", "", &format!("If {} returns an error.", link(&name))].map(doc);
    let panics = panics.into_iter().filter(|_| !says_when_it_panics).collect();
    let tracked = source("#[track_caller]");
    let others = || function.attributes.clone();
    let default = if errors.is_empty() { SIZES } else { "returns errors instead of panicking" };
    let but = but.as_deref().unwrap_or(default);
    let as_the_twin = doc(&format!("Like {}, but {but}.", link(&twin)));
    let panicking = [docs, panics, others(), tracked.clone(), function.twin()];
    let fallible = [as_the_twin, doc(""), errors, others(), tracked, function.itself()];
    panicking.into_iter().chain(fallible).collect()
}

/// Splits documentation into the part without the section `# Errors`, and that section. Also
/// returns whether there is a section `# Panics`.
fn split(docs: &[TokenStream]) -> (TokenStream, TokenStream, bool) {
    let (mut twin, mut errors, mut says_when_it_panics) = (TokenStream::new(), TokenStream::new(), false);
    let (mut in_code, mut in_errors) = (false, false);
    for attribute in docs {
        // An attribute has two tokens: `#` and `[doc = ".."]`.
        let text = flat(attribute.clone()).last().and_then(|token| match token {
            TokenTree::Group(content) => flat(content.stream()).last().and_then(text_of),
            _ => None,
        });
        match text.unwrap_or_default().trim() {
            fence if fence.starts_with("```") => in_code = !in_code,
            title if !in_code && title.starts_with("# ") => {
                in_errors = title == "# Errors";
                says_when_it_panics |= title == "# Panics";
            }
            _ => {}
        }
        if in_errors { &mut errors } else { &mut twin }.extend(attribute.clone());
    }
    (twin, errors, says_when_it_panics)
}

/// A line of documentation, indented by a space like a `///` line.
fn doc(text: &str) -> TokenStream {
    source(&format!("#[doc = {:?}]", format!(" {text}")))
}
