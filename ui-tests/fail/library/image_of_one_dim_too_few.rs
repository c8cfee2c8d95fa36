//~ words: lines, columns and channels
use typed_dims::image::RgbImage;
use typed_dims::prelude::*;

dims! {
    struct Line;
    struct Column;
}

fn main() {
    let x = zeros::<u8, _>((Line.of(3), Column.of(4)));
    let _: RgbImage = x.into_image((Line, Column));
}
