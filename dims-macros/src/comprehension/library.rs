//! The paths of what macros call.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};

/// The path of what macros call.
pub fn krate() -> TokenStream {
    quote!(::typed_dims::__private)
}

/// One of the library's functions for macros; messages about its argument point at this place alone.
pub fn path(name: &str, place: Span) -> TokenStream {
    let place = Span::mixed_site().located_at(place);
    let name = Ident::new(name, place);
    quote_spanned!(place=> ::typed_dims::__private::#name)
}
