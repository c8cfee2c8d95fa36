//! Calls: reductions, methods of the library, and Rust code that runs for each element.

use super::elements::{compact, wrapped};
use super::errors::nearest;
use super::node::{LoopId, Method, Node, Reduce};
use super::tokens::{REDUCTIONS, grouped, unwrap};
use super::valid::{Checker, Meaning};
use super::{ast, names};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::spanned::Spanned;
use syn::{Error, Expr, ExprIndex, ExprMethodCall};

/// The element types that have a method.
#[derive(Clone, Copy)]
pub enum Having {
    /// Not checked: rustc's own message about a type that lacks the method is short.
    Any,
    /// Floats and complex numbers.
    Smooth,
    /// Floats.
    Floats,
}

use Having::{Any, Floats, Smooth};

/// Elementwise methods of the library with one operand. They are fused. Methods that are neither
/// here nor among the [binary](BINARY) ones are Rust methods, called in a closure.
const UNARY: [(&str, Having); 67] = [
    ("abs", Any),
    ("exp", Smooth),
    ("exp_m1", Floats),
    ("exp2", Floats),
    ("ln", Smooth),
    ("ln_1p", Floats),
    ("log2", Floats),
    ("log10", Floats),
    ("sqrt", Smooth),
    ("cbrt", Floats),
    ("rsqrt", Smooth),
    ("recip", Smooth),
    ("square", Any),
    ("sin", Smooth),
    ("cos", Smooth),
    ("tan", Smooth),
    ("asin", Floats),
    ("acos", Floats),
    ("atan", Floats),
    ("sinh", Smooth),
    ("cosh", Smooth),
    ("tanh", Smooth),
    ("asinh", Floats),
    ("acosh", Floats),
    ("atanh", Floats),
    ("erf", Floats),
    ("sigmoid", Floats),
    ("relu", Any),
    ("gelu", Floats),
    ("silu", Floats),
    ("softplus", Floats),
    ("erfc", Floats),
    ("ln_gamma", Floats),
    ("logit", Floats),
    ("ln_sigmoid", Floats),
    ("relu6", Any),
    ("selu", Floats),
    ("mish", Floats),
    ("hard_sigmoid", Floats),
    ("hard_swish", Floats),
    ("softsign", Floats),
    ("tanh_shrink", Floats),
    ("gelu_tanh", Floats),
    ("sinc", Floats),
    ("to_degrees", Floats),
    ("to_radians", Floats),
    ("floor", Floats),
    ("ceil", Floats),
    ("round", Floats),
    ("round_ties_even", Floats),
    ("trunc", Floats),
    ("fract", Floats),
    ("signum", Any),
    ("is_nan", Any),
    ("is_finite", Floats),
    ("is_infinite", Floats),
    ("signbit", Floats),
    ("leaky_relu", Any),
    ("elu", Floats),
    ("celu", Floats),
    ("hard_shrink", Floats),
    ("soft_shrink", Floats),
    ("nan_to", Floats),
    ("powi", Smooth),
    ("clamp", Any),
    ("cast", Any),
    ("map", Any),
];

/// Elementwise methods of the library with two operands, the receiver and the first argument. One
/// of the operands may be a number. These methods are fused, too, and so are `max` and `min`, which
/// stand for the first two.
const BINARY: [(&str, Having); 20] = [
    ("maximum", Any),
    ("minimum", Any),
    ("powf", Floats),
    ("atan2", Floats),
    ("hypot", Floats),
    ("remainder", Any),
    ("floor_div", Any),
    ("copysign", Floats),
    ("fmax", Any),
    ("fmin", Any),
    ("logaddexp", Floats),
    ("xlogy", Floats),
    ("heaviside", Any),
    ("lt", Any),
    ("le", Any),
    ("gt", Any),
    ("ge", Any),
    ("eq", Any),
    ("ne", Any),
    ("lerp", Floats),
];

/// The element types of the library's method with this name, if there is one.
pub fn having(name: &Ident) -> Option<Having> {
    let stand_ins = [("max", Any), ("min", Any)];
    let mut all = UNARY.iter().chain(&BINARY).chain(&stand_ins);
    all.find(|(method, _)| name == method).map(|&(_, having)| having)
}

/// Whether a method of the library takes a tensor as its first argument.
pub fn takes_tensor(name: &str) -> bool {
    BINARY.iter().any(|&(method, _)| name == method)
}

impl Checker {
    pub(super) fn reduction(&mut self, name: &Ident, index: &ExprIndex, call: &syn::ExprCall) -> Node {
        let text = name.to_string();
        if !REDUCTIONS.contains(&text.as_str()) {
            let hint = match nearest(&text, REDUCTIONS) {
                Some(near) => format!("did you mean `{near}`?"),
                None => {
                    format!("the reductions are {}", REDUCTIONS.map(|name| format!("`{name}`")).join(", "))
                }
            };
            return self.error(Error::new(name.span(), format!("there is no reduction `{text}`: {hint}")));
        }
        let loops = match wrapped(&index.index).map(ast::loops) {
            Some(Ok(loops)) => loops,
            Some(Err(error)) => return self.error(error),
            None => unreachable!("brackets after a name are wrapped"),
        };
        if loops.is_empty() {
            return self.error(Error::new(
                index.bracket_token.span.join(),
                format!("`{text}` needs a loop: `{text}[k](..)`"),
            ));
        }
        let [body] = call.args.iter().collect::<Vec<_>>()[..] else {
            return self.error(Error::new(
                call.paren_token.span.join(),
                format!("`{text}[..]` takes one expression: `{text}[k](a[i, k])`"),
            ));
        };
        let depth = self.scope.len();
        let loops: Vec<LoopId> = loops.iter().filter_map(|one| self.loop_of(one, "a reduction")).collect();
        let body = self.node(body);
        self.scope.truncate(depth);
        Node::Reduce(Box::new(Reduce { name: name.clone(), loops, body }))
    }

    pub(super) fn method(&mut self, expr: &Expr, call: &ExprMethodCall) -> Node {
        let name = call.method.to_string();
        let loops = call.args.iter().any(|arg| matches!(arg, Expr::Path(path) if path.path.get_ident().is_some_and(|name| matches!(self.meaning(name), Some(Meaning::Loop(_))))));
        if REDUCTIONS.contains(&name.as_str()) && loops && !["max", "min"].contains(&name.as_str()) {
            let args = &call.args;
            let message = format!(
                "a reduction comes before its operand: `{name}[{}](..)`",
                compact(&quote!(#args).to_string())
            );
            return self.error(Error::new(call.method.span(), message));
        }
        if having(&call.method).is_none() {
            if self.is_fixed_element(&call.receiver) && !call.args.iter().any(|arg| self.loops(arg)) {
                return Node::Rust(self.rust(expr, "this"));
            }
            return self.closure(expr);
        }
        let before = self.mistakes.count();
        let receiver = self.node(&call.receiver);
        let arguments: Vec<Node> = call.args.iter().map(|arg| self.node(arg)).collect();
        // An argument that could not be parsed would look like one without loops.
        if self.mistakes.count() > before {
            return Node::Rust(TokenStream::new());
        }
        if receiver.is_rust() && arguments.iter().all(Node::is_rust) {
            return self.closure_of(expr, std::iter::once(receiver).chain(arguments));
        }
        let broadcasts = ["max", "min"].contains(&name.as_str()) || takes_tensor(&name);
        let numbers = if broadcasts { arguments.get(1..).unwrap_or_default() } else { &arguments };
        if receiver.is_rust() && !broadcasts || numbers.iter().any(|argument| !argument.is_rust()) {
            return self.closure_of(expr, std::iter::once(receiver).chain(arguments));
        }
        let name = match name.as_str() {
            "max" => Ident::new("maximum", call.method.span()),
            "min" => Ident::new("minimum", call.method.span()),
            _ => call.method.clone(),
        };
        let turbofish = call.turbofish.as_ref().map(ToTokens::to_token_stream);
        Node::Method(Box::new(Method { receiver, name, turbofish, arguments }))
    }

    /// Rust code that contains elements, as a closure that takes them.
    pub(super) fn closure(&mut self, expr: &Expr) -> Node {
        let before = self.mistakes.count();
        let nodes: Vec<Node> =
            names::parts_mut(&mut expr.clone()).into_iter().map(|part| self.node(part)).collect();
        if self.mistakes.count() > before {
            return Node::Rust(TokenStream::new());
        }
        self.closure_of(expr, nodes)
    }

    /// Like [`closure`](Self::closure), for code whose parts are already nodes.
    fn closure_of(&mut self, expr: &Expr, nodes: impl IntoIterator<Item = Node>) -> Node {
        let mut code = expr.clone();
        let mut slots = Vec::new();
        for (part, node) in names::parts_mut(&mut code).into_iter().zip(nodes) {
            let tokens = match node {
                Node::Rust(code) => code,
                Node::Closure(code, inner) => {
                    slots.extend(inner);
                    grouped(code)
                }
                node => {
                    let place = Span::mixed_site().located_at(part.span());
                    let slot = Ident::new(&format!("__element{}", self.slots), place);
                    self.slots += 1;
                    slots.push((slot.clone(), node));
                    slot.to_token_stream()
                }
            };
            *part = Expr::Verbatim(tokens);
        }
        self.rename_rest(&mut code);
        let code = unwrap(code.to_token_stream());
        if slots.is_empty() { Node::Rust(code) } else { Node::Closure(code, slots) }
    }

    /// Replaces the names of `let`s in the function of a call and in the arms of a `match`, which
    /// must not depend on loops.
    fn rename_rest(&mut self, code: &mut Expr) {
        match code {
            Expr::Call(call) => {
                let func = &mut *call.func;
                // Parts of a longer path are no variables. A function may have the name of a loop.
                if let Expr::Path(path) = &*func
                    && (path.path.get_ident().is_none() || self.loops_in(func.to_token_stream()))
                {
                    return;
                }
                let mut bound = Vec::new();
                if let Expr::Paren(inner) = &*func
                    && let Expr::Closure(closure) = &*inner.expr
                {
                    bound = names::bound(&closure.inputs);
                }
                *func = Expr::Verbatim(self.rust_but(&*func, "a function", &bound));
            }
            Expr::Match(code) => {
                for arm in &mut code.arms {
                    let bound = names::bound([&arm.pat]);
                    let guard = arm.guard.as_mut().map(|(_, guard)| &mut **guard);
                    for part in guard.into_iter().chain([&mut *arm.body]) {
                        *part = Expr::Verbatim(self.rust_but(&*part, "an arm of `match`", &bound));
                    }
                }
            }
            _ => {}
        }
    }
}
