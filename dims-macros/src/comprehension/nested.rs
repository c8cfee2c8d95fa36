//! Calls of other macros in a body. Their arguments are not translated, so they must not use loops.
//! This is checked for macros whose arguments are known to be Rust expressions: those of this
//! library, and some of the standard library.

use super::ast::{self, ComprehensionCall, LoopRef, ResultAxis};
use super::tokens::{INDICES, OUTER, is_same, wrap};
use super::valid::{Checker, Meaning};
use super::{LoopNotation, names};
use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};
use syn::parse::{ParseStream, Parser};
use syn::visit::{self, Visit};
use syn::{Error, Expr, ExprLit, Lit, LitStr, Pat, Result, Token};

/// Macros of the standard library that format, each with the position of the string, which can
/// contain names: `"{i}"`.
const FORMATTING: [(&str, usize); 18] = [
    ("format", 0),
    ("format_args", 0),
    ("print", 0),
    ("println", 0),
    ("eprint", 0),
    ("eprintln", 0),
    ("write", 1),
    ("writeln", 1),
    ("panic", 0),
    ("todo", 0),
    ("unimplemented", 0),
    ("unreachable", 0),
    ("assert", 1),
    ("assert_eq", 2),
    ("assert_ne", 2),
    ("debug_assert", 1),
    ("debug_assert_eq", 2),
    ("debug_assert_ne", 2),
];

impl Checker {
    /// The mistake of a macro call whose arguments use a loop, or a value that is computed from
    /// loops. The names in `hidden` belong to the code around the call.
    pub(super) fn macro_call(&self, call: &Ident, arguments: TokenStream, hidden: &[Ident]) -> Option<Error> {
        let mut uses = Uses { checker: self, hidden: hidden.to_vec(), in_comprehension: false, found: None };
        uses.arguments(call, arguments);
        let (name, dim) = uses.found?;
        let what = match self.meaning(&name) {
            _ if dim => format!("the dim `${name}`"),
            Some(Meaning::Loop(_)) => format!("the loop `{name}`"),
            _ => format!("`{name}`, which is computed from elements or loop variables"),
        };
        let instead = match call.to_string().as_str() {
            "matches" => "write a `match`, `match a[i] { 0 => true, _ => false }`".to_owned(),
            name if is_of_library(name) => "name all loops in one call".to_owned(),
            "dbg" => "call the macro in a closure, `(|x| dbg!(..))(a[i])`".to_owned(),
            name if name.contains("print") || name.contains("assert") => {
                format!("call the macro in a closure, `(|x| {{ {name}!(..); x }})(a[i])`")
            }
            _ => "call the macro in a function, `f(a[i])`".to_owned(),
        };
        let message = format!("the arguments of `{call}!` cannot depend on {what}: {instead}");
        Some(Error::new(name.span(), message))
    }
}

/// Searches the arguments of a macro for the first use of a loop.
struct Uses<'c> {
    checker: &'c Checker,
    /// The names that belong to the code itself.
    hidden: Vec<Ident>,
    /// Whether the code is the body of a nested comprehension, where `$name` is a loop of its own.
    in_comprehension: bool,
    /// The name of the loop, and whether it is a dim, `$name`.
    found: Option<(Ident, bool)>,
}

impl Uses<'_> {
    /// The arguments of a macro. Those that cannot be parsed are left to the macro.
    fn arguments(&mut self, call: &Ident, tokens: TokenStream) {
        let outside = std::mem::replace(&mut self.in_comprehension, false);
        let name = call.to_string();
        match name.strip_prefix("try_").filter(|name| is_of_library(name)).unwrap_or(&name) {
            "tensor" => {
                if let Ok(call) = ast::parse(tokens, LoopNotation::Tensor) {
                    self.comprehension(&call, &[]);
                }
            }
            "einsum" => match ast::parse(tokens.clone(), LoopNotation::Einsum) {
                Ok(call) => self.comprehension(&call, &names::in_indices(&call.body, &call.tokens)),
                Err(_) => self.expressions(tokens, None),
            },
            // The patterns of these macros name axes, not variables. The operands come first, or in
            // a list.
            "rearrange" | "rearrange_view" | "reduce" | "repeat" | "pack" | "unpack" | "parse_shape" => {
                let tokens: Vec<TokenTree> = tokens.into_iter().collect();
                let comma = |token: &TokenTree| matches!(token, TokenTree::Punct(p) if p.as_char() == ',');
                for (at, part) in tokens.split(comma).enumerate() {
                    let list = |group: &Group| group.delimiter() == Delimiter::Bracket;
                    if at == 0 || matches!(part, [TokenTree::Group(group)] if list(group)) {
                        self.expressions(part.iter().cloned().collect(), None);
                    }
                }
            }
            "matches" => self.matches(tokens),
            "dbg" | "vec" | "array" => self.expressions(tokens, None),
            other => {
                if let Some(&(_, format)) = FORMATTING.iter().find(|(known, _)| *known == other) {
                    self.expressions(tokens, Some(format));
                }
            }
        }
        self.in_comprehension = outside;
    }

    /// Runs `visit`, and then forgets the names that it declared.
    fn scoped(&mut self, visit: impl FnOnce(&mut Self)) {
        let depth = self.hidden.len();
        visit(self);
        self.hidden.truncate(depth);
    }

    /// Expressions between commas, or `value; times`. `format` is the position of a string that can
    /// contain names.
    fn expressions(&mut self, tokens: TokenStream, format: Option<usize>) {
        let array = TokenTree::Group(Group::new(Delimiter::Bracket, wrap(tokens)));
        let Ok(array) = syn::parse2::<Expr>(array.into()) else { return };
        self.visit_expr(&array);
        if let (Some(at), Expr::Array(list)) = (format, &array)
            && let Some(Expr::Lit(ExprLit { lit: Lit::Str(text), .. })) = list.elems.iter().nth(at)
        {
            self.scoped(|uses| {
                // `name = value`
                uses.hidden.extend(list.elems.iter().filter_map(assigned).cloned());
                uses.names_in(text);
            });
        }
    }

    /// A value and a pattern.
    fn matches(&mut self, tokens: TokenStream) {
        let parse = |input: ParseStream<'_>| -> Result<(Expr, Pat, Option<Expr>)> {
            let value: Expr = input.parse()?;
            input.parse::<Token![,]>()?;
            let pat = Pat::parse_multi_with_leading_vert(input)?;
            let guard: Option<Token![if]> = input.parse()?;
            let guard: Option<Expr> = guard.map(|_| input.parse()).transpose()?;
            let _comma: Option<Token![,]> = input.parse()?;
            Ok((value, pat, guard))
        };
        let Ok((value, pat, guard)) = parse.parse2(wrap(tokens)) else { return };
        self.visit_expr(&value);
        self.scoped(|uses| {
            uses.visit_pat(&pat);
            guard.iter().for_each(|guard| uses.visit_expr(guard));
        });
    }

    /// A nested comprehension. Its own loops, which are those of its list and `others`, may have
    /// the names of outer loops.
    fn comprehension(&mut self, call: &ComprehensionCall, others: &[Ident]) {
        self.scoped(|uses| {
            for axis in &call.axes {
                match axis {
                    ResultAxis::One(one) => uses.own_loop(one),
                    ResultAxis::Group(group) => group.iter().for_each(|one| uses.own_loop(one)),
                }
            }
            uses.hidden.extend_from_slice(others);
            uses.in_comprehension = true;
            uses.visit_expr(&call.body);
        });
    }

    fn own_loop(&mut self, one: &LoopRef) {
        if let Some(range) = &one.range {
            self.visit_expr(range);
        }
        if !one.outer {
            self.hidden.push(one.name.clone());
        }
    }

    fn name(&mut self, name: &Ident) {
        if self.found.is_none()
            && !self.hidden.iter().any(|own| is_same(own, name))
            && matches!(self.checker.meaning(name), Some(Meaning::Loop(_) | Meaning::Local(_)))
        {
            self.found = Some((name.clone(), false));
        }
    }

    /// `$name`
    fn dim(&mut self, name: Ident) {
        let mut loops = self.checker.loops.iter();
        if self.found.is_none()
            && !self.in_comprehension
            && loops.any(|one| one.outer && is_same(&one.name, &name))
        {
            self.found = Some((name, true));
        }
    }

    /// The names in a string: `"{i}"` and `"{i:?}"`.
    fn names_in(&mut self, literal: &LitStr) {
        let text = literal.value().replace("{{", "");
        for part in text.split('{').skip(1) {
            let end = part.find(['}', ':']).unwrap_or(0);
            if let Ok(mut name) = syn::parse_str::<Ident>(&part[..end]) {
                name.set_span(literal.span());
                self.name(&name);
            }
        }
    }
}

impl<'a> Visit<'a> for Uses<'_> {
    fn visit_expr_path(&mut self, path: &'a syn::ExprPath) {
        if let Some(name) = path.path.get_ident() {
            self.name(name);
        }
    }

    /// A function may have the name of a loop.
    fn visit_expr_call(&mut self, call: &'a syn::ExprCall) {
        self.scoped(|uses| {
            match &*call.func {
                Expr::Path(_) => {}
                Expr::Index(index) => match &*index.index {
                    // A reduction of a nested comprehension.
                    Expr::Macro(list) if uses.in_comprehension && list.mac.path.is_ident(INDICES) => {
                        let loops = ast::loops(list.mac.tokens.clone()).unwrap_or_default();
                        loops.iter().for_each(|one| uses.own_loop(one));
                    }
                    _ => uses.visit_expr(&call.func),
                },
                func => uses.visit_expr(func),
            }
            call.args.iter().for_each(|arg| uses.visit_expr(arg));
        });
    }

    fn visit_expr_assign(&mut self, assign: &'a syn::ExprAssign) {
        if !matches!(&*assign.left, Expr::Path(_)) {
            self.visit_expr(&assign.left);
        }
        self.visit_expr(&assign.right);
    }

    fn visit_macro(&mut self, call: &'a syn::Macro) {
        let Some(last) = call.path.segments.last() else { return };
        let tokens = call.tokens.clone();
        if last.ident == INDICES {
            let indices = ast::indices(tokens).unwrap_or_default();
            indices.iter().for_each(|index| self.visit_expr(index));
        } else if last.ident == OUTER {
            if let Ok(name) = syn::parse2(tokens) {
                self.dim(name);
            }
        } else {
            self.arguments(&last.ident, tokens);
        }
    }

    fn visit_pat_ident(&mut self, pat: &'a syn::PatIdent) {
        self.hidden.push(pat.ident.clone());
        visit::visit_pat_ident(self, pat);
    }

    fn visit_local(&mut self, local: &'a syn::Local) {
        if let Some(init) = &local.init {
            self.visit_local_init(init);
        }
        self.visit_pat(&local.pat);
    }

    fn visit_expr_let(&mut self, binding: &'a syn::ExprLet) {
        self.visit_expr(&binding.expr);
        self.visit_pat(&binding.pat);
    }

    /// An item cannot use loops.
    fn visit_item(&mut self, _: &'a syn::Item) {}

    fn visit_block(&mut self, block: &'a syn::Block) {
        self.scoped(|uses| {
            uses.hidden.extend(block.stmts.iter().filter_map(|stmt| match stmt {
                syn::Stmt::Item(syn::Item::Const(item)) => Some(item.ident.clone()),
                syn::Stmt::Item(syn::Item::Static(item)) => Some(item.ident.clone()),
                _ => None,
            }));
            visit::visit_block(uses, block);
        });
    }

    fn visit_expr_closure(&mut self, closure: &'a syn::ExprClosure) {
        self.scoped(|uses| visit::visit_expr_closure(uses, closure));
    }

    fn visit_arm(&mut self, arm: &'a syn::Arm) {
        self.scoped(|uses| visit::visit_arm(uses, arm));
    }

    fn visit_expr_if(&mut self, branch: &'a syn::ExprIf) {
        self.scoped(|uses| {
            uses.visit_expr(&branch.cond);
            uses.visit_block(&branch.then_branch);
        });
        if let Some((_, otherwise)) = &branch.else_branch {
            self.visit_expr(otherwise);
        }
    }

    fn visit_expr_while(&mut self, code: &'a syn::ExprWhile) {
        self.scoped(|uses| visit::visit_expr_while(uses, code));
    }

    fn visit_expr_for_loop(&mut self, code: &'a syn::ExprForLoop) {
        self.visit_expr(&code.expr);
        self.scoped(|uses| {
            uses.visit_pat(&code.pat);
            uses.visit_block(&code.body);
        });
    }
}

/// Whether a macro of this library has this name.
fn is_of_library(name: &str) -> bool {
    const OWN: [&str; 9] = [
        "tensor",
        "einsum",
        "rearrange",
        "rearrange_view",
        "reduce",
        "repeat",
        "pack",
        "unpack",
        "parse_shape",
    ];
    OWN.contains(&name.strip_prefix("try_").unwrap_or(name))
}

/// The name in `name = value`.
fn assigned(expr: &Expr) -> Option<&Ident> {
    match expr {
        Expr::Assign(assign) => match &*assign.left {
            Expr::Path(path) => path.path.get_ident(),
            _ => None,
        },
        _ => None,
    }
}
