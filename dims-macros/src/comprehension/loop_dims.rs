//! The dims of loops in the expansion: their names and types.

use super::node::Program;
use super::tokens::is_same;
use crate::pattern::plan::own;
use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{format_ident, quote};
use std::collections::HashMap;
use syn::ext::IdentExt;

/// The variables of a comprehension in its expansion.
pub struct Names {
    /// The operands.
    pub operands: Vec<Ident>,
    /// The dims of the loops.
    pub loops: Vec<Ident>,
    /// The start of the range of each loop. Used only if the range does not start at a literal 0.
    pub starts: Vec<Ident>,
}

pub fn names(program: &Program) -> Names {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let loops: Vec<Ident> = program
        .loops
        .iter()
        .map(|one| {
            let again = seen.entry(one.name.unraw().to_string()).or_default();
            *again += 1;
            let (name, span) = (one.name.unraw(), Span::mixed_site().located_at(one.name.span()));
            loop_name(&name.to_string(), *again, span)
        })
        .collect();
    let starts = loops.iter().map(|name| format_ident!("{name}_start", span = name.span())).collect();
    let operands = (0..program.operands.len()).map(|at| own(&format!("operand{at}"))).collect();
    Names { operands, loops, starts }
}

/// The variable of a loop's dim. The number distinguishes loops with the same name. It also keeps
/// the variable apart from all other names in the expansion, whatever the loop's name.
pub fn loop_name(name: &str, number: usize, span: Span) -> Ident {
    format_ident!("__{name}__{number}", span = span)
}

/// The type of the dim of each loop that is not an outer dim. Loops with the same name are never
/// nested, so they share one type.
pub fn variables(program: &Program) -> Vec<Option<TokenStream>> {
    let mut seen: Vec<&Ident> = Vec::new();
    let mut variable = |name| {
        let at = seen.iter().position(|known| is_same(known, name)).unwrap_or_else(|| {
            seen.push(name);
            seen.len() - 1
        });
        loop_type(at, &name.unraw().to_string())
    };
    program.loops.iter().map(|one| (!one.outer).then(|| variable(&one.name))).collect()
}

/// The maximum number of loops with different names in a call: one less than the maximum number of
/// dims of a tensor.
pub const MOST_LOOPS: usize = 31;

/// The maximum number of letters of a loop's name in messages.
const MOST_LETTERS: usize = 16;

/// The type of a loop's dim: `LoopVar` of the core, with a number that belongs to this name in the
/// call, and the first letters of the name.
pub fn loop_type(at: usize, name: &str) -> TokenStream {
    let at = Literal::usize_unsuffixed(at);
    let mut letters: Vec<char> = name.chars().collect();
    if letters.len() > MOST_LETTERS {
        letters.truncate(MOST_LETTERS - 1);
        letters.push('…');
    }
    quote!(::typed_dims::__private::LoopVar<#at #(, #letters)*>)
}

/// The dims of the output, as `order` takes them.
pub fn order(program: &Program, names: &Names) -> TokenStream {
    let name = |id: &usize| {
        let name = &names.loops[*id];
        quote!(#name)
    };
    let axes: Vec<TokenStream> = program
        .axes
        .iter()
        .map(|axis| match &axis[..] {
            [one] => name(one),
            group => {
                let group = group.iter().map(name);
                quote!((#(#group,)*))
            }
        })
        .collect();
    match &axes[..] {
        [one] if program.axes[0].len() == 1 => one.clone(),
        axes => quote!((#(#axes,)*)),
    }
}
