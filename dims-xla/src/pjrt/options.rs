//! Options for clients and for compilation.

use std::path::PathBuf;

/// Options for loading a plugin and creating its client.
///
/// ```no_run
/// use typed_dims_xla::pjrt::{Pjrt, PjrtOptions};
///
/// let pjrt = Pjrt::find_with(PjrtOptions::new().platform("cpu").cpu_devices(4))?;
/// assert_eq!(pjrt.devices().len(), 4);
/// # Ok::<_, typed_dims_xla::XlaError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct PjrtOptions {
    pub(super) cpu_devices: Option<usize>,
    pub(super) preallocate: Option<bool>,
    pub(super) logging: bool,
    pub(super) platform: Option<String>,
}

impl PjrtOptions {
    /// The defaults.
    #[must_use]
    pub fn new() -> PjrtOptions {
        PjrtOptions::default()
    }

    /// The number of devices that a CPU plugin offers, from 1 to 1,024. By default, a plugin whose
    /// file name contains `cpu` is asked for one device. The devices share the cores of the
    /// machine, so you can test sharded programs without accelerators. For plugins whose file name
    /// names another platform, this option is ignored.
    #[must_use]
    pub fn cpu_devices(mut self, count: usize) -> PjrtOptions {
        self.cpu_devices = Some(count);
        self
    }

    /// Whether the client of an NVIDIA or AMD GPU allocates most of the GPU's memory at once. By
    /// default it allocates what programs need.
    ///
    /// A single allocation at the start avoids fragmentation, but leaves little memory for other
    /// processes. Plugins whose file name contains neither `cuda` nor `rocm` keep their own
    /// default.
    #[must_use]
    pub fn preallocate(mut self, preallocate: bool) -> PjrtOptions {
        self.preallocate = Some(preallocate);
        self
    }

    /// Whether XLA logs to standard error. By default it logs only fatal errors; other errors are
    /// returned as [`XlaError`](crate::XlaError).
    ///
    /// XLA reads its log level once, when it first logs, from the environment variable
    /// `TF_CPP_MIN_LOG_LEVEL`. Without this option, loading a plugin sets the variable for the
    /// process, unless it is set already. So the option has no effect after a plugin was loaded
    /// without it.
    #[must_use]
    pub fn logging(mut self, logging: bool) -> PjrtOptions {
        self.logging = logging;
        self
    }

    /// The platform that [`Pjrt::find_with`](super::Pjrt::find_with) looks for: `cuda`, `rocm`,
    /// `tpu`, `oneapi` or `cpu`. By default, the first usable one in this order is taken. If the
    /// environment variable `TYPED_DIMS_PJRT_PLUGIN` names a plugin, this option is ignored.
    #[must_use]
    pub fn platform(mut self, platform: impl Into<String>) -> PjrtOptions {
        self.platform = Some(platform.into());
        self
    }
}

/// Options for compiling a program.
///
/// ```
/// use typed_dims_xla::pjrt::CompileOptions;
///
/// let options = CompileOptions::new().partitions(4).flag("xla_cpu_enable_fast_math", "false");
/// # let _ = options;
/// ```
#[derive(Clone, Debug, Default)]
pub struct CompileOptions {
    pub(super) partitions: Option<usize>,
    pub(super) devices: Option<Vec<usize>>,
    pub(super) flags: Vec<(String, String)>,
    pub(super) cache: Option<PathBuf>,
}

impl CompileOptions {
    /// The defaults: one device, no flags, no cache.
    #[must_use]
    pub fn new() -> CompileOptions {
        CompileOptions::default()
    }

    /// The number of devices over which the program is split according to the `sdy.sharding`
    /// attributes in its text.
    #[must_use]
    pub fn partitions(mut self, partitions: usize) -> CompileOptions {
        self.partitions = Some(partitions);
        self
    }

    /// The devices that run the program, as positions in [`Pjrt::devices`](super::Pjrt::devices),
    /// one for each partition. This also sets the number of partitions. By default, the plugin
    /// chooses the devices, usually the first ones.
    #[must_use]
    pub fn devices(mut self, devices: impl Into<Vec<usize>>) -> CompileOptions {
        self.devices = Some(devices.into());
        self
    }

    /// Sets a flag of XLA for this program, named as in `XLA_FLAGS` but without dashes, such as
    /// `xla_gpu_autotune_level`. For an unknown flag,
    /// [`Pjrt::compile_text`](super::Pjrt::compile_text) returns an error. Booleans are `true` and
    /// `false`.
    #[must_use]
    pub fn flag(mut self, name: impl Into<String>, value: impl Into<String>) -> CompileOptions {
        self.flags.push((name.into(), value.into()));
        self
    }

    /// Caches the executable in a file in this folder, so that the next process loads it instead of
    /// compiling the program again.
    ///
    /// The folder is created if it does not exist. A file is used only for the same text, options,
    /// devices, plugin, flags in the environment and, on CPUs, processor. If a file is damaged, the
    /// program is compiled again and the file is replaced. An executable that cannot be written is
    /// still returned.
    ///
    /// Executables contain machine code. Use a folder that only trusted users can write to.
    #[must_use]
    pub fn cache(mut self, folder: impl Into<PathBuf>) -> CompileOptions {
        self.cache = Some(folder.into());
        self
    }
}
