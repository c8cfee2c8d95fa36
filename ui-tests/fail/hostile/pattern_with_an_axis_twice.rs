//~ words: an axis stands in the result once
use typed_dims::__private::pattern::plan::*;

fn main() {
    const TWICE: Pattern = Pattern::new("i -> i i", &["i"], &[&[Axis(0)]], &[Axis(0), Axis(0)], &[], None);
    println!("{TWICE:?}");
}
