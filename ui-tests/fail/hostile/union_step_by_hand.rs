//~ words: missing: `SEAL` | MergeStep
use typed_dims::types::set::union::MergeStep;

struct Mine;

/// A union that contains a common dim twice.
impl<H, T1, T2> MergeStep<H, T1, H, T2> for Mine {
    type Out = (H, (H, T2));
}

fn main() {}
