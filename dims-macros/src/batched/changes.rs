//! Refuses bodies that modify tensor parameters without `mut`: these are views, which are
//! read-only.

use super::names::BodyNames;
use crate::pattern::errors::Errors;
use std::collections::HashMap;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Block, Expr, Ident};

/// Refuses `a *= 2.0` and `let mut a = a.clone()` for tensor parameters without `mut`. `params`
/// maps their names to their types, without `&`.
pub fn check(block: &Block, names: &BodyNames<'_>, params: &HashMap<String, String>, errors: &mut Errors) {
    for local in names.locals.iter().filter(|local| local.pat.mutability.is_some()) {
        let Some((name, clones)) = local.init.and_then(copied) else { continue };
        let itself = usize::from(*name == local.pat.ident);
        let (Some(ty), true) = (params.get(&name.to_string()), names.count(name) == itself) else { continue };
        let what = if clones { "a clone is a view, too" } else { "`let mut` does not copy it" };
        let new = &local.pat.ident;
        let what = format!(
            "`{name}` is a view of the caller's tensor here, and {what}: write `let mut {new} = {name}.eval();`, or declare the parameter `mut {name}: {ty}`"
        );
        errors.span(local.init.map_or_else(|| new.span(), Spanned::span), what);
    }
    Changes { names, params, errors }.visit_block(block);
}

/// The variable that an expression names or clones, and whether it is cloned.
fn copied(expr: &Expr) -> Option<(&Ident, bool)> {
    match expr {
        Expr::Path(path) => Some((path.path.get_ident()?, false)),
        Expr::Paren(inner) => copied(&inner.expr),
        Expr::MethodCall(call) if call.method == "clone" || call.method == "to_owned" => {
            copied(&call.receiver).map(|(name, _)| (name, true))
        }
        _ => None,
    }
}

struct Changes<'e> {
    names: &'e BodyNames<'e>,
    params: &'e HashMap<String, String>,
    errors: &'e mut Errors,
}

impl Changes<'_> {
    fn change(&mut self, place: &Expr) {
        if let Expr::Path(path) = place
            && let Some(name) = path.path.get_ident()
            && let Some(ty) = self.params.get(&name.to_string())
            && self.names.count(name) == 0
        {
            let what = format!(
                "`{name}` is a view of the caller's tensor here, and cannot be changed: declare the parameter `mut {name}: {ty}`"
            );
            self.errors.span(place.span(), what);
        }
    }
}

impl Visit<'_> for Changes<'_> {
    fn visit_expr_binary(&mut self, both: &syn::ExprBinary) {
        if is_assignment(&both.op) {
            self.change(&both.left);
        }
        visit::visit_expr_binary(self, both);
    }

    fn visit_expr_assign(&mut self, assign: &syn::ExprAssign) {
        self.change(&assign.left);
        visit::visit_expr_assign(self, assign);
    }
}

fn is_assignment(op: &BinOp) -> bool {
    use BinOp::{
        AddAssign, BitAndAssign, BitOrAssign, BitXorAssign, DivAssign, MulAssign, RemAssign, SubAssign,
    };
    matches!(
        op,
        AddAssign(_)
            | SubAssign(_)
            | MulAssign(_)
            | DivAssign(_)
            | RemAssign(_)
            | BitAndAssign(_)
            | BitOrAssign(_)
            | BitXorAssign(_)
    )
}
