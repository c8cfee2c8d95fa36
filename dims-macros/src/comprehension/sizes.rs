//! The size of each loop.
//!
//! A loop with a range takes its size from the range, and `$i` takes the size of the dim. Any other
//! loop takes the size of the first axis that it indexes alone. If it indexes no axis alone, it
//! must be in an index like `2 * i + k`, where the sizes of all other loops are known. Then `i`
//! gets the greatest size for which the index stays within the axis.

use super::errors::Mistakes;
use super::node::{Element, LoopId, Node, Program, Step};
use super::tokens::is_same;
use crate::pattern::near::list;
use proc_macro2::Ident;
use std::collections::HashSet;
use syn::ext::IdentExt;
use syn::{BinOp, Result};

/// The steps for all loops. Empty if binding the operands determines all sizes.
pub fn steps(program: &Program) -> Result<Vec<Step>> {
    let mut known: Vec<bool> = program.loops.iter().map(|one| one.outer || one.range.is_some()).collect();
    let elements = program.elements();
    let mut steps = Vec::new();
    for (element, at, index) in axes(&elements) {
        if let Node::Loop(id, _) = index
            && !known[*id]
        {
            known[*id] = true;
            steps.push(Step::Axis { operand: element.operand, at, rank: element.indices.len(), of: *id });
        }
    }
    loop {
        let mut found = false;
        for (element, at, index) in axes(&elements) {
            let Some(loops) = linear(&program.locals, index) else { continue };
            let mut open: Vec<LoopId> = loops.into_iter().filter(|&id| !known[id]).collect();
            open.dedup();
            if let [id] = open[..] {
                known[id] = true;
                // If the loop is in one index only, no step is needed: binding the operand gives
                // the loop the same size.
                if !stands_once(program, id) {
                    let (operand, rank, index) = (element.operand, element.indices.len(), index.clone());
                    steps.push(Step::Fit { operand, at, rank, index });
                }
                found = true;
            }
        }
        if !found {
            break;
        }
    }
    let mut mistakes = Mistakes::default();
    // If one index has several loops without a size, report it once: ranges for all but one of them
    // would fix it.
    let mut reported = HashSet::new();
    let mut nowhere: Vec<&Ident> = Vec::new();
    for (id, one) in program.loops.iter().enumerate().filter(|&(id, _)| !known[id]) {
        let name = one.name.unraw();
        let (mut single, mut among) = (None, None);
        for (element, _, index) in axes(&elements) {
            if linear(&program.locals, index).is_some_and(|loops| loops.contains(&id)) {
                among.get_or_insert(&element.text);
            } else if program.dims(index).contains(&id) {
                single.get_or_insert(&element.text);
            }
        }
        let why = match (among, single) {
            (Some(text), _) if !reported.insert(text) => continue,
            (Some(text), _) => format!("`{text}` does not determine the size of each loop"),
            (None, Some(text)) => format!("it cannot be inferred from `{text}`"),
            (None, None) => {
                nowhere.push(&one.name);
                continue;
            }
        };
        mistakes.at(
            &one.name,
            format!("the loop `{name}` has no size: {why}; give it a range, `{name} in 0..n`"),
        );
    }
    nowhere.retain(|name| {
        let is_dim = program.loops.iter().any(|one| one.outer && is_same(&one.name, name));
        if is_dim {
            let message = format!(
                "the loop `{name}` and the dim `${name}` are different: write `${name}` in the list, too, or `{name}` everywhere"
            );
            mistakes.at(name, message);
        }
        !is_dim
    });
    if let [first, ..] = nowhere[..] {
        let names: Vec<String> = nowhere.iter().map(|name| name.unraw().to_string()).collect();
        let what = match &names[..] {
            [one] => {
                format!("the loop `{one}` has no size: it indexes no array; give it a range, `{one} in 0..n`")
            }
            [one, ..] => format!(
                "the loops {} have no sizes: they index no array; give each a range, `{one} in 0..n`",
                list(&names)
            ),
            [] => unreachable!("there is one"),
        };
        mistakes.at(first, what);
    }
    mistakes.or(())?;
    Ok(if is_simple(program, &program.body) { Vec::new() } else { steps })
}

fn axes<'a>(elements: &'a [&'a Element]) -> impl Iterator<Item = (&'a Element, usize, &'a Node)> {
    elements
        .iter()
        .flat_map(|element| element.indices.iter().enumerate().map(|(at, index)| (*element, at, index)))
}

/// Whether a loop occurs only once, in a program without locals.
fn stands_once(program: &Program, id: LoopId) -> bool {
    let mut count = 0;
    program.body.walk(&mut |node| count += usize::from(matches!(node, Node::Loop(own, _) if *own == id)));
    count == 1 && program.locals.is_empty()
}

/// The loops of an index, if it is a sum of loops with constant coefficients.
pub fn linear(locals: &[Node], index: &Node) -> Option<Vec<LoopId>> {
    match index {
        Node::Rust(_) => Some(Vec::new()),
        Node::Loop(id, _) => Some(vec![*id]),
        Node::Local(id, _) => linear(locals, &locals[*id]),
        Node::Neg(_, a) => linear(locals, a),
        Node::Binary(BinOp::Add(_) | BinOp::Sub(_), a, b) => {
            let mut loops = linear(locals, a)?;
            loops.extend(linear(locals, b)?);
            Some(loops)
        }
        Node::Binary(BinOp::Mul(_), a, b) => {
            let (a, b) = (linear(locals, a)?, linear(locals, b)?);
            match (a.is_empty(), b.is_empty()) {
                (_, true) => Some(a),
                (true, _) => Some(b),
                (false, false) => None,
            }
        }
        _ => None,
    }
}

/// Whether loops other than `$i` occur only as whole indices. Then binding the operands determines
/// all sizes.
fn is_simple(program: &Program, node: &Node) -> bool {
    match node {
        Node::Loop(id, _) => program.loops[*id].outer,
        Node::Element(element) => {
            element.indices.iter().all(|index| matches!(index, Node::Loop(..)) || is_simple(program, index))
        }
        node => node.parts().into_iter().all(|part| is_simple(program, part)),
    }
}
