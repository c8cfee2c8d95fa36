//! Compiled programs.

use super::cache::{self, Key};
use super::{ArrayType, Collective, DeviceBuffer, ElementType, Pjrt, ProgramMemory, ffi, proto};
use crate::XlaError;
use std::collections::BTreeMap;
use std::fmt;

/// A compiled program.
///
/// [`Pjrt::compile_text`] and [`Pjrt::load_executable`] return executables. An executable only
/// takes buffers of its own client.
pub struct Executable {
    inner: ffi::RawExecutable,
    inputs: Option<Vec<ArrayType>>,
    pjrt: Pjrt,
    /// The [identity](Pjrt::identity) of the client when the program was compiled or loaded.
    identity: Key,
}

impl Executable {
    pub(super) fn new(inner: ffi::RawExecutable, pjrt: &Pjrt) -> Executable {
        let inputs = match inner.optimized_program() {
            Ok((format, program)) => proto::Hlo::new(&format, &program).and_then(|hlo| hlo.parameters()),
            Err(_) => None,
        };
        Executable { inner, inputs, pjrt: pjrt.clone(), identity: pjrt.identity() }
    }

    /// Queues the program on one device, and returns its outputs.
    ///
    /// # Errors
    ///
    /// As for [`execute`](Self::execute). Also returns an error if the program runs on several
    /// devices.
    pub fn run(&self, arguments: &[&DeviceBuffer]) -> Result<Vec<DeviceBuffer>, XlaError> {
        let mut outputs = self.execute(&[arguments.to_vec()])?;
        Ok(outputs.pop().unwrap_or_default())
    }

    /// Queues the program. `arguments` and the result have a list for each of the program's
    /// [`devices`](Self::devices).
    ///
    /// The outputs can be passed to other programs before they have been computed.
    ///
    /// ```no_run
    /// # use typed_dims_xla::pjrt::{DeviceBuffer, Executable};
    /// # fn train(step: &Executable, mut weights: DeviceBuffer, batch: &DeviceBuffer) -> Result<(), typed_dims_xla::XlaError> {
    /// // `step` donates its first argument, so that all steps use the same memory.
    /// for _ in 0..100 {
    ///     let mut outputs = step.execute(&[vec![&weights, batch]])?;
    ///     weights = outputs.remove(0).remove(0);
    /// }
    /// weights.ready()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the number of lists or arguments is wrong, or if an argument has the
    /// wrong type, is on the wrong device, belongs to another client, or was donated before. Also
    /// returns an error if an output is not an array of an [`ElementType`]. An error while the
    /// program runs may be returned only when an output is awaited or read.
    pub fn execute(&self, arguments: &[Vec<&DeviceBuffer>]) -> Result<Vec<Vec<DeviceBuffer>>, XlaError> {
        if let Some(inputs) = &self.inputs {
            for list in arguments {
                check(inputs, list)?;
            }
        }
        let arguments: Vec<Vec<&ffi::Buffer>> =
            arguments.iter().map(|list| list.iter().map(|buffer| buffer.inner()).collect()).collect();
        let outputs = self.inner.execute(&arguments)?;
        Ok(outputs.into_iter().map(|list| list.into_iter().map(DeviceBuffer::new).collect()).collect())
    }

    /// The devices of the program, as positions in [`Pjrt::devices`].
    #[must_use]
    pub fn devices(&self) -> &[usize] {
        self.inner.devices()
    }

    /// The types of the arguments on one device. For a sharded program, these are the types of the
    /// shards. `None` unless the plugin exposes the optimized program as HLO and all arguments are
    /// arrays of an [`ElementType`].
    #[must_use]
    pub fn inputs(&self) -> Option<&[ArrayType]> {
        self.inputs.as_deref()
    }

    /// The number of outputs on one device.
    #[must_use]
    pub fn output_count(&self) -> usize {
        self.inner.outputs()
    }

    /// The types of the outputs on one device.
    ///
    /// # Errors
    ///
    /// Returns an error if the plugin does not report the types, or if an output is not an array of
    /// an [`ElementType`].
    pub fn outputs(&self) -> Result<Vec<ArrayType>, XlaError> {
        let types = self.inner.output_types()?.into_iter().enumerate().map(|(position, (code, sizes))| {
            let sizes = sizes.iter().map(|&size| usize::try_from(size).ok()).collect::<Option<_>>();
            ElementType::from_code(code)
                .zip(sizes)
                .map(|(element_type, sizes)| ArrayType { element_type, sizes })
                .ok_or_else(|| {
                    XlaError::arguments(format!(
                        "output {position} of the program is not an array of a known type: it has the element type number {code} of PJRT"
                    ))
                })
        });
        types.collect()
    }

    /// The executable as bytes, for [`Pjrt::load_executable`].
    ///
    /// # Errors
    ///
    /// Returns an error if the plugin cannot serialize executables, or if its file, when it is
    /// first hashed, cannot be read or has changed since it was loaded.
    pub fn serialize(&self) -> Result<Vec<u8>, XlaError> {
        let executable = self.inner.serialize()?;
        Ok(cache::pack(&self.pjrt.serialized_key(self.identity.clone())?, &executable))
    }

    /// XLA's optimized program. The first value is PJRT's name of its format, such as `hlo` for a
    /// serialized `HloModuleProto` and `hlo_with_config` for an `HloModuleProtoWithConfig`.
    ///
    /// # Errors
    ///
    /// Returns an error if the plugin does not expose the optimized program.
    pub fn optimized_program(&self) -> Result<(String, Vec<u8>), XlaError> {
        self.inner.optimized_program()
    }

    /// The collectives of the optimized program. XLA inserts a collective where a sharding needs
    /// one.
    ///
    /// ```no_run
    /// # use typed_dims_xla::pjrt::Executable;
    /// # fn show(executable: &Executable) -> Result<(), typed_dims_xla::XlaError> {
    /// for collective in executable.collectives()? {
    ///     println!("{} {}: {:?}", collective.kind, collective.name, collective.outputs);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the plugin does not expose the optimized program as HLO.
    pub fn collectives(&self) -> Result<Vec<Collective>, XlaError> {
        self.hlo(|hlo| hlo.collectives())
    }

    /// The number of occurrences of each kind of instruction in the optimized program, including
    /// fused ones. A custom call is listed with its target.
    ///
    /// # Errors
    ///
    /// Returns an error if the plugin does not expose the optimized program as HLO.
    pub fn instruction_counts(&self) -> Result<BTreeMap<String, usize>, XlaError> {
        self.hlo(|hlo| hlo.opcodes())
    }

    fn hlo<T>(&self, read: impl FnOnce(&proto::Hlo<'_>) -> T) -> Result<T, XlaError> {
        let (format, program) = self.optimized_program()?;
        let hlo = proto::Hlo::new(&format, &program).ok_or_else(|| {
            XlaError::unexpected(
                "PJRT_Executable_OptimizedProgram",
                "a program of the format `hlo` or `hlo_with_config`",
                format!("{} bytes of the format `{format}`", program.len()),
            )
        })?;
        Ok(read(&hlo))
    }

    /// The memory that one call needs on a device.
    ///
    /// # Errors
    ///
    /// Returns an error if the plugin does not report it.
    pub fn memory(&self) -> Result<ProgramMemory, XlaError> {
        self.inner.memory()
    }
}

fn check(inputs: &[ArrayType], arguments: &[&DeviceBuffer]) -> Result<(), XlaError> {
    if inputs.len() != arguments.len() {
        return Err(XlaError::arguments(format!(
            "expected {} arguments of the program, found {}",
            inputs.len(),
            arguments.len()
        )));
    }
    let mismatch = inputs.iter().zip(arguments).position(|(input, argument)| {
        input.element_type != argument.element_type() || input.sizes != argument.sizes()
    });
    match mismatch {
        None => Ok(()),
        Some(position) => Err(XlaError::arguments(format!(
            "argument {position} of the program must be {}, but is {}{:?}",
            inputs[position],
            arguments[position].element_type(),
            arguments[position].sizes()
        ))),
    }
}

impl fmt::Debug for Executable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executable")
            .field("devices", &self.devices())
            .field("inputs", &self.inputs)
            .field("output_count", &self.output_count())
            .finish_non_exhaustive()
    }
}
