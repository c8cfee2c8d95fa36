//~ words: function takes 3 arguments
use typed_dims::__private::file::load::LayOut;
use typed_dims::prelude::*;

dims! { struct Row; struct Col; }

/// An order in which an axis stands five times would lead out of the tensor.
fn main() {
    let x = ones::<u8, _>((Row.of(32), Col.of(1 << 20)));
    let _ = LayOut::laid_out(x, &[0; 5]);
}
