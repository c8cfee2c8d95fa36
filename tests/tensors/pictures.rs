//! Tensors, plans and paths as pictures: the content, not the style.

use roxmltree::{Document, Node};
use typed_dims::einsum_path;
use typed_dims::prelude::*;

fn of_class<'a>(document: &'a Document<'_>, class: &str) -> Vec<Node<'a, 'a>> {
    let nodes = document.root().descendants();
    nodes.filter(|node| node.attribute("class") == Some(class)).collect()
}

fn title(node: Node<'_, '_>) -> String {
    node.first_element_child().and_then(|title| title.text()).unwrap_or_default().to_owned()
}

#[test]
fn a_heat_map_in_the_terminal_is_darker_where_elements_are_greater() {
    dims!(i = 4, j = 4);
    let text = i.maximum(j).heat_map(i, j);
    assert_eq!(text, "4 i down, 4 j right, 0 to 3\n  ░░▓▓██\n░░░░▓▓██\n▓▓▓▓▓▓██\n████████");
    // Transposed, and with elements that are not finite.
    let odd = ndarray::array![[f64::NAN, 1.0, f64::INFINITY], [f64::NEG_INFINITY, 0.0, 0.5]];
    dims!(a, b);
    let text = odd.at((a, b)).heat_map(b, a);
    assert_eq!(text, "3 b down, 2 a right, 0 to 1\n??  \n██  \n██▒▒");
}

/// An `f32` is shown with the fewest digits that identify it as an `f32`, not as an `f64`.
#[test]
fn numbers_have_the_digits_of_their_type() {
    dims!(a, b);
    let single = ndarray::array![[0.1f32, -0.7]];
    assert!(single.at((a, b)).heat_map(a, b).starts_with("1 a down, 2 b right, -0.7 to 0.1\n"));
    let svg = single.at((a, b)).to_svg(a, b);
    assert!(svg.contains("b 0: 0.1<") && svg.contains("b 1: -0.7<"), "{svg}");
    let double = ndarray::array![[0.1f64, 1.0 / 3.0]];
    assert!(double.at((a, b)).heat_map(a, b).starts_with("1 a down, 2 b right, 0.1 to 0.3333333333333333\n"));
}

#[test]
fn odd_tensors_have_a_heat_map() {
    dims!(i = 0, j = 3, k = 1, l = 130);
    assert_eq!(zeros::<f32, _>((i, j)).heat_map(i, j), "0 i down, 3 j right, no finite elements");
    assert_eq!(full((k, j), f32::NAN).heat_map(k, j), "1 k down, 3 j right, no finite elements\n??????");
    assert_eq!(full((k, j), true).heat_map(k, j), "1 k down, 3 j right, 1 to 1\n      ");
    let long = (l + k).heat_map(k, l);
    assert!(long.starts_with("1 k down, 130 l right (1 in 3), 0 to 129\n"), "{long}");
    assert_eq!(long.lines().nth(1).map(|line| line.chars().count()), Some(2 * 44));
    let huge = ndarray::array![[f64::MAX, f64::MIN]];
    dims!(a, b);
    assert_eq!(huge.at((a, b)).heat_map(a, b).lines().nth(1), Some("██  "));
}

#[test]
fn a_drawn_heat_map_has_a_cell_for_each_element() {
    dims!(row = 2, col = 3);
    let svg = (10 * row + col).to_svg(row, col);
    let document = Document::parse(&svg).expect("the SVG is valid");
    let cells = of_class(&document, "cell");
    let titles: Vec<String> = cells.iter().map(|&cell| title(cell)).collect();
    assert_eq!(titles.len(), 6);
    assert_eq!((&titles[0][..], &titles[5][..]), ("row 0, col 0: 0", "row 1, col 2: 12"));
    let place = |at: usize, name: &str| cells[at].attribute(name).unwrap().parse::<usize>().unwrap();
    assert!(place(1, "x") > place(0, "x") && place(1, "y") == place(0, "y"));
    assert!(place(3, "y") > place(0, "y") && place(3, "x") == place(0, "x"));
    assert_ne!(cells[0].attribute("fill"), cells[5].attribute("fill"));
    let text: Vec<&str> = document
        .root()
        .descendants()
        .filter(|node| node.has_tag_name("text"))
        .filter_map(|node| node.text())
        .collect();
    assert!(text.contains(&"row") && text.contains(&"col"), "{text:?}");
}

#[test]
fn a_plan_has_a_box_for_each_step_and_texts_are_escaped() {
    let (a, b) = (Array2::<f32>::ones((3, 4)), Array2::<f32>::ones((4, 5)));
    dims!(i, j, k);
    let (_, plan) = explain(|| {
        let product = (a.at((i, k)) * b.at((k, j))).sum(k);
        (product.exp() + 1.0).order((j, i))
    });
    let svg = plan.to_svg();
    let document = Document::parse(&svg).expect("the SVG is valid");
    assert_eq!(of_class(&document, "box").len(), plan.steps.len());
    let first = plan.steps[0].to_string();
    assert_eq!(title(of_class(&document, "box")[0]), first);

    // Names of types and closures can contain angle brackets.
    let step = typed_dims::pipeline::plan::explain::PlanStep::Lines {
        work: "<a> & \"b\"\u{1}",
        lines: 1,
        len: 2,
        bytes: 8,
        threads: 1,
    };
    let plan = typed_dims::pipeline::plan::explain::Plan { steps: vec![step], ..Default::default() };
    let svg = plan.to_svg();
    let document = Document::parse(&svg).expect("the SVG is valid");
    assert!(title(of_class(&document, "box")[0]).starts_with("<a> & \"b\"\u{fffd} of 1 line of 2"));
}

#[test]
fn steps_of_a_gradient_say_so() {
    dims!(i = 3, j = 4);
    let (x, w) = (ones::<f64, _>((i, j)), ones(j));
    let (_, plan) = explain(|| typed_dims::grad::grad(|w| (&x * w).sum(j).exp().sum(i), &w));
    let svg = plan.to_svg();
    let document = Document::parse(&svg).expect("the SVG is valid");
    let gradients = plan.backward.iter().filter(|&&is| is).count();
    assert_eq!(of_class(&document, "gradient").len(), gradients);
    assert_eq!(of_class(&document, "box").len(), plan.steps.len() - gradients);
    assert!(gradients > 0 && gradients < plan.steps.len(), "{plan}");
    let said = |text: &str| {
        document.root().descendants().any(|node| node.text().is_some_and(|own| own.starts_with(text)))
    };
    assert!(said("gradient, at tests/tensors/pictures.rs:"), "{svg}");
}

#[test]
fn a_path_is_a_tree() {
    let (a, b, c) =
        (Array2::<f32>::ones((2, 30)), Array2::<f32>::ones((30, 40)), Array2::<f32>::ones((40, 5)));
    let path = einsum_path!("ij,jk,kl->il", a, b, c);
    let svg = path.to_svg();
    let document = Document::parse(&svg).expect("the SVG is valid");
    let lines = document.root().descendants().filter(|node| node.has_tag_name("polyline")).count();
    assert_eq!((of_class(&document, "box").len(), lines), (3 + 2, 2 * 2));
    for step in &path.steps {
        assert!(document.root().descendants().any(|node| node.text() == Some(&step.pattern)), "{svg}");
    }
    let one = einsum_path!("i->", Array1::<f32>::ones(3)).to_svg();
    assert_eq!(of_class(&Document::parse(&one).expect("the SVG is valid"), "box").len(), 1);
}
