//~ words: stands for axes of the first array | write it there, too
use typed_dims::prelude::*;

fn main() {
    let image = Array3::<f64>::ones((4, 5, 3));
    let yx = typed_dims::ndarray::Array2::<usize>::zeros((6, 2));
    let _ = gather!(image[_ _ c], yx[p [2]] => p ... c);
}
