//! The tests of the programs `examples/*.rs`, in one binary.

#![allow(dead_code, missing_docs)] // most programs have a `main` that no test calls

#[path = "../examples/attention.rs"]
mod attention;
#[cfg(feature = "linalg")]
#[path = "../examples/gaussian_process.rs"]
mod gaussian_process;
#[path = "../examples/heat_equation.rs"]
mod heat_equation;
#[path = "../examples/kalman.rs"]
mod kalman;
#[path = "../examples/kalman_noise.rs"]
mod kalman_noise;
#[cfg(feature = "linalg")]
#[path = "../examples/kalman_smoother.rs"]
mod kalman_smoother;
#[cfg(feature = "linalg")]
#[path = "../examples/least_squares.rs"]
mod least_squares;
#[path = "../examples/life.rs"]
mod life;
#[path = "../examples/network.rs"]
mod network;
#[path = "../examples/neural_ode.rs"]
mod neural_ode;
#[path = "../examples/onnx_denotation.rs"]
mod onnx_denotation;
#[path = "../examples/picture.rs"]
mod picture;
#[path = "../examples/pictures.rs"]
mod pictures;
#[path = "../examples/stream.rs"]
mod stream;
#[path = "../examples/tensor_puzzles.rs"]
mod tensor_puzzles;

#[test]
fn each_program_is_listed() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/examples");
    for entry in std::fs::read_dir(folder).expect("the folder `examples` can be read") {
        let name = entry.expect("entries can be read").file_name().into_string().expect("the name is UTF-8");
        if name.ends_with(".rs") {
            let path = format!("\"../examples/{name}\"");
            assert!(include_str!("examples.rs").contains(&path), "tests/examples.rs has no `mod` for {name}");
        }
    }
}
