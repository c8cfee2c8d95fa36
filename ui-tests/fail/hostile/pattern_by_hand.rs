//~ words: are private | Pattern
use typed_dims::__private::pattern::plan::*;

fn main() {
    // A result with an axis twice: it would be read beyond the end of its operand.
    let _ = Pattern { output: &[Axis(0), Axis(0)], ..Pattern::new("i -> i", &["i"], &[], &[Axis(0)], &[], None) };
}
