//! Maps axes to dims.

use super::Model;
use super::ast::{AxisRequest, Free, OnnxCall, Tensor};
use super::names;
use crate::key::MOST;
use proc_macro2::Span;
use quote::ToTokens;
use std::collections::{HashMap, HashSet};
use syn::{Error, Ident, Path, Result};
use typed_dims_onnx::{OnnxAxis, OnnxSize, OnnxTensor};

/// The dims and the fields of the structs.
pub struct Signature {
    pub dims: Vec<NewDim>,
    pub checks: Vec<Check>,
    pub aliases: Vec<Alias>,
    pub inputs: Vec<Field>,
    pub outputs: Vec<Field>,
}

/// A dim to declare.
pub struct NewDim {
    pub name: Ident,
    pub size: Option<usize>,
    pub denotation: Option<String>,
    /// The *dim_param* of the dim's first axis, if the axis has one.
    param: Option<String>,
    /// The dim's first axis: "axis 0 of `image`".
    pub place: String,
}

/// A dim that is declared elsewhere, and the axis that it must fit.
pub struct Check {
    pub dim: Path,
    pub size: Option<usize>,
    pub denotation: Option<String>,
    pub place: String,
}

/// Two dims for the same *dim_param*, which occurs twice in a tensor.
#[derive(PartialEq)]
pub struct Alias {
    pub first: String,
    pub second: String,
    pub param: String,
}

/// A tensor as a field.
pub struct Field {
    pub name: Ident,
    pub tensor: OnnxTensor,
    pub dims: Vec<Path>,
}

/// The dim that an axis gets.
#[derive(Clone)]
enum Naming {
    New { name: Ident, by_user: bool },
    Existing(Path),
}

impl Naming {
    fn path(&self) -> Path {
        match self {
            Naming::New { name, .. } => name.clone().into(),
            Naming::Existing(path) => path.clone(),
        }
    }

    fn shown(&self) -> String {
        shown_path(&self.path())
    }

    /// The name as it is written in the macro.
    fn written(&self) -> String {
        match self {
            Naming::New { .. } => self.shown(),
            Naming::Existing(_) => format!("use {}", self.shown()),
        }
    }

    /// The name of the dim, without its path.
    fn last(&self) -> String {
        self.path().segments.last().map_or_else(String::new, |segment| segment.ident.to_string())
    }

    fn span(&self) -> Span {
        syn::spanned::Spanned::span(&self.path())
    }
}

/// Resolves all names. If the call has mistakes, reports all of them together. Otherwise, reports
/// all mistakes that show up when the axes get their dims.
pub fn signature(call: &OnnxCall, model: &Model) -> Result<Signature> {
    let mut resolver = Resolver {
        call,
        errors: None,
        params: HashMap::new(),
        sizes: HashMap::new(),
        dims: Vec::new(),
        checks: Vec::new(),
        aliases: Vec::new(),
    };
    resolver.known_tensors(model);
    resolver.free_sizes(model);
    for tensor in model.inputs.iter().chain(&model.outputs) {
        resolver.name_params(tensor);
    }
    // With wrong names, later checks would report false errors.
    if let Some(errors) = resolver.errors {
        return Err(errors);
    }
    let inputs = resolver.fields(&model.inputs);
    let outputs = resolver.fields(&model.outputs);
    if resolver.dims.len() > MOST {
        resolver.error(
            call.path.span(),
            format!(
                "the model has {} dims, but one `onnx_dims!` can make at most {MOST}",
                resolver.dims.len()
            ),
        );
    }
    match resolver.errors {
        Some(errors) => Err(errors),
        None => Ok(Signature {
            dims: resolver.dims,
            checks: resolver.checks,
            aliases: resolver.aliases,
            inputs,
            outputs,
        }),
    }
}

struct Resolver<'a> {
    call: &'a OnnxCall,
    errors: Option<Error>,
    /// The user's name for each *dim_param*.
    params: HashMap<String, Naming>,
    /// The user's size for each *dim_param*.
    sizes: HashMap<String, usize>,
    dims: Vec<NewDim>,
    checks: Vec<Check>,
    aliases: Vec<Alias>,
}

impl Resolver<'_> {
    fn error(&mut self, span: Span, what: String) {
        let error = Error::new(span, what);
        match &mut self.errors {
            Some(errors) => errors.combine(error),
            None => self.errors = Some(error),
        }
    }

    /// The user's entry for a tensor.
    fn written(&self, tensor: &OnnxTensor) -> Option<&Tensor> {
        let field = names::field(&tensor.name, Span::call_site()).to_string();
        let mut written = self.call.tensors.iter();
        written.find(|written| {
            written.name.value() == tensor.name || written.name.value() == field.trim_start_matches("r#")
        })
    }

    /// Checks that each tensor that the user lists is in the model, with as many axes, and that the
    /// user lists each tensor whose number of axes the model leaves open.
    fn known_tensors(&mut self, model: &Model) {
        let list = |tensors: &[OnnxTensor]| {
            tensors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n    ")
        };
        let mut seen = HashSet::new();
        for tensor in model.inputs.iter().chain(&model.outputs) {
            let Some(written) = self.written(tensor) else {
                if tensor.axes.is_none() {
                    let what = format!(
                        "the model does not say how many axes `{}` has: name them, `\"{}\": [A, B]`",
                        tensor.name, tensor.name
                    );
                    self.error(self.call.path.span(), what);
                }
                continue;
            };
            seen.insert(written.name.value());
            let count = written.axes.len();
            if let Some(axes) = &tensor.axes
                && axes.len() != count
            {
                let names =
                    if count == 1 { "1 axis is named".to_owned() } else { format!("{count} axes are named") };
                let what = format!("{names}, but the model has {}: `{tensor}`", axes.len());
                self.error(written.bracket.span.join(), what);
            }
        }
        for tensor in &self.call.tensors {
            if !seen.contains(&tensor.name.value()) {
                let what = format!(
                    "the model has no input or output `{}`\n\ninputs:\n    {}\noutputs:\n    {}",
                    tensor.name.value(),
                    list(&model.inputs),
                    list(&model.outputs),
                );
                self.error(tensor.name.span(), what);
            }
        }
    }

    /// Finds the user's size for each *dim_param*. The size applies to all axes with that
    /// *dim_param*, even if only one of them has the denotation that the user wrote. Reports sizes
    /// that apply to no axis.
    fn free_sizes(&mut self, model: &Model) {
        let tensors = || model.inputs.iter().chain(&model.outputs);
        for given in &self.call.sizes {
            let axes = tensors().flat_map(|tensor| tensor.axes.iter().flatten());
            let free = axes.filter(|axis| match &given.axes {
                Free::Denoted(denotation) => {
                    !matches!(axis.size, OnnxSize::Fixed(_)) && axis.denotation.as_deref() == Some(denotation)
                }
                Free::Param(param) => axis.size == OnnxSize::Param(param.clone()),
            });
            let mut any = false;
            for axis in free {
                any = true;
                let OnnxSize::Param(param) = &axis.size else { continue };
                let other = self.sizes.insert(param.clone(), given.size);
                if let Some(other) = other.filter(|&other| other != given.size) {
                    let what = format!(
                        "another entry of this call gives axes with the name `{param}` the size {other}"
                    );
                    self.error(given.span, what);
                    break;
                }
            }
            if !any {
                let all: Vec<String> = tensors().map(ToString::to_string).collect();
                let what = format!(
                    "the model has no axis with {} whose size it leaves open\n\ninputs and outputs:\n    {}",
                    given.axes,
                    all.join("\n    ")
                );
                self.error(given.span, what);
            }
        }
    }

    /// The size of an axis, from the model or from the call.
    fn size(&self, axis: &OnnxAxis) -> Option<usize> {
        match &axis.size {
            OnnxSize::Fixed(size) => Some(*size),
            OnnxSize::Param(param) => self.sizes.get(param).copied(),
            OnnxSize::Unknown => {
                let own = axis.denotation.as_deref()?;
                let of_axis = |free: &Free| matches!(free, Free::Denoted(denotation) if *denotation == own);
                self.call.sizes.iter().find(|given| of_axis(&given.axes)).map(|given| given.size)
            }
        }
    }

    /// A name for one axis applies to all axes with its *dim_param*. In the same tensor, a second
    /// such axis may have its own name.
    fn name_params(&mut self, tensor: &OnnxTensor) {
        let (Some(written), Some(axes)) = (self.written(tensor), &tensor.axes) else { return };
        let mut mine = HashSet::new();
        let mut clashes = Vec::new();
        let mut new = Vec::new();
        for (axis, written) in axes.iter().zip(&written.axes) {
            let OnnxSize::Param(param) = &axis.size else { continue };
            if !mine.insert(param) {
                continue;
            }
            let naming = match written {
                AxisRequest::Default => continue,
                AxisRequest::New(name) => Naming::New { name: name.clone(), by_user: true },
                AxisRequest::Existing(path) => Naming::Existing(path.clone()),
            };
            match self.params.get(param) {
                Some(other) if other.shown() != naming.shown() => {
                    let what = format!(
                        "in the model, this axis has the same size `{param}` as the axis named `{}`, so both are one dim: write `{}` here, too",
                        other.shown(),
                        other.written()
                    );
                    clashes.push((naming.span(), what));
                }
                Some(_) => {}
                None => new.push((param.clone(), naming)),
            }
        }
        self.params.extend(new);
        for (span, what) in clashes {
            self.error(span, what);
        }
    }

    fn fields(&mut self, tensors: &[OnnxTensor]) -> Vec<Field> {
        let mut taken = HashSet::new();
        let mut fields = Vec::new();
        for tensor in tensors {
            let span = self.call.path.span();
            let mut name = names::field(&tensor.name, span);
            let mut count = 2;
            while !taken.insert(name.to_string()) {
                name = names::field(&format!("{} {count}", tensor.name), span);
                count += 1;
                if count > tensors.len() + 2 {
                    // Truncated names may differ only in the part that was cut off.
                    name = Ident::new(&format!("_{}", taken.len()), span);
                }
            }
            let dims = self.axes(tensor);
            fields.push(Field { name, tensor: tensor.clone(), dims });
        }
        fields
    }

    fn axes(&mut self, tensor: &OnnxTensor) -> Vec<Path> {
        let span = self.call.path.span();
        let given: Vec<Option<Naming>> = match self.written(tensor) {
            Some(written) => written.axes.iter().map(given).collect(),
            None => Vec::new(),
        };
        let unknown = OnnxAxis { size: OnnxSize::Unknown, denotation: None };
        let axes = tensor.axes.clone().unwrap_or_else(|| vec![unknown; given.len()]);
        let mut dims: Vec<Naming> = Vec::new();
        for (at, axis) in axes.iter().enumerate() {
            let place = format!("axis {at} of `{}`", tensor.name);
            let usual = match &axis.size {
                OnnxSize::Param(param) => match self.params.get(param) {
                    Some(naming) => naming.clone(),
                    None => Naming::New { name: names::dim(param, span), by_user: false },
                },
                _ => Naming::New {
                    name: names::dim(&format!("{} axis {at}", tensor.name), span),
                    by_user: false,
                },
            };
            let naming = given.get(at).cloned().flatten().unwrap_or_else(|| usual.clone());
            if let OnnxSize::Param(param) = &axis.size
                && naming.shown() != usual.shown()
            {
                let alias = Alias { first: usual.last(), second: naming.last(), param: param.clone() };
                if !self.aliases.contains(&alias) {
                    self.aliases.push(alias);
                }
            }
            if let Some(twice) = dims.iter().position(|other| other.shown() == naming.shown()) {
                let what = format!(
                    "axes {twice} and {at} of `{}` are both `{}`, but a tensor cannot repeat a dim: give one of them another name, `{}`",
                    tensor.name,
                    naming.shown(),
                    example(tensor, &axes, twice),
                );
                self.error(naming.span(), what);
            } else {
                self.unify(&naming, axis, place);
            }
            dims.push(naming);
        }
        dims.iter().map(Naming::path).collect()
    }

    /// Assigns a dim to an axis. The sizes and denotations of all axes with this dim must not
    /// differ.
    fn unify(&mut self, naming: &Naming, axis: &OnnxAxis, place: String) {
        let size = self.size(axis);
        let param = if let OnnxSize::Param(param) = &axis.size { Some(param.clone()) } else { None };
        let denotation = axis.denotation.clone();
        let (name, by_user) = match naming {
            Naming::Existing(dim) => {
                let last = |path: &Path| path.segments.last().map(|segment| segment.ident.to_string());
                let shown = naming.shown();
                let namesake =
                    |check: &&Check| last(&check.dim) == last(dim) && shown_path(&check.dim) != shown;
                if let Some(other) = self.checks.iter().find(namesake) {
                    let what = format!(
                        "`{shown}` and `{}` have the same name, so errors could not tell them apart: rename one of them",
                        shown_path(&other.dim)
                    );
                    self.error(naming.span(), what);
                }
                self.checks.push(Check { dim: dim.clone(), size, denotation, place });
                return;
            }
            Naming::New { name, by_user } => (name, *by_user),
        };
        if name == "Inputs" || name == "Outputs" {
            let what = format!(
                "`{name}` is the name of a struct that `onnx_dims!` makes: give {place} another name"
            );
            self.error(name.span(), what);
            return;
        }
        let Some(dim) = self.dims.iter_mut().find(|dim| dim.name == *name) else {
            self.dims.push(NewDim { name: name.clone(), size, denotation, param, place });
            return;
        };
        let what = match (dim.size, size) {
            (Some(first), Some(second)) if first != second => {
                Some(format!("`{name}` has the size {first} as {}, but {second} as {place}", dim.place))
            }
            _ => match (&dim.denotation, &denotation) {
                (Some(first), Some(second)) if first != second => Some(format!(
                    "`{name}` has the denotation {first} as {}, but {second} as {place}: give one of them another name",
                    dim.place
                )),
                _ if !by_user && dim.param != param => Some(format!(
                    "{} and {place} would both be `{name}`, though they differ in the model: name one of them",
                    dim.place
                )),
                _ => None,
            },
        };
        dim.size = dim.size.or(size);
        if dim.denotation.is_none() {
            dim.denotation = denotation;
        }
        if let Some(what) = what {
            self.error(name.span(), what);
        }
    }
}

fn shown_path(path: &Path) -> String {
    path.to_token_stream().to_string().replace(' ', "")
}

fn given(axis: &AxisRequest) -> Option<Naming> {
    match axis {
        AxisRequest::Default => None,
        AxisRequest::New(name) => Some(Naming::New { name: name.clone(), by_user: true }),
        AxisRequest::Existing(path) => Some(Naming::Existing(path.clone())),
    }
}

/// An example of the syntax that names an axis: `x: [Other, _]`.
fn example(tensor: &OnnxTensor, axes: &[OnnxAxis], named: usize) -> String {
    let names: Vec<&str> = (0..axes.len()).map(|at| if at == named { "Other" } else { "_" }).collect();
    format!("{}: [{}]", names::field(&tensor.name, Span::call_site()), names.join(", "))
}
