//! The names that the body of a function binds.

use proc_macro2::{TokenStream, TokenTree};
use std::collections::HashSet;
use syn::visit::{self, Visit};
use syn::{Block, Expr, Ident, Pat, PatIdent, Type};

/// The names of a body: those bound by `let name = value;`, and those of all other patterns.
#[derive(Default)]
pub struct BodyNames<'b> {
    pub locals: Vec<LetBinding<'b>>,
    pub patterns: HashSet<String>,
}

/// `let name: ty = init;`
pub struct LetBinding<'b> {
    pub pat: &'b PatIdent,
    pub ty: Option<&'b Type>,
    pub init: Option<&'b Expr>,
}

impl<'b> BodyNames<'b> {
    pub fn of(block: &'b Block) -> BodyNames<'b> {
        let mut names = BodyNames::default();
        names.visit_block(block);
        names
    }

    pub fn in_pattern(pat: &Pat) -> HashSet<String> {
        let mut names = BodyNames::default();
        names.visit_pat(pat);
        names.patterns
    }

    /// The number of `let`s that bind a name, plus 1 if other patterns bind it.
    pub fn count(&self, name: &Ident) -> usize {
        let locals = self.locals.iter().filter(|local| local.pat.ident == *name).count();
        locals + usize::from(self.patterns.contains(&name.to_string()))
    }
}

impl LetBinding<'_> {
    pub fn name(&self) -> String {
        self.pat.ident.to_string()
    }

    pub fn number(&self) -> Option<String> {
        self.ty.and_then(number)
    }
}

impl<'b> Visit<'b> for BodyNames<'b> {
    fn visit_local(&mut self, local: &'b syn::Local) {
        let (pat, ty) = match &local.pat {
            Pat::Type(pat) => (&*pat.pat, Some(&*pat.ty)),
            pat => (pat, None),
        };
        let Pat::Ident(pat) = pat else { return visit::visit_local(self, local) };
        if pat.subpat.is_some() {
            return visit::visit_local(self, local);
        }
        self.locals.push(LetBinding { pat, ty, init: local.init.as_ref().map(|init| &*init.expr) });
        if let Some(init) = &local.init {
            visit::visit_local_init(self, init);
        }
    }

    fn visit_pat_ident(&mut self, pat: &'b PatIdent) {
        self.patterns.insert(pat.ident.to_string());
        visit::visit_pat_ident(self, pat);
    }
}

/// Whether a name occurs in tokens. Unlike a visitor of syn, this also looks at the arguments of
/// macros.
pub fn mentions(tokens: TokenStream, name: &str) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == name,
        TokenTree::Group(group) => mentions(group.stream(), name),
        _ => false,
    })
}

/// The name of the type, if it is a number or `bool`.
pub fn number(ty: &Type) -> Option<String> {
    const NUMBERS: [&str; 13] =
        ["bool", "f32", "f64", "i8", "i16", "i32", "i64", "isize", "u8", "u16", "u32", "u64", "usize"];
    let Type::Path(path) = ty else { return None };
    path.path.get_ident().map(ToString::to_string).filter(|name| NUMBERS.contains(&name.as_str()))
}
