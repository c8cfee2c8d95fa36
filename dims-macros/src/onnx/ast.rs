//! What users write in `onnx_dims!`.

use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::token::Bracket;
use syn::{Error, Ident, LitStr, Path, Result, Token, bracketed};

/// `"model.onnx", image: [N, C, _, use Width], ..`
pub struct Call {
    pub path: LitStr,
    pub tensors: Vec<Tensor>,
}

/// `image: [N, C, H, W]`
pub struct Tensor {
    pub name: LitStr,
    pub bracket: Bracket,
    pub axes: Vec<Axis>,
}

/// What an axis is to be.
pub enum Axis {
    /// `_`: whatever it would be.
    Default,
    /// `N`: a new dim of this name.
    New(Ident),
    /// `use crate::Batch`: a dim that is declared elsewhere.
    Existing(Path),
}

impl Parse for Call {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let path = input.parse().map_err(|error| {
            Error::new(
                error.span(),
                "expected the path of a model in quotation marks: `onnx_dims!(\"model.onnx\");`",
            )
        })?;
        let mut tensors: Vec<Tensor> = Vec::new();
        while !input.is_empty() {
            input.parse::<Token![,]>()?;
            if input.is_empty() {
                break;
            }
            let tensor: Tensor = input.parse()?;
            if tensors.iter().any(|other| other.name.value() == tensor.name.value()) {
                let what = format!("the axes of `{}` are named twice", tensor.name.value());
                return Err(Error::new(tensor.name.span(), what));
            }
            tensors.push(tensor);
        }
        Ok(Call { path, tensors })
    }
}

impl Parse for Tensor {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let name = if input.peek(LitStr) {
            input.parse()?
        } else if input.peek(Ident::peek_any) {
            let name = Ident::parse_any(input)?;
            LitStr::new(&name.unraw().to_string(), name.span())
        } else {
            return Err(
                input.error("expected the name of an input or output, and its axes: `image: [N, C, H, W]`")
            );
        };
        input.parse::<Token![:]>()?;
        let axes;
        let bracket = bracketed!(axes in input);
        let axes = Punctuated::<Axis, Token![,]>::parse_terminated(&axes)?.into_iter().collect();
        Ok(Tensor { name, bracket, axes })
    }
}

impl Parse for Axis {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        if input.peek(Token![_]) {
            input.parse::<Token![_]>()?;
            return Ok(Axis::Default);
        }
        if input.peek(Token![use]) {
            input.parse::<Token![use]>()?;
            return Ok(Axis::Existing(input.call(Path::parse_mod_style)?));
        }
        let name = input.parse().map_err(|error| {
            Error::new(
                error.span(),
                "expected the name of a new dim, `use` and a dim that is declared elsewhere, or `_`",
            )
        })?;
        Ok(Axis::New(name))
    }
}
