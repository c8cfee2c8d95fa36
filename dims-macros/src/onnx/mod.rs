//! `onnx_dims!`: dims and structs for the inputs and outputs of an ONNX model.

mod ast;
mod expand;
mod names;
mod resolve;
mod roles;

use proc_macro2::TokenStream;
use std::path::Path;
use syn::{Error, LitStr, Result};
use typed_dims_onnx::denotation::DenotationReport;
use typed_dims_onnx::{OnnxError, OnnxModel, OnnxTensor};

pub fn expand(input: TokenStream) -> TokenStream {
    whole(input).unwrap_or_else(Error::into_compile_error)
}

fn whole(input: TokenStream) -> Result<TokenStream> {
    let call: ast::OnnxCall = syn::parse2(input)?;
    let model = Model::read(&call.path)?;
    let signature = resolve::signature(&call, &model)?;
    Ok(expand::expand(&call, &model, &signature))
}

struct Model {
    /// The path of the file, for rustc.
    file: String,
    inputs: Vec<OnnxTensor>,
    outputs: Vec<OnnxTensor>,
}

impl Model {
    fn read(path: &LitStr) -> Result<Model> {
        let wrong = |what: String| Error::new(path.span(), what);
        let written = path.value();
        let crate_folder = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
        let file = Path::new(&crate_folder).join(&written);
        let model = OnnxModel::open(&file).map_err(|error| {
            wrong(match error {
                OnnxError::Unreadable { error, .. } => format!(
                    "the model `{written}` cannot be read: {error}\n\nThe path is relative to the folder of the crate's Cargo.toml."
                ),
                error => format!("the model `{written}` cannot be read: {error}"),
            })
        })?;
        let report = model.check_denotations();
        if let Some(found) = mismatches(&report) {
            return Err(wrong(format!(
                "the denotations in the model `{written}` do not fit its operators\n{found}"
            )));
        }
        let (inputs, outputs) = match (model.inputs(), model.outputs()) {
            (Ok(inputs), Ok(outputs)) => (inputs, outputs),
            (Err(error), _) | (_, Err(error)) => {
                return Err(wrong(format!(
                    "the inputs and outputs of the model `{written}` cannot be fields of structs: {error}"
                )));
            }
        };
        let file = file
            .to_str()
            .ok_or_else(|| wrong("the path of the crate is not valid UTF-8".to_owned()))?
            .to_owned();
        Ok(Model { file, inputs, outputs })
    }
}

/// The maximum number of mismatches to list.
const LISTED: usize = 3;

/// The mismatches as text, if there are any.
fn mismatches(report: &DenotationReport) -> Option<String> {
    let all = &report.mismatches;
    let mut lines: Vec<String> = all.iter().take(LISTED).map(|mismatch| format!("{mismatch:#}")).collect();
    if all.len() > LISTED {
        lines.push(format!("and {} more: `OnnxModel::check_denotations` lists them all", all.len() - LISTED));
    }
    (!all.is_empty()).then(|| lines.join("\n"))
}
