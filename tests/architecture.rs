//! The order of the layers: who imports whom, in `dims-kernels/src` and `dims-core/src` (see `ARCHITECTURE.md`); what operators leave to the layer that runs steps; that each type
//! has a name of its own; and how many names the prelude has.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};

/// A crate, and its folders and files at the root of `src`, from the lowest layer to the highest. An import goes from a layer to one before it, or
/// stays in its layer. (`lib.rs` is above all.)
struct Crate {
    name: &'static str,
    layers: &'static [&'static [&'static str]],
    /// What nothing else of the crate imports.
    leaves: &'static [&'static str],
    /// Leaves that import other leaves.
    above_leaves: &'static [&'static str],
    /// Where `unsafe` may stand: folders and files.
    may_be_unsafe: &'static [&'static str],
}

const CRATES: [Crate; 2] = [KERNELS, CORE];

const KERNELS: Crate = Crate {
    name: "dims-kernels",
    layers: &[
        &["error"],
        &["compiled"],
        &["machine"],
        &["random"],
        &["memory"],
        &["ops", "scalar"], // element types name operations, and operations compute with element types
        &["loops"],
        &["copy"],
        &["load"],
        &["program"],
        &["map"],
        &["reduce"],
        &["scan"],
        &["gemm"],
        &["contract"],
        &["attention"],
        &["trace"],
        &["step"],
        &["blas"],
    ],
    leaves: &["blas"],
    above_leaves: &[],
    may_be_unsafe: &[""],
};

const CORE: Crate = Crate {
    name: "dims-core",
    layers: &[
        &["error"],
        &["seal"],
        &["types"],
        &["mode"],
        &["plan"],
        &["storage"],
        &["expr"],
        &["tensors"],
        &["bind"],
        &["execute"],
        &["creation"],
        &["batch"],
        &["operators"],
        &["laid"],
        &["macros"],
        &["stream"],
        &["draw"],
        &["file"],
        &["foreign"],
        &["grad"],
        &["training"],
        &["program"],
    ],
    leaves: &["stream", "draw", "file", "foreign", "grad", "program", "training"],
    above_leaves: &["program", "training"], // recorded functions; optimizers, and files of parameters
    may_be_unsafe: &[
        "types/axes.rs",     // blocks of axes as slices
        "types/dim.rs",      // an impl of `Sync` that never holds, for its message
        "storage/",          // memory
        "foreign/source.rs", // memory of other crates' arrays
        "file/mapped.rs",    // files in the address space
    ],
};

/// The public traits of `dims-core` that are not sealed. Nothing is trusted of an impl of theirs that is not checked: see `docs/dev/trust.md`.
const OPEN_TRAITS: [&[&str]; 3] = [
    // What users and macros implement.
    &[
        "PartFamily",
        "ArrayOp",
        "ArraysOp",
        "AsPackedShape",
        "Brand",
        "Channels",
        "Declared",
        "DeclaredRole",
        "DerivedLoad",
        "DerivedParameters",
        "Lend",
        "Load",
        "Optimizer",
        "Hand",
        "Parameters",
        "RecordInputs",
        "Referring",
        "Role",
        "SetElement",
        "Stored",
        "Visitor",
        "Walk",
    ],
    // Methods of sources, which are `unsafe` to implement, and of types of other crates.
    &["At", "AtMut", "IntoTensor", "IntoLaid", "ToTensor"],
    // Methods of tensors. `AsTensor` is sealed, and these have no parameters.
    &[
        "ApplyOp",
        "Draw",
        "Dropout",
        "Dynamic",
        "Elementwise",
        "Folding",
        "Interpolating",
        "IntoCandle",
        "IntoImage",
        "IntoMatrix",
        "IntoMdarray",
        "Lay",
        "LinearAlgebra",
        "Losses",
        "NanReductions",
        "Normalization",
        "OrderExt",
        "OrderInto",
        "Pooling",
        "Rearranging",
        "Reductions",
        "Restructure",
        "Scans",
        "Selecting",
        "Sorting",
        "Streamed",
    ],
];

/// Folders of `dims-core/src` whose files say what is to run, and leave the rest to `execute`.
const OPERATORS: [&str; 4] = ["operators/", "macros/", "laid/", "batch/"];

/// What they leave to it, and the names that it has: `record` but for its `Writer`, to which an expression writes itself, `step` of `expr`, and `note` where it is called.
const LEFT_TO_EXECUTE: [(&str, &[&str]); 4] = [
    ("recording", &["record", "step", "ExprStep", "StepOfParts"]),
    ("memory of results", &["reserve", "InParts", "allocate"]),
    ("notes for plans", &["note", "aside"]),
    ("whether anybody listens", &["is_active", "is_heard", "is_known", "is_traced", "traced"]),
];

/// Crates within which no two types have one name, so that the name alone says which concept is meant. (The macros and the models of ONNX have notions of tensors
/// and axes of their own.)
const NAMESPACES: [&[&str]; 4] =
    [&["dims-kernels", "dims-core", "."], &["dims-macros"], &["dims-onnx"], &["dims-xla"]];

/// At most so many names come with `use typed_dims::prelude::*;`, beside those of optional features. Traits that come without a name (`as _`) do not count,
/// and a function and a macro of one name count once.
const NAMES_IN_THE_PRELUDE: usize = 94;

/// At most so many files lie beside the folders of `dims-core/src`.
const FILES_AT_THE_ROOT: usize = 6;

#[test]
fn imports_go_down() {
    let mut wrong = String::new();
    for krate in &CRATES {
        let source = Source::read(krate);
        let layer = |module: &str| krate.layers.iter().position(|layer| layer.contains(&module));
        for module in source.modules() {
            if layer(module).is_none() {
                writeln!(wrong, "{}: `{module}` is in no layer", krate.name).unwrap();
            }
        }
        for module in krate.layers.iter().copied().flatten() {
            if !source.modules().contains(module) {
                writeln!(wrong, "{}: there is no `{module}`, which is listed as a layer", krate.name)
                    .unwrap();
            }
        }
        for import in &source.imports {
            let Import { file, from, to, path } = import;
            if to == "?" {
                writeln!(wrong, "{}: {file} imports `{path}`, which is in no layer", krate.name).unwrap();
                continue;
            }
            let goes_down = layer(from) >= layer(to);
            let is_leaf = krate.leaves.contains(&to.as_str());
            let to_a_leaf = from != to && is_leaf && !krate.above_leaves.contains(&from.as_str());
            if goes_down && !to_a_leaf {
                continue;
            }
            write!(wrong, "{}: {file} imports `{path}`, so `{from}` imports `{to}`, ", krate.name).unwrap();
            wrong += if to_a_leaf { "which nothing is to import" } else { "which is above it" };
            if let Some(way) = source.way(to, from) {
                write!(wrong, "; this is a circle: {from} -> {}", way.join(" -> ")).unwrap();
            }
            wrong.push('\n');
        }
    }
    assert!(wrong.is_empty(), "the layers are listed at the top of tests/architecture.rs\n{wrong}");
}

#[test]
fn operators_say_what_is_to_run() {
    let mut wrong = String::new();
    for (file, text) in files(CORE.name) {
        if !OPERATORS.iter().any(|folder| file.starts_with(folder)) {
            continue;
        }
        let mut words = Vec::new();
        words_of(text.parse().expect("Rust"), &mut words);
        for (what, names) in LEFT_TO_EXECUTE {
            for &name in names {
                let is_named = (0..words.len()).any(|at| words[at] == name && is_left(&words, at));
                if is_named {
                    writeln!(wrong, "dims-core/src/{file} names `{name}`: leave {what} to `execute`")
                        .unwrap();
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "what operators leave to the layer that runs steps is listed at the top of tests/architecture.rs\n{wrong}"
    );
}

/// Whether the name at this place is that of something left to `execute`.
fn is_left(words: &[String], at: usize) -> bool {
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    match word(at) {
        "record" => [word(at + 1), word(at + 2), word(at + 3)] != [":", ":", "Writer"],
        "step" => at > 2 && [word(at - 3), word(at - 2), word(at - 1)] == ["expr", ":", ":"],
        "note" => word(at + 1) == "(" && (at == 0 || ![".", "fn"].contains(&word(at - 1))),
        _ => true,
    }
}

/// All words of a piece of code, signs and opening brackets among them. Those of comments and strings do not count.
fn words_of(tokens: TokenStream, words: &mut Vec<String>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                let open = match group.delimiter() {
                    Delimiter::Parenthesis => "(",
                    Delimiter::Brace => "{",
                    Delimiter::Bracket => "[",
                    Delimiter::None => "",
                };
                words.push(open.to_owned());
                words_of(group.stream(), words);
            }
            TokenTree::Literal(_) => {}
            token => words.push(token.to_string()),
        }
    }
}

#[test]
fn types_have_names_of_their_own() {
    let mut wrong = String::new();
    for crates in NAMESPACES {
        let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for name in crates {
            let files: Vec<_> = files(name)
                .into_iter()
                .map(|(file, text)| (file, syn::parse_file(&text).expect("Rust")))
                .collect();
            let mut stand_ins = BTreeSet::new();
            for (file, parsed) in &files {
                StandIns { module: module_of(file), into: &mut stand_ins }.visit_file(parsed);
            }
            for (file, parsed) in &files {
                let module = module_of(file);
                if (1..=module.len()).any(|len| stand_ins.contains(&module[..len])) {
                    continue;
                }
                let mut types = TypeNames::default();
                types.visit_file(parsed);
                for declared in types.0 {
                    places.entry(declared).or_default().push(format!("{name}/src/{file}"));
                }
            }
        }
        for (name, files) in places {
            if files.len() > 1 {
                writeln!(wrong, "`{name}` is a type of {}", files.join(" and of ")).unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "a name tells which concept a type is: rename or join these\n{wrong}");
}

#[test]
fn unsafe_stands_where_it_may() {
    let mut wrong = String::new();
    for krate in &CRATES {
        for (file, text) in files(krate.name) {
            let may = krate.may_be_unsafe.iter().any(|place| file.starts_with(place));
            let tokens: TokenStream = text.parse().expect("Rust");
            if !may && tokens_contain(tokens, "unsafe") {
                writeln!(wrong, "{}: {file} has `unsafe`", krate.name).unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn traits_are_sealed() {
    let mut wrong = String::new();
    let mut open: BTreeSet<&str> = OPEN_TRAITS.iter().copied().flatten().copied().collect();
    for (file, text) in files(CORE.name) {
        let mut traits = Traits::default();
        traits.visit_file(&syn::parse_file(&text).expect("Rust"));
        for name in traits.open {
            if !open.remove(name.as_str()) {
                writeln!(wrong, "dims-core/src/{file}: `{name}` is not sealed, and is not listed as open")
                    .unwrap();
            }
        }
    }
    for name in open {
        writeln!(wrong, "`{name}` is listed as open, and is not there or is sealed").unwrap();
    }
    assert!(
        wrong.is_empty(),
        "the traits that users may implement are listed at the top of tests/architecture.rs\n{wrong}"
    );
}

/// The public traits of a file that any crate can implement: those without an item whose type only `dims-core` can name. (What `condition!` writes is sealed.)
#[derive(Default)]
struct Traits {
    open: Vec<String>,
}

impl Visit<'_> for Traits {
    fn visit_item_trait(&mut self, item: &syn::ItemTrait) {
        let mut names = Names::default();
        item.items.iter().for_each(|item| names.visit_trait_item(item));
        if matches!(item.vis, syn::Visibility::Public(_))
            && item.unsafety.is_none()
            && !names.0.contains("Seal")
        {
            self.open.push(item.ident.to_string());
        }
    }
}

/// All names in a piece of code.
#[derive(Default)]
struct Names(BTreeSet<String>);

impl Visit<'_> for Names {
    fn visit_ident(&mut self, name: &syn::Ident) {
        self.0.insert(name.to_string());
    }
}

#[test]
fn the_root_shows_folders() {
    let root: Vec<_> = files(CORE.name).into_keys().filter(|file| !file.contains('/')).collect();
    assert!(root.len() <= FILES_AT_THE_ROOT, "dims-core/src has these files beside its folders: {root:?}");
}

#[test]
fn the_prelude_is_short() {
    let file = syn::parse_file(include_str!("../src/lib.rs")).expect("Rust");
    let prelude = file.items.iter().find_map(|item| match item {
        syn::Item::Mod(module) if module.ident == "prelude" => module.content.as_ref(),
        _ => None,
    });
    let mut names = BTreeSet::new();
    for item in &prelude.expect("there is a prelude").1 {
        let syn::Item::Use(item) = item else { panic!("the prelude has nothing but `use` lines") };
        if !is_optional(&item.attrs) {
            names_of(&item.tree, "", &mut names);
        }
    }
    assert!(!names.contains("*"), "the names that a `*` stands for are not counted");
    assert!(
        names.len() <= NAMES_IN_THE_PRELUDE,
        "the prelude has {} names, more than {NAMES_IN_THE_PRELUDE}: {names:?}",
        names.len()
    );
}

/// Whether it needs a feature that is not `std`.
fn is_optional(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(cfg) if cfg.path.is_ident("cfg") => {
            cfg.tokens.to_string().replace(' ', "") != r#"feature="std""#
        }
        _ => false,
    })
}

/// The names that a `use` brings into scope; `_` is none.
fn names_of(tree: &syn::UseTree, module: &str, into: &mut BTreeSet<String>) {
    match tree {
        syn::UseTree::Path(path) => names_of(&path.tree, &path.ident.to_string(), into),
        syn::UseTree::Group(group) => group.items.iter().for_each(|tree| names_of(tree, module, into)),
        syn::UseTree::Glob(_) => {
            into.insert("*".to_owned());
        }
        syn::UseTree::Name(name) => {
            let name = name.ident.to_string();
            into.insert(if name == "self" { module.to_owned() } else { name });
        }
        syn::UseTree::Rename(name) if name.rename == "_" => {}
        syn::UseTree::Rename(name) => {
            into.insert(name.rename.to_string());
        }
    }
}

/// What the files of a crate say.
struct Source {
    /// The folders and files at the root, by their modules.
    files: BTreeSet<String>,
    imports: Vec<Import>,
}

/// That `file`, which is in the module `from` of the root, names something of another module of the root, `to`; `?` if it is none.
struct Import {
    file: String,
    from: String,
    to: String,
    path: String,
}

impl Source {
    fn read(krate: &Crate) -> Source {
        let files = files(krate.name);
        let modules: BTreeSet<String> =
            files.keys().filter(|file| *file != "lib.rs").map(|file| first(file)).collect();
        let aliases = aliases(&files, &modules);
        let mut source = Source { files: modules, imports: Vec::new() };
        for (file, text) in &files {
            if file == "lib.rs" {
                continue;
            }
            let module = module_of(file);
            let from = module[0].clone();
            let mut reader = Reader { module, paths: BTreeSet::new() };
            let parsed = syn::parse_file(text).unwrap_or_else(|error| panic!("{file}: {error}"));
            reader.visit_file(&parsed);
            for path in reader.paths {
                let to = match aliases.get(&path[0]) {
                    Some(to) => to.clone(),
                    None if source.files.contains(&path[0]) => path[0].clone(),
                    None => "?".to_owned(),
                };
                if to != from && to != OUTSIDE {
                    let (file, from) = (file.clone(), from.clone());
                    source.imports.push(Import { file, from, to, path: path.join("::") });
                }
            }
        }
        source
    }

    fn modules(&self) -> BTreeSet<&str> {
        self.files.iter().map(String::as_str).collect()
    }

    /// The modules on a shortest way of imports.
    fn way(&self, from: &str, to: &str) -> Option<Vec<String>> {
        let mut ways = vec![vec![from.to_owned()]];
        let mut seen = BTreeSet::from([from.to_owned()]);
        while !ways.is_empty() {
            let mut longer = Vec::new();
            for way in ways {
                let last = way.last().expect("a way has a start");
                if last == to {
                    return Some(way);
                }
                for import in self.imports.iter().filter(|import| import.from == *last) {
                    if seen.insert(import.to.clone()) {
                        longer.push([way.clone(), vec![import.to.clone()]].concat());
                    }
                }
            }
            ways = longer;
        }
        None
    }
}

/// The texts of the files of a crate, by their paths from `src`.
fn files(crate_name: &str) -> BTreeMap<String, String> {
    fn walk(folder: &Path, root: &Path, into: &mut BTreeMap<String, String>) {
        for entry in fs::read_dir(folder).expect("the folder is there") {
            let path: PathBuf = entry.expect("an entry").path();
            if path.is_dir() {
                walk(&path, root, into);
            } else if path.extension().is_some_and(|ext| ext == "rs") {
                let name =
                    path.strip_prefix(root).expect("below the root").to_string_lossy().replace('\\', "/");
                into.insert(name, fs::read_to_string(&path).expect("text"));
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(crate_name).join("src");
    let mut into = BTreeMap::new();
    walk(&root, &root, &mut into);
    into
}

/// The path of a file as a module, from the root of its crate.
fn module_of(file: &str) -> Vec<String> {
    let parts = file.trim_end_matches(".rs").split('/');
    parts.filter(|part| !["mod", "lib"].contains(part)).map(str::to_owned).collect()
}

/// The module of the root that a file is in.
fn first(file: &str) -> String {
    file.split('/').next().expect("a name").trim_end_matches(".rs").to_owned()
}

/// What an alias of another crate stands for.
const OUTSIDE: &str = "another crate";

/// The names at the root of the crate that `lib.rs` gives: `pub use types::{brand, dim}` says that `crate::brand` is in `types`. Macros that are
/// exported have their names there too.
fn aliases(files: &BTreeMap<String, String>, modules: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut aliases = BTreeMap::new();
    for item in syn::parse_file(&files["lib.rs"]).expect("Rust").items {
        let syn::Item::Use(item) = item else { continue };
        let mut paths = BTreeSet::new();
        tree_paths(&item.tree, &mut Vec::new(), &mut paths);
        for path in paths {
            let to = if modules.contains(&path[0]) { &path[0] } else { OUTSIDE };
            aliases.insert(path.last().expect("a name").clone(), to.to_owned());
        }
    }
    for (file, text) in files {
        for item in syn::parse_file(text).expect("Rust").items {
            if let syn::Item::Macro(syn::ItemMacro { ident: Some(name), attrs, .. }) = item
                && attrs.iter().any(|attribute| attribute.path().is_ident("macro_export"))
            {
                aliases.insert(name.to_string(), first(file));
            }
        }
    }
    aliases
}

/// The paths of a `use`. (A renamed item counts by its own name.)
fn tree_paths(tree: &syn::UseTree, so_far: &mut Vec<String>, into: &mut BTreeSet<Vec<String>>) {
    match tree {
        syn::UseTree::Path(path) => {
            so_far.push(path.ident.to_string());
            tree_paths(&path.tree, so_far, into);
            so_far.pop();
        }
        syn::UseTree::Name(syn::UseName { ident, .. })
        | syn::UseTree::Rename(syn::UseRename { ident, .. }) => {
            let itself = ident == "self" && !so_far.is_empty();
            into.insert(if itself { so_far.clone() } else { [&so_far[..], &[ident.to_string()]].concat() });
        }
        syn::UseTree::Glob(_) => {
            into.insert([&so_far[..], &["*".to_owned()]].concat());
        }
        syn::UseTree::Group(group) => group.items.iter().for_each(|tree| tree_paths(tree, so_far, into)),
    }
}

/// Reads a file, but for its tests.
struct Reader {
    /// Where it is.
    module: Vec<String>,
    /// What it names, from the root of the crate.
    paths: BTreeSet<Vec<String>>,
}

impl Reader {
    /// Notes a path if it is one of this crate.
    fn note(&mut self, path: &[String]) {
        let start = match path[0].as_str() {
            "crate" => Vec::new(),
            "super" | "self" => self.module.clone(),
            _ => return, // of another crate, or of what is in scope
        };
        let mut absolute = start;
        for part in path {
            match part.as_str() {
                "crate" | "self" => {}
                "super" => {
                    absolute.pop();
                }
                other => absolute.push(other.to_owned()),
            }
        }
        if !absolute.is_empty() {
            self.paths.insert(absolute);
        }
    }

    /// Notes the paths in tokens that are not parsed: the input of macros, and their rules.
    fn note_tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            let (path, len) = path_of(&tokens[at..]);
            match path.first().map(String::as_str) {
                Some("crate" | "super") => {
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

/// The path at the start of the tokens, `crate::a::b`, and how many tokens it is. (One with a group, `crate::{a, b}`, is none: in macros there are `use`
/// lines with a path for each name.)
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

fn tokens_contain(tokens: TokenStream, word: &str) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(name) => name == word,
        TokenTree::Group(group) => tokens_contain(group.stream(), word),
        _ => false,
    })
}

/// Whether a condition, or one of those that `all(..)` joins, is meant.
fn any_of_all(condition: &syn::Meta, is_meant: &impl Fn(&syn::Meta) -> bool) -> bool {
    match condition {
        syn::Meta::List(all) if all.path.is_ident("all") => all
            .parse_args_with(Punctuated::<syn::Meta, syn::Token![,]>::parse_terminated)
            .is_ok_and(|parts| parts.iter().any(|part| any_of_all(part, is_meant))),
        other => is_meant(other),
    }
}

/// Whether its `#[cfg(..)]` asks for this.
fn asks_for(attributes: &[syn::Attribute], is_meant: impl Fn(&syn::Meta) -> bool) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args().is_ok_and(|condition: syn::Meta| any_of_all(&condition, &is_meant))
    })
}

/// Whether it has `#[cfg(test)]` or `#[cfg(all(test, ..))]`.
fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    asks_for(attributes, |condition| condition.path().is_ident("test"))
}

/// Whether it is for tests, or takes the place, under the same name, of an item that needs a feature or a target: `#[cfg(not(..))]`.
/// (Two such items with one name are not told from a stand-in and its original.)
fn is_stand_in(attributes: &[syn::Attribute]) -> bool {
    asks_for(attributes, |condition| {
        ["test", "doctest", "not"].iter().any(|meant| condition.path().is_ident(meant))
    })
}

/// Finds the files whose modules are declared as [stand-ins](is_stand_in).
struct StandIns<'a> {
    module: Vec<String>,
    into: &'a mut BTreeSet<Vec<String>>,
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

/// The types that a file declares, also in the rules and the calls of macros. Not among them are associated types, types within a function, whose names are read
/// beside their uses, and what is a [stand-in](is_stand_in).
#[derive(Default)]
struct TypeNames(Vec<String>);

impl TypeNames {
    fn note(&mut self, name: &syn::Ident, attributes: &[syn::Attribute]) {
        if !is_stand_in(attributes) {
            self.0.push(name.to_string());
        }
    }

    /// (An alias in tokens counts for nothing: it may be an associated type.)
    fn note_tokens(&mut self, tokens: TokenStream) {
        let mut declares = false;
        for token in tokens {
            match token {
                TokenTree::Ident(name) if declares => self.0.push(name.to_string()),
                TokenTree::Group(group) => self.note_tokens(group.stream()),
                TokenTree::Ident(word) => {
                    declares = ["struct", "enum", "union", "trait"].iter().any(|keyword| word == keyword);
                    continue;
                }
                _ => {}
            }
            declares = false;
        }
    }
}

impl<'ast> Visit<'ast> for TypeNames {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_stand_in(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, _: &'ast syn::ItemFn) {}

    fn visit_item_impl(&mut self, _: &'ast syn::ItemImpl) {}

    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.note(&item.ident, &item.attrs);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.note(&item.ident, &item.attrs);
    }

    fn visit_item_union(&mut self, item: &'ast syn::ItemUnion) {
        self.note(&item.ident, &item.attrs);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.note(&item.ident, &item.attrs);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.note(&item.ident, &item.attrs);
    }

    fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
        self.note_tokens(item.mac.tokens.clone());
    }
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
        let mut paths = BTreeSet::new();
        tree_paths(&item.tree, &mut Vec::new(), &mut paths);
        paths.iter().for_each(|path| self.note(path));
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|part| part.ident.to_string()).collect();
        if names.len() > 1 {
            self.note(&names);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        self.note_tokens(call.tokens.clone());
    }

    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}
}
