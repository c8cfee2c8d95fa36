//! Checks that links within the repository work, all chapters are in the summary, quoted error
//! messages are what rustc prints, and quoted code is in the sources. Most programs in the book are
//! doc tests.

use std::fs;
use std::path::{Path, PathBuf};

/// The address of the repository in the pages.
const REPOSITORY: &str = "https://github.com/typed-dims/typed-dims/blob/main/";

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Adds to `found` the files with this ending, in a folder and in the folders within it.
fn files(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("the entry can be read").path();
        if path.is_dir() {
            files(&path, ending, found);
        } else if path.to_string_lossy().ends_with(ending) {
            found.push(path);
        }
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A page without its blocks of code.
fn prose(page: &str) -> String {
    let mut within = false;
    let kept = page.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        within ^= fence;
        !fence && !within
    });
    kept.collect::<Vec<_>>().join("\n")
}

/// The targets of links, outside of code.
fn links(prose: &str) -> Vec<String> {
    let without_code: String = prose.split('`').step_by(2).collect();
    let behind = without_code.split("](").skip(1);
    behind.filter_map(|rest| rest.split_once(')').map(|(link, _)| link.to_owned())).collect()
}

/// The anchor of a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().to_lowercase();
    kept.chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

#[test]
fn links_lead_somewhere() {
    let mut pages: Vec<PathBuf> =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "BENCHMARKS.md"]
            .map(|page| root().join(page))
            .into();
    files(&root().join("docs"), ".md", &mut pages);
    files(&root().join("benches/notes"), ".md", &mut pages);
    let (mut broken, mut count) = (Vec::new(), 0);
    for page in pages {
        for link in links(&prose(&read(&page))) {
            let (path, part) = link.split_once('#').unwrap_or((&link, ""));
            let target = match path.strip_prefix(REPOSITORY) {
                Some(path) => root().join(path),
                None if path.contains("://") => continue,
                None if path.is_empty() => page.clone(),
                None => page.parent().expect("the page is in a folder").join(path),
            };
            let has_part = || read(&target).lines().any(|line| line.starts_with('#') && anchor(line) == part);
            count += 1;
            if !target.exists() || !part.is_empty() && !has_part() {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(count > 40, "only {count} links were found");
}

#[test]
fn all_chapters_are_in_the_summary() {
    let book = root().join("docs/book/src");
    let (summary, mut chapters) = (read(&book.join("SUMMARY.md")), Vec::new());
    files(&book, ".md", &mut chapters);
    for chapter in chapters {
        let name = chapter
            .strip_prefix(&book)
            .expect("the chapter is in the book")
            .to_string_lossy()
            .replace('\\', "/");
        assert!(
            name == "SUMMARY.md" || summary.contains(&format!("({name})")),
            "{name} is not in SUMMARY.md"
        );
    }
}

#[test]
fn messages_are_those_of_rustc() {
    let mut golden = Vec::new();
    files(&root().join("ui-tests/fail"), ".stderr", &mut golden);
    let golden: Vec<String> = golden.iter().map(|path| read(path)).collect();
    let page = read(&root().join("docs/book/src/errors.md"));
    let blocks: Vec<&str> =
        page.split("```text\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() > 15, "only {} messages were found", blocks.len());
    for block in blocks {
        let lines: Vec<&str> = block.lines().map(unnumbered).collect();
        let found = golden.iter().any(|message| {
            let message: Vec<&str> = message.lines().map(unnumbered).collect();
            lines.iter().all(|line| message.contains(line))
        });
        assert!(found, "no golden file has\n{block}");
    }
}

/// The first message in the tour and on the page on errors is that of a missing `eval`.
#[test]
fn a_missing_eval_comes_first() {
    let golden = read(&root().join("ui-tests/fail/signatures/expression_where_a_tensor_is_declared.stderr"));
    let label =
        golden.lines().map(unnumbered).find(|line| line.starts_with('^')).expect("the message has a label");
    for page in ["tour.md", "errors.md"] {
        let text = read(&root().join("docs/book/src").join(page));
        let first =
            text.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a message");
        assert!(
            first.lines().map(unnumbered).any(|line| line == label),
            "the first message in {page} is\n{first}"
        );
        for name in ["Evaluated<", "Binary<"] {
            assert!(golden.contains(name) && text.contains(name), "{page} or the golden file lacks `{name}`");
        }
    }
}

#[test]
fn code_on_operators_is_from_the_sources() {
    let trimmed = |text: &str| text.lines().map(str::trim).collect::<Vec<_>>().join("\n");
    let mut sources = Vec::new();
    for folder in ["dims-core/src/operators", "dims-kernels/src/step", "tests/operators"] {
        files(&root().join(folder), ".rs", &mut sources);
    }
    let sources: Vec<String> = sources.iter().map(|path| trimmed(&read(path))).collect();
    let page = trimmed(&read(&root().join("docs/dev/operator.md")));
    let blocks: Vec<&str> =
        page.split("\n```rust\n").skip(1).filter_map(|rest| rest.split("\n```\n").next()).collect();
    assert!(blocks.len() > 3, "only {} blocks were found", blocks.len());
    for block in blocks {
        assert!(sources.iter().any(|source| source.contains(block)), "no source has\n{block}");
    }
}

/// A line of a message, trimmed and without its line number.
fn unnumbered(line: &str) -> &str {
    let line = line.trim();
    line.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start().trim_start_matches('|').trim()
}
