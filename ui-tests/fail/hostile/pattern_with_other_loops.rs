//~ words: loops are the axes of the result and all others
use typed_dims::__private::pattern::plan::*;

fn main() {
    const LOOPS: Option<PatternLoops> = Some(PatternLoops { kept: &[0, 0], reduced: &[] });
    const TWICE: Pattern = Pattern::new("i -> i", &["i"], &[&[Axis(0)]], &[Axis(0)], &[], LOOPS);
    println!("{TWICE:?}");
}
