//! Writes the constant for a pattern, and other parts of expansions.

use super::axes::{Numbered, Slot, Table, Term};
use super::operand::reference;
use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::Expr;
use syn::spanned::Spanned;

/// A variable of the macro. Hygiene keeps it apart from the user's variables, but not from
/// constants and unit structs, so its name starts with `__`.
pub fn own(name: &str) -> Ident {
    Ident::new(&format!("__{name}"), Span::mixed_site())
}

/// The path of the items that expansions use.
pub fn home() -> TokenStream {
    quote!(::typed_dims::__private::pattern)
}

/// The greatest rank that has its own type.
const MOST_RANK: usize = 26;

/// The suffix of the types for a number of axes.
fn counted(count: usize) -> String {
    if count > MOST_RANK { "Dyn".to_owned() } else { count.to_string() }
}

/// The type for a number of axes.
pub fn rank(count: usize) -> TokenStream {
    let name = format_ident!("Rank{}", counted(count));
    quote!(::typed_dims::__private::pattern::#name)
}

/// A function that turns an operand with this many axes into an argument.
pub fn taking(count: usize, function: &str, span: Span) -> TokenStream {
    let (name, function) = (format_ident!("Taking{}", counted(count)), format_ident!("{function}"));
    quote_spanned!(span=> ::typed_dims::__private::pattern::#name::#function)
}

/// The type for the axes of a result.
pub fn out_rank(array: &Numbered) -> TokenStream {
    let (home, rank) = (home(), rank(array.count()));
    if array.spreads() { quote!(#home::Spread<#rank>) } else { quote!(#home::Fixed<#rank>) }
}

/// Where the elements of an operand must be.
#[derive(Clone, Copy)]
pub enum Where {
    /// In memory or not computed yet.
    Anywhere,
    InMemory,
}

/// An operand as an argument. The expansion checks its number of axes.
pub fn argument(operand: &Expr, array: &Numbered) -> TokenStream {
    bound_argument(&reference(operand), operand.span(), array, Where::Anywhere)
}

/// Like `argument`, for an existing reference.
pub fn bound_argument(reference: &TokenStream, span: Span, array: &Numbered, place: Where) -> TokenStream {
    let span = Span::mixed_site().located_at(span);
    let function = match (place, array.spreads()) {
        (Where::Anywhere, false) => "exactly",
        (Where::Anywhere, true) => "at_least",
        (Where::InMemory, false) => "exactly_in_memory",
        (Where::InMemory, true) => "at_least_in_memory",
    };
    let taking = taking(array.count(), function, span);
    quote_spanned!(span=> #taking(#reference))
}

/// Arguments as nested pairs.
pub fn nested(arguments: &[TokenStream]) -> TokenStream {
    arguments
        .iter()
        .rev()
        .fold(quote!(::typed_dims::__private::pattern::End), |list, argument| quote!((#argument, #list)))
}

/// The sizes from the call, and those written as numbers in the pattern.
pub fn given(table: &Table, given: &[(usize, Expr)]) -> TokenStream {
    let numbers = table.entries.iter().enumerate().filter_map(|(axis, entry)| {
        let axis = Literal::usize_unsuffixed(axis);
        let number = Literal::usize_unsuffixed(entry.number.filter(|&number| number != usize::MAX)?);
        Some(quote!((#axis, #number)))
    });
    let given = given.iter().map(|(axis, size)| {
        let axis = Literal::usize_unsuffixed(*axis);
        quote!((#axis, #size))
    });
    quote!(&[#(#numbers,)* #(#given),*])
}

/// A part of a result: the index of the operand that it is copied from, and the index of the group
/// chosen in each sum (`w1 + w2`) of the operand and of the result.
pub struct Piece {
    pub input: usize,
    pub from: Vec<usize>,
    pub to: Vec<usize>,
}

/// The constant that describes a pattern in the expansion.
pub struct Plan<'p> {
    pub text: String,
    pub table: &'p Table,
    pub inputs: Vec<&'p [Slot]>,
    pub output: &'p [Slot],
    pub pieces: Vec<Piece>,
}

impl ToTokens for Plan<'_> {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let names = self.table.entries.iter().map(|entry| &entry.name);
        let inputs = self.inputs.iter().map(|slots| slot_list(slots));
        let output = slot_list(self.output);
        let pieces = self.pieces.iter().map(|Piece { input, from, to }| {
            let input = Literal::usize_unsuffixed(*input);
            let from = from.iter().map(|&choice| Literal::usize_unsuffixed(choice));
            let to = to.iter().map(|&choice| Literal::usize_unsuffixed(choice));
            quote!(Piece { input: #input, from: &[#(#from),*], to: &[#(#to),*] })
        });
        let (text, loops) = (&self.text, self.loops());
        tokens.extend(quote! {
            const {
                use ::typed_dims::__private::pattern::plan::*;
                &Pattern::new(
                    #text,
                    &[#(#names),*],
                    &[#(#inputs),*],
                    #output,
                    &[#(#pieces),*],
                    #loops,
                )
            }
        });
    }
}

/// The maximum number of axes for which the core plans without allocating.
const MOST_LOOPS: usize = 12;

impl Plan<'_> {
    /// The axes of the result and the reduced axes, if the pattern alone determines them and has at
    /// most `MOST_LOOPS` axes.
    fn loops(&self) -> TokenStream {
        let arrays = || self.inputs.iter().copied().chain([self.output]).flatten();
        let open = |slot: &Slot| matches!(slot, Slot::Sum(_)) || slot.terms().contains(&Term::Rest);
        let axes = self.table.entries.len();
        if axes > MOST_LOOPS || arrays().any(open) {
            return quote!(None);
        }
        let kept: Vec<usize> = self
            .output
            .iter()
            .flat_map(Slot::terms)
            .filter_map(|term| match term {
                Term::Axis(axis) => Some(axis),
                Term::Rest => None,
            })
            .collect();
        let reduced = (0..axes).filter(|axis| !kept.contains(axis)).map(Literal::usize_unsuffixed);
        let kept = kept.iter().map(|&axis| Literal::usize_unsuffixed(axis));
        quote!(Some(PatternLoops { kept: &[#(#kept),*], reduced: &[#(#reduced),*] }))
    }
}

fn slot_list(slots: &[Slot]) -> TokenStream {
    let slots = slots.iter().map(|slot| match slot {
        Slot::Rest => quote!(Rest),
        Slot::Axis(axis) => {
            let axis = Literal::usize_unsuffixed(*axis);
            quote!(Axis(#axis))
        }
        Slot::Group(terms) => {
            let terms = term_list(terms);
            quote!(Group(#terms))
        }
        Slot::Sum(groups) => {
            let groups = groups.iter().map(|terms| term_list(terms));
            quote!(Sum(&[#(#groups),*]))
        }
    });
    quote!(&[#(#slots),*])
}

fn term_list(terms: &[Term]) -> TokenStream {
    let terms = terms.iter().map(|term| match term {
        Term::Rest => quote!(Term::Rest),
        Term::Axis(axis) => {
            let axis = Literal::usize_unsuffixed(*axis);
            quote!(Term::Axis(#axis))
        }
    });
    quote!(&[#(#terms),*])
}

/// The whole call: the value, or a panic with the text of the error. For the `try_` form, the
/// `Result`.
pub fn finish(call: TokenStream, fallible: bool) -> TokenStream {
    if fallible {
        return call;
    }
    let span = Span::mixed_site();
    let (value, error) = (own("value"), own("error"));
    // A `match`, not a function: rustc then reports a type mismatch for the value, not for the
    // `Result`.
    quote_spanned! {span=>
        match #call {
            ::core::result::Result::Ok(#value) => #value,
            ::core::result::Result::Err(#error) => ::typed_dims::__private::pattern::fail(&#error),
        }
    }
}
