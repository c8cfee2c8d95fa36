//! The signature of a program's inputs: types, sizes, axis orders and settings.

use crate::error::DimError;
use crate::execute::place::describe;
use crate::expr::evaluate::evaluate_tensor_in;
use crate::grad::parameters::{Path, Segment, Walk};
use crate::storage::evaluated::order_of_strides;
use crate::tensors::named::Named;
use crate::types::rank::Rank;
use crate::types::set::{DimKey, Dims, Keys};
use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::{Any, type_name};
use core::fmt::{self, Debug, Write as _};
use kernels::memory::axes::Axis;
use kernels::program::code::DType;
use kernels::scalar::Element;
use kernels::trace::Held;
use smallvec::SmallVec;
use std::sync::OnceLock;

/// The types, sizes, axis orders and settings of all inputs. A program accepts inputs with the
/// signature it was recorded with, and copies tensors whose axes are in another order.
#[derive(Default, PartialEq)]
pub(super) struct InputSignature {
    /// While the inputs are walked: the axes of the next tensor, if it is an optimizer's state.
    pub(super) line: Option<StateLineAxes>,
    pub(super) tensors: Vec<InputTensor>,
    pub(super) settings: Vec<InputSetting>,
}

/// The dims of a tensor, in order. (Its positional axes come after them.)
#[derive(Clone, Debug)]
pub(super) enum RecordedDims {
    Keys(Cow<'static, [DimKey]>),
    /// Their names, in a restored program.
    Names(Vec<String>),
}

impl RecordedDims {
    /// The keys; none in a restored program.
    pub(super) fn keys(&self) -> &[DimKey] {
        match self {
            RecordedDims::Keys(keys) => keys,
            RecordedDims::Names(_) => &[],
        }
    }

    pub(super) fn names(&self) -> Vec<String> {
        match self {
            RecordedDims::Keys(keys) => keys.iter().map(|key| key.name.into()).collect(),
            RecordedDims::Names(names) => names.clone(),
        }
    }

    /// Whether these are the same dims, in the same order. Those of a restored program are compared
    /// by name.
    fn are(&self, keys: &[DimKey]) -> bool {
        match self {
            RecordedDims::Keys(own) => {
                own.len() == keys.len() && own.iter().zip(keys).all(|(own, key)| own.same(key))
            }
            RecordedDims::Names(names) => are_named(keys, names),
        }
    }
}

/// Whether the dims have these names, in this order.
pub(super) fn are_named(keys: &[DimKey], names: &[String]) -> bool {
    keys.len() == names.len() && keys.iter().zip(names).all(|(key, name)| key.name == name)
}

/// The axes of an optimizer's state, which a program takes as one line of elements.
#[derive(Clone, Debug)]
pub(super) struct StateLineAxes {
    dims: RecordedDims,
    sizes: SmallVec<[usize; 8]>,
}

impl PartialEq for StateLineAxes {
    fn eq(&self, other: &Self) -> bool {
        let same_dims = match (&self.dims, &other.dims) {
            (own, RecordedDims::Keys(keys)) => own.are(keys),
            (RecordedDims::Keys(keys), other) => other.are(keys),
            (RecordedDims::Names(own), RecordedDims::Names(other)) => own == other,
        };
        same_dims && self.sizes == other.sizes
    }
}

impl StateLineAxes {
    pub(super) fn new(keys: &[DimKey], sizes: &[usize]) -> Self {
        StateLineAxes { dims: RecordedDims::Keys(keys.to_vec().into()), sizes: sizes.into() }
    }

    /// The axes in a restored program.
    pub(super) fn restored(names: &[String], sizes: &[usize]) -> Self {
        StateLineAxes { dims: RecordedDims::Names(names.to_vec()), sizes: sizes.into() }
    }

    pub(super) fn dims(&self) -> &RecordedDims {
        &self.dims
    }

    pub(super) fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// The dim and the size of each axis. The dim is `None` for positional axes, and for all axes
    /// in a restored program.
    pub(super) fn axes(&self) -> impl Iterator<Item = (Option<DimKey>, usize)> + Clone {
        let dims = self.dims.keys().iter().copied().map(Some).chain(core::iter::repeat(None));
        dims.zip(self.sizes.iter().copied())
    }

    /// Whether the axes have these dims and sizes.
    fn are(&self, keys: &[DimKey], sizes: &[usize]) -> bool {
        self.dims.are(keys) && self.sizes[..] == *sizes
    }
}

impl fmt::Display for StateLineAxes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&list_axes(&self.dims, &self.sizes))
    }
}

/// Axes with their sizes, for messages. Positional axes come after the dims.
fn list_axes(dims: &RecordedDims, sizes: &[usize]) -> String {
    let names = dims.names();
    let names = names.iter().map(String::as_str).chain(core::iter::repeat("positional axis"));
    crate::error::list_sizes(names.zip(sizes.iter().copied()))
}

/// The position of a tensor or a setting in the inputs or results: a [`Path`] that can own its
/// names, for saved programs.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct InputPath(Vec<InputSegment>);

/// A segment of an [`InputPath`].
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
enum InputSegment {
    Field(Cow<'static, str>),
    Index(usize),
}

impl InputPath {
    pub(super) fn new(path: &Path) -> Self {
        let segment = |segment: &Segment| match *segment {
            Segment::Field(name) => InputSegment::Field(Cow::Borrowed(name)),
            Segment::Index(at) => InputSegment::Index(at),
        };
        InputPath(path.segments().iter().map(segment).collect())
    }

    /// Names the value in a message. `kind` is a noun, such as `input`.
    pub(super) fn named(&self, kind: &str) -> String {
        if self.0.is_empty() { format!("the {kind}") } else { format!("{kind} `{self}`") }
    }

    /// Whether this equals `path`.
    fn is(&self, path: &Path) -> bool {
        let is_same = |(own, other): (&InputSegment, &Segment)| match (own, other) {
            (InputSegment::Field(own), Segment::Field(other)) => own == other,
            (InputSegment::Index(own), Segment::Index(other)) => own == other,
            _ => false,
        };
        self.0.len() == path.segments().len() && self.0.iter().zip(path.segments()).all(is_same)
    }
}

impl fmt::Display for InputPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, segment) in self.0.iter().enumerate() {
            f.write_str(if at > 0 { "." } else { "" })?;
            match segment {
                InputSegment::Field(name) => f.write_str(name)?,
                InputSegment::Index(index) => write!(f, "{index}")?,
            }
        }
        Ok(())
    }
}

impl InputSignature {
    /// Whether any of the tensors belongs to a gradient or to a function that is being recorded.
    pub(super) fn is_traced(&self) -> bool {
        self.tensors.iter().any(|own| own.is_traced)
    }
}

/// The signature of one tensor of the inputs.
pub(super) struct InputTensor {
    pub(super) path: InputPath,
    pub(super) dtype: DType,
    pub(super) dims: RecordedDims,
    pub(super) sizes: SmallVec<[usize; 8]>,
    /// The axes from the outermost in memory to the innermost. In another order, sums may be
    /// rounded differently.
    pub(super) order: SmallVec<[usize; 8]>,
    pub(super) is_traced: bool,
    /// The axes, if the tensor is an optimizer's state.
    pub(super) line: Option<StateLineAxes>,
}

/// Does not compare `dims`, because tensors at the same path have the same dims. (Those of a
/// restored program are compared when it is called.)
impl PartialEq for InputTensor {
    fn eq(&self, other: &Self) -> bool {
        (&self.path, self.dtype, self.is_traced) == (&other.path, other.dtype, other.is_traced)
            && (&self.sizes, &self.order, &self.line) == (&other.sizes, &other.order, &other.line)
    }
}

impl InputTensor {
    fn of<T: Element, S: Dims, R: Rank>(path: &Path, tensor: &Named<T, S, R>) -> Result<Self, DimError> {
        let Some(dtype) = DType::of::<T>() else {
            let name = type_name::<T>();
            let what = format!(
                "{}: programs do not support elements of type `{name}`",
                input(&InputPath::new(path))
            );
            return Err(DimError::Shape { what });
        };
        let (sizes, order, is_traced) =
            (tensor.expr.sizes(), tensor.expr.order_in_memory(), tensor.expr.is_traced());
        let dims = RecordedDims::Keys(S::KEYS.as_slice().into());
        Ok(InputTensor { path: InputPath::new(path), dtype, dims, sizes, order, is_traced, line: None })
    }
}

/// A value in the inputs or results that is not a tensor, such as the decay of an average.
#[derive(PartialEq)]
pub(super) struct InputSetting {
    pub(super) path: InputPath,
    pub(super) name: Cow<'static, str>,
    pub(super) value: RecordedSetting,
}

pub(super) enum RecordedSetting {
    Value(Box<dyn SettingValue>, LazyText),
    /// The value as `Debug` writes it, in a restored program.
    Text(String),
}

impl RecordedSetting {
    pub(super) fn new(value: Box<dyn SettingValue>) -> Self {
        RecordedSetting::Value(value, LazyText::default())
    }

    /// The value as `Debug` writes it.
    pub(super) fn text(&self) -> String {
        match self {
            RecordedSetting::Value(value, text) => text.of(value.as_debug()).text.clone(),
            RecordedSetting::Text(text) => text.clone(),
        }
    }

    fn is<X: Debug + 'static>(&self, other: &X) -> bool {
        match self {
            RecordedSetting::Value(value, text) => value.is_same(other, text),
            RecordedSetting::Text(text) => TextMatch::of(text, other) == TextMatch::Same,
        }
    }
}

impl PartialEq for RecordedSetting {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (RecordedSetting::Value(own, text), RecordedSetting::Value(other, _)) => {
                (**own).is_same((**other).as_any(), text)
            }
            (own, other) => own.text() == other.text(),
        }
    }
}

pub(super) trait SettingValue: Send + Sync {
    fn as_any(&self) -> &dyn Any;
    fn as_debug(&self) -> &dyn Debug;
    /// Whether both are equal (0.0 and -0.0 count as different), or both contain NaN and have the
    /// same text. `text` is the text of this value.
    fn is_same(&self, other: &dyn Any, text: &LazyText) -> bool;
}

impl<X: PartialEq + Debug + Send + Sync + 'static> SettingValue for X {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_debug(&self) -> &dyn Debug {
        self
    }

    fn is_same(&self, other: &dyn Any, text: &LazyText) -> bool {
        let Some(other) = other.downcast_ref::<X>() else { return false };
        // (A closure, because clippy takes `self == self` for a mistake.)
        let equal = |a: &X, b: &X| a == b;
        if equal(self, other) {
            return !text.of(self).differs_in_signs(other);
        }
        !equal(self, self) && !equal(other, other) && text.of(self).has_nan_as(other)
    }
}

/// The text of a setting, which is written once, when it is first needed.
#[derive(Default)]
pub(super) struct LazyText(OnceLock<SettingText>);

impl LazyText {
    fn of(&self, value: &dyn Debug) -> &SettingText {
        self.0.get_or_init(|| {
            let text = format!("{value:?}");
            SettingText { has_zero: has_zero(&text), text }
        })
    }
}

struct SettingText {
    text: String,
    has_zero: bool,
}

impl SettingText {
    /// Whether the text of `other` differs from this text, but only in signs of zeros.
    fn differs_in_signs(&self, other: &dyn Debug) -> bool {
        self.has_zero && TextMatch::of(&self.text, other) == TextMatch::OtherSigns
    }

    fn has_nan_as(&self, other: &dyn Debug) -> bool {
        self.text.contains("NaN") && TextMatch::of(&self.text, other) == TextMatch::Same
    }
}

/// Whether `0.0` is in the text, but not as a part of a number such as 10.0 or 0.01.
fn has_zero(text: &str) -> bool {
    let is_digit = |c: char| c.is_ascii_digit();
    text.match_indices("0.0").any(|(at, zero)| {
        let after = text[at + zero.len()..].trim_start_matches('0');
        !text[..at].ends_with(is_digit) && !after.starts_with(is_digit)
    })
}

/// How the text of a value compares with another text.
#[derive(PartialEq)]
enum TextMatch {
    Same,
    /// They differ only in signs of zeros.
    OtherSigns,
    Other,
}

impl TextMatch {
    fn of(text: &str, value: &dyn Debug) -> Self {
        let mut compared = ComparedText { rest: text, has_other_signs: false };
        let is_whole = write!(compared, "{value:?}").is_ok() && compared.rest.is_empty();
        match (is_whole, compared.has_other_signs) {
            (true, false) => TextMatch::Same,
            (true, true) => TextMatch::OtherSigns,
            (false, _) => TextMatch::Other,
        }
    }
}

/// A writer that compares the text written to it with another text, of which `rest` is left.
struct ComparedText<'t> {
    rest: &'t str,
    /// Whether the sign of a zero differs.
    has_other_signs: bool,
}

impl fmt::Write for ComparedText<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            if c == '-' && self.rest.starts_with("0.0") {
                self.has_other_signs = true;
                continue;
            }
            if c == '0' && self.rest.starts_with("-0.0") {
                self.has_other_signs = true;
                self.rest = &self.rest[1..];
            }
            self.rest = self.rest.strip_prefix(c).ok_or(fmt::Error)?;
        }
        Ok(())
    }
}

/// An input, for messages.
pub(super) fn input(path: &InputPath) -> String {
    path.named("input")
}

/// The tensor, contiguous in this order of all axes. It is not copied if it is already in this
/// order and its memory does not keep steps of an earlier recording alive.
pub(super) fn dense<T: Element, S: Dims, R: Rank>(
    tensor: &Named<T, S, R>,
    order: &[usize],
) -> Result<Named<T, S, R>, DimError> {
    if tensor.expr.buffer().node().is_none() && tensor.expr.is_contiguous(order) {
        return Ok(tensor.clone());
    }
    let shape = tensor.unified_shape()?;
    Ok(Named::from_expr(evaluate_tensor_in::<S, R, _>(&tensor.expr, &shape, order)?))
}

impl Walk<1> for InputSignature {
    type Error = DimError;
    const STATE: bool = true;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        path: &Path,
        [tensor]: [&Named<T, S, R>; 1],
    ) -> Result<Named<T, S, R>, DimError> {
        let line = self.line.take();
        self.tensors.push(InputTensor { line, ..InputTensor::of(path, tensor)? });
        Ok(tensor.clone())
    }

    fn line_along(&mut self, keys: &[DimKey], sizes: &[usize]) {
        self.line = Some(StateLineAxes::new(keys, sizes));
    }

    fn setting<X: Clone + PartialEq + Debug + Send + Sync + 'static>(
        &mut self,
        path: &Path,
        name: &'static str,
        [value]: [&X; 1],
    ) -> Result<(), DimError> {
        let value = RecordedSetting::new(Box::new(value.clone()));
        self.settings.push(InputSetting { path: InputPath::new(path), name: Cow::Borrowed(name), value });
        Ok(())
    }
}

/// Checks the inputs of a call against the signature, and collects their memory.
pub(super) struct GivenInputs<'p> {
    expected: core::slice::Iter<'p, InputTensor>,
    settings: core::slice::Iter<'p, InputSetting>,
    /// Whether tensors whose axes are stored in another order are copied. Otherwise they cause an
    /// error.
    reorders: bool,
    /// Whether the next tensor is an optimizer's state.
    is_line: bool,
    /// The error of the next tensor, if it is an optimizer's state whose axes are not the recorded
    /// ones.
    other_line: Option<String>,
    held: Vec<Arc<dyn Held>>,
}

/// A tensor in the inputs of a call.
struct GivenTensor<'t> {
    dtype: Option<DType>,
    /// The name of the elements' type.
    name: &'static str,
    keys: &'static Keys,
    axes: [&'t [Axis]; 2],
    is_traced: bool,
}

impl<'p> GivenInputs<'p> {
    /// Also accepts tensors whose axes are not stored in the recorded order.
    pub(super) fn new(expected: &'p InputSignature) -> Self {
        let InputSignature { tensors, settings, .. } = expected;
        let held = Vec::with_capacity(tensors.len());
        let (expected, settings) = (tensors.iter(), settings.iter());
        GivenInputs { expected, settings, reorders: true, is_line: false, other_line: None, held }
    }

    /// Accepts only inputs with exactly this signature.
    pub(super) fn exactly(expected: &'p InputSignature) -> Self {
        GivenInputs { reorders: false, ..GivenInputs::new(expected) }
    }

    /// The recorded input for the next tensor. Returns an error if they do not match.
    fn expected(&mut self, path: &Path, given: &GivenTensor<'_>) -> Result<&'p InputTensor, DimError> {
        let found: SmallVec<[usize; 8]> = given.axes.into_iter().flatten().map(|axis| axis.size).collect();
        // (Only errors need the name.)
        let own = || input(&InputPath::new(path));
        let expected = self.expected.next();
        let is_line = core::mem::take(&mut self.is_line);
        let other_line = self.other_line.take();
        let what = match expected {
            Some(expected) if !expected.path.is(path) => {
                let recorded = match expected.path.0.is_empty() {
                    true => "the program has one input, which is not a tuple".into(),
                    false => format!("`{}` was recorded at this position", expected.path),
                };
                // At this position, either the call or the program has an optimizer's state, but
                // not both.
                let prepare = match is_line != expected.line.is_some() {
                    true => "; a new optimizer has no moments: `optimizer.prepare(&parameters)` makes them",
                    false => "",
                };
                format!("found {}, but {recorded}: record it again; `jit` does so by itself{prepare}", own())
            }
            Some(expected) if given.dtype != Some(expected.dtype) => {
                format!(
                    "{} has elements of `{}`, but was recorded with `{}`",
                    own(),
                    given.name,
                    expected.dtype.name()
                )
            }
            Some(_) if other_line.is_some() => other_line.unwrap_or_default(),
            Some(InputTensor { dims: RecordedDims::Names(names), line: None, .. })
                if !are_named(given.keys.as_slice(), names) =>
            {
                other_dims(&own(), given.keys.as_slice(), names)
            }
            Some(expected) if expected.sizes != found => format!(
                "{} has {}, but the program was recorded for {}",
                own(),
                describe(given.keys, &found),
                list_axes(&expected.dims, &expected.sizes)
            ),
            Some(_) if given.is_traced => format!(
                "{} belongs to a gradient or to another function that is being recorded: there, call the original function instead of the program",
                own()
            ),
            Some(expected) if !self.reorders && order_of_strides(given.axes) != expected.order => {
                format!("the axes of {} are stored in another order", own())
            }
            Some(_) => String::new(),
            None => format!("{} was not recorded", own()),
        };
        expected.filter(|_| what.is_empty()).ok_or(DimError::Shape { what })
    }

    /// The memory of all inputs. It is an error if inputs or settings are missing.
    pub(super) fn finish(mut self) -> Result<Vec<Arc<dyn Held>>, DimError> {
        let what = match (self.expected.next(), self.settings.next()) {
            (Some(missing), _) => format!("{} is missing", input(&missing.path)),
            (None, Some(InputSetting { path, name, .. })) => {
                format!("{} has no setting `{name}`", input(path))
            }
            (None, None) => return Ok(self.held),
        };
        Err(DimError::Shape { what })
    }
}

/// The error for a tensor whose dims are not those of the saved program.
#[cold]
pub(super) fn other_dims(tensor: &str, given: &[DimKey], saved: &[String]) -> String {
    let quoted = |name: &str| format!("`{name}`");
    let given: Vec<String> = given.iter().map(|key| quoted(key.name)).collect();
    let saved: Vec<String> = saved.iter().map(|name| quoted(name)).collect();
    let (given, saved) = (given.join(", "), saved.join(", "));
    format!("{tensor} has the dims ({given}), but the program was saved with ({saved}): record it again")
}

/// The error for an optimizer's state whose axes are not the recorded ones.
#[cold]
fn other_axes(expected: &InputTensor, keys: &[DimKey], sizes: &[usize]) -> String {
    let recorded = match &expected.line {
        Some(line) => line.clone(),
        None => StateLineAxes::restored(&[], &expected.sizes),
    };
    let (own, found) = (input(&expected.path), StateLineAxes::new(keys, sizes));
    format!("{own} has {found}, but the program was recorded for {recorded}")
}

impl Walk<1> for GivenInputs<'_> {
    type Error = DimError;
    const STATE: bool = true;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        path: &Path,
        [tensor]: [&Named<T, S, R>; 1],
    ) -> Result<Named<T, S, R>, DimError> {
        let given = GivenTensor {
            dtype: DType::of::<T>(),
            name: type_name::<T>(),
            keys: S::KEYS,
            axes: tensor.expr.axis_slices(),
            is_traced: tensor.expr.is_traced(),
        };
        let own = dense(tensor, &self.expected(path, &given)?.order)?;
        self.held.push(own.expr.buffer().held());
        Ok(own)
    }

    fn line_along(&mut self, keys: &[DimKey], sizes: &[usize]) {
        self.is_line = true;
        let Some(expected) = self.expected.as_slice().first() else { return };
        let is_same = expected.line.as_ref().is_some_and(|line| line.are(keys, sizes));
        self.other_line = if is_same { None } else { Some(other_axes(expected, keys, sizes)) };
    }

    fn setting<X: Clone + PartialEq + Debug + Send + Sync + 'static>(
        &mut self,
        path: &Path,
        name: &'static str,
        [value]: [&X; 1],
    ) -> Result<(), DimError> {
        let what = match self.settings.next() {
            Some(own) if own.path.is(path) && own.name == name && own.value.is(value) => return Ok(()),
            Some(own) if own.path.is(path) && own.name == name => format!(
                "`{name}` of {} is {value:?}, but the program was recorded for {}: record it again; `jit` does so by itself",
                input(&own.path),
                own.value.text()
            ),
            _ => format!("the setting `{name}` of {} was not recorded", input(&InputPath::new(path))),
        };
        Err(DimError::Shape { what })
    }
}
