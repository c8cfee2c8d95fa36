//~ words: cannot be `1` or `()` | give it a name
use typed_dims::prelude::*;

fn main() {
    let (table, ids) = (Array2::<f32>::ones((4, 2)), Array1::<usize>::zeros(1));
    let _ = gather!(table[_ f], ids[1] => f);
}
