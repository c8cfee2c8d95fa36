//! The arguments of a call.

use super::checks::Dependence;
use super::value::{DeviceTensor, OnDevice};
use crate::error::XlaError;
use crate::mesh::{Mesh, Split};
use crate::pjrt::Pjrt;
use std::collections::VecDeque;
use std::sync::Arc;
use typed_dims::grad::Parameters;
use typed_dims::program::Spec;
use typed_dims::program::engine::{self, EngineAxis, EngineInput, EngineSetting, EngineTensor};

/// Collects the arguments of a call.
#[doc(hidden)]
pub struct Given<'r> {
    pub(super) pjrt: &'r Pjrt,
    pub(super) mesh: &'r Mesh,
    pub(super) splits: &'r [Split],
    pub(super) expected: &'r [EngineInput],
    pub(super) settings: std::slice::Iter<'r, EngineSetting>,
    pub(super) tensors: Vec<DeviceTensor>,
    pub(super) pending: VecDeque<Dependence>,
}

/// Names an input in a message, by its path.
pub(super) fn input(path: &str) -> String {
    if path.is_empty() { "the input".to_owned() } else { format!("the input `{path}`") }
}

/// Whether a tensor has the recorded axes. The keys of dims are compared if both are known: a
/// restored program has only the names of its dims.
fn has_axes(recorded: &EngineInput, given: &[EngineAxis]) -> bool {
    let is_same = |(own, other): (&EngineAxis, &EngineAxis)| {
        own.size == other.size && own.dim.zip(other.dim).is_none_or(|(own, other)| own.same(&other))
    };
    let names = given.iter().filter_map(|axis| Some(axis.dim?.name));
    let axes = &recorded.tensor.axes;
    names.eq(recorded.dims.iter()) && axes.len() == given.len() && axes.iter().zip(given).all(is_same)
}

/// Describes a tensor in a message: its element type, and its axes. `dims` are the dims of the
/// first axes; the other axes are written as `..`.
fn described<'n>(tensor: &EngineTensor, dims: impl Iterator<Item = &'n str>) -> String {
    let names = dims.chain(std::iter::repeat(".."));
    let axes: Vec<String> =
        names.zip(&tensor.axes).map(|(name, axis)| format!("{name} = {}", axis.size)).collect();
    format!("{} [{}]", tensor.dtype.name(), axes.join(", "))
}

impl Given<'_> {
    fn add(&mut self, own: DeviceTensor) -> Result<(), XlaError> {
        let number = self.tensors.len();
        let message = match self.expected.get(number) {
            None => format!("{} was not recorded", input(&own.tensor.path)),
            Some(recorded) => {
                let tensor = &recorded.tensor;
                if tensor.dtype != own.tensor.dtype || !has_axes(recorded, &own.tensor.axes) {
                    let given = own.tensor.axes.iter().filter_map(|axis| Some(axis.dim?.name));
                    format!(
                        "{} is {}, but the program was recorded for {}",
                        input(&tensor.path),
                        described(&own.tensor, given),
                        described(tensor, recorded.dims.iter().map(String::as_str))
                    )
                } else if own.mesh != *self.mesh || own.split != self.splits[number] {
                    format!(
                        "{} is split differently from the program: copy it with `put_sharded` and the program's sharding",
                        input(&tensor.path)
                    )
                } else {
                    self.tensors.push(own);
                    return Ok(());
                }
            }
        };
        Err(XlaError::Arguments { message })
    }

    /// Returns an error unless the settings of an input have their recorded values, which are part
    /// of the compiled program.
    fn check_settings<P: Parameters>(&mut self, value: &P) -> Result<(), XlaError> {
        for own in engine::settings_of(value)? {
            let message = match self.settings.next() {
                Some(recorded) if (&recorded.name, &recorded.value) == (&own.name, &own.value) => continue,
                Some(recorded) if recorded.name == own.name => format!(
                    "`{}` of {} is {}, but the program was recorded for {}: record it again",
                    own.name,
                    input(&recorded.path),
                    own.value,
                    recorded.value
                ),
                _ => format!("the setting `{}` of {} was not recorded", own.name, input(&own.path)),
            };
            return Err(XlaError::Arguments { message });
        }
        Ok(())
    }

    fn add_all<P: Parameters>(&mut self, value: &OnDevice<P>) -> Result<(), XlaError> {
        self.check_settings(&value.template)?;
        for own in value.pending.iter().filter(|own| !own.is_settled()) {
            match self.pending.iter_mut().find(|known| Arc::ptr_eq(&known.call, &own.call)) {
                Some(known) => known.is_kept &= own.is_kept,
                None => self.pending.push_back(own.clone()),
            }
        }
        value.tensors.iter().try_for_each(|own| self.add(own.clone()))
    }

    fn add_host<P: Parameters>(&mut self, value: &P) -> Result<(), XlaError> {
        let first = self.tensors.len();
        let (mut number, splits) = (first, self.splits);
        let own = self.pjrt.put_parts(value, self.mesh, &mut |tensor| {
            number += 1;
            // If the value does not have the recorded tensors, `add_all` returns an error.
            let split = splits.get(number - 1).filter(|split| split.len() == tensor.axes.len());
            Ok(split.cloned().unwrap_or_else(|| vec![None; tensor.axes.len()]))
        })?;
        self.add_all(&own)
    }
}

/// The inputs of a call: one input, or a tuple of up to twelve. An input that the recorded function
/// takes by value is on devices, and is moved. An input that the function takes by reference is on
/// devices or on the host, and is borrowed.
#[diagnostic::on_unimplemented(
    message = "a compiled program cannot take `{Self}` where its function takes `{In}`",
    label = "expected a value on devices where the function takes a value, and a reference to a value on devices or on the host where it takes a reference"
)]
pub trait DeviceInputs<In> {
    /// Adds the arguments.
    #[doc(hidden)]
    fn give(self, given: &mut Given<'_>) -> Result<(), XlaError>;
}

#[diagnostic::do_not_recommend]
impl<P: Parameters> DeviceInputs<P> for OnDevice<P> {
    fn give(self, given: &mut Given<'_>) -> Result<(), XlaError> {
        given.add_all(&self)
    }
}

#[diagnostic::do_not_recommend]
impl<P: Parameters> DeviceInputs<&P> for &OnDevice<P> {
    fn give(self, given: &mut Given<'_>) -> Result<(), XlaError> {
        given.add_all(self)
    }
}

#[diagnostic::do_not_recommend]
impl<P: Parameters> DeviceInputs<&P> for &P {
    fn give(self, given: &mut Given<'_>) -> Result<(), XlaError> {
        given.add_host(self)
    }
}

/// A program that was recorded from sizes takes references.
#[diagnostic::do_not_recommend]
impl<P: Parameters> DeviceInputs<Spec<P>> for &OnDevice<P> {
    fn give(self, given: &mut Given<'_>) -> Result<(), XlaError> {
        given.add_all(self)
    }
}

#[diagnostic::do_not_recommend]
impl<P: Parameters> DeviceInputs<Spec<P>> for &P {
    fn give(self, given: &mut Given<'_>) -> Result<(), XlaError> {
        given.add_host(self)
    }
}

macro_rules! tuples {
    ($($x:ident $y:ident $n:tt)*) => {
        #[diagnostic::do_not_recommend]
        impl<$($x, $y: DeviceInputs<$x>),*> DeviceInputs<($($x,)*)> for ($($y,)*) {
            fn give(self, given: &mut Given<'_>) -> Result<(), XlaError> {
                $(self.$n.give(given)?;)*
                Ok(())
            }
        }
    };
}

tuples!(A X 0);
tuples!(A X 0 B Y 1);
tuples!(A X 0 B Y 1 C Z 2);
tuples!(A X 0 B Y 1 C Z 2 D W 3);
tuples!(A X 0 B Y 1 C Z 2 D W 3 E V 4);
tuples!(A X 0 B Y 1 C Z 2 D W 3 E V 4 F U 5);
tuples!(A X 0 B Y 1 C Z 2 D W 3 E V 4 F U 5 G T 6);
tuples!(A X 0 B Y 1 C Z 2 D W 3 E V 4 F U 5 G T 6 H S 7);
tuples!(A X 0 B Y 1 C Z 2 D W 3 E V 4 F U 5 G T 6 H S 7 I R 8);
tuples!(A X 0 B Y 1 C Z 2 D W 3 E V 4 F U 5 G T 6 H S 7 I R 8 J Q 9);
tuples!(A X 0 B Y 1 C Z 2 D W 3 E V 4 F U 5 G T 6 H S 7 I R 8 J Q 9 K P 10);
tuples!(A X 0 B Y 1 C Z 2 D W 3 E V 4 F U 5 G T 6 H S 7 I R 8 J Q 9 K P 10 L O 11);
