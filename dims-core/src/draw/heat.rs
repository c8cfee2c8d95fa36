//! Tensors as heat maps.

use super::svg::{CHARACTER, LINE, Svg};
use crate::creation::convert::elements_in;
use crate::error::DimError;
use crate::tensors::tensor::{Computable, reference};
use crate::types::brand::Rest;
use crate::types::dim::{DimList, DimRef};
use crate::types::rank::Rank0;
use crate::types::set::{Dims, DimsOf};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::any::TypeId;
use kernels::scalar::CastTo;
use num_traits::Float;
use twins::panicking_twin;

/// The maximum number of rows, and of columns, of a heat map in the terminal.
const IN_TERMINAL: usize = 60;
/// The maximum number of rows, and of columns, of a heat map in an SVG.
const DRAWN: usize = 200;
/// The side length of the square for an element.
const CELL: usize = 16;

/// Heat maps of tensors with two dims: one dim downwards, the other one to the right. Greater
/// elements are darker in an SVG, and have denser characters in the terminal.
///
/// The scale goes from the least finite element to the greatest, and infinities are drawn as the
/// nearer end of the scale. NaN is `??` in the terminal, and red in an SVG.
pub trait Draw: Computable<Rank = Rank0, Elem: CastTo<f64>> {
    /// A heat map for the terminal, with two characters for each element, in five shades.
    ///
    /// ```text
    /// println!("{}", i.maximum(j).heat_map(i, j));
    ///
    /// 4 i down, 4 j right, 0 to 3
    ///   ░░▓▓██
    /// ░░░░▓▓██
    /// ▓▓▓▓▓▓██
    /// ████████
    /// ```
    ///
    /// If there are more than 60 rows or columns, only every second (or third, ..) one is shown,
    /// and the first line says so.
    ///
    /// # Panics
    ///
    /// If a size given with a dim differs from its size in the tensor, if the tensor is an
    /// expression that cannot be computed, or if a gradient or a recorded function traces it.
    #[panicking_twin]
    fn try_heat_map<I: DimRef, J: DimRef, X: Flat>(&self, down: I, right: J) -> Result<String, DimError>
    where
        (I, J): DimsOf<Self::Dims, X>,
    {
        let map = HeatMap::of::<_, (I, J), X>(
            reference::<Self>(&self.borrowed()),
            &(down, right),
            IN_TERMINAL,
            "heat_map",
        )?;
        let mut text = map.title();
        for i in 0..map.shown(0) {
            text.push('\n');
            let line = (0..map.shown(1)).map(|j| match map.level(map.at(i, j)) {
                Some(level) => ["  ", "░░", "▒▒", "▓▓", "██"][Float::round(4.0 * level) as usize],
                None => "??",
            });
            text.extend(line);
        }
        Ok(text)
    }

    /// A heat map as an SVG document with a square for each element. The tooltip of a square shows
    /// the element's indices and value.
    ///
    /// If there are more than 200 rows or columns, only every second (or third, ..) one is shown,
    /// and the caption says so.
    ///
    /// # Panics
    ///
    /// If a size given with a dim differs from its size in the tensor, if the tensor is an
    /// expression that cannot be computed, or if a gradient or a recorded function traces it.
    #[panicking_twin]
    fn try_to_svg<I: DimRef, J: DimRef, X: Flat>(&self, down: I, right: J) -> Result<String, DimError>
    where
        (I, J): DimsOf<Self::Dims, X>,
    {
        let map = HeatMap::of::<_, (I, J), X>(
            reference::<Self>(&self.borrowed()),
            &(down, right),
            DRAWN,
            "to_svg",
        )?;
        let mut svg = Svg::default();
        let left = 8 + CHARACTER * (map.names[0].chars().count() + 1);
        let top = 8 + 2 * LINE;
        svg.text(true, 8, 4 + LINE / 2, &map.title());
        svg.text(false, left, top - 6, map.names[1]);
        svg.text(false, 8, top + 12, map.names[0]);
        for i in 0..map.shown(0) {
            for j in 0..map.shown(1) {
                let value = map.at(i, j);
                let [row, column] = [i * map.step[0], j * map.step[1]];
                let digits = map.digits(value);
                let title = format!("{} {row}, {} {column}: {digits}", map.names[0], map.names[1]);
                let place = [left + CELL * j, top + CELL * i, CELL, CELL];
                svg.rect("cell", place, &color(map.level(value)), &title);
            }
        }
        // A frame, because squares of the least values have nearly the same color as the page.
        svg.rect("frame", [left, top, CELL * map.shown(1), CELL * map.shown(0)], "", "");
        Ok(svg.finish(&map.title()))
    }
}

impl<A: Computable<Rank = Rank0, Elem: CastTo<f64>>> Draw for A {}

/// The condition that a tensor has no dims besides the two of a heat map.
#[diagnostic::on_unimplemented(
    message = "a heat map has two dims, but the tensor also has `{Self}`",
    label = "expected two dims",
    note = "reduce the other dims, or pick an index of each: `x.index(Batch, 0)`"
)]
pub trait Flat: Dims {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}
#[diagnostic::do_not_recommend]
impl Flat for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}
#[diagnostic::do_not_recommend]
impl Flat for (Rest<()>,) {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// The elements of a heat map and their scale.
struct HeatMap {
    names: [&'static str; 2],
    sizes: [usize; 2],
    /// The steps between the rows and columns that are shown.
    step: [usize; 2],
    elements: Vec<f64>,
    least: f64,
    greatest: f64,
    /// Whether the elements are floats with at most the precision of `f32`.
    is_single: bool,
}

impl HeatMap {
    fn of<A, D, X>(tensor: A, dims: &D, most: usize, name: &'static str) -> Result<HeatMap, DimError>
    where
        A: Computable<Rank = Rank0, Elem: CastTo<f64>>,
        D: DimsOf<A::Dims, X>,
        X: Dims,
    {
        let (elements, sizes) = elements_in::<A, D, X>(tensor, dims, false, name)?;
        let elements: Vec<f64> = elements.into_iter().map(CastTo::cast_to).collect();
        let finite = || elements.iter().copied().filter(|value| value.is_finite());
        let least = finite().fold(f64::INFINITY, f64::min);
        let greatest = finite().fold(f64::NEG_INFINITY, f64::max);
        let sizes = [sizes[0], sizes[1]];
        let keys = <D as DimList>::KEYS.as_slice();
        let step = sizes.map(|size| size.div_ceil(most).max(1));
        let names = [keys[0].name, keys[1].name];
        Ok(HeatMap { names, sizes, step, elements, least, greatest, is_single: is_single::<A::Elem>() })
    }

    fn shown(&self, axis: usize) -> usize {
        self.sizes[axis].div_ceil(self.step[axis])
    }

    /// The element shown in this cell.
    fn at(&self, i: usize, j: usize) -> f64 {
        self.elements[i * self.step[0] * self.sizes[1] + j * self.step[1]]
    }

    /// The position of a value on the scale, from 0 for the least to 1 for the greatest.
    fn level(&self, value: f64) -> Option<f64> {
        let range = self.greatest - self.least;
        match value {
            _ if value.is_nan() => None,
            _ if value >= self.greatest && range > 0.0 => Some(1.0),
            _ if value <= self.least || range <= 0.0 => Some(0.0),
            // The range of very large numbers can overflow; that of their halves cannot.
            _ => Some((value / 2.0 - self.least / 2.0) / (self.greatest / 2.0 - self.least / 2.0)),
        }
    }

    /// Formats an element with the fewest digits that identify it: as an `f32` if the elements are
    /// floats of at most this precision, otherwise as an `f64`.
    fn digits(&self, value: f64) -> String {
        if self.is_single { (value as f32).to_string() } else { value.to_string() }
    }

    fn title(&self) -> String {
        let axis = |axis: usize, way: &str| {
            let every = match self.step[axis] {
                1 => String::new(),
                step => format!(" (1 in {step})"),
            };
            format!("{} {} {way}{every}", self.sizes[axis], self.names[axis])
        };
        let scale = match self.least <= self.greatest {
            true => format!("{} to {}", self.digits(self.least), self.digits(self.greatest)),
            false => "no finite elements".into(),
        };
        format!("{}, {}, {scale}", axis(0, "down"), axis(1, "right"))
    }
}

fn is_single<T: 'static>() -> bool {
    let id = TypeId::of::<T>();
    #[cfg(feature = "half")]
    if id == TypeId::of::<half::f16>() || id == TypeId::of::<half::bf16>() {
        return true;
    }
    id == TypeId::of::<f32>()
}

/// The color of a level, from nearly white through blue to nearly black. `None` (NaN) is red.
fn color(level: Option<f64>) -> String {
    const STOPS: [[f64; 3]; 4] =
        [[247.0, 251.0, 255.0], [158.0, 202.0, 225.0], [33.0, 113.0, 181.0], [8.0, 29.0, 68.0]];
    let Some(level) = level else { return "#d62728".into() };
    let place = level * (STOPS.len() - 1) as f64;
    let at = (place as usize).min(STOPS.len() - 2);
    let mix =
        |c: usize| Float::round(STOPS[at][c] + (STOPS[at + 1][c] - STOPS[at][c]) * (place - at as f64)) as u8;
    format!("#{:02x}{:02x}{:02x}", mix(0), mix(1), mix(2))
}
