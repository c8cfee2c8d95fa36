//! `gather!`: elements at computed positions.

use crate::comprehension::loop_dims::{MOST_LOOPS, loop_name, loop_type};
use crate::comprehension::tokens::generics_open;
use crate::pattern::axes::{Numbered, Rules, Slot, Table, Term, number};
use crate::pattern::call::given;
use crate::pattern::call::{self, Size};
use crate::pattern::errors::Errors;
use crate::pattern::lex;
use crate::pattern::near::hint;
use crate::pattern::operand::{looked_at, plain_reference};
use crate::pattern::parse::{Array, AxisKind, parse};
use crate::pattern::plan::{finish, own};
use crate::pattern::words::{Notation, Place, Words};
use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::parse::{ParseStream, Parser};
use syn::spanned::Spanned;
use syn::{Expr, LitStr, Result, Token};

const EXAMPLE: &str = "`gather!(w[_ f], ids[b s] => b s f)`";

/// `w[_ f]`
struct Operand {
    expr: Expr,
    words: Words,
    brackets: Span,
}

struct GatherCall {
    operands: Vec<Operand>,
    output: Words,
    sizes: Vec<Size>,
}

/// Expands `gather!`, or its `try_` form.
pub fn expand(input: TokenStream, fallible: bool) -> TokenStream {
    let mut errors = Errors::default();
    let call = match (|input: ParseStream<'_>| read(input, &mut errors)).parse2(input) {
        Ok(call) => call,
        Err(error) => {
            errors.syn(&error);
            return errors.stub(&TokenStream::new());
        }
    };
    let valid = check(&call, &mut errors);
    if errors.is_empty() {
        written(&call, &valid, fallible)
    } else {
        errors.stub(&looked_at(call.operands.iter().map(|operand| &operand.expr)))
    }
}

fn read(input: ParseStream<'_>, errors: &mut Errors) -> Result<GatherCall> {
    let mut operands = Vec::new();
    loop {
        let mut tokens: Vec<TokenTree> = Vec::new();
        // Generic arguments may contain commas.
        let mut open = 0_usize;
        while !input.is_empty() && (open > 0 || !input.peek(Token![,]) && !input.peek(Token![=>])) {
            let token: TokenTree = input.parse()?;
            open = generics_open(open, tokens.last(), &token);
            tokens.push(token);
        }
        let brackets = match tokens.pop() {
            Some(TokenTree::Group(group))
                if group.delimiter() == Delimiter::Bracket && !tokens.is_empty() =>
            {
                group
            }
            other => {
                // A wrong arrow, as in `ids[b s] -> b s f`.
                let arrow = |pair: &[TokenTree]| matches!(pair, [TokenTree::Punct(minus), TokenTree::Punct(greater)] if minus.as_char() == '-' && greater.as_char() == '>');
                if let Some(at) = tokens.windows(2).position(arrow) {
                    let what = format!("expected `=>` before the axes of the result, found `->`: {EXAMPLE}");
                    return Err(syn::Error::new(tokens[at].span(), what));
                }
                let span = other.map_or_else(|| input.span(), |token| token.span());
                let what = format!("expected an array and its axes in brackets: {EXAMPLE}");
                return Err(syn::Error::new(span, what));
            }
        };
        let expr = syn::parse2(tokens.iter().cloned().collect())
            .map_err(|error| missing_comma(&tokens).unwrap_or(error))?;
        let words = axes(brackets.stream(), brackets.span_close(), errors);
        operands.push(Operand { expr, words, brackets: brackets.span() });
        if input.is_empty() {
            return Err(call::missing(format!("expected `=>` and the axes of the result: {EXAMPLE}")));
        }
        if input.peek(Token![=>]) {
            input.parse::<Token![=>]>()?;
            break;
        }
        input.parse::<Token![,]>()?;
    }
    let mut tokens: Vec<TokenTree> = Vec::new();
    while !input.is_empty() && !input.peek(Token![,]) {
        tokens.push(input.parse()?);
    }
    let end = tokens.last().map_or_else(Span::call_site, TokenTree::span);
    let output = axes(tokens.into_iter().collect(), end, errors);
    let sizes = call::sizes(input)?;
    Ok(GatherCall { operands, output, sizes })
}

/// The error for an array that follows another one without a comma, as in `w[_ f] ids[b s]`.
fn missing_comma(tokens: &[TokenTree]) -> Option<syn::Error> {
    let begins = |token: &TokenTree| match token {
        TokenTree::Ident(name) => name != "as",
        TokenTree::Punct(sign) => sign.as_char() == '&',
        _ => false,
    };
    let second = tokens.windows(2).find_map(|pair| match pair {
        [TokenTree::Group(group), next] if group.delimiter() == Delimiter::Bracket && begins(next) => {
            Some(next)
        }
        _ => None,
    })?;
    Some(syn::Error::new(second.span(), format!("expected `,` between the arrays: {EXAMPLE}")))
}

/// The axes of an array, as tokens or in a string.
fn axes(tokens: TokenStream, end: Span, errors: &mut Errors) -> Words {
    match syn::parse2::<LitStr>(tokens.clone()) {
        Ok(literal) => lex::string(&literal, Notation::Coordinates, errors),
        Err(_) => {
            let words = lex::tokens(tokens, Notation::Coordinates, end, errors);
            for dim in &words.outer {
                let what = format!(
                    "`gather!` does not support `${dim}`: write `{dim}`, and give its size, `{dim} = {dim}.size()`"
                );
                errors.span(dim.span(), what);
            }
            words
        }
    }
}

struct ValidGather {
    table: Table,
    /// The axes of each array.
    arrays: Vec<Vec<Slot>>,
    /// The indices of the axes `_` in the table.
    gathered: Vec<usize>,
    /// For each array of positions: the number of coordinates along its axis `[n]`, if it has one.
    coordinates: Vec<Option<usize>>,
    output: Vec<Slot>,
    given: Vec<(usize, Expr)>,
}

fn check(call: &GatherCall, errors: &mut Errors) -> ValidGather {
    let mut table = Table::default();
    let rules = Rules {
        numbers: Some("an axis of `gather!` cannot be a number: give it a name"),
        dots_in_groups: Some("`...` stands for whole axes: it cannot be a part of a group"),
        sums: Some("`gather!` cannot join arrays: use `rearrange!`"),
        ..Rules::USUAL
    };
    let source = Rules { under: None, ..rules };
    let index = Rules {
        under: Some(
            "only the first array can have an axis `_` to gather from: this array contains the positions",
        ),
        ..rules
    };
    let mut arrays = Vec::new();
    let (mut gathered, mut coordinates) = (Vec::new(), Vec::new());
    for (at, operand) in call.operands.iter().enumerate() {
        let words = &operand.words;
        let array = one_array(words, errors);
        let before = table.entries.len();
        let numbered = number(&array, if at == 0 { &source } else { &index }, &mut table, words, errors);
        no_units(&array, &numbered, words, errors);
        check_count(&numbered, before, &table, words, errors);
        if at == 0 {
            gathered =
                (before..table.entries.len()).filter(|&axis| table.entries[axis].name == "_").collect();
            check_source(&array, &numbered, &gathered, &table, words, errors);
        } else {
            no_dots(&array, words, errors);
            coordinates.push(check_index(&numbered, &table, words, errors));
        }
        arrays.push(numbered.slots);
    }
    check_positions(call, gathered.len(), &coordinates, errors);
    let from_dots = arrays[0].contains(&Slot::Rest);
    let right = Rules { twice: Some("is named twice in the result: each axis needs its own name"), ..rules };
    let output = check_result(&call.output, &right, from_dots, &mut table, errors);
    let given = given(&call.sizes, &table, errors);
    ValidGather { table, arrays, gathered, coordinates, output, given }
}

/// The coordinate axes of an array, with their places.
fn coordinates_of<'n>(
    numbered: &'n Numbered,
    table: &'n Table,
) -> impl Iterator<Item = &'n (Option<usize>, Place)> {
    numbered.places.iter().filter(|(axis, _)| axis.is_some_and(|axis| count(table, axis).is_some()))
}

/// Checks that there are not too many axes. `before` is the number of axes in the table before
/// those of this array.
fn check_count(numbered: &Numbered, before: usize, table: &Table, words: &Words, errors: &mut Errors) {
    let is_named = |axis: usize| table.entries[axis].number.is_none();
    let named_before = |axis: usize| (0..axis).filter(|&axis| is_named(axis)).count();
    // If earlier arrays already have too many axes, the first such axis was reported there.
    if named_before(before) > MOST_LOOPS {
        return;
    }
    let is_beyond = |axis: usize| is_named(axis) && named_before(axis) >= MOST_LOOPS;
    if let Some((_, place)) = numbered.places.iter().find(|(axis, _)| axis.is_some_and(is_beyond)) {
        let what = format!("`gather!` can have at most {MOST_LOOPS} axes with different names");
        errors.at(words, place, what);
    }
}

/// Checks the first array.
fn check_source(
    array: &Array,
    numbered: &Numbered,
    gathered: &[usize],
    table: &Table,
    words: &Words,
    errors: &mut Errors,
) {
    for (axis, slot) in array.axes.iter().zip(&numbered.slots) {
        let is_gathered = |term: &Term| matches!(term, Term::Axis(axis) if gathered.contains(axis));
        if let Slot::Group(terms) = slot
            && terms.iter().any(is_gathered)
        {
            errors.at(words, &axis.place, "`_` is a whole axis: it cannot be a part of a group");
        }
    }
    for (_, place) in coordinates_of(numbered, table) {
        errors.at(words, place, "only an array of positions, after the first array, can have an axis of coordinates: `gather!(x[_ _ c], yx[p [2]] => p c)`");
    }
}

/// Checks an array of positions. Returns the number of coordinates of each position, if the array
/// has a coordinate axis.
fn check_index(numbered: &Numbered, table: &Table, words: &Words, errors: &mut Errors) -> Option<usize> {
    let own: Vec<_> = coordinates_of(numbered, table).collect();
    let whole = |axis: usize| numbered.slots.contains(&Slot::Axis(axis));
    if let Some((_, place)) = own.get(1).or(own.first().filter(|(axis, _)| !axis.is_some_and(whole))) {
        errors.at(
            words,
            place,
            "an array of positions can have only one axis of coordinates, which cannot be in a group",
        );
    }
    own.first().and_then(|(axis, _)| count(table, (*axis)?))
}

/// Checks that there is one axis `_` for each array of positions, or for each of its coordinates.
fn check_positions(call: &GatherCall, gathered: usize, coordinates: &[Option<usize>], errors: &mut Errors) {
    let indices: usize = coordinates.iter().map(|count| count.unwrap_or(1)).sum();
    if !errors.is_empty() || gathered == indices {
        return;
    }
    let what = if coordinates.iter().all(Option::is_none) {
        format!(
            "the first array needs one `_` for each array of positions, but has {gathered} for {indices}: {EXAMPLE}"
        )
    } else {
        format!("the first array needs one `_` for each coordinate, but has {gathered} for {indices}")
    };
    errors.at(&call.operands[0].words, &call.operands[0].words.end, what);
}

/// Checks the axes of the result, and returns them. `from_dots` says whether the first array has
/// `...`.
fn check_result(
    words: &Words,
    rules: &Rules,
    from_dots: bool,
    table: &mut Table,
    errors: &mut Errors,
) -> Vec<Slot> {
    // If axes of the arrays are wrong or missing, checks of the result could report false errors.
    let well_formed = errors.is_empty();
    let array = one_array(words, errors);
    let known = table.entries.len();
    let output = number(&array, rules, table, words, errors);
    no_units(&array, &output, words, errors);
    for (_, place) in coordinates_of(&output, table) {
        errors.at(words, place, "the coordinates of a position cannot be in the result");
    }
    if !well_formed {
        return output.slots;
    }
    match output.places.iter().find(|(axis, _)| axis.is_none()) {
        Some((_, place)) if !from_dots => {
            errors.at(words, place, "`...` stands for axes of the first array: write it there, too");
        }
        Some((_, place)) if output.slots.last() != Some(&Slot::Rest) => errors.at(
            words,
            place,
            "`...` must be the last axis of the result of `gather!`: to move axes, use `rearrange!`",
        ),
        None if from_dots => {
            errors.at(
                words,
                &words.end,
                "`...` is missing in the result: `gather!` keeps all axes except `_`",
            );
        }
        _ => {}
    }
    let is_named = |axis: usize| table.entries[axis].number.is_none();
    for (axis, place) in &output.places {
        if let Some(axis) = axis.filter(|&axis| axis >= known && is_named(axis)) {
            let name = table.entries[axis].name.clone();
            let hint = hint(&name, table.names().filter(|own| *own != name));
            errors.at(words, place, format!("the axis `{name}` of the result is in no array{hint}"));
        }
    }
    for axis in (0..known).filter(|&axis| is_named(axis) && count(table, axis).is_none()) {
        if !output.has(axis) {
            let name = &table.entries[axis].name;
            let what =
                format!("the axis `{name}` is missing in the result: `gather!` keeps all axes except `_`");
            errors.at(words, &words.end, what);
        }
    }
    output.slots
}

/// The number of coordinates along an axis `[n]`.
fn count(table: &Table, axis: usize) -> Option<usize> {
    table.entries[axis].name.strip_prefix('[')?.strip_suffix(']')?.parse().ok()
}

fn one_array(words: &Words, errors: &mut Errors) -> Array {
    let sides = parse(words, errors);
    if let Some((_, arrow)) = &sides.right {
        errors.at(words, arrow, format!("the result of `gather!` follows `=>`: {EXAMPLE}"));
    }
    let mut arrays = sides.left;
    if let Some(second) = arrays.get(1) {
        errors.at(words, &second.place, "separate axes with spaces, not commas");
    }
    arrays.remove(0)
}

/// Refuses an axis `1` or `()`. (Within a group, `1` changes nothing.)
fn no_units(array: &Array, numbered: &Numbered, words: &Words, errors: &mut Errors) {
    for (axis, slot) in array.axes.iter().zip(&numbered.slots) {
        if matches!(slot, Slot::Group(terms) if terms.is_empty()) {
            errors.at(words, &axis.place, "an axis of `gather!` cannot be `1` or `()`: give it a name");
        }
    }
}

fn no_dots(array: &Array, words: &Words, errors: &mut Errors) {
    for axis in array.axes.iter().filter(|axis| matches!(axis.kind, AxisKind::Dots)) {
        errors.at(words, &axis.place, "only the first array can have `...`: name the axes of the positions");
    }
}

impl ValidGather {
    /// The array of positions for the axis `_` with this number, and the coordinate, if the array
    /// has a coordinate axis.
    fn position(&self, number: usize) -> (usize, Option<usize>) {
        let mut before = 0;
        for (array, count) in self.coordinates.iter().enumerate() {
            let here = count.unwrap_or(1);
            if number < before + here {
                return (array, count.map(|_| number - before));
            }
            before += here;
        }
        unreachable!("there is a position for each axis")
    }

    /// The coordinate axis of an array of positions.
    fn coordinate_axis(&self, array: usize) -> Option<usize> {
        self.arrays[array + 1].iter().find_map(|slot| match slot {
            Slot::Axis(axis) => count(&self.table, *axis).map(|_| *axis),
            _ => None,
        })
    }
}

/// The span of messages about an operand.
fn at(operand: &Operand) -> Span {
    Span::mixed_site().located_at(operand.expr.span())
}

/// Binders (the arguments of `try_at`) as a tuple, with the span of the array's axes.
fn tuple(binders: TokenStream, operand: &Operand) -> Group {
    let mut tuple = Group::new(Delimiter::Parenthesis, binders);
    // The user's own span: with the macro's hygiene, each error would have a note about the macro.
    tuple.set_span(operand.brackets);
    tuple
}

/// The expansion: each axis except `_` gets a dim. The arrays of positions are bound to their dims,
/// and index the axes `_` of the first array.
fn written(call: &GatherCall, valid: &ValidGather, fallible: bool) -> TokenStream {
    let dim = |axis: usize| {
        let name = match count(&valid.table, axis) {
            Some(count) => format!("coordinates{count}"),
            None => valid.table.entries[axis].name.clone(),
        };
        // The number tells a coordinate axis apart from a user's axis with this name.
        loop_name(&name, if count(&valid.table, axis).is_some() { 2 } else { 1 }, Span::mixed_site())
    };
    let of_terms = |terms: &[Term]| {
        let dims = terms.iter().map(|term| match term {
            Term::Axis(axis) => dim(*axis).into_token_stream(),
            Term::Rest => TokenStream::new(),
        });
        quote!((#(#dims,)*))
    };
    let indices: Vec<Ident> = (1..call.operands.len()).map(|at| own(&format!("positions{at}"))).collect();
    let binders = |slots: &[Slot]| {
        let binders = slots.iter().map(|slot| match slot {
            Slot::Axis(axis) => match valid.gathered.iter().position(|own| own == axis) {
                Some(number) => {
                    let (array, coordinate) = valid.position(number);
                    let span = at(&call.operands[array + 1]);
                    let mut index = indices[array].clone();
                    index.set_span(span);
                    let index = match (coordinate, valid.coordinate_axis(array)) {
                        (Some(coordinate), Some(axis)) => {
                            let along = dim(axis);
                            quote_spanned!(span=> (&#index).index(#along, #coordinate))
                        }
                        _ => index.into_token_stream(),
                    };
                    quote_spanned!(span=> ::typed_dims::__private::lookup(#index))
                }
                None => dim(*axis).into_token_stream(),
            },
            Slot::Group(terms) => of_terms(terms),
            Slot::Rest => quote!(::typed_dims::__private::Ellipsis),
            Slot::Sum(_) => TokenStream::new(),
        });
        quote!(#(#binders,)*)
    };
    let operands: Vec<Ident> = (0..call.operands.len()).map(|at| own(&format!("operand{at}"))).collect();
    let references = call.operands.iter().map(|operand| plain_reference(&operand.expr));
    let sizes: Vec<Ident> = (0..valid.given.len()).map(|at| own(&format!("given{at}"))).collect();
    let values = valid.given.iter().map(|(_, value)| value);
    let axes = (0..valid.table.entries.len()).filter(|&axis| valid.table.entries[axis].number.is_none());
    let dims = axes.enumerate().map(|(at, axis)| {
        let (name, ty) = (dim(axis), loop_type(at, &valid.table.entries[axis].name));
        match valid.given.iter().position(|(own, _)| *own == axis) {
            Some(at) => {
                let size = &sizes[at];
                quote!(let #name = &<#ty>::minted_with(#size);)
            }
            None => match count(&valid.table, axis) {
                Some(count) => quote!(let #name = &<#ty>::minted_with(#count);),
                None => quote!(let #name = &<#ty>::minted();),
            },
        }
    });
    let source = &operands[0];
    let source_binders = tuple(binders(&valid.arrays[0]), &call.operands[0]);
    let source_at = Ident::new("try_at", call.operands[0].expr.span());
    // `order` puts these axes before those that `...` stands for.
    let order: Vec<Slot> = valid.output.iter().filter(|slot| **slot != Slot::Rest).cloned().collect();
    let order = binders(&order);
    let error = own("error");
    let gathered = own("gathered");
    let use_index = valid.coordinates.iter().any(Option::is_some).then(|| {
        quote!(
            use ::typed_dims::__private::operators::restructure::Restructure as _;
        )
    });
    let mut result = quote! {
        match #source.#source_at(#source_binders) {
            ::core::result::Result::Ok(#gathered) => #gathered.try_order((#order)),
            ::core::result::Result::Err(#error) => ::core::result::Result::Err(#error),
        }
    };
    for (at, index) in indices.iter().enumerate().rev() {
        let own = tuple(binders(&valid.arrays[at + 1]), &call.operands[at + 1]);
        let operand = &operands[at + 1];
        let try_at = Ident::new("try_at", call.operands[at + 1].expr.span());
        result = quote! {
            match #operand.#try_at(#own) {
                ::core::result::Result::Ok(#index) => #result,
                ::core::result::Result::Err(#error) => ::core::result::Result::Err(#error),
            }
        };
    }
    finish(
        quote! {
            match ((#(#references,)*), (#(#values,)*)) {
                ((#(#operands,)*), (#(#sizes,)*)) => {
                    use ::typed_dims::__private::bind::At as _;
                    use ::typed_dims::__private::execute::order::OrderExt as _;
                    #use_index
                    #(#dims)*
                    #result
                }
            }
        },
        fallible,
    )
}
