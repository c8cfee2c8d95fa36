//! What a comprehension becomes: dims for its loops, the operands bound to them, and an expression that is ordered.

use super::lower::{Lower, path};
use super::node::{Loop, Node, Program};
use super::sizes::Step;
use crate::pattern::plan::own;
use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{format_ident, quote};
use std::collections::HashMap;
use syn::ext::IdentExt;
use syn::{Error, Result};

/// The names of a comprehension in its expansion.
pub struct Names {
    /// Of the operands.
    pub operands: Vec<Ident>,
    /// Of the loops' dims.
    pub loops: Vec<Ident>,
    /// Of the first indices of ranges that do not start at 0.
    pub starts: Vec<Ident>,
}

/// The path of what macros call.
pub fn krate() -> TokenStream {
    quote!(::typed_dims::__private)
}

/// The comprehension as an expression.
pub fn expand(program: &Program, fallible: bool) -> Result<TokenStream> {
    let krate = krate();
    let names = names(program);
    let mut lower = Lower::new(program, &names, fallible);
    let steps: Vec<TokenStream> = program.sizes.iter().map(|step| size(step, &names, &mut lower)).collect();
    let value = lower.whole(&program.body);
    if let Some(place) = lower.too_deep {
        let what = "operations are nested too deep in a branch: compute a part of them in a separate `tensor!` before this one";
        return Err(Error::new(place, what));
    }
    let (fixed, stmts) = lower.finish();

    let (mut inputs, mut inner) = (Vec::new(), Vec::new());
    for (base, name) in program.operands.iter().zip(&names.operands) {
        inputs.push(quote!(&#base));
        inner.push(quote!(#name));
    }
    let variables = variables(program);
    let mut dims = Vec::new();
    for (at, (one, name)) in program.loops.iter().zip(&names.loops).enumerate() {
        let Some(variable) = &variables[at] else {
            let (outer, dim) = (path("outer", one.name.span()), &one.name);
            dims.push(quote!(let #name = #outer(#dim);));
            continue;
        };
        let made = match &one.range {
            Some(range) => {
                let (code, start) = (&range.tokens, &names.starts[at]);
                let size = format_ident!("{name}_size", span = name.span());
                inputs.push(quote!(#krate::extent(#code)));
                inner.push(if range.from_zero { quote!((_, #size)) } else { quote!((#start, #size)) });
                quote!(minted_with(#size))
            }
            None => quote!(minted()),
        };
        dims.push(quote!(let #name = &<#variable>::#made;));
    }
    let label = fallible.then(|| {
        let label = syn::Lifetime::new("'_comprehension", Span::mixed_site());
        quote!(#label:)
    });
    let body = quote!({ use #krate::methods::*; #(#dims)* #(#steps)* #(#stmts)* #value });
    let body = if inputs.is_empty() { body } else { quote!(match (#(#inputs,)*) { (#(#inner,)*) => #body }) };
    Ok(quote!(#label { #(#fixed)* #body }))
}

fn names(program: &Program) -> Names {
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

/// The dim of a loop, as a variable: that of the first loop of this name, or of the second, .. The number at the end keeps it apart from
/// all else that a macro names, however the loop is called.
pub fn loop_name(name: &str, number: usize, span: Span) -> Ident {
    format_ident!("__{name}__{number}", span = span)
}

/// For each loop of its own the type of its dim. Loops of one name are never around one another, and have one type.
fn variables(program: &Program) -> Vec<Option<TokenStream>> {
    let mut seen: Vec<String> = Vec::new();
    let mut variable = |one: &Loop| {
        let name = one.name.unraw().to_string();
        let at = seen.iter().position(|known| *known == name).unwrap_or_else(|| {
            seen.push(name.clone());
            seen.len() - 1
        });
        loop_type(at, &name)
    };
    program.loops.iter().map(|one| (!one.outer).then(|| variable(one))).collect()
}

/// How many letters of a loop's name messages have.
const MOST_LETTERS: usize = 16;

/// The type of a loop's dim: `LoopVar` of the core, with the loop's position among those of the call and the letters of its name.
pub fn loop_type(at: usize, name: &str) -> TokenStream {
    let at = Literal::usize_unsuffixed(at);
    let mut letters: Vec<char> = name.chars().collect();
    if letters.len() > MOST_LETTERS {
        letters.truncate(MOST_LETTERS - 1);
        letters.push('…');
    }
    quote!(::typed_dims::__private::LoopVar<#at #(, #letters)*>)
}

/// One loop gets its size.
fn size(step: &Step, names: &Names, lower: &mut Lower<'_>) -> TokenStream {
    let (operand, method, arguments) = match step {
        Step::Axis { operand, at, rank, of } => {
            let dim = &names.loops[*of];
            (operand, "size_loop", quote!(#at, #rank, #dim))
        }
        Step::Fit { operand, at, rank, index } => {
            let index = lower.linear(index);
            (operand, "fit", quote!(#at, #rank, #index))
        }
    };
    let operand = &names.operands[*operand];
    let call = lower.call(quote!(#operand), &Ident::new(method, Span::mixed_site()), &arguments);
    quote!(#call;)
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

impl Program {
    /// Whether a reduction that can fail stands in a node, or in what its names stand for.
    pub fn runs_what_can_fail(&self, node: &Node) -> bool {
        match node {
            Node::Reduce(reduce) => self.can_fail(&reduce.body),
            Node::Local(id, _) => self.runs_what_can_fail(&self.locals[*id]),
            node => node.parts().into_iter().any(|part| self.runs_what_can_fail(part)),
        }
    }
}
