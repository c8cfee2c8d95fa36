//! The order of the layers in `dims-kernels/src` and `dims-core/src`, which imports follow (see
//! `ARCHITECTURE.md`), the files that may contain `unsafe`, and the number of files directly in
//! `dims-core/src`.

use crate::source::{Reader, Used, files, module_of, tokens_contain, used};
use proc_macro2::TokenStream;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// A crate, and its folders and files at the root of `src`, from the lowest layer to the highest.
/// Imports stay in a layer or go to a lower one. `lib.rs` is above all layers.
struct Crate {
    name: &'static str,
    layers: &'static [&'static [&'static str]],
    /// Modules that no other module of the crate imports, except those in `above_leaves`.
    leaves: &'static [&'static str],
    /// Leaves that may import other leaves.
    above_leaves: &'static [&'static str],
    /// Folders and files that may contain `unsafe`.
    may_be_unsafe: &'static [&'static str],
}

const CRATES: [Crate; 2] = [KERNELS, CORE];

const KERNELS: Crate = Crate {
    name: "dims-kernels",
    layers: &[
        &["error"],
        &["compiled", "sort_key"],
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
        "types/dim.rs",      // an impl of `Sync` that never applies, for rustc's message
        "storage/",          // memory
        "foreign/source.rs", // memory of other crates' arrays
        "file/mapped.rs",    // files mapped into memory
    ],
};

/// The maximum number of files directly in `dims-core/src`.
const FILES_AT_THE_ROOT: usize = 3;

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
                writeln!(wrong, "{}: there is no module `{module}`, which is listed in a layer", krate.name)
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
            wrong += if to_a_leaf { "which is a leaf" } else { "which is above it" };
            if let Some(way) = source.way(to, from) {
                write!(wrong, "; this is a cycle: {from} -> {}", way.join(" -> ")).unwrap();
            }
            wrong.push('\n');
        }
    }
    assert!(wrong.is_empty(), "the layers are listed at the top of tests/architecture/layers.rs\n{wrong}");
}

#[test]
fn unsafe_stands_where_it_may() {
    let mut wrong = String::new();
    for krate in &CRATES {
        for (file, text) in files(krate.name) {
            let may = krate.may_be_unsafe.iter().any(|place| file.starts_with(place));
            let tokens: TokenStream = text.parse().expect("the file is valid Rust");
            if !may && tokens_contain(tokens, "unsafe") {
                writeln!(wrong, "{}: {file} must not contain `unsafe`", krate.name).unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn the_root_shows_folders() {
    let root: Vec<_> = files(CORE.name).into_keys().filter(|file| !file.contains('/')).collect();
    assert!(
        root.len() <= FILES_AT_THE_ROOT,
        "dims-core/src has more than {FILES_AT_THE_ROOT} files beside its folders: {root:?}"
    );
}

/// The root modules of a crate, and the imports between them.
struct Source {
    /// The modules of the folders and files at the root.
    files: BTreeSet<String>,
    imports: Vec<Import>,
}

/// An import: `file`, in the root module `from`, uses a name of the root module `to`. `to` is `?`
/// if there is no such module.
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
            let parsed = syn::parse_file(text).unwrap_or_else(|error| panic!("{file}: {error}"));
            let reader = Reader::read(module, &parsed);
            for path in reader.paths.into_iter().chain(reader.re_exports) {
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

    /// The modules along a shortest path of imports.
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

/// The root module that contains a file.
fn first(file: &str) -> String {
    file.split('/').next().expect("the file has a name").trim_end_matches(".rs").to_owned()
}

/// The target of an alias for another crate.
const OUTSIDE: &str = "another crate";

/// The names that `lib.rs` defines at the root of the crate: `pub use types::{brand, dim}` means
/// that `crate::brand` is in `types`. Exported macros have their names there too.
fn aliases(files: &BTreeMap<String, String>, modules: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut aliases = BTreeMap::new();
    for item in syn::parse_file(&files["lib.rs"]).expect("the file is valid Rust").items {
        let syn::Item::Use(item) = item else { continue };
        for Used { path, .. } in used(&item.tree) {
            let to = if modules.contains(&path[0]) { &path[0] } else { OUTSIDE };
            aliases.insert(path.last().expect("the path has a name").clone(), to.to_owned());
        }
    }
    for (file, text) in files {
        for item in syn::parse_file(text).expect("the file is valid Rust").items {
            if let syn::Item::Macro(syn::ItemMacro { ident: Some(name), attrs, .. }) = item
                && attrs.iter().any(|attribute| attribute.path().is_ident("macro_export"))
            {
                aliases.insert(name.to_string(), first(file));
            }
        }
    }
    aliases
}
