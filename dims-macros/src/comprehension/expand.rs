//! The expansion of a comprehension: dims for its loops, the operands bound to them, and an ordered
//! expression.

use super::library::{krate, path};
use super::loop_dims::{Names, names, variables};
use super::lower::Lower;
use super::node::{Node, Program, Step};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};
use syn::spanned::Spanned;
use syn::{Error, Result};

/// The comprehension as an expression.
pub fn expand(program: &Program, fallible: bool) -> Result<TokenStream> {
    let krate = krate();
    let names = names(program);
    let mut lower = Lower::new(program, &names, fallible);
    let steps: Vec<TokenStream> = program.sizes.iter().map(|step| size(step, &names, &mut lower)).collect();
    let value = lower.whole(&program.body);
    if let Some(place) = lower.too_deep {
        let what = "operations are nested too deeply in a branch: compute a part of them in a separate `tensor!` before this one";
        return Err(Error::new(place, what));
    }
    let (fixed, stmts) = lower.finish();
    let hoisted = program.hoisted.iter().map(|(name, code)| {
        let path = path("index", code.span());
        quote!(let #name = #path(#code);)
    });

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
    Ok(quote!(#label { #(#fixed)* #(#hoisted)* #body }))
}

/// The statement that gives a loop its size.
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

impl Program {
    /// Whether a node, or a `let` that it uses, contains a reduction of elements whose computation
    /// can fail.
    pub fn runs_what_can_fail(&self, node: &Node) -> bool {
        match node {
            Node::Reduce(reduce) => self.can_fail(&reduce.body),
            Node::Local(id, _) => self.runs_what_can_fail(&self.locals[*id]),
            node => node.parts().into_iter().any(|part| self.runs_what_can_fail(part)),
        }
    }
}
