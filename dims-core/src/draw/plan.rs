//! Plans and recorded programs as drawings.

use super::svg::{CHARACTER, LINE, SMALL, Svg};
use crate::plan::explain::Plan;
use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use kernels::loops::steps::PlanStep;
#[cfg(feature = "std")]
use kernels::trace::{ListedStep, Listing};
use num_traits::Float;

/// The number of characters after which a line is cut off.
const WIDEST: usize = 100;

impl Plan {
    /// The plan as an SVG document with a box for each step, from top to bottom in the order in
    /// which the steps run. The bar in a box shows the step's share of all bytes written. Steps of
    /// a gradient have a different color, and show the source location, if known, of the step that
    /// they differentiate. Steps inside calls of a function are indented, and always have the usual
    /// color.
    ///
    /// ```text
    /// let (_, plan) = explain(|| (a.at((i, k)) * b.at((k, j))).sum(k));
    /// std::fs::write("plan.svg", plan.to_svg())?;
    /// ```
    pub fn to_svg(&self) -> String {
        let mut svg = Svg::default();
        let caption = format!("{} bytes written, {} flops in products", self.bytes(), self.flops());
        svg.text(true, 8, LINE, &caption);
        let gradient =
            |at: usize| self.backward.get(at).is_some_and(|&is| is).then(|| self.place(at).to_string());
        steps(&mut svg, (&self.steps, &gradient), self.bytes(), 8, LINE + 12);
        svg.finish("plan")
    }
}

/// Draws a recorded program as an SVG document.
#[cfg(feature = "std")]
pub(crate) fn program(listing: &Listing) -> String {
    let mut svg = Svg::default();
    let sum = |of: fn(&ListedStep) -> usize| listing.steps.iter().map(of).fold(0, usize::saturating_add);
    let (bytes, operations) = (sum(|step| step.value.bytes), sum(|step| step.operations));
    svg.text(true, 8, LINE, &format!("{bytes} bytes written, {operations} operations"));
    let (left, mut top, mut above) = (8, LINE + 12, None);
    let text = listing.to_string();
    for line in text.lines() {
        let line = shortened(line);
        let (width, height) = (CHARACTER * line.chars().count() + 32, LINE + 10);
        if let Some(above) = above {
            svg.line([(left + 24, above), (left + 24, top)]);
        }
        svg.rect("box", [left, top, width, height], "", &line);
        svg.text(false, left + 16, top + LINE, &line);
        above = Some(top + height);
        top += height + 12;
    }
    svg.finish("program")
}

/// Draws boxes from (`left`, `top`) downwards and returns the top of the next box. For a step that
/// computes a gradient, `gradient` returns a suffix with the source location, if that is known. For
/// other steps, it returns `None`.
fn steps(
    svg: &mut Svg,
    (steps, gradient): (&[PlanStep], &dyn Fn(usize) -> Option<String>),
    all: usize,
    left: usize,
    mut top: usize,
) -> usize {
    const BAR: usize = 6;
    let mut above = None;
    for (number, step) in steps.iter().enumerate() {
        let (text, place) = (step.to_string(), gradient(number));
        let mut lines: Vec<String> = text.lines().map(|line| shortened(line.trim())).collect();
        lines.extend(place.as_deref().map(|place| place.trim_matches([' ', '(', ')']).to_owned()));
        let class = if place.is_some() { "gradient" } else { "box" };
        let wide =
            |(at, line): (usize, &String)| if at == 0 { CHARACTER } else { SMALL } * line.chars().count();
        let longest = lines.iter().enumerate().map(wide).max().unwrap_or(0);
        let (width, height) = (longest + 32, LINE * lines.len() + 10);
        if let Some(above) = above {
            svg.line([(left + 24, above), (left + 24, top)]);
        }
        svg.rect(class, [left, top, width, height], "", &text);
        let share = step.bytes() as f64 / all.max(1) as f64;
        let title = format!("{} of {all} bytes", step.bytes());
        let bar = Float::round(height as f64 * share) as usize;
        svg.rect("share", [left, top + height - bar, BAR, bar], "", &title);
        for (at, line) in lines.iter().enumerate() {
            svg.text(at > 0, left + 16, top + LINE * (at + 1), line);
        }
        let bottom = top + height;
        above = Some(bottom);
        top = bottom + 12;
        if let PlanStep::Calls { steps: inner, .. } = step
            && !inner.is_empty()
        {
            svg.line([(left + 24, bottom), (left + 24, top + LINE), (left + 40, top + LINE)]);
            top = self::steps(svg, (inner, &|_| None), all, left + 40, top);
        }
    }
    top
}

fn shortened(line: &str) -> String {
    match line.char_indices().nth(WIDEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
