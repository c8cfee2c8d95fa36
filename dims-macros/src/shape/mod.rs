//! `parse_shape!`.

use crate::pattern::axes::{Numbered, Rules, Slot, Table, number, solvable};
use crate::pattern::call::given;
use crate::pattern::call::{self, Form};
use crate::pattern::errors::Errors;
use crate::pattern::operand::looked_at;
use crate::pattern::parse::{Sides, parse};
use crate::pattern::plan::{self, Plan, argument, finish, home, nested, own};
use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::quote;
use syn::parse::{ParseStream, Parser};

const FORM: Form =
    Form { name: "parse_shape", example: "parse_shape!(x, b _ h w)", op: false, operands: Some(1) };

/// The sizes of an array's axes as the fields of a struct.
pub fn expand(input: TokenStream, fallible: bool) -> TokenStream {
    let mut errors = Errors::default();
    let call = match (|input: ParseStream<'_>| call::parse(input, &FORM, &mut errors)).parse2(input) {
        Ok(call) => call,
        Err(error) => {
            errors.syn(&error);
            return errors.stub(&TokenStream::new());
        }
    };
    let words = &call.words;
    let Sides { left, right } = parse(words, &mut errors);
    if let Some((_, arrow)) = &right {
        errors.at(words, arrow, format!("the pattern of a shape has one side: `{}`", FORM.example));
    }
    if let [_, second, ..] = &left[..] {
        errors.at(words, &second.place, "the pattern of a shape describes one array");
    }
    let mut table = Table::default();
    let rules = Rules {
        under: None,
        dots_in_groups: Some("`...` cannot be in a group here: the sizes of its axes would be unknown"),
        sums: Some("`+` cannot be used in the pattern of a shape"),
        twice: Some("is named twice: each axis needs its own name"),
        ..Rules::USUAL
    };
    let array: Numbered = number(&left[0], &rules, &mut table, words, &mut errors);
    let given = given(&call.sizes, &table, &mut errors);
    if errors.is_empty() {
        solvable(std::slice::from_ref(&array), &given, &table, words, &mut errors);
    }
    let mut fields = Vec::new();
    for (axis, place) in &array.places {
        let Some(axis) = axis.filter(|&axis| table.entries[axis].number.is_none()) else { continue };
        let name = &table.entries[axis].name;
        // Keywords become raw identifiers, except the few that cannot be raw.
        match syn::parse_str::<Ident>(name).or_else(|_| syn::parse_str::<Ident>(&format!("r#{name}"))) {
            Ok(mut field) => {
                field.set_span(if place.range.is_some() { Span::call_site() } else { place.span });
                fields.push((axis, field));
            }
            Err(_) => errors.at(words, place, format!("`{name}` cannot be the name of a field")),
        }
    }
    if !errors.is_empty() {
        return errors.stub(&looked_at(call.operands.iter()));
    }
    let slots: &[Slot] = &array.slots;
    let plan =
        Plan { text: words.shown(), table: &table, inputs: vec![slots], output: &[], pieces: Vec::new() };
    let arguments = nested(&[argument(&call.operands[0], &array)]);
    let given = plan::given(&table, &given);
    let home = home();
    let sizes = quote!(#home::parse_shape(#plan, #arguments, #given));
    let names: Vec<_> = fields.iter().map(|(_, field)| field).collect();
    let axes = fields.iter().map(|(axis, _)| Literal::usize_unsuffixed(*axis));
    let result = own("sizes");
    let value = finish(quote!(#result.map(|#result| Shape { #(#names: #result[#axes]),* })), fallible);
    // The operand is evaluated outside of the block, because `Shape` inside is the macro's type.
    quote! {
        match #sizes {
            #result => {
                #[derive(::core::clone::Clone, ::core::marker::Copy, ::core::fmt::Debug, ::core::cmp::PartialEq, ::core::cmp::Eq)]
                #[allow(dead_code, non_snake_case)]
                struct Shape {
                    #(#names: ::core::primitive::usize),*
                }
                #value
            }
        }
    }
}
