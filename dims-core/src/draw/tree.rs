//! Paths of einsums as trees.

use super::svg::{CHARACTER, LINE, SMALL, Svg};
use crate::macros::pattern::EinsumPath;
use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

/// The horizontal gap between neighboring nodes.
const GAP: usize = 16;
/// The vertical distance between the tops of neighboring levels.
const DOWN: usize = 64;

/// An operand or a product.
struct TreeNode {
    label: String,
    note: String,
    parts: Option<(usize, usize)>,
    /// The height of the subtree.
    height: usize,
    middle: usize,
}

impl EinsumPath {
    /// The path as an SVG document: a tree with the operands at its top and the result at its
    /// bottom. Each product shows its pattern, and its number of multiplications and additions.
    ///
    /// ```text
    /// std::fs::write("path.svg", einsum_path!("ij,jk,kl->il", a, b, c).to_svg())?;
    /// ```
    pub fn to_svg(&self) -> String {
        let (mut nodes, roots) = self.nodes();
        let mut right = 8;
        for root in roots {
            place(&mut nodes, root, &mut right);
        }
        let mut svg = Svg::default();
        let top = |node: &TreeNode| LINE + 16 + DOWN * node.height;
        svg.text(
            true,
            8,
            LINE,
            &format!("{}: {:.3e} flops, {:.3e} without a path", self.pattern, self.flops, self.naive_flops),
        );
        for node in &nodes {
            if let Some((a, b)) = node.parts {
                for part in [&nodes[a], &nodes[b]] {
                    // The line goes straight down to the gap above the product. No node is in its
                    // way.
                    let bend = (part.middle, top(node) - (DOWN - 2 * LINE));
                    svg.line([(part.middle, top(part) + 2 * LINE), bend, (node.middle, top(node))]);
                }
            }
        }
        for node in &nodes {
            let half = node.width() / 2;
            svg.rect("box", [node.middle - half, top(node), 2 * half, 2 * LINE], "", &node.note);
            svg.text(false, node.middle - half + 8, top(node) + LINE - 3, &node.label);
            svg.text(true, node.middle - half + 8, top(node) + 2 * LINE - 6, &node.note);
        }
        svg.finish(&self.pattern)
    }

    /// The nodes: the operands, then the products in the order of the path. Also the positions of
    /// the nodes that are not part of a product: the result.
    fn nodes(&self) -> (Vec<TreeNode>, Vec<usize>) {
        let inputs: Vec<&str> =
            self.pattern.split("->").next().unwrap_or_default().split(',').map(str::trim).collect();
        let operands = self.steps.len() + 1;
        let mut nodes: Vec<TreeNode> = (0..operands)
            .map(|at| {
                // The fields are public, so the pattern may not fit the steps.
                let label = if inputs.len() == operands { inputs[at].to_owned() } else { String::new() };
                TreeNode { label, note: format!("operand {at}"), parts: None, height: 0, middle: 0 }
            })
            .collect();
        let mut left: Vec<usize> = (0..operands).collect();
        for step in &self.steps {
            let (i, j) = step.operands;
            // The fields are public, so the positions may be invalid. In that case, several nodes
            // remain.
            if i >= j || j >= left.len() {
                break;
            }
            let (b, a) = (left.remove(j), left.remove(i));
            left.push(nodes.len());
            let height = nodes[a].height.max(nodes[b].height) + 1;
            let note = format!("{:.2e} flops", step.flops);
            nodes.push(TreeNode {
                label: step.pattern.clone(),
                note,
                parts: Some((a, b)),
                height,
                middle: 0,
            });
        }
        (nodes, left)
    }
}

impl TreeNode {
    fn width(&self) -> usize {
        (CHARACTER * self.label.chars().count()).max(SMALL * self.note.chars().count()) + 16
    }
}

/// Places a node and its subtree to the right of all placed nodes.
fn place(nodes: &mut [TreeNode], at: usize, right: &mut usize) {
    let half = nodes[at].width() / 2;
    let middle = match nodes[at].parts {
        None => *right + half,
        Some((a, b)) => {
            let first = *right;
            place(nodes, a, right);
            place(nodes, b, right);
            (usize::midpoint(nodes[a].middle, nodes[b].middle)).max(first + half)
        }
    };
    nodes[at].middle = middle;
    *right = (*right).max(middle + half + GAP);
}
