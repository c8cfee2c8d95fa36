//~ words: cannot be `1` or `()` | give it a name
use typed_dims::prelude::*;

fn main() {
    let (table, ids) = (Array3::<f32>::ones((4, 1, 2)), Array1::<usize>::zeros(3));
    let _ = gather!(table[_ () f], ids[s] => s f);
}
