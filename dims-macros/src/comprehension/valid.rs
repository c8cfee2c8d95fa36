//! Finds loops and the parts that depend on them, and reports mistakes.

use super::LoopNotation;
use super::ast::{ComprehensionCall, LoopRef, ResultAxis};
use super::errors::Mistakes;
use super::loop_dims::MOST_LOOPS;
use super::node::*;
use super::tokens::{OUTER, grouped, is_same, own, stands_for, unwrap};
use super::{names, sizes};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};
use std::collections::HashSet;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{BinOp, Block, Error, Expr, ExprLit, Lit, Pat, Result, Stmt, UnOp};

/// The maximum number of `let`s of a call: each is a level of the tree.
const MOST_LETS: usize = 500;

pub enum Meaning {
    Loop(LoopId),
    Local(LocalId),
    /// A `let` without loops, with its name in the expansion.
    Rust(Ident),
}

pub struct Checker {
    pub(super) loops: Vec<Loop>,
    pub(super) operands: Vec<(Option<String>, TokenStream)>,
    pub(super) locals: Vec<Node>,
    /// Integers that are computed once, before the loops, each with its name in the expansion.
    hoisted: Vec<(Ident, TokenStream)>,
    /// The text of each name in scope, and what it stands for.
    pub(super) scope: Vec<(String, Ident, Meaning)>,
    /// All tokens of the call.
    call: TokenStream,
    pub(super) slots: usize,
    lets: usize,
    /// The names that `let`s without loops have in the expansion.
    named: Vec<Ident>,
    /// Whether the current code was already reported to depend on a loop.
    pub(super) reported: bool,
    pub mistakes: Mistakes,
}

pub fn check(call: &ComprehensionCall, notation: LoopNotation) -> Result<Program> {
    let mut checker = Checker {
        loops: Vec::new(),
        operands: Vec::new(),
        locals: Vec::new(),
        hoisted: Vec::new(),
        scope: Vec::new(),
        call: call.tokens.clone(),
        slots: 0,
        lets: 0,
        named: Vec::new(),
        reported: false,
        mistakes: Mistakes::default(),
    };
    let axes = checker.output(&call.axes);
    let listed = checker.loops.len();
    if notation == LoopNotation::Einsum {
        for name in names::in_indices(&call.body, &call.tokens) {
            if checker.meaning(&name).is_none() {
                checker.introduce(name, None);
            }
        }
    }
    let summed: Vec<LoopId> = (listed..checker.loops.len()).collect();
    let before = checker.mistakes.count();
    let body = checker.node(&call.body);
    // If a part of the body cannot be parsed, its indices are missing.
    let whole = checker.mistakes.count() == before;
    let Checker { loops, operands, locals, hoisted, mut mistakes, .. } = checker;
    let operands = operands.into_iter().map(|(_, base)| base).collect();
    let mut program = Program { loops, operands, locals, hoisted, axes, body, sizes: Vec::new() };
    if notation == LoopNotation::Einsum {
        if whole {
            names::check_einsum(&program, listed, &summed, &mut mistakes);
        }
        if !summed.is_empty() {
            let name = Ident::new("sum", Span::call_site());
            let body = std::mem::replace(&mut program.body, Node::Rust(TokenStream::new()));
            program.body = Node::Reduce(Box::new(Reduce { name, loops: summed, body }));
        }
    }
    // Only look for sizes if everything else is right: a misspelled loop would have no size.
    mistakes.or(())?;
    program.sizes = sizes::steps(&program)?;
    Ok(program)
}

impl Checker {
    /// The loops of each axis of the output.
    fn output(&mut self, axes: &[ResultAxis]) -> Vec<Vec<LoopId>> {
        axes.iter()
            .map(|axis| match axis {
                ResultAxis::One(one) => self.loop_of(one, "the output").into_iter().collect(),
                ResultAxis::Group(group) => {
                    group.iter().filter_map(|one| self.loop_of(one, "the output")).collect()
                }
            })
            .collect()
    }

    /// The loop that an entry of a list introduces.
    pub(super) fn loop_of(&mut self, one: &LoopRef, list: &str) -> Option<LoopId> {
        let name = &one.name;
        if one.outer {
            if let Some(range) = &one.range {
                self.mistakes.at(
                    unwrap(quote!(#range)),
                    format!(
                        "`${name}` is a dim of the surrounding scope, which sets its size: remove the range"
                    ),
                );
            }
            return Some(self.outer(name));
        }
        if name == "_" {
            self.mistakes.at(name, "a loop needs a name, not `_`");
            return None;
        }
        match self.meaning(name) {
            Some(Meaning::Loop(_)) if list == "the output" => {
                self.mistakes.at(
                    name,
                    format!("the loop `{name}` is named twice in the output: name it once; `a[{name}, {name}]` reads a diagonal"),
                );
                None
            }
            Some(Meaning::Loop(_)) => {
                self.mistakes.at(
                    name,
                    format!(
                        "`{name}` is already a loop, so it cannot be reduced here: give this loop another name"
                    ),
                );
                None
            }
            _ => Some(self.introduce(name.clone(), one.range.as_ref())),
        }
    }

    fn introduce(&mut self, name: Ident, range: Option<&Expr>) -> LoopId {
        let range = range.map(|range| {
            let from_zero = matches!(range, Expr::Range(bounds) if is_zero(bounds.start.as_deref()));
            Range { tokens: self.rust(range, "the range of a loop"), from_zero }
        });
        let id = self.loops.len();
        if self
            .loops
            .iter()
            .map(|one| &one.name)
            .filter(|known| **known != name)
            .collect::<HashSet<_>>()
            .len()
            >= MOST_LOOPS
        {
            self.mistakes.at(
                &name,
                format!("a comprehension can have at most {MOST_LOOPS} loops with different names"),
            );
        }
        self.scope.push((name.unraw().to_string(), name.clone(), Meaning::Loop(id)));
        self.loops.push(Loop { name, outer: false, range });
        id
    }

    /// The dim `$name`.
    pub(super) fn outer(&mut self, name: &Ident) -> LoopId {
        let known = self.loops.iter().position(|known| known.outer && is_same(&known.name, name));
        known.unwrap_or_else(|| {
            self.loops.push(Loop { name: name.clone(), outer: true, range: None });
            self.loops.len() - 1
        })
    }

    /// What a name stands for. `None` if it comes from outside of the call.
    pub fn meaning(&self, name: &Ident) -> Option<&Meaning> {
        let text = name.unraw().to_string();
        let named = || self.scope.iter().rev().filter(|(known, ..)| *known == text);
        let same = named().find(|(_, known, _)| is_same(name, known));
        let found = same.or_else(|| named().find(|(_, known, _)| stands_for(name, known, &self.call)));
        found.map(|(.., meaning)| meaning)
    }

    pub(super) fn node(&mut self, expr: &Expr) -> Node {
        match expr {
            Expr::Paren(inner) => match self.node(&inner.expr) {
                Node::Rust(code) => Node::Rust(quote!((#code))),
                node => node,
            },
            Expr::Path(path) => match path.path.get_ident() {
                Some(name) => match self.meaning(name) {
                    Some(&Meaning::Loop(id)) => Node::Loop(id, name.clone()),
                    Some(&Meaning::Local(id)) => Node::Local(id, name.clone()),
                    _ => Node::Rust(self.rust(expr, "this")),
                },
                None => Node::Rust(self.rust(expr, "this")),
            },
            Expr::Macro(call) if call.mac.path.is_ident(OUTER) => match syn::parse2::<Ident>(call.mac.tokens.clone()) {
                Ok(name) => Node::Loop(self.outer(&name), name),
                Err(error) => self.error(error),
            },
            Expr::Unary(unary) => {
                let node = self.node(&unary.expr);
                match (&unary.op, node) {
                    (op, Node::Rust(code)) => Node::Rust(quote!(#op #code)),
                    (UnOp::Neg(minus), node) => Node::Neg(*minus, Box::new(node)),
                    (UnOp::Not(bang), node) => Node::Not(*bang, Box::new(node)),
                    (op, _) => self.error(Error::new(op.span(), "an element is a value, not a reference: remove the `*`")),
                }
            }
            Expr::Binary(binary) => self.binary(expr, &binary.left, binary.op, &binary.right),
            Expr::Cast(cast) => match self.node(&cast.expr) {
                Node::Rust(code) => {
                    if let Some(error) = self.without_dollar(&cast.expr) {
                        return self.error(error);
                    }
                    let (token, ty) = (&cast.as_token, &cast.ty);
                    Node::Rust(quote!(#code #token #ty))
                }
                node => Node::Cast(Box::new(node), cast.as_token, cast.ty.clone()),
            },
            Expr::If(_) if !self.loops(expr) => Node::Rust(self.rust(expr, "this")),
            Expr::If(branch) => {
                if let Expr::Let(_) = &*branch.cond {
                    return self.error(Error::new_spanned(&branch.cond, "`if let` cannot be part of a comprehension: compare with `==`, `<` and so on"));
                }
                let Some((_, otherwise)) = &branch.else_branch else {
                    return self.error(Error::new_spanned(branch.if_token, "an `if` needs an `else`: every element needs a value"));
                };
                let parts = [self.node(&branch.cond), self.block(&branch.then_branch), self.node(otherwise)];
                Node::If(branch.if_token, Box::new(parts))
            }
            Expr::Block(block) => match &block.block.stmts[..] {
                [Stmt::Expr(value, None)] => match self.node(value) {
                    Node::Rust(code) => Node::Rust(grouped(code)),
                    node => node,
                },
                _ if self.loops(expr) => self.block(&block.block),
                _ => Node::Rust(self.rust(expr, "this")),
            },
            Expr::Index(index) => self.element(index),
            Expr::Call(call) => {
                if let Expr::Index(index) = &*call.func
                    && let Expr::Path(path) = &*index.expr
                    && let Some(name) = path.path.get_ident()
                {
                    return self.reduction(name, index, call);
                }
                self.closure(expr)
            }
            Expr::MethodCall(call) => self.method(expr, call),
            Expr::Field(field) if self.is_fixed_element(&field.base) => Node::Rust(self.rust(expr, "this")),
            Expr::Field(_) | Expr::Reference(_) | Expr::Tuple(_) | Expr::Array(_) | Expr::Match(_) | Expr::Try(_) => {
                self.closure(expr)
            }
            Expr::Closure(closure) => {
                let bound = names::bound(&closure.inputs);
                Node::Rust(self.rust_but(expr, "a closure", &bound))
            }
            Expr::Assign(assign) => self.error(Error::new(assign.eq_token.span(), "a comprehension cannot contain assignments: compare with `==`, or name a value with `let`")),
            Expr::Range(range) => self.error(Error::new_spanned(range.limits, "a range cannot be an element: write it after the name of a loop, `[i in 0..n]`")),
            Expr::ForLoop(_) | Expr::While(_) | Expr::Loop(_) => {
                self.error(Error::new_spanned(unwrap(quote!(#expr)), "a comprehension cannot contain `for`, `while` or `loop`: name its loops in the list, or in a reduction, `sum[k](..)`"))
            }
            _ => Node::Rust(self.rust(expr, "this")),
        }
    }

    pub(super) fn error(&mut self, error: Error) -> Node {
        self.mistakes.add(error);
        Node::Rust(TokenStream::new())
    }

    pub(super) fn loops(&self, expr: &Expr) -> bool {
        self.loops_in(expr.to_token_stream()) || names::has_elements(expr)
    }

    fn binary(&mut self, expr: &Expr, left: &Expr, op: BinOp, right: &Expr) -> Node {
        if names::is_assignment(expr) {
            return self.error(Error::new_spanned(
                op,
                "a comprehension cannot contain assignments: to sum, write `sum[k](..)`",
            ));
        }
        if let BinOp::Shl(_) | BinOp::Shr(_) = op {
            return self.closure(expr);
        }
        match (self.node(left), self.node(right)) {
            (Node::Rust(a), Node::Rust(b)) => Node::Rust(quote!(#a #op #b)),
            (a, b) => {
                for (one, other) in [(&a, right), (&b, left)] {
                    if let (Node::Loop(_, name), Expr::Lit(ExprLit { lit: Lit::Float(literal), .. })) =
                        (one, other)
                    {
                        let message = format!(
                            "`{name}` is an integer: write `{name} as f32` to combine it with `{literal}`"
                        );
                        self.mistakes.at(literal, message);
                    }
                }
                // If an index gives a loop its size, the expansion contains the index twice, so
                // Rust code in the index is computed in advance.
                let index = matches!(op, BinOp::Add(_) | BinOp::Sub(_) | BinOp::Mul(_));
                let (a, b) = match (a, b) {
                    (Node::Rust(code), b) if index && sizes::linear(&self.locals, &b).is_some() => {
                        (self.hoist(code), b)
                    }
                    (a, Node::Rust(code)) if index && sizes::linear(&self.locals, &a).is_some() => {
                        (a, self.hoist(code))
                    }
                    both => both,
                };
                Node::Binary(op, Box::new(a), Box::new(b))
            }
        }
    }

    /// An integer that is computed once, wherever it is used: a variable, unless the code is a
    /// literal or a variable itself.
    fn hoist(&mut self, code: TokenStream) -> Node {
        let node = Node::Rust(code.clone());
        if node.is_literal() || syn::parse2::<Ident>(code.clone()).is_ok() {
            return node;
        }
        let place = Span::mixed_site().located_at(code.span());
        let name = quote::format_ident!("__index{}", self.hoisted.len(), span = place);
        self.hoisted.push((name.clone(), code));
        Node::Rust(name.into_token_stream())
    }

    /// Statements and a value. Their names are in scope until the block ends.
    fn block(&mut self, block: &Block) -> Node {
        let depth = self.scope.len();
        let node = self.statements(&block.stmts, block);
        self.scope.truncate(depth);
        node
    }

    fn statements(&mut self, stmts: &[Stmt], block: &Block) -> Node {
        let [first, rest @ ..] = stmts else {
            let message = "the block needs a value: an expression at its end";
            let place = block.stmts.last().map_or(block.brace_token.span.join(), |stmt| stmt.span());
            return self.error(Error::new(place, message));
        };
        match first {
            Stmt::Expr(value, None) if rest.is_empty() => self.node(value),
            // syn takes a macro with braces for a statement, even at the end.
            Stmt::Macro(value) if rest.is_empty() && value.semi_token.is_none() => {
                Node::Rust(self.rust(value, "this"))
            }
            // The messages for these are better than the one for statements.
            Stmt::Expr(value @ (Expr::Assign(_) | Expr::ForLoop(_) | Expr::While(_) | Expr::Loop(_)), _) => {
                self.node(value)
            }
            Stmt::Expr(value @ Expr::Binary(_), Some(_)) if names::is_assignment(value) => self.node(value),
            Stmt::Local(stmt) => {
                self.lets += 1;
                if self.lets > MOST_LETS {
                    let message = format!("a comprehension can have at most {MOST_LETS} `let`s");
                    return self.error(Error::new(stmt.let_token.span, message));
                }
                let (pat, ty) = match &stmt.pat {
                    Pat::Type(typed) => (&*typed.pat, Some((*typed.ty).clone())),
                    pat => (pat, None),
                };
                let (Pat::Ident(pat), Some(init)) = (pat, &stmt.init) else {
                    return self.error(Error::new_spanned(
                        &stmt.pat,
                        "expected a `let` with one name and a value: `let x = a[i];`",
                    ));
                };
                if pat.mutability.is_some()
                    || pat.by_ref.is_some()
                    || pat.subpat.is_some()
                    || init.diverge.is_some()
                {
                    return self.error(Error::new_spanned(
                        &stmt.pat,
                        "expected a `let` with one name and a value: `let x = a[i];`",
                    ));
                }
                if let Some(Meaning::Loop(_)) = self.meaning(&pat.ident) {
                    let name = &pat.ident;
                    self.mistakes
                        .at(name, format!("`{name}` is already a loop: give the value another name"));
                }
                let value = self.node(&init.expr);
                let name = self.named(&pat.ident, !value.is_rust());
                let local = (!value.is_rust()).then(|| {
                    self.locals.push(value.clone());
                    self.locals.len() - 1
                });
                let meaning = local.map_or_else(|| Meaning::Rust(name.clone()), Meaning::Local);
                self.scope.push((pat.ident.unraw().to_string(), pat.ident.clone(), meaning));
                let rest = self.statements(rest, block);
                Node::Let(Box::new(Let { name, ty, local, value, rest }))
            }
            other => {
                let message =
                    "a block consists of `let` statements, and an expression without `;` at its end";
                self.error(Error::new_spanned(unwrap(quote!(#other)), message))
            }
        }
    }
}

impl Checker {
    /// A name for a `let` in the expansion. The `let`s of several blocks become statements of one
    /// block, so each gets a unique name: here if its value has no loops, otherwise when it is
    /// lowered.
    fn named(&mut self, name: &Ident, loops: bool) -> Ident {
        let mut own = own(name);
        if loops {
            return own;
        }
        let mut number = 0;
        // Names that start with `__` belong to the macro.
        while own.unraw().to_string().starts_with("__") && number == 0 || self.named.contains(&own) {
            number += 1;
            own = quote::format_ident!("{}_{number}", name.unraw(), span = own.span());
        }
        self.named.push(own.clone());
        own
    }
}

fn is_zero(start: Option<&Expr>) -> bool {
    matches!(start, Some(Expr::Lit(ExprLit { lit: Lit::Int(literal), .. })) if literal.base10_digits() == "0")
}
