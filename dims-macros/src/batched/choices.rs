//! Refuses `if`, `while` and `assert!` on the values of a tensor, and a `let` or a result that
//! converts these values to one number or `bool`. The code for one example runs once for all
//! examples, so all examples take the same branch.
//!
//! Types are unknown here. The search looks for expressions that cannot be a single number or
//! `bool`: tensor parameters, the results of operators and tensor methods on them, and names that
//! are bound only to such values.

use super::names::{BodyNames, LetBinding, number};
use crate::pattern::errors::Errors;
use proc_macro2::{Span, TokenStream};
use std::collections::HashSet;
use syn::parse::ParseStream;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Block, Expr, Pat, Stmt, Type, UnOp};

/// Methods whose result depends on the elements of the tensor. (The result of `size` does not.)
#[rustfmt::skip]
const VALUES: [&str; 66] = [
    "lt", "le", "gt", "ge", "eq", "ne", "is_nan", "is_finite", "is_infinite", "any", "all", "not",
    "sum", "prod", "mean", "var", "std", "max", "min", "argmax", "argmin", "norm", "logsumexp", "dot", "contract", "trace",
    "order", "eval", "view", "clone", "detach", "cast", "at", "index", "slice", "rename", "flatten", "unflatten", "take",
    "abs", "sign", "square", "exp", "ln", "sqrt", "powi", "powf", "sin", "cos", "tanh", "sigmoid", "relu", "floor", "ceil", "round",
    "clamp", "maximum", "minimum", "nan_to", "select", "masked_fill", "softmax", "log_softmax", "cumsum", "flip", "diff",
];

/// `result` is the type of the result, unless it is a tuple. `tensors` has the names of the tensor
/// parameters that can have extra dims, and `others` those of the other parameters.
pub fn check(
    block: &Block,
    result: Option<&Type>,
    names: &BodyNames<'_>,
    tensors: &HashSet<String>,
    others: &HashSet<String>,
    errors: &mut Errors,
) {
    let mut search = Conditions { tensors: tensors.clone(), errors };
    search.tensors.extend(names.locals.iter().map(|local| local.name()));
    // A name that is also bound in another way may be a number.
    search.tensors.retain(|name| !names.patterns.contains(name) && !others.contains(name));
    loop {
        let is_value = |local: &&LetBinding<'_>| {
            local.init.is_some_and(|init| search.value(init).is_some()) && local.number().is_none()
        };
        let numbers: Vec<String> =
            names.locals.iter().filter(|local| !is_value(local)).map(LetBinding::name).collect();
        let before = search.tensors.len();
        search.tensors.retain(|name| !numbers.contains(name));
        if search.tensors.len() == before {
            break;
        }
    }
    if let (Some(ty), Some(Stmt::Expr(value, None))) = (result, block.stmts.last()) {
        search.one_for_all(ty, value, &|number| {
            format!("return `Tensor<{number}, ()>`, which has a value for each example")
        });
    }
    search.visit_block(block);
}

struct Conditions<'e> {
    tensors: HashSet<String>,
    errors: &'e mut Errors,
}

impl Visit<'_> for Conditions<'_> {
    fn visit_expr_if(&mut self, choice: &syn::ExprIf) {
        if let Some((place, name, compares)) = self.condition(&choice.cond) {
            let with = if compares {
                format!(", with `{name}.gt(0.0)` instead of `{name} > 0.0`")
            } else {
                String::new()
            };
            let what = format!(
                "this `if` runs once for all examples, so it cannot depend on the values of `{name}`: to choose for each example, write `condition.select(a, b)`{with}"
            );
            self.errors.span(place, what);
        }
        visit::visit_expr_if(self, choice);
    }

    fn visit_expr_while(&mut self, choice: &syn::ExprWhile) {
        if let Some((place, name, _)) = self.condition(&choice.cond) {
            let what = format!(
                "this `while` runs the same number of times for all examples, so it cannot depend on the values of `{name}`: write a loop over a range, with `condition.select(a, b)` in it"
            );
            self.errors.span(place, what);
        }
        visit::visit_expr_while(self, choice);
    }

    /// Refuses `let missing: bool = x.is_nan().any(Feat).order(());`.
    fn visit_local(&mut self, local: &syn::Local) {
        if let (Pat::Type(pat), Some(init)) = (&local.pat, &local.init) {
            self.one_for_all(&pat.ty, &init.expr, &|number| {
                let instead = match number {
                    "bool" => "to choose for each example, write `condition.select(a, b)`",
                    _ => "leave out the type to compute with the tensor",
                };
                instead.to_owned()
            });
        }
        visit::visit_local(self, local);
    }

    /// Refuses `assert!(x.sum(Feat) > 0.0)`.
    fn visit_macro(&mut self, call: &syn::Macro) {
        let Some(name) = call.path.get_ident().filter(|name| *name == "assert" || *name == "debug_assert")
        else {
            return;
        };
        let first = |input: ParseStream<'_>| {
            let condition: Expr = input.parse()?;
            input.parse::<TokenStream>()?;
            Ok(condition)
        };
        if let Ok(condition) = call.parse_body_with(first)
            && !self.equality(&condition)
            && let Some((place, tensor, _)) = self.condition(&condition)
        {
            let what = format!(
                "this `{name}!` runs once for all examples, so it cannot depend on the values of `{tensor}`: check them before the call, or in the closure of `typed_dims::batch::map_each({tensor}, |x| ..)`"
            );
            self.errors.span(place, what);
        }
    }

    /// Refuses `x.order(Feat).to_vec()`.
    fn visit_expr_method_call(&mut self, call: &syn::ExprMethodCall) {
        if call.method == "to_vec"
            && let Some(name) = self.value(&call.receiver)
        {
            let what = format!(
                "one `Vec` cannot stand for all examples, because the values of `{name}` differ between them: to call a closure for each example, write `typed_dims::batch::map_each({name}, |x| ..)`"
            );
            self.errors.span(call.method.span(), what);
        }
        visit::visit_expr_method_call(self, call);
    }
}

/// Whether an expression is a literal, or ends in `.order(..)`.
fn is_number(expr: &Expr) -> bool {
    match expr {
        Expr::Paren(inner) => is_number(&inner.expr),
        Expr::Unary(unary) => is_number(&unary.expr),
        Expr::Lit(_) => true,
        Expr::MethodCall(call) => call.method == "order",
        _ => false,
    }
}

impl Conditions<'_> {
    /// Refuses a tensor where the type is one number or `bool`.
    fn one_for_all(&mut self, ty: &Type, value: &Expr, instead: &dyn Fn(&str) -> String) {
        if let Some(number) = number(ty)
            && let Some(name) = self.value(value)
        {
            let what = format!(
                "one `{number}` cannot stand for all examples, because the values of `{name}` differ between them: {}",
                instead(&number)
            );
            self.errors.span(ty.span(), what);
        }
    }

    /// Whether a part of a condition may compare two tensors with `==` or `!=`, which yields one
    /// `bool`.
    fn equality(&self, condition: &Expr) -> bool {
        match condition {
            Expr::Paren(inner) => self.equality(&inner.expr),
            Expr::Unary(unary) => self.equality(&unary.expr),
            Expr::Binary(both) => match both.op {
                BinOp::And(_) | BinOp::Or(_) => self.equality(&both.left) || self.equality(&both.right),
                BinOp::Eq(_) | BinOp::Ne(_) => !is_number(&both.left) && !is_number(&both.right),
                _ => false,
            },
            _ => false,
        }
    }

    /// If a condition is on a tensor: the span for the error, the tensor's name, and whether an
    /// operator compares the tensor.
    fn condition(&self, condition: &Expr) -> Option<(Span, String, bool)> {
        match condition {
            Expr::Paren(inner) => self.condition(&inner.expr),
            Expr::Unary(unary) if matches!(unary.op, UnOp::Not(_)) => self.condition(&unary.expr),
            Expr::Binary(both) if matches!(both.op, BinOp::And(_) | BinOp::Or(_)) => {
                self.condition(&both.left).or_else(|| self.condition(&both.right))
            }
            Expr::Binary(both) if compares(&both.op) => {
                let name = self.value(&both.left).or_else(|| self.value(&both.right));
                name.map(|name| (both.op.span(), name, true))
            }
            Expr::MethodCall(call) => self.value(condition).map(|name| (call.method.span(), name, false)),
            _ => self.value(condition).map(|name| (condition.span(), name, false)),
        }
    }

    /// The name of the tensor that an expression names or is computed from.
    fn value(&self, expr: &Expr) -> Option<String> {
        match expr {
            Expr::Paren(inner) => self.value(&inner.expr),
            Expr::Reference(reference) => self.value(&reference.expr),
            Expr::Unary(unary) => self.value(&unary.expr),
            Expr::Binary(both) if !compares(&both.op) => {
                self.value(&both.left).or_else(|| self.value(&both.right))
            }
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

fn compares(op: &BinOp) -> bool {
    matches!(op, BinOp::Lt(_) | BinOp::Le(_) | BinOp::Gt(_) | BinOp::Ge(_) | BinOp::Eq(_) | BinOp::Ne(_))
}
