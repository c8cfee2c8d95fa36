//! Imports between files form no cycles, except those listed in `EXCEPTIONS`.
//!
//! A file may use names that the files of enclosing modules declare, even if those files import it:
//! a `mod.rs` declares the common terms of its folder.

use crate::source::{Reader, Used, files, from_root, is_for_tests, module_of, used};
use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use syn::visit::{self, Visit};

/// Files that may import each other, and the reason.
struct Exception {
    krate: &'static str,
    files: &'static [&'static str],
    because: &'static str,
}

const EXCEPTIONS: [Exception; 2] = [
    Exception {
        krate: "dims-core",
        files: &[
            "types/brand.rs",
            "types/condition.rs",
            "types/dim.rs",
            "types/open.rs",
            "types/prime.rs",
            "types/rank.rs",
            "types/role.rs",
            "types/set/distinct.rs",
            "types/set/keys.rs",
            "types/set/list.rs",
            "types/set/mod.rs",
            "types/set/ordered.rs",
            "types/set/remove.rs",
            "types/set/union.rs",
            "types/size.rs",
        ],
        because: "a set is made of dims, `Rest<B>` is a dim made of a set, and a prime is a dim made of a dim",
    },
    Exception {
        krate: "dims-core",
        files: &["program/open.rs", "program/record.rs", "program/saved.rs"],
        because: "an open program holds a program for each size, which it restores from saved data",
    },
];

#[test]
fn files_import_in_one_direction() {
    let mut wrong = String::new();
    let mut excused = vec![false; EXCEPTIONS.len()];
    for krate in members() {
        let imports = imports(&files(&krate));
        for circle in circles(&imports) {
            let exception = EXCEPTIONS.iter().position(|exception| {
                exception.krate == krate && circle.iter().all(|file| exception.files.contains(file))
            });
            if let Some(exception) = exception {
                excused[exception] = circle.len() == EXCEPTIONS[exception].files.len();
                continue;
            }
            writeln!(
                wrong,
                "{krate}: these files import each other; move what they share to a file of its own:"
            )
            .unwrap();
            for &from in &circle {
                for (to, paths) in imports[from].iter().filter(|(to, _)| circle.contains(to.as_str())) {
                    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
                    writeln!(wrong, "    {from} imports {} from {to}", paths.join(", ")).unwrap();
                }
            }
        }
    }
    for (Exception { krate, files, because }, _) in
        EXCEPTIONS.iter().zip(&excused).filter(|(_, excused)| !**excused)
    {
        writeln!(wrong, "{krate}: not all of {files:?} import each other; shorten `EXCEPTIONS` ({because})")
            .unwrap();
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// The folders of the workspace's crates that have a `src/lib.rs`.
fn members() -> Vec<String> {
    let manifest = include_str!("../../Cargo.toml");
    let members = manifest
        .lines()
        .find_map(|line| line.strip_prefix("members = "))
        .expect("the manifest lists the members");
    let folders = members.split('"').skip(1).step_by(2).map(str::to_owned);
    folders.filter(|folder| files(folder).contains_key("lib.rs")).collect()
}

/// The groups of files that all reach each other.
fn circles(imports: &Imports) -> BTreeSet<BTreeSet<&str>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        imports.keys().map(|file| (file.as_str(), reached(imports, file))).collect();
    let circle = |file: &str| -> BTreeSet<&str> {
        reached[file].iter().copied().filter(|other| reached[other].contains(file)).collect()
    };
    reached.keys().map(|file| circle(file)).filter(|circle| circle.len() > 1).collect()
}

/// All files that a file imports, directly or indirectly.
fn reached<'a>(imports: &'a Imports, from: &'a str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut left = vec![from];
    while let Some(file) = left.pop() {
        left.extend(imports[file].keys().map(String::as_str).filter(|to| reached.insert(*to)));
    }
    reached
}

/// For each file, the files that it imports, with the paths that it uses.
type Imports = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// A path through a re-export is an import of the file that declares the item. The re-export itself
/// is an import only if its file uses the item.
fn imports(texts: &BTreeMap<String, String>) -> Imports {
    let files: BTreeMap<&str, syn::File> = texts
        .iter()
        .map(|(file, text)| (&**file, syn::parse_file(text).expect("the file is valid Rust")))
        .collect();
    let mut scopes = Scopes::default();
    for (file, parsed) in &files {
        Declarations { file, module: module_of(file), scopes: &mut scopes }.visit_file(parsed);
    }
    let mut imports = Imports::new();
    for (&file, parsed) in &files {
        let module = module_of(file);
        let named = imports.entry(file.to_owned()).or_default();
        if scopes.is_for_tests(&module) {
            continue;
        }
        let around: Vec<&str> = (0..module.len()).filter_map(|len| scopes.file_at(&module[..len])).collect();
        let reader = Reader::read(module, parsed);
        let rooted = reader.paths.iter().map(|path| (path, Some(scopes.file_of(path))));
        let in_scope = reader.in_scope.iter().map(|path| (path, scopes.declared(path)));
        for (path, to) in rooted.chain(in_scope) {
            if let Some(to) = to.filter(|&to| to != file && !around.contains(&to)) {
                named.entry(to.to_owned()).or_default().insert(path.join("::"));
            }
        }
    }
    imports
}

/// The modules of a crate, by their paths.
#[derive(Default)]
struct Scopes {
    modules: BTreeMap<Vec<String>, Scope>,
    for_tests: BTreeSet<Vec<String>>,
}

/// The content of a module.
#[derive(Default)]
struct Scope {
    file: String,
    /// The items that it declares, with their files.
    items: BTreeMap<String, String>,
    /// Its imports and re-exports, with paths from the root.
    used: Vec<Used>,
}

impl Scopes {
    fn is_for_tests(&self, module: &[String]) -> bool {
        (1..=module.len()).any(|len| self.for_tests.contains(&module[..len]))
    }

    /// The file of a module.
    fn file_at(&self, module: &[String]) -> Option<&str> {
        Some(&self.modules.get(module)?.file)
    }

    /// The file that declares an item, or else the file of the innermost module in its path.
    fn file_of(&self, path: &[String]) -> &str {
        let modules = || (0..=path.len()).rev().find_map(|len| self.file_at(&path[..len]));
        self.declared(path).or_else(modules).expect("the root is a module")
    }

    /// The file that declares an item, if a module of the crate does.
    fn declared(&self, path: &[String]) -> Option<&str> {
        self.found(&[], path, &mut BTreeSet::new())
    }

    fn found(&self, at: &[String], path: &[String], seen: &mut BTreeSet<Vec<String>>) -> Option<&str> {
        let scope = &self.modules[at];
        let Some((name, rest)) = path.split_first() else { return Some(&scope.file) };
        let module = [at, std::slice::from_ref(name)].concat();
        if self.modules.contains_key(&module) {
            return self.found(&module, rest, seen);
        }
        if name == "*" || scope.items.contains_key(name) {
            return Some(scope.items.get(name).unwrap_or(&scope.file));
        }
        if !seen.insert(module) {
            return None;
        }
        let by_name = scope.used.iter().filter(|used| used.name == *name).map(|used| (&used.path[..], rest));
        let all = scope.used.iter().filter(|used| used.name == "*");
        let by_star = all.map(|used| (&used.path[..used.path.len() - 1], path));
        by_name.chain(by_star).find_map(|(start, end)| self.found(&[], &[start, end].concat(), seen))
    }
}

/// Reads the items and the imports of a file.
struct Declarations<'a> {
    file: &'a str,
    module: Vec<String>,
    scopes: &'a mut Scopes,
}

impl Declarations<'_> {
    fn scope(&mut self) -> &mut Scope {
        let scope = self.scopes.modules.entry(self.module.clone()).or_default();
        if scope.file.is_empty() {
            scope.file = self.file.to_owned();
        }
        scope
    }

    fn declare(&mut self, name: &syn::Ident) {
        let file = self.file.to_owned();
        self.scope().items.insert(name.to_string(), file);
    }

    /// Records the items declared in the input of a macro.
    fn declare_in(&mut self, tokens: TokenStream) {
        let mut declares = false;
        for token in tokens {
            match token {
                TokenTree::Ident(name) if declares => {
                    self.declare(&name);
                    declares = false;
                }
                TokenTree::Ident(word) => {
                    declares =
                        ["struct", "enum", "trait", "fn", "type", "const"].iter().any(|key| word == key);
                }
                TokenTree::Group(group) => self.declare_in(group.stream()),
                _ => declares = false,
            }
        }
    }
}

impl<'ast> Visit<'ast> for Declarations<'_> {
    fn visit_file(&mut self, file: &'ast syn::File) {
        self.scope();
        visit::visit_file(self, file);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.module.push(item.ident.to_string());
        if is_for_tests(&item.attrs) {
            self.scopes.for_tests.insert(self.module.clone());
        } else if item.content.is_some() {
            self.scope();
            visit::visit_item_mod(self, item);
        }
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        for Used { name, path } in used(&item.tree) {
            let path = from_root(&self.module, &path);
            self.scope().used.push(Used { name, path });
        }
    }

    fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
        let Some(name) = &item.ident else { return self.declare_in(item.mac.tokens.clone()) };
        self.declare(name);
        if item.attrs.iter().any(|attribute| attribute.path().is_ident("macro_export")) {
            let file = self.file.to_owned();
            self.scopes.modules.entry(Vec::new()).or_default().items.insert(name.to_string(), file);
        }
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.declare(&item.ident);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.declare(&item.ident);
    }

    fn visit_item_union(&mut self, item: &'ast syn::ItemUnion) {
        self.declare(&item.ident);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.declare(&item.ident);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.declare(&item.ident);
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.declare(&item.sig.ident);
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.declare(&item.ident);
    }

    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        self.declare(&item.ident);
    }

    fn visit_item_impl(&mut self, _: &'ast syn::ItemImpl) {}
}

#[test]
fn circles_through_re_exports_are_found() {
    let files = [
        ("lib.rs", "mod a; mod b; mod folder;"),
        ("a.rs", "use crate::folder::Last; pub struct First(Last);"),
        ("b.rs", "use crate::a::First; pub use crate::folder::Last; fn b(_: First) {}"),
        ("folder/mod.rs", "mod inner; pub use inner::Last; pub struct Word;"),
        ("folder/inner.rs", "use super::Word; pub struct Last(Word); impl Last { fn b() { crate::b::b() } }"),
    ];
    let files = files.map(|(file, text)| (file.to_owned(), text.to_owned())).into();
    let imports = imports(&files);
    assert_eq!(circles(&imports), BTreeSet::from([BTreeSet::from(["a.rs", "b.rs", "folder/inner.rs"])]));
    assert_eq!(imports["b.rs"].keys().collect::<Vec<_>>(), ["a.rs"]);
    assert!(imports["folder/mod.rs"].is_empty());
}
