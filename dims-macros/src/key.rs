//! Keys of dims and roles: the position in the macro call, then a hash of the package, the source
//! location and the name.
//!
//! Keys are stateless: the same source gives the same keys, so builds are reproducible and
//! incremental. Keys of structs do not depend on lines: a blank line or a compatible version of the
//! package does not change the order of dims from different macro calls.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};
use std::cell::RefCell;
use std::path::{Path, PathBuf};

/// Number of hash digits in a key: 24 bits in base 16. Each digit costs rustc time wherever a dim
/// is compared with itself. If two dims in one tensor have the same key, rustc reports an error
/// that asks for another name.
const HASH_DIGITS: u32 = 6;

/// Bits of a digit.
const BITS: u32 = 4;

/// Positions below this take one digit. Greater ones take three: this number, then two more digits.
const SHORT: usize = 15;

/// The key of one dim or role.
pub struct Key {
    number: u64,
    digits: u32,
}

impl Key {
    /// The key of the struct `name`, a dim or a role, at this position in its macro call.
    pub fn of_struct(name: &Ident, position: usize) -> Self {
        let place = name.span().unwrap();
        let earlier = place.local_file().and_then(|file| {
            with_text(file, |text| structs_before(text, place.line(), place.column(), &name.to_string()))
        });
        match earlier {
            Some(earlier) => Key::new(name, position, &earlier.to_string()),
            None => Key::of_local(name, position),
        }
    }

    /// The key of the local dim `name`, at this position in its macro call.
    pub fn of_local(name: &Ident, position: usize) -> Self {
        let place = name.span().unwrap();
        Key::new(name, position, &format!("{}\0{}", place.line(), place.column()))
    }

    /// `place` tells apart declarations of the same name in one file.
    fn new(name: &Ident, position: usize, place: &str) -> Self {
        let krate = |var| std::env::var(var).unwrap_or_default();
        let file = name.span().unwrap().file();
        let file = from_here(Path::new(&file), Path::new(&krate("CARGO_MANIFEST_DIR")));
        let (package, version) = (krate("CARGO_PKG_NAME"), krate("CARGO_PKG_VERSION"));
        let (version, expansion) = (compatible(&version), expansion(name.span()));
        let text = format!("{package}\0{version}\0{}\0{place}\0{expansion}\0{name}", file.display());
        let hash = fnv1a(text.as_bytes()) >> (64 - BITS * HASH_DIGITS);
        let (position, digits) = spread(position);
        Key { number: (position << (BITS * HASH_DIGITS)) | hash, digits: HASH_DIGITS + digits }
    }

    /// The key as a number.
    pub fn id(&self) -> u64 {
        self.number
    }

    /// The key as nested digits.
    pub fn digits(&self, krate: &TokenStream) -> TokenStream {
        nested(self.number, self.digits, quote!(()), krate)
    }
}

/// A position as the first digits of a key, and how many digits these are.
fn spread(position: usize) -> (u64, u32) {
    if position < SHORT { (position as u64, 1) } else { ((SHORT << (2 * BITS) | position) as u64, 3) }
}

fn nested(number: u64, digits: u32, end: TokenStream, krate: &TokenStream) -> TokenStream {
    (0..digits).fold(end, |rest, at| {
        let digit = format_ident!("H{}", (number >> (BITS * at)) & 0xf);
        quote!(#krate::#digit<#rest>)
    })
}

/// The maximum number of dims that one macro call can make.
pub const MOST: usize = 0x100;

/// Calls `f` with the text of a file. The last file is kept, because most are needed several times.
fn with_text(file: PathBuf, f: impl FnOnce(&str) -> Option<usize>) -> Option<usize> {
    thread_local! {
        static LAST: RefCell<(PathBuf, String)> = RefCell::default();
    }
    LAST.with_borrow_mut(|last| {
        if last.0 != file {
            *last = (file.clone(), std::fs::read_to_string(&file).ok()?);
        }
        f(&last.1)
    })
}

/// The number of times that the text has `struct name` before this place. (Lines and columns start
/// at 1.) `None` unless `struct name` is at this place: otherwise two places could have the same
/// number. `struct name` is not there if the name is an argument of another macro, or if the text
/// is older than the one that an editor shows.
fn structs_before(text: &str, line: usize, column: usize, name: &str) -> Option<usize> {
    let start: usize = text.split_inclusive('\n').take(line.checked_sub(1)?).map(str::len).sum();
    let place = start + text[start..].char_indices().nth(column.checked_sub(1)?)?.0;
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '#';
    let is_struct = |at: usize| {
        let before = text[..at].trim_end();
        let keyword = before.strip_suffix("struct");
        before.len() < at
            && keyword.is_some_and(|before| !before.ends_with(is_word))
            && !text[at + name.len()..].starts_with(is_word)
    };
    let mut places = text.match_indices(name).map(|(at, _)| at).filter(|&at| is_struct(at));
    places.position(|at| at >= place).filter(|_| text[place..].starts_with(name) && is_struct(place))
}

/// The part of a version that differs between incompatible versions. Two incompatible versions can
/// be in one build.
fn compatible(version: &str) -> &str {
    let mut end = 0;
    for part in version.split('.') {
        end += part.len();
        if part != "0" {
            return &version[..end];
        }
        end += 1;
    }
    version
}

/// The path of a source file without the part that it shares with the path of its package, so that
/// keys do not depend on the location of a checkout or of cargo's registry. Keys determine the
/// order of dims in rustc's messages. Relative paths already start at the workspace.
fn from_here(file: &Path, package: &Path) -> PathBuf {
    if file.is_relative() {
        return file.to_owned();
    }
    let shared = file.components().zip(package.components()).take_while(|(a, b)| a == b).count();
    file.components().skip(shared).collect()
}

/// The maximum number of roles that one macro call can declare. The positions from here on are for
/// the ONNX roles.
pub const MOST_ROLES: usize = 0xf0;

/// The number of the `macro_rules!` expansion that produced a token: two expansions of one macro
/// share file, line and column.
///
/// Only the debug text of a span shows this number (`#12 bytes(..)`). Tokens outside of any
/// expansion have `#0`. An editor's spans may have another text, and no number.
pub fn expansion(span: Span) -> String {
    let text = format!("{span:?}");
    let number = text.strip_prefix('#').unwrap_or_default();
    let digits: String = number.chars().take_while(char::is_ascii_digit).collect();
    if digits == "0" { String::new() } else { digits }
}

/// 64-bit FNV-1a, with a final mix so that the high bits are as good as the low ones.
fn fnv1a(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for &byte in bytes {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash ^= hash >> 32;
    hash = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^ (hash >> 29)
}

#[cfg(test)]
mod tests {
    use super::{compatible, from_here, structs_before};
    use std::path::Path;

    #[test]
    fn keys_do_not_depend_on_where_a_checkout_lies() {
        for (file, package, expected) in [
            ("src/a.rs", "/home/me/project", "src/a.rs"),
            ("/home/me/registry/dep-1.0/src/a.rs", "/home/me/registry/dep-1.0", "src/a.rs"),
            ("/home/me/project/ui/fail/a.rs", "/home/me/project/target/tests/ui", "ui/fail/a.rs"),
            ("/elsewhere/a.rs", "/home/me/project", "elsewhere/a.rs"),
        ] {
            assert_eq!(from_here(Path::new(file), Path::new(package)), Path::new(expected));
        }
    }

    #[test]
    fn keys_of_structs_do_not_depend_on_lines() {
        let before = |text: &str, line, column| structs_before(text, line, column, "Row");
        let text = "mod a { dims! { struct Row; } }\nmod b { dims! { pub struct Row; struct Rows; } }\n";
        assert_eq!(before(text, 1, 24), Some(0));
        assert_eq!(before(text, 2, 28), Some(1));
        assert_eq!(before(&format!("\n\n// é\n{text}"), 5, 28), Some(1));
        // Each place has its own number.
        assert_eq!(before("mod a { dim!(Row); } mod b { dims! { struct Row; } }", 1, 14), None);
        assert_eq!(before("mod a { dim!(Row); } mod b { dims! { struct Row; } }", 1, 45), Some(0));
        assert_eq!(before("dims! { struct /* a comment */ Row; }", 1, 32), None);
        assert_eq!(structs_before("dims! { struct r#Row; }", 1, 16, "r#Row"), Some(0));
        // Other text, as in an editor.
        assert_eq!(before(text, 2, 27), None);
        assert_eq!(before(text, 3, 1), None);
        assert_eq!(before(text, 9, 1), None);
        assert_eq!(before(text, 0, 0), None);
    }

    #[test]
    fn keys_do_not_depend_on_compatible_versions() {
        let versions = ["1.2.3", "0.4.7", "0.0.5", "0.0.0", "2.0.0-rc.1", "", "10"];
        let parts = ["1", "0.4", "0.0.5", "0.0.0", "2", "", "10"];
        assert_eq!(versions.map(compatible), parts);
    }
}
