//! The images and their augmentation.

use crate::layers::{Channel, Column, Maps, Row};
use digits::{Example, Images, Pixel};
use rand::Rng;
use typed_dims::prelude::*;

/// The number of rows, and of columns, of an image in the data file of `digits`.
const SIDE: usize = 8;

/// The images with a white margin of one pixel.
pub fn with_margin(images: &Images) -> Maps {
    let pixels = images.view().order((Example, Pixel));
    let maps = rearrange!(pixels, n (h w) -> n 1 h w, h = SIDE);
    maps.into_tensor((Example, Channel, Row, Column)).pad((Row, Column), 1, 1, Pad::Constant(0.0)).eval()
}

/// Moves each image by at most one pixel in each direction. Only white pixels of the margin wrap
/// around.
pub fn varied(images: &Maps, rng: &mut impl Rng) -> Maps {
    let moved = |at: usize| {
        let image = images.view().index(Example, at as isize);
        let mut by = || rng.random_range(-1_i32..=1) as isize;
        let (down, right) = (by(), by());
        image.roll(Row, down).roll(Column, right)
    };
    let images: Vec<_> = (0..images.size(Example)).map(moved).collect();
    stack(Example, images)
}
