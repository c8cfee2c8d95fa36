//! Handwritten digits: images of 8 x 8 pixels, read from a file and split into halves. `main.rs`
//! trains a network on them.

use flate2::read::MultiGzDecoder;
use rand::Rng;
use rand::seq::SliceRandom;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use typed_dims::prelude::*;

dims! {
    /// Images of a batch.
    pub struct Example;
    /// Pixels of an image, row by row.
    pub struct Pixel = 64;
    /// The digit that an image shows.
    pub struct Class = 10;
}

/// Images, each pixel between 0 (white) and 1 (black).
pub type Images = Tensor<f32, (Example, Pixel)>;
/// The digit of each image: an index along [`Class`].
pub type Labels = Tensor<isize, (Example,)>;

/// The maximum size in bytes that a file may unpack to. Without a limit, a small file that
/// unpacks to many zeros could exhaust the memory.
const MOST: u64 = 64 << 20;

/// The greatest value of a pixel in a file.
const BLACK: u8 = 16;

/// Images and their classes.
#[derive(Debug)]
pub struct Digits {
    pixels: Array2<f32>,
    classes: Array1<isize>,
}

impl Digits {
    /// Reads a gzipped CSV file. Each line has the pixels of an image, from 0 to 16, and then its
    /// class, from 0 to 9. Returns an error if the file cannot be read, has a bad line or fewer
    /// than two images, or unpacks to more than 64 MiB.
    pub fn read(path: &Path) -> Result<Self, BadFile> {
        let bad = |line, what: String| BadFile { path: path.into(), line, what };
        let file = File::open(path).map_err(|error| bad(None, error.to_string()))?;
        let mut lines = csv::ReaderBuilder::new();
        lines.has_headers(false).flexible(true).quoting(false);
        let mut reader = lines.from_reader(Limited { reader: MultiGzDecoder::new(file), left: MOST });

        let (mut pixels, mut classes) = (Vec::new(), Vec::new());
        let mut line = 0;
        for record in reader.records() {
            let record = record.map_err(|error| {
                let after = Some(line).filter(|&line| line > 0);
                let line = error.position().map(|at| at.line()).or(after);
                bad(line, describe(&error))
            })?;
            line = record.position().map_or(line + 1, |at| at.line());
            let bad = |what| bad(Some(line), what);
            if record.len() != Pixel::SIZE + 1 {
                return Err(bad(format!("expected {} columns, found {}", Pixel::SIZE + 1, record.len())));
            }
            for (column, text) in (1..).zip(&record) {
                let limit = if column <= Pixel::SIZE { BLACK } else { Class::SIZE as u8 - 1 };
                let value: u8 =
                    text.trim().parse().ok().filter(|&value| value <= limit).ok_or_else(|| {
                        let name = if column <= Pixel::SIZE { "pixel" } else { "class" };
                        bad(format!(
                            "column {column}: `{text}` is not a {name}: expected a whole number from 0 to {limit}"
                        ))
                    })?;
                if column <= Pixel::SIZE {
                    pixels.push(f32::from(value) / f32::from(BLACK));
                } else {
                    classes.push(isize::from(value));
                }
            }
        }
        if classes.len() < 2 {
            return Err(bad(None, format!("expected at least 2 images, found {}", classes.len())));
        }
        let shape = (classes.len(), Pixel::SIZE);
        let pixels = Array2::from_shape_vec(shape, pixels).expect("the sizes fit");
        Ok(Digits { pixels, classes: classes.into() })
    }

    /// The number of images.
    #[allow(clippy::len_without_is_empty)] // `read` refuses files without images
    pub fn len(&self) -> usize {
        self.classes.len()
    }

    /// The images and classes of the given rows.
    pub fn batch(&self, rows: &[usize]) -> (Images, Labels) {
        let rows = rows.at(Example);
        (self.pixels.at((&rows, Pixel)).eval(), self.classes.at(&rows).eval())
    }

    /// All rows in random order, split into two halves.
    pub fn halves(&self, rng: &mut impl Rng) -> (Vec<usize>, Vec<usize>) {
        let mut rows: Vec<usize> = (0..self.len()).collect();
        rows.shuffle(rng);
        let second = rows.split_off(self.len() / 2);
        (rows, second)
    }
}

/// A reader that returns an error if there are more than `left` bytes.
struct Limited<R> {
    reader: R,
    left: u64,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        match self.left.checked_sub(read as u64) {
            Some(left) => self.left = left,
            None => return Err(io::Error::other(format!("it unpacks to more than {} MiB", MOST >> 20))),
        }
        Ok(read)
    }
}

fn describe(error: &csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::Io(error) => match error.kind() {
            io::ErrorKind::InvalidInput => format!("not a valid gzip file ({error})"),
            io::ErrorKind::UnexpectedEof => "not a whole gzip file: it ends too early".into(),
            _ => format!("the gzip file cannot be read: {error}"),
        },
        csv::ErrorKind::Utf8 { .. } => "not text in UTF-8".into(),
        _ => error.to_string(),
    }
}

/// The reason why a file cannot be used.
#[derive(Debug)]
pub struct BadFile {
    path: PathBuf,
    line: Option<u64>,
    what: String,
}

impl fmt::Display for BadFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.what)
    }
}

impl std::error::Error for BadFile {}
