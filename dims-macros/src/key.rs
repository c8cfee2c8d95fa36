//! Keys of dims and roles: the position in the macro call, then a hash of the package, the source
//! location and the name.
//!
//! Keys are stateless: the same source gives the same keys, so builds are reproducible and
//! incremental.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};
use std::path::{Path, PathBuf};

/// Number of hash digits in a key: 24 bits in base 16. Each digit costs rustc time wherever a dim
/// is compared with itself. If two dims in one tensor have the same key, rustc reports an error
/// that asks for another name.
const HASH_DIGITS: u32 = 6;

/// Bits of a digit.
const BITS: u32 = 4;

/// Positions below this take one digit. All others take this digit and two more.
const SHORT: usize = 15;

/// The key of one dim or role.
pub struct Key {
    number: u64,
    digits: u32,
}

impl Key {
    /// The key of the dim or role `name`, at this position in its macro call.
    pub fn new(name: &Ident, position: usize) -> Self {
        let span = name.span();
        let place = span.unwrap();
        let krate = |var| std::env::var(var).unwrap_or_default();
        let text = format!(
            "{}\0{}\0{}\0{}\0{}\0{}\0{}",
            krate("CARGO_PKG_NAME"),
            krate("CARGO_PKG_VERSION"),
            from_here(Path::new(&place.file()), Path::new(&krate("CARGO_MANIFEST_DIR"))).display(),
            place.line(),
            place.column(),
            expansion(span),
            name
        );
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
    use super::from_here;
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
}
