//! Reads the files of a crate, and finds the paths that they use.

use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};

/// The texts of a crate's files, by their paths in `src`.
pub fn files(crate_name: &str) -> BTreeMap<String, String> {
    fn walk(folder: &Path, root: &Path, into: &mut BTreeMap<String, String>) {
        for entry in fs::read_dir(folder).expect("the folder is there") {
            let path: PathBuf = entry.expect("the entry can be read").path();
            if path.is_dir() {
                walk(&path, root, into);
            } else if path.extension().is_some_and(|ext| ext == "rs") {
                let name = path
                    .strip_prefix(root)
                    .expect("the file is below the root")
                    .to_string_lossy()
                    .replace('\\', "/");
                into.insert(name, fs::read_to_string(&path).expect("the file is text"));
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(crate_name).join("src");
    let mut into = BTreeMap::new();
    walk(&root, &root, &mut into);
    into
}

/// The module path of a file, from the root of its crate.
pub fn module_of(file: &str) -> Vec<String> {
    let parts = file.trim_end_matches(".rs").split('/');
    parts.filter(|part| !["mod", "lib"].contains(part)).map(str::to_owned).collect()
}

/// A name that a `use` brings into scope (`*` for all names), and its path.
pub struct Used {
    pub name: String,
    pub path: Vec<String>,
}

pub fn used(tree: &syn::UseTree) -> Vec<Used> {
    let mut into = Vec::new();
    note_used(tree, &mut Vec::new(), &mut into);
    into
}

fn note_used(tree: &syn::UseTree, so_far: &mut Vec<String>, into: &mut Vec<Used>) {
    let path = |so_far: &[String], name: &str| match name {
        "self" if !so_far.is_empty() => so_far.to_vec(),
        _ => [so_far, &[name.to_owned()]].concat(),
    };
    match tree {
        syn::UseTree::Path(part) => {
            so_far.push(part.ident.to_string());
            note_used(&part.tree, so_far, into);
            so_far.pop();
        }
        syn::UseTree::Name(item) => {
            let path = path(so_far, &item.ident.to_string());
            into.push(Used { name: path.last().expect("the path has a name").clone(), path });
        }
        syn::UseTree::Rename(item) => {
            let path = path(so_far, &item.ident.to_string());
            into.push(Used { name: item.rename.to_string(), path });
        }
        syn::UseTree::Glob(_) => into.push(Used { name: "*".to_owned(), path: path(so_far, "*") }),
        syn::UseTree::Group(group) => group.items.iter().for_each(|tree| note_used(tree, so_far, into)),
    }
}

/// Whether a path starts explicitly in this crate. Others start at a name in scope or in another
/// crate.
pub fn is_rooted(path: &[String]) -> bool {
    ["crate", "super", "self"].contains(&path[0].as_str())
}

/// A path used in a module, from the root of the crate.
pub fn from_root(module: &[String], path: &[String]) -> Vec<String> {
    let mut absolute = if path[0] == "crate" { Vec::new() } else { module.to_vec() };
    for part in path {
        match part.as_str() {
            "crate" | "self" => {}
            "super" => {
                absolute.pop();
            }
            other => absolute.push(other.to_owned()),
        }
    }
    absolute
}

/// Reads a file without its tests.
pub struct Reader {
    /// The module that is being read.
    module: Vec<String>,
    /// The paths that the file uses and that start explicitly in this crate, from its root.
    pub paths: BTreeSet<Vec<String>>,
    /// The paths that the file re-exports, from the root of the crate. The path of the module is
    /// put before those that do not start explicitly in this crate.
    pub re_exports: BTreeSet<Vec<String>>,
    /// The other paths that the file uses, which start at a name in scope or in another crate. The
    /// path of the module is put before them.
    pub in_scope: BTreeSet<Vec<String>>,
}

impl Reader {
    pub fn read(module: Vec<String>, file: &syn::File) -> Reader {
        let mut reader =
            Reader { module, paths: BTreeSet::new(), re_exports: BTreeSet::new(), in_scope: BTreeSet::new() };
        reader.visit_file(file);
        reader
    }

    /// Records a path, which may start in another crate.
    fn note(&mut self, path: &[String]) {
        let absolute = from_root(&self.module, path);
        if absolute.is_empty() {
            return;
        }
        match is_rooted(path) {
            true => self.paths.insert(absolute),
            false => self.in_scope.insert(absolute),
        };
    }

    /// Records the paths in unparsed tokens: the input of macros, and their rules.
    fn note_tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            let (path, len) = path_of(&tokens[at..]);
            match path.len() {
                2.. => {
                    self.note(&path);
                    at += len;
                }
                _ => {
                    if let TokenTree::Group(group) = &tokens[at] {
                        self.note_tokens(group.stream());
                    }
                    at += 1;
                }
            }
        }
    }
}

/// The path at the start of the tokens, such as `crate::a::b`, and its number of tokens. Groups, as
/// in `crate::{a, b}`, are not read: in macros, `use` lines have one path for each name.
fn path_of(tokens: &[TokenTree]) -> (Vec<String>, usize) {
    let colon = |at: usize| matches!(tokens.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == ':');
    let (mut path, mut len) = (Vec::new(), 0);
    while let Some(TokenTree::Ident(name)) = tokens.get(len) {
        path.push(name.to_string());
        len += 1;
        if !(colon(len) && colon(len + 1) && matches!(tokens.get(len + 2), Some(TokenTree::Ident(_)))) {
            break;
        }
        len += 2;
    }
    (path, len)
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if is_for_tests(&item.attrs) {
            return;
        }
        self.module.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if is_for_tests(&item.attrs) {
            return;
        }
        for Used { path, .. } in used(&item.tree) {
            match item.vis {
                syn::Visibility::Inherited => self.note(&path),
                _ => _ = self.re_exports.insert(from_root(&self.module, &path)),
            }
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|part| part.ident.to_string()).collect();
        self.note(&names);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        self.note_tokens(call.tokens.clone());
    }

    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}
}

pub fn tokens_contain(tokens: TokenStream, word: &str) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(name) => name == word,
        TokenTree::Group(group) => tokens_contain(group.stream(), word),
        _ => false,
    })
}

/// Whether a condition, or one of those joined by `all(..)`, satisfies `is_meant`.
fn any_of_all(condition: &syn::Meta, is_meant: &impl Fn(&syn::Meta) -> bool) -> bool {
    match condition {
        syn::Meta::List(all) if all.path.is_ident("all") => all
            .parse_args_with(Punctuated::<syn::Meta, syn::Token![,]>::parse_terminated)
            .is_ok_and(|parts| parts.iter().any(|part| any_of_all(part, is_meant))),
        other => is_meant(other),
    }
}

/// Whether a `#[cfg(..)]` has a condition that satisfies `is_meant`.
fn asks_for(attributes: &[syn::Attribute], is_meant: impl Fn(&syn::Meta) -> bool) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args().is_ok_and(|condition: syn::Meta| any_of_all(&condition, &is_meant))
    })
}

/// Whether the item has `#[cfg(test)]` or `#[cfg(all(test, ..))]`.
pub fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    asks_for(attributes, |condition| condition.path().is_ident("test"))
}

/// Whether the item is for tests, or replaces an item of the same name that needs a feature or a
/// target: `#[cfg(not(..))]`. An unrelated item with such a condition counts, too.
pub fn is_stand_in(attributes: &[syn::Attribute]) -> bool {
    asks_for(attributes, |condition| {
        ["test", "doctest", "not"].iter().any(|meant| condition.path().is_ident(meant))
    })
}

/// Finds the modules that are declared as [stand-ins](is_stand_in).
pub struct StandIns<'a> {
    pub module: Vec<String>,
    pub into: &'a mut BTreeSet<Vec<String>>,
}

impl<'ast> Visit<'ast> for StandIns<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.module.push(item.ident.to_string());
        if is_stand_in(&item.attrs) {
            self.into.insert(self.module.clone());
        }
        visit::visit_item_mod(self, item);
        self.module.pop();
    }
}
