//! The errors of rustc for common mistakes. See `README.md`.

use std::collections::HashSet;
use std::path::Path;
use ui_tests::case::{Case, cases, home, lacking};
use ui_tests::{budget, check, rustc};

/// With the rustc of the golden messages, compares messages verbatim. With any other, checks that
/// each program is refused, and that its message contains the required words.
///
/// If the variable `UI_WORDS_ONLY` is set, checks only the words with any rustc.
#[test]
fn rustc_says() {
    if rustc::running() == rustc::golden() && std::env::var_os("UI_WORDS_ONLY").is_none() {
        // trybuild generates its package in the target folder. The programs read the models there.
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("it lies in the target folder");
        check::models(&target.join("tests/trybuild/ui-tests"));
        trybuild::TestCases::new().compile_fail("fail/*/*.rs");
    } else {
        says_the_words();
    }
}

fn says_the_words() {
    let all = cases();
    let messages = check::messages(&all, &Path::new(env!("CARGO_TARGET_TMPDIR")).join("ui-cases"));
    let mut wrong = Vec::new();
    for case in &all {
        let (message, words) = (&messages[&case.name], case.words());
        if message.is_empty() {
            wrong.push(format!("{}: compiles", case.name));
        } else if !lacking(&words, message).is_empty() {
            wrong.push(format!("{}: lacks {:?} in\n{message}", case.name, lacking(&words, message)));
        }
    }
    report(&wrong);
}

#[test]
fn every_mistake_has_a_golden_message_with_its_words() {
    let mut wrong = Vec::new();
    for case in cases() {
        let words = case.words();
        if words.is_empty() {
            wrong.push(format!("{}: has no line `//~ words: ..`", case.name));
        }
        match case.golden() {
            None => wrong.push(format!("{}: has no golden message", case.name)),
            Some(golden) if !lacking(&words, &golden).is_empty() => {
                wrong.push(format!("{}: the golden message lacks {:?}", case.name, lacking(&words, &golden)));
            }
            Some(_) => {}
        }
    }
    report(&wrong);
}

#[test]
fn every_golden_message_keeps_the_budget() {
    let complaints = |case: Case| {
        let golden = case.golden()?;
        let complaints = budget::complaints(&case.name, &golden);
        (!complaints.is_empty()).then(|| format!("{}: {}\n{golden}", case.name, complaints.join("; ")))
    };
    report(&cases().into_iter().filter_map(complaints).collect::<Vec<_>>());
}

#[test]
fn every_golden_message_has_its_program() {
    let programs: HashSet<_> = cases().into_iter().map(|case| case.path.with_extension("stderr")).collect();
    let topics = std::fs::read_dir(home().join("fail")).expect("there are mistakes");
    let files = topics.flat_map(|topic| std::fs::read_dir(topic.unwrap().path()).unwrap());
    let orphan = |path: &std::path::PathBuf| {
        path.extension().is_some_and(|extension| extension == "stderr") && !programs.contains(path)
    };
    let orphans: Vec<_> = files.map(|file| file.unwrap().path()).filter(orphan).collect();
    report(&orphans.iter().map(|path| format!("{}: has no program", path.display())).collect::<Vec<_>>());
}

fn report(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
