//! The paths of the functions that macros call.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};

/// The path of the functions that macros call.
pub fn krate() -> TokenStream {
    quote!(::typed_dims::__private)
}

/// A function of the library for macros. Messages about its argument point only at this span.
pub fn path(name: &str, place: Span) -> TokenStream {
    let place = Span::mixed_site().located_at(place);
    let name = Ident::new(name, place);
    quote_spanned!(place=> ::typed_dims::__private::#name)
}
