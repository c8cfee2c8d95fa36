//! Downsamples a picture by pooling, blurs it by averaging windows, and splits and joins it by
//! pixel shuffle.
//!
//! ```text
//! cargo run --example picture -- photo.png folder
//! ```
//!
//! Without a picture, the program draws one.

use std::error::Error;
use std::path::PathBuf;
use typed_dims::prelude::*;

/// Rows x columns x colors. The values are between 0 and 1.
type Picture = Array3<f32>;

/// Averages blocks of `by` x `by` pixels. Incomplete blocks at the end are dropped.
fn smaller(picture: &Picture, by: usize) -> Picture {
    let (height, width, _) = picture.dim();
    let whole = picture.slice(ndarray::s![..height / by * by, ..width / by * by, ..]);
    reduce!(whole, (h by) (w by2) c -> h w c, mean, by = by, by2 = by)
}

/// Averages each window of `size` x `size` pixels that lies inside the picture.
fn blurred(picture: &Picture, size: usize) -> Picture {
    dims!(y, x, color, down = size, right = size);
    picture.at((y + down, x + right, color)).mean((down, right)).order((y, x, color))
}

/// Splits the picture into four smaller pictures, arranged in a 2 x 2 grid. Each has every second
/// pixel of every second row.
fn taken_apart(picture: &Picture) -> Picture {
    rearrange!(picture, (h down) (w right) c -> (down h) (right w) c, down = 2, right = 2)
}

/// The inverse of `taken_apart`: the pixel shuffle used in super-resolution (W. Shi et al., 2016).
fn put_together(parts: &Picture) -> Picture {
    rearrange!(parts, (down h) (right w) c -> (h down) (w right) c, down = 2, right = 2)
}

/// A color gradient with an ellipse of inverted colors.
fn drawn(height: usize, width: usize) -> Picture {
    dims!(y = height, x = width, color = 3);
    let (down, right) = (y.cast::<f32>() / height as f32, x.cast::<f32>() / width as f32);
    let disc = ((down - 0.5) * (down - 0.5) + (right - 0.5) * (right - 0.5)).lt(0.1);
    let ground = select(color.eq(0), down, select(color.eq(1), right, 0.5));
    select(disc, 1.0 - ground, ground).order((y, x, color))
}

fn read(path: &PathBuf) -> Result<Picture, Box<dyn Error>> {
    let image = image::open(path)?.to_rgb8();
    let sizes = (image.height() as usize, image.width() as usize, 3);
    Ok(Array3::from_shape_vec(sizes, image.into_raw())?.mapv(|value| f32::from(value) / 255.0))
}

fn write(path: &PathBuf, picture: &Picture) -> Result<(), Box<dyn Error>> {
    let (height, width, _) = picture.dim();
    let bytes = picture.iter().map(|value| (value * 255.0).round().clamp(0.0, 255.0) as u8).collect();
    let image = image::RgbImage::from_raw(width.try_into()?, height.try_into()?, bytes)
        .ok_or("the picture does not have three colors")?;
    Ok(image.save(path)?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args_os().skip(1).map(PathBuf::from);
    let picture = args.next().map_or_else(|| Ok(drawn(240, 320)), |path| read(&path))?;
    let folder = args.next().unwrap_or_else(std::env::temp_dir);
    let even =
        picture.slice(ndarray::s![..picture.dim().0 / 2 * 2, ..picture.dim().1 / 2 * 2, ..]).to_owned();
    for (name, out) in [
        ("picture", &picture),
        ("smaller", &smaller(&picture, 4)),
        ("blurred", &blurred(&picture, 9)),
        ("taken_apart", &taken_apart(&even)),
        ("put_together", &put_together(&taken_apart(&even))),
    ] {
        let path = folder.join(name).with_extension("png");
        write(&path, out)?;
        println!("{:>4} x {:<4} {}", out.dim().1, out.dim().0, path.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: &Picture, b: &Picture) -> bool {
        a.dim() == b.dim() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6)
    }

    #[test]
    fn each_is_what_loops_compute() {
        let picture = drawn(11, 14);
        let mean = |y: usize, x: usize, c: usize, size: usize| {
            let places = (0..size).flat_map(|down| (0..size).map(move |right| (down, right)));
            places.map(|(down, right)| picture[[y + down, x + right, c]]).sum::<f32>() / (size * size) as f32
        };
        let expected = Array3::from_shape_fn((3, 4, 3), |(y, x, c)| mean(3 * y, 3 * x, c, 3));
        assert!(close(&smaller(&picture, 3), &expected));
        let expected = Array3::from_shape_fn((9, 12, 3), |(y, x, c)| mean(y, x, c, 3));
        assert!(close(&blurred(&picture, 3), &expected));
    }

    #[test]
    fn what_is_taken_apart_goes_together() {
        let picture = drawn(6, 8);
        let parts = taken_apart(&picture);
        assert_eq!(parts[[3, 0, 1]], picture[[1, 0, 1]]);
        assert_eq!(parts[[1, 5, 2]], picture[[2, 3, 2]]);
        assert_eq!(put_together(&parts), picture);
    }

    #[test]
    fn a_file_holds_the_picture() {
        let path = std::env::temp_dir().join(format!("typed_dims_picture_{}.png", std::process::id()));
        let picture = drawn(5, 7);
        write(&path, &picture).unwrap();
        let found = read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(
            found.dim() == picture.dim()
                && found.iter().zip(&picture).all(|(a, b)| (a - b).abs() <= 0.5 / 255.0 + 1e-6)
        );
    }
}
