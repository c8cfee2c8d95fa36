//! `if` and `while` by the values of a tensor: code for one example runs once for all of them, so all of them take the same branch.
//!
//! Types are not known here. The search is for comparisons that cannot be of numbers: those of a parameter that is a tensor.

use crate::pattern::errors::Errors;
use proc_macro2::Span;
use std::collections::HashSet;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Block, Expr, PatIdent, UnOp};

/// Methods that make truth values of a tensor.
const CONDITIONS: [&str; 10] = ["lt", "le", "gt", "ge", "eq", "ne", "is_nan", "is_finite", "any", "all"];

/// Methods that make a tensor of a tensor.
const VALUES: [&str; 18] = [
    "sum",
    "prod",
    "mean",
    "var",
    "std",
    "max",
    "min",
    "norm",
    "logsumexp",
    "index",
    "at",
    "abs",
    "exp",
    "ln",
    "sqrt",
    "eval",
    "view",
    "clone",
];

/// Refuses conditions on the tensors of these names.
pub fn check(block: &Block, tensors: HashSet<String>, errors: &mut Errors) {
    let mut bound = BoundNames(HashSet::new());
    bound.visit_block(block);
    // A name that is given to something else may be a number.
    let tensors = tensors.difference(&bound.0).cloned().collect();
    Conditions { tensors, errors }.visit_block(block);
}

/// The names that a body gives.
struct BoundNames(HashSet<String>);

impl Visit<'_> for BoundNames {
    fn visit_pat_ident(&mut self, pat: &PatIdent) {
        self.0.insert(pat.ident.to_string());
        visit::visit_pat_ident(self, pat);
    }
}

struct Conditions<'e> {
    tensors: HashSet<String>,
    errors: &'e mut Errors,
}

impl Visit<'_> for Conditions<'_> {
    fn visit_expr_if(&mut self, choice: &syn::ExprIf) {
        if let Some((place, name)) = self.condition(&choice.cond) {
            let what = format!(
                "`if` runs once for all examples, and cannot choose by the values of `{name}`: `condition.select(a, b)` chooses for each, with `{name}.gt(0.0)` for `{name} > 0.0`"
            );
            self.errors.span(place, what);
        }
        visit::visit_expr_if(self, choice);
    }

    fn visit_expr_while(&mut self, choice: &syn::ExprWhile) {
        if let Some((place, name)) = self.condition(&choice.cond) {
            let what = format!(
                "`while` runs as often for all examples, and cannot end by the values of `{name}`: write a loop over a range, with `condition.select(a, b)` in it"
            );
            self.errors.span(place, what);
        }
        visit::visit_expr_while(self, choice);
    }
}

impl Conditions<'_> {
    /// Where a condition is one on a tensor, and on which.
    fn condition(&self, condition: &Expr) -> Option<(Span, String)> {
        match condition {
            Expr::Paren(inner) => self.condition(&inner.expr),
            Expr::Unary(unary) if matches!(unary.op, UnOp::Not(_)) => self.condition(&unary.expr),
            Expr::Binary(both) if matches!(both.op, BinOp::And(_) | BinOp::Or(_)) => {
                self.condition(&both.left).or_else(|| self.condition(&both.right))
            }
            Expr::Binary(both) => {
                let compares = matches!(
                    both.op,
                    BinOp::Lt(_) | BinOp::Le(_) | BinOp::Gt(_) | BinOp::Ge(_) | BinOp::Eq(_) | BinOp::Ne(_)
                );
                let name = self.value(&both.left).or_else(|| self.value(&both.right));
                name.filter(|_| compares).map(|name| (both.op.span(), name))
            }
            Expr::MethodCall(call) if CONDITIONS.iter().any(|name| call.method == name) => {
                self.value(&call.receiver).map(|name| (call.method.span(), name))
            }
            _ => None,
        }
    }

    /// The tensor that an expression is, or is computed from.
    fn value(&self, expr: &Expr) -> Option<String> {
        match expr {
            Expr::Paren(inner) => self.value(&inner.expr),
            Expr::Reference(reference) => self.value(&reference.expr),
            Expr::Unary(unary) => self.value(&unary.expr),
            Expr::Binary(both) => self.value(&both.left).or_else(|| self.value(&both.right)),
            Expr::MethodCall(call) if VALUES.iter().any(|name| call.method == name) => {
                self.value(&call.receiver)
            }
            Expr::Path(path) => {
                path.path.get_ident().map(ToString::to_string).filter(|name| self.tensors.contains(name))
            }
            _ => None,
        }
    }
}
