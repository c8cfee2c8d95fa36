//! Names in Rust code, and the parts of an expression that may contain elements.

use super::ast;
use super::errors::{Mistakes, nearest};
use super::node::{LoopId, Node, Program};
use super::tokens::{INDICES, is_same, stands_for};
use proc_macro2::{Ident, TokenStream};
use syn::ext::IdentExt;
use syn::visit::{self, Visit};
use syn::{Arm, Block, Expr, ExprCall, ExprClosure, ExprIndex, ExprPath, Pat, PatIdent};

/// The names in indices that are not bound by a `let`, another pattern or a reduction, without
/// duplicates, in the order of their first use.
pub fn in_indices(body: &Expr, call: &TokenStream) -> Vec<Ident> {
    let mut found = InIndices { call, names: Vec::new(), hidden: Vec::new(), inside: false };
    found.visit_expr(body);
    found.names
}

struct InIndices<'c> {
    /// All tokens of the call.
    call: &'c TokenStream,
    names: Vec<Ident>,
    hidden: Vec<Ident>,
    inside: bool,
}

impl InIndices<'_> {
    fn wrapped(&mut self, index: &ExprIndex) {
        let Expr::Macro(call) = &*index.index else { return };
        // Brackets that cannot be parsed are reported by the checker.
        let Ok(list) = ast::indices(call.mac.tokens.clone()) else { return };
        let outside = std::mem::replace(&mut self.inside, true);
        list.iter().for_each(|one| self.visit_expr(one));
        self.inside = outside;
    }
}

impl<'a> Visit<'a> for InIndices<'_> {
    fn visit_expr_index(&mut self, index: &'a ExprIndex) {
        let outside = std::mem::replace(&mut self.inside, false);
        self.visit_expr(&index.expr);
        self.inside = outside;
        self.wrapped(index);
    }

    fn visit_expr_call(&mut self, call: &'a ExprCall) {
        let depth = self.hidden.len();
        if let Expr::Index(index) = &*call.func
            && let Expr::Macro(list) = &*index.index
            && let Ok(loops) = ast::loops(list.mac.tokens.clone())
        {
            self.hidden.extend(loops.into_iter().map(|one| one.name));
        }
        call.args.iter().for_each(|arg| self.visit_expr(arg));
        self.hidden.truncate(depth);
    }

    fn visit_expr_path(&mut self, path: &'a ExprPath) {
        if let Some(name) = path.path.get_ident()
            && self.inside
            && !self.hidden.iter().any(|known| stands_for(name, known, self.call))
            && !self.names.iter().any(|known| is_same(name, known))
        {
            self.names.push(name.clone());
        }
    }

    fn visit_pat_ident(&mut self, pat: &'a PatIdent) {
        self.hidden.push(pat.ident.clone());
    }

    fn visit_block(&mut self, block: &'a Block) {
        let depth = self.hidden.len();
        visit::visit_block(self, block);
        self.hidden.truncate(depth);
    }

    fn visit_expr_closure(&mut self, closure: &'a ExprClosure) {
        let depth = self.hidden.len();
        visit::visit_expr_closure(self, closure);
        self.hidden.truncate(depth);
    }

    fn visit_arm(&mut self, arm: &'a Arm) {
        let depth = self.hidden.len();
        visit::visit_arm(self, arm);
        self.hidden.truncate(depth);
    }
}

/// Checks that every index that `einsum!` sums over implicitly occurs more than once, and that
/// every index of the output occurs in an operand, unless it is `$i` or has a range.
pub fn check_einsum(program: &Program, listed: LoopId, summed: &[LoopId], mistakes: &mut Mistakes) {
    let mut places = vec![0; program.loops.len()];
    program.body.walk(&mut |node| {
        if let Node::Element(element) = node {
            for index in &element.indices {
                // Loops of an element within an index are counted at that element.
                count(index, &mut places);
            }
        }
    });
    let name = |id: LoopId| program.loops[id].name.unraw().to_string();
    for &id in summed.iter().filter(|&&id| places[id] == 1) {
        let (ident, text) = (&program.loops[id].name, name(id));
        let others: Vec<String> = (0..summed.first().copied().unwrap_or(listed)).map(name).collect();
        let hint = match nearest(&text, others.iter().map(String::as_str)) {
            Some(near) if text.len() > 1 => {
                format!("did you mean `{near}`? Otherwise reduce it with `sum[{text}](..)`")
            }
            _ => format!("reduce it with `sum[{text}](..)`, or add it to the output"),
        };
        mistakes.at(ident, format!("the index `{text}` occurs only once and is not in the output: {hint}"));
    }
    for id in (0..listed).filter(|&id| places[id] == 0) {
        let known = &program.loops[id];
        if known.outer || known.range.is_some() {
            continue;
        }
        let text = name(id);
        let others: Vec<String> = summed.iter().map(|&id| name(id)).collect();
        let hint = match nearest(&text, others.iter().map(String::as_str)) {
            Some(near) if text.len() > 1 => format!("; did you mean `{near}`?"),
            _ => String::new(),
        };
        mistakes.at(&known.name, format!("the index `{text}` of the output is in no operand{hint}"));
    }
}

fn count(node: &Node, places: &mut [usize]) {
    match node {
        Node::Loop(id, _) => places[*id] += 1,
        Node::Element(_) => {}
        node => node.parts().into_iter().for_each(|part| count(part, places)),
    }
}

/// The names that patterns bind, such as the parameters of a closure.
pub fn bound<'p>(patterns: impl IntoIterator<Item = &'p Pat>) -> Vec<Ident> {
    #[derive(Default)]
    struct Bound(Vec<Ident>);
    impl<'a> Visit<'a> for Bound {
        fn visit_pat_ident(&mut self, pat: &'a PatIdent) {
            self.0.push(pat.ident.clone());
            visit::visit_pat_ident(self, pat);
        }
    }
    let mut bound = Bound::default();
    patterns.into_iter().for_each(|pat| bound.visit_pat(pat));
    bound.0
}

/// Whether an expression indexes anything outside of closures.
pub fn has_elements(expr: &Expr) -> bool {
    #[derive(Default)]
    struct Found(bool);
    impl<'a> Visit<'a> for Found {
        fn visit_expr_index(&mut self, index: &'a ExprIndex) {
            self.0 |= matches!(&*index.index, Expr::Macro(call) if call.mac.path.is_ident(INDICES));
            visit::visit_expr_index(self, index);
        }
        fn visit_expr_closure(&mut self, _: &'a syn::ExprClosure) {}
    }
    let mut found = Found::default();
    found.visit_expr(expr);
    found.0
}

/// Whether an expression is a compound assignment such as `a += b`.
pub fn is_assignment(expr: &Expr) -> bool {
    use syn::BinOp::*;
    let Expr::Binary(binary) = expr else { return false };
    matches!(
        binary.op,
        AddAssign(_)
            | SubAssign(_)
            | MulAssign(_)
            | DivAssign(_)
            | RemAssign(_)
            | BitXorAssign(_)
            | BitAndAssign(_)
            | BitOrAssign(_)
            | ShlAssign(_)
            | ShrAssign(_)
    )
}

/// The subexpressions of Rust code that may be elements.
pub fn parts_mut(expr: &mut Expr) -> Vec<&mut Expr> {
    match expr {
        Expr::Call(call) => call.args.iter_mut().collect(),
        Expr::MethodCall(call) => std::iter::once(&mut *call.receiver).chain(&mut call.args).collect(),
        Expr::Field(field) => vec![&mut field.base],
        Expr::Reference(reference) => vec![&mut reference.expr],
        Expr::Try(question) => vec![&mut question.expr],
        Expr::Tuple(tuple) => tuple.elems.iter_mut().collect(),
        Expr::Array(array) => array.elems.iter_mut().collect(),
        Expr::Match(code) => vec![&mut code.expr],
        Expr::Binary(binary) => vec![&mut binary.left, &mut binary.right],
        _ => Vec::new(),
    }
}
