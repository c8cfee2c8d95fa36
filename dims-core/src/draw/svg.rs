//! Writing SVG.

use alloc::string::String;
use core::fmt::{Display, Write};

/// The height of a line of text.
pub const LINE: usize = 18;
/// The approximate width of a character.
pub const CHARACTER: usize = 8;
/// The approximate width of a character of small text.
pub const SMALL: usize = 7;

/// A drawing that grows with its contents.
#[derive(Default)]
pub struct Svg {
    body: String,
    width: usize,
    height: usize,
}

impl Svg {
    fn reach(&mut self, x: usize, y: usize) {
        self.width = self.width.max(x);
        self.height = self.height.max(y);
    }

    /// A rectangle with a CSS class. `fill` is its color, if the class does not set one, and
    /// `title` is the tooltip.
    pub fn rect(&mut self, class: &str, [x, y, width, height]: [usize; 4], fill: &str, title: &str) {
        self.reach(x + width, y + height);
        let class = if class.is_empty() { String::new() } else { format!(r#" class="{class}""#) };
        let fill = if fill.is_empty() { String::new() } else { format!(r#" fill="{fill}""#) };
        let rect = format!(r#"<rect{class} x="{x}" y="{y}" width="{width}" height="{height}"{fill}"#);
        self.body += &match title {
            "" => format!("{rect}/>\n"),
            title => format!("{rect}><title>{}</title></rect>\n", Escaped(title)),
        };
    }

    /// A line of text that starts at (`x`, `y`) on its baseline.
    pub fn text(&mut self, small: bool, x: usize, y: usize, text: &str) {
        let class = if small { r#" class="small""# } else { "" };
        self.reach(x + if small { SMALL } else { CHARACTER } * text.chars().count(), y + LINE / 3);
        self.body += &format!("<text{class} x=\"{x}\" y=\"{y}\">{}</text>\n", Escaped(text));
    }

    /// A line through some points.
    pub fn line<const N: usize>(&mut self, points: [(usize, usize); N]) {
        points.iter().for_each(|&(x, y)| self.reach(x, y));
        let points = points.map(|(x, y)| format!("{x},{y}")).join(" ");
        self.body += &format!("<polyline points=\"{points}\"/>\n");
    }

    /// The complete document. `name` is its accessible label. The document's styles do not affect a
    /// page that embeds it.
    pub fn finish(self, name: &str) -> String {
        let Svg { body, width, height } = self;
        let (width, height) = (width + 8, height + 8);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" class=\"typed-dims\" role=\"img\">\n\
             <title>{}</title>\n\
             <style>.typed-dims text {{ font: 13px monospace; fill: #222; white-space: pre }} \
             .typed-dims .small {{ font-size: 11px; fill: #555 }} .typed-dims polyline {{ stroke: #888; fill: none }} \
             .typed-dims .frame {{ stroke: #888; fill: none }} \
             .typed-dims .box {{ fill: #eef3fa; stroke: #5b7fb0 }} \
             .typed-dims .gradient {{ fill: #fbf1e6; stroke: #b07f5b }} .typed-dims .share {{ fill: #5b7fb0 }}</style>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{body}</svg>\n",
            Escaped(name)
        )
    }
}

/// Text escaped for XML.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        for char in self.0.chars() {
            match char {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                // XML allows these two, but not many of the other control characters, not even
                // escaped.
                '\n' | '\t' => f.write_char(char)?,
                char if char.is_control() || matches!(char, '\u{fffe}' | '\u{ffff}') => {
                    f.write_char('\u{fffd}')?
                }
                char => f.write_char(char)?,
            }
        }
        Ok(())
    }
}
