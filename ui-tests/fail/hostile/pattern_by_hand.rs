//~ words: are private | Pattern
use typed_dims::__private::pattern::plan::*;

fn main() {
    // A result with the same axis twice would read past the end of its operand.
    let _ = Pattern { output: &[Axis(0), Axis(0)], ..Pattern::new("i -> i", &["i"], &[], &[Axis(0)], &[], None) };
}
