//! The syntax of `onnx_dims!`.

use super::roles;
use proc_macro2::Span;
use std::fmt;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::token::Bracket;
use syn::{Error, Ident, LitInt, LitStr, Path, Result, Token, bracketed};

/// `"model.onnx", DataBatch = 4, image: [N, C, _, use Width], ..`
pub struct OnnxCall {
    pub path: LitStr,
    pub sizes: Vec<FreeSize>,
    pub tensors: Vec<Tensor>,
}

/// `DataBatch = 4` or `"sequence" = 128`: a size for axes whose size the model leaves open.
pub struct FreeSize {
    pub axes: Free,
    pub size: usize,
    pub span: Span,
}

/// Axes whose size the model leaves open.
#[derive(PartialEq)]
pub enum Free {
    /// The axes with this denotation, such as `DATA_BATCH`.
    Denoted(&'static str),
    /// The axes with this *dim_param*.
    Param(String),
}

impl fmt::Display for Free {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Free::Denoted(denotation) => write!(f, "the denotation {denotation}"),
            Free::Param(param) => write!(f, "the name `{}`", param.escape_debug()),
        }
    }
}

/// `image: [N, C, H, W]`
pub struct Tensor {
    pub name: LitStr,
    pub bracket: Bracket,
    pub axes: Vec<AxisRequest>,
}

/// The dim that the user wants for an axis.
pub enum AxisRequest {
    /// `_`: the default.
    Default,
    /// `N`: a new dim of this name.
    New(Ident),
    /// `use crate::Batch`: a dim that is declared elsewhere.
    Existing(Path),
}

impl Parse for OnnxCall {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let path = input.parse().map_err(|error| {
            Error::new(
                error.span(),
                "expected the path of a model in quotation marks: `onnx_dims!(\"model.onnx\");`",
            )
        })?;
        let mut sizes: Vec<FreeSize> = Vec::new();
        let mut tensors: Vec<Tensor> = Vec::new();
        while !input.is_empty() {
            input.parse::<Token![,]>()?;
            if input.is_empty() {
                break;
            }
            if input.peek2(Token![=]) {
                let size: FreeSize = input.parse()?;
                if sizes.iter().any(|other| other.axes == size.axes) {
                    return Err(Error::new(
                        size.span,
                        format!("the size of the axes with {} is given twice", size.axes),
                    ));
                }
                sizes.push(size);
                continue;
            }
            let tensor: Tensor = input.parse()?;
            if tensors.iter().any(|other| other.name.value() == tensor.name.value()) {
                let what = format!("the axes of `{}` are listed twice", tensor.name.value());
                return Err(Error::new(tensor.name.span(), what));
            }
            tensors.push(tensor);
        }
        Ok(OnnxCall { path, sizes, tensors })
    }
}

impl Parse for FreeSize {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let span = input.span();
        let axes = if input.peek(LitStr) {
            Free::Param(input.parse::<LitStr>()?.value())
        } else {
            let role: Ident = input.parse()?;
            let Some(denotation) = roles::denotation(&role) else {
                let what = format!(
                    "`{role}` is not an ONNX role; the roles are {}. If `{role}` is the model's name for a size, put it in quotation marks: `\"{role}\" = 4`",
                    roles::list()
                );
                return Err(Error::new(role.span(), what));
            };
            Free::Denoted(denotation)
        };
        input.parse::<Token![=]>()?;
        let size: LitInt = input.parse().map_err(|error| {
            Error::new(error.span(), format!("expected a number, the size of all axes with {axes}"))
        })?;
        Ok(FreeSize { axes, size: size.base10_parse()?, span })
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
        let axes = Punctuated::<AxisRequest, Token![,]>::parse_terminated(&axes)?.into_iter().collect();
        Ok(Tensor { name, bracket, axes })
    }
}

impl Parse for AxisRequest {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        if input.peek(Token![_]) {
            input.parse::<Token![_]>()?;
            return Ok(AxisRequest::Default);
        }
        if input.peek(Token![use]) {
            input.parse::<Token![use]>()?;
            return Ok(AxisRequest::Existing(input.call(Path::parse_mod_style)?));
        }
        let name = input.parse().map_err(|error| {
            Error::new(error.span(), "expected the name of a new dim, `use` and an existing dim, or `_`")
        })?;
        Ok(AxisRequest::New(name))
    }
}
