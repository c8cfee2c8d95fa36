//! Checks the meaning of axes in an ONNX model, and prints where an operator expects another
//! meaning.
//!
//! ```sh
//! cargo run --example onnx_denotation -- model.onnx
//! ```
//!
//! Exits with code 1 if there is a mismatch or an inconsistent node, and with 2 if the file cannot
//! be read or is not a model.

use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;
use typed_dims_onnx::OnnxModel;

#[derive(Parser)]
#[command(about = "Checks that the axes of an ONNX model have the meaning that its operators expect")]
struct Options {
    /// The model's file
    model: PathBuf,
}

fn main() -> ExitCode {
    let options = Options::parse();
    match OnnxModel::open(&options.model) {
        Ok(model) => {
            let (text, is_clean) = check(&model);
            println!("{text}");
            ExitCode::from(u8::from(!is_clean))
        }
        Err(error) => {
            eprintln!("{}: {error}", options.model.display());
            ExitCode::from(2)
        }
    }
}

/// The report on a model, and whether the report is clean.
fn check(model: &OnnxModel) -> (String, bool) {
    // If an input is not a tensor, an error replaces the list of inputs. The axes are still
    // checked.
    let mut lines: Vec<String> = match model.inputs() {
        Ok(inputs) => inputs.iter().map(|input| format!("input {input}")).collect(),
        Err(error) => vec![format!("inputs: {error}")],
    };
    let report = model.check_denotations();
    lines.push(report.to_string());
    (lines.join("\n"), report.is_clean())
}

#[cfg(test)]
mod tests {
    use super::check;
    use typed_dims_onnx::{OnnxModel, proto};

    /// The example from ONNX's proposal for dimension denotation.
    #[test]
    fn what_is_printed() {
        let image =
            [("N", "DATA_BATCH"), ("3", "DATA_CHANNEL"), ("8", "DATA_FEATURE"), ("8", "DATA_FEATURE")];
        let graph = proto::GraphProto {
            node: vec![
                proto::node("Transpose", &["image"], &["nhcw"]).ints("perm", &[0, 2, 1, 3]),
                proto::node("AveragePool", &["nhcw"], &["pooled"])
                    .named("pool")
                    .ints("kernel_shape", &[2, 2]),
            ],
            input: vec![proto::float_tensor("image", &image)],
            output: vec![proto::float_tensor("pooled", &[("N", ""), ("", ""), ("", ""), ("", "")])],
            ..Default::default()
        };
        let model = OnnxModel::from_proto(proto::model(graph)).unwrap();
        let (text, is_clean) = check(&model);
        assert!(!is_clean);
        assert_eq!(
            text,
            "input image: f32[N: DATA_BATCH, 3: DATA_CHANNEL, 8: DATA_FEATURE, 8: DATA_FEATURE]
node `pool` (AveragePool), input `nhcw`: axis 1 is DATA_FEATURE, but DATA_CHANNEL is expected; axis 2 is DATA_CHANNEL, but DATA_FEATURE is expected
    found    [DATA_BATCH, DATA_FEATURE, DATA_CHANNEL, DATA_FEATURE]
    expected [DATA_BATCH, DATA_CHANNEL, DATA_FEATURE, DATA_FEATURE]
output `pooled`: [DATA_BATCH, _, _, DATA_FEATURE]
2 nodes, 1 mismatch"
        );
    }
}
