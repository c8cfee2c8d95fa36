//! Draws the pictures of the guide: a tensor, plans, and the path of a contraction.
//!
//! ```text
//! cargo run --example pictures -- folder
//! ```
//!
//! The picture of the tensor is also printed.

use std::error::Error;
use std::path::PathBuf;
use typed_dims::einsum_path;
use typed_dims::grad::grad;
use typed_dims::prelude::*;

dims! {
    /// Tokens with queries.
    pub struct Token;
    /// Tokens with keys.
    pub struct Key;
    /// Features of a token.
    pub struct Width;
    /// Features of the hidden layer.
    pub struct Hidden;
}

/// The distance from each token back to each key, or -1 for later keys.
fn distances(n: usize) -> Tensor<isize, (Token, Key)> {
    let (token, key) = (Token.of(n), Key.of(n));
    select(token.ge(key), token - key, -1).eval()
}

/// A network of two layers, as a plan.
fn network() -> String {
    let x = ones::<f32, _>((Token.of(8), Width.of(16)));
    let (up, bias) = (ones::<f32, _>((Width.of(16), Hidden.of(32))), ones::<f32, _>(Hidden.of(32)));
    let (_, plan) = explain(|| {
        let hidden = ((&x * &up).sum(Width) + &bias).relu();
        (hidden * &up).sum(Hidden)
    });
    plan.to_svg()
}

/// The plan of a gradient with respect to the weights of a layer.
fn training() -> String {
    let x = ones::<f32, _>((Token.of(8), Width.of(16)));
    let (up, bias) = (ones::<f32, _>((Width.of(16), Hidden.of(32))), ones::<f32, _>(Hidden.of(32)));
    let loss = |up: &Tensor<f32, (Width, Hidden)>| {
        let hidden = ((&x * up).sum(Width) + &bias).relu();
        hidden.square().sum((Token, Hidden))
    };
    explain(|| grad(loss, &up)).1.to_svg()
}

/// A product of four matrices with a thin result: the order of multiplication determines the cost.
fn chain() -> String {
    let a = Array2::<f32>::ones((4, 200));
    let (b, c) = (Array2::<f32>::ones((200, 300)), Array2::<f32>::ones((300, 200)));
    let d = Array2::<f32>::ones((200, 50));
    einsum_path!("ij,jk,kl,lm->im", a, b, c, d).to_svg()
}

fn drawn() -> [(&'static str, String); 4] {
    let heat = distances(12).to_svg(Token, Key);
    [("heat.svg", heat), ("plan.svg", network()), ("path.svg", chain()), ("gradient.svg", training())]
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    println!("{}", distances(12).heat_map(Token, Key));
    for (name, svg) in drawn() {
        let path = folder.join(name);
        std::fs::write(&path, svg)?;
        println!("{}", path.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_a_document_with_its_parts() {
        let count = |svg: &str, class: &str| {
            let document = roxmltree::Document::parse(svg).unwrap();
            document.descendants().filter(|node| node.attribute("class") == Some(class)).count()
        };
        let [heat, plan, path, gradient] = drawn().map(|(_, svg)| svg);
        assert_eq!(count(&heat, "cell"), 12 * 12);
        assert!(count(&plan, "box") >= 2, "the plan has fewer than two boxes");
        assert_eq!(count(&path, "box"), 4 + 3);
        assert!(count(&gradient, "gradient") >= 1, "the plan has no step of the gradient");
    }

    #[test]
    fn the_guide_shows_them() {
        // The threads and kernels in plans depend on the machine.
        for (name, svg) in
            drawn().into_iter().filter(|(name, _)| !["plan.svg", "gradient.svg"].contains(name))
        {
            let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs/book/src/pictures").join(name);
            assert_eq!(
                std::fs::read_to_string(path).unwrap(),
                svg,
                "{name} is out of date: run `cargo run --example pictures -- docs/book/src/pictures`"
            );
        }
    }
}
