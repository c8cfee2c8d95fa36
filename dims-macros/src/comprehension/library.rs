//! The paths of the functions and traits that macros use.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};

/// The path of the module with these functions and traits.
pub fn krate() -> TokenStream {
    quote!(::typed_dims::__private)
}

/// The path of a function or trait. Messages about the argument of a function point only at
/// `place`.
pub fn path(name: &str, place: Span) -> TokenStream {
    let place = Span::mixed_site().located_at(place);
    let name = Ident::new(name, place);
    quote_spanned!(place=> ::typed_dims::__private::#name)
}
