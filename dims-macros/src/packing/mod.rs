//! `pack!` and `unpack!`.

use crate::pattern::call::{self, Form};
use crate::pattern::errors::Errors;
use crate::pattern::operand::{looked_at, plain_reference, reference};
use crate::pattern::parse::{Array, Axis, AxisKind, Sides, parse};
use crate::pattern::plan::{finish, home, rank, taking};
use crate::pattern::words::Words;
use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::parse::{ParseStream, Parser};
use syn::spanned::Spanned;
use syn::{Expr, ExprArray, ExprLit, ExprUnary, Lit, UnOp};

const PACK: Form = Form { name: "pack", example: "pack!([x0, x1], h w *)", op: false, operands: Some(1) };
const UNPACK: Form =
    Form { name: "unpack", example: "unpack!(y, shape, h w *)", op: false, operands: Some(2) };

/// The names around `*`.
struct ValidPacking {
    before: Vec<String>,
    after: Vec<String>,
}

pub fn pack(input: TokenStream, fallible: bool) -> TokenStream {
    expand(input, &PACK, |call, valid, plan| {
        let (home, out) = (home(), rank(valid.named() + 1));
        let list = listed(&call.operands[0], valid.named());
        finish(quote!(#home::pack::<#out, _, _, _>(#plan, #list)), fallible)
    })
}

pub fn unpack(input: TokenStream, fallible: bool) -> TokenStream {
    expand(input, &UNPACK, |call, valid, plan| {
        let home = home();
        let around = rank(valid.named());
        let packed = reference(&call.operands[0]);
        let shape = shape(&call.operands[1]);
        let span = Span::mixed_site().located_at(call.operands[0].span());
        let taking = taking(valid.named() + 1, "exactly_in_memory", span);
        let packed = quote_spanned!(span=> #taking(#packed));
        finish(quote!(#home::unpack::<#around, _, _>(#plan, #packed, #shape)), fallible)
    })
}

/// The shape: an expression, or sizes in brackets, `[[2, 3], [-1]]`.
fn shape(operand: &Expr) -> TokenStream {
    let span = Span::mixed_site().located_at(operand.span());
    let Some(parts) = listed_sizes(operand) else {
        let shape = plain_reference(operand);
        return quote_spanned!(span=> ::typed_dims::__private::pattern::packed_shape(#shape));
    };
    let count = parts.len();
    let ranks: Vec<usize> = parts.iter().map(|part| part.elems.len()).collect();
    let dynamic = quote!(::typed_dims::__private::pattern::RankDyn);
    let rank = match ranks[..] {
        [first, ref others @ ..] if others.iter().all(|own| *own == first) => rank(first),
        _ => dynamic,
    };
    let parts = parts.iter().map(|part| {
        let sizes = part
            .elems
            .iter()
            .map(|size| if is_open(size) { quote!((0, true)) } else { quote!((#size, false)) });
        quote!(&[#(#sizes),*])
    });
    quote!(&::typed_dims::__private::pattern::listed_shape::<#count, #rank>(&[#(#parts),*]))
}

/// The lists in a list of lists.
fn listed_sizes(operand: &Expr) -> Option<Vec<&ExprArray>> {
    let Expr::Array(list) = operand else { return None };
    let sizes = list.elems.iter().map(|part| match part {
        Expr::Array(sizes) => Some(sizes),
        _ => None,
    });
    sizes.collect()
}

/// Whether a size is `-1`, to be inferred from the other sizes.
fn is_open(size: &Expr) -> bool {
    let Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) = size else { return false };
    matches!(&**expr, Expr::Lit(ExprLit { lit: Lit::Int(one), .. }) if one.base10_digits() == "1")
}

/// Checks that at most one size is left open.
fn check_sizes(operand: &Expr, errors: &mut Errors) {
    let sizes = listed_sizes(operand).into_iter().flatten().flat_map(|part| &part.elems);
    for second in sizes.filter(|size| is_open(size)).skip(1) {
        errors.span(second.span(), "`-1` stands for the size that remains: use it only once");
    }
}

impl ValidPacking {
    fn named(&self) -> usize {
        self.before.len() + self.after.len()
    }
}

fn expand(
    input: TokenStream,
    form: &Form,
    write: impl FnOnce(&call::Call, &ValidPacking, TokenStream) -> TokenStream,
) -> TokenStream {
    let mut errors = Errors::default();
    let call = match (|input: ParseStream<'_>| call::parse(input, form, &mut errors)).parse2(input) {
        Ok(call) => call,
        Err(error) => {
            errors.syn(&error);
            return errors.stub(&TokenStream::new());
        }
    };
    let valid = check(&call.words, form, &mut errors);
    if let Some(shape) = call.operands.get(1) {
        check_sizes(shape, &mut errors);
    }
    for size in &call.sizes {
        errors.span(size.name.span(), format!("`{}!` takes no sizes", form.name));
    }
    if !errors.is_empty() {
        return errors.stub(&looked_at(call.operands.iter()));
    }
    let (text, before, after) = (call.words.shown(), &valid.before, &valid.after);
    let home = home();
    let plan = quote! {
        const { &#home::PackPattern { text: #text, before: &[#(#before),*], after: &[#(#after),*] } }
    };
    write(&call, &valid, plan)
}

/// The list of arrays. Arrays in a bracketed list may have different ranks.
fn listed(list: &Expr, around: usize) -> TokenStream {
    let at = |expr: &Expr| Span::mixed_site().located_at(expr.span());
    let Expr::Array(array) = list else {
        let (span, reference) = (at(list), plain_reference(list));
        let taking = taking(around, "packing_all", span);
        return quote_spanned!(span=> #taking(#reference));
    };
    let count = array.elems.len();
    let chain = array.elems.iter().fold(None, |list, item| {
        let (span, item) = (at(item), reference(item));
        Some(match list {
            None => {
                let first = taking(around, "packing", span);
                quote_spanned!(span=> #first::<#count, _>(#item))
            }
            Some(list) => {
                let and = taking(around, "and", span);
                quote_spanned!(span=> #and(#list, #item))
            }
        })
    });
    chain.unwrap_or_else(|| reference(list))
}

/// Checks that the pattern has one `*`, and each name once.
fn check(words: &Words, form: &Form, errors: &mut Errors) -> ValidPacking {
    let Sides { left, right } = parse(words, errors);
    if !errors.is_empty() {
        return ValidPacking { before: Vec::new(), after: Vec::new() };
    }
    if let Some((_, arrow)) = &right {
        let what = format!("the pattern of `{}!` has one side: `{}`", form.name, form.example);
        errors.at(words, arrow, what);
    }
    if let [_, second, ..] = &left[..] {
        let list = if form.name == "pack" { "; write the arrays as a list, `[x0, x1]`" } else { "" };
        let what = format!("the pattern of `{}!` describes one array{list}", form.name);
        errors.at(words, &second.place, what);
    }
    let Array { axes, place } = &left[0];
    let mut valid = ValidPacking { before: Vec::new(), after: Vec::new() };
    let mut star = false;
    for Axis { kind, place } in axes {
        let what = match kind {
            AxisKind::Name(name) => {
                if valid.before.contains(name) || valid.after.contains(name) {
                    errors.at(
                        words,
                        place,
                        format!("the axis `{name}` is named twice: each axis needs its own name"),
                    );
                }
                let side = if star { &mut valid.after } else { &mut valid.before };
                side.push(name.clone());
                continue;
            }
            AxisKind::Star if star => {
                "a pattern can have only one `*`: with two, it would be unclear which axes each stands for"
            }
            AxisKind::Star => {
                star = true;
                continue;
            }
            AxisKind::Dots => "`...` cannot be used with `*`, which already stands for any number of axes",
            AxisKind::Under => "`_` is not allowed here: the axes around `*` need names",
            AxisKind::Number(_) => "a number is not allowed here: the axes around `*` need names",
            AxisKind::Group(_) => "a group is not allowed here: `rearrange!` the arrays first",
        };
        errors.at(words, place, what);
    }
    if !star && errors.is_empty() {
        let what = format!("expected `*` for the axes that differ: `{}`", form.example);
        errors.at(words, place, what);
    }
    valid
}
