//! Runs programs on PJRT plugins: XLA's compilers and runtimes for CPUs, GPUs and TPUs.
//!
//! A plugin is a shared library. JAX distributes plugins for CUDA, ROCm and TPUs in Python wheels.
//! [`Pjrt::find`] looks for plugins where `pip` installs wheels, and [`Pjrt::load`] takes a path.
//!
//! This module is the crate's lower layer. Arrays have an [`ElementType`] and sizes that are known
//! at run time, and programs are StableHLO text. Mismatches are reported as an [`XlaError`], not as
//! compile errors.
//!
//! ```no_run
//! use typed_dims_xla::pjrt::{CompileOptions, ElementType, Pjrt};
//!
//! let pjrt = Pjrt::find()?;
//! let program = r#"
//! func.func @main(%a: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<3xf32> {
//!   %0 = stablehlo.add %a, %b : tensor<3xf32>
//!   return %0 : tensor<3xf32>
//! }"#;
//! let add = pjrt.compile_text(program, &CompileOptions::new())?;
//!
//! let bytes: Vec<u8> = [1.0_f32, 2.0, 3.0].iter().flat_map(|x| x.to_ne_bytes()).collect();
//! let a = pjrt.upload(&bytes, ElementType::F32, &[3], None, 0)?;
//! let outputs = add.run(&[&a, &a])?; // returns at once
//! let sum = outputs[0].to_host()?; // waits for the result
//! assert_eq!(sum[..4], 2.0_f32.to_ne_bytes());
//! # Ok::<_, typed_dims_xla::XlaError>(())
//! ```
//!
//! # Memory and time
//!
//! [`Executable::execute`] queues a program and returns buffers that will hold its results. The
//! buffers can be passed to other programs at once. [`DeviceBuffer::ready`] and
//! [`DeviceBuffer::to_host`] wait for the results.
//!
//! If the program's text gives an argument the attribute `tf.aliasing_output = n`, the argument is
//! *donated*: output `n` takes over its memory. The argument is then
//! [deleted](DeviceBuffer::is_deleted), and using it again is an error.
//!
//! # Trust
//!
//! A plugin is a shared library, and serialized executables contain machine code. Load them only
//! from sources that you would run programs from.
//!
//! # Several machines
//!
//! PJRT's C interface lacks coordination and heartbeats, which several processes need to form a
//! mesh. A client uses the devices of one machine.

mod buffer;
mod cache;
mod element;
mod elf;
mod executable;
mod ffi;
mod find;
mod options;
mod pack;
mod proto;

pub use buffer::DeviceBuffer;
pub use element::{ArrayType, ElementType};
pub use executable::Executable;
pub use options::{CompileOptions, PjrtOptions};
pub use proto::Collective;

use crate::XlaError;
use cache::{Key, Store};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A client of a PJRT plugin: its devices and its compiler.
///
/// Clones share the client, which lives until the last clone, buffer or executable is dropped.
/// Plugins are never unloaded.
#[derive(Clone)]
pub struct Pjrt {
    inner: Arc<Inner>,
}

struct Inner {
    client: Arc<ffi::Client>,
    api: &'static ffi::Api,
    path: PathBuf,
    platform: String,
    platform_version: String,
    devices: Vec<Device>,
    skipped: Vec<(PathBuf, String)>,
}

impl Pjrt {
    /// Loads the plugin at a path, and creates a client.
    ///
    /// ```
    /// use typed_dims_xla::{XlaError, pjrt::Pjrt};
    ///
    /// let error = Pjrt::load("no/such/plugin.so").unwrap_err();
    /// assert!(matches!(error, XlaError::PluginNotLoaded { .. }));
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be loaded as a plugin, if its version of the PJRT
    /// interface is not supported, or if the plugin cannot create a client or finds no device.
    pub fn load(path: impl AsRef<Path>) -> Result<Pjrt, XlaError> {
        Pjrt::load_with(path, PjrtOptions::new())
    }

    /// [`load`](Self::load) with options.
    ///
    /// ```no_run
    /// use typed_dims_xla::pjrt::{Pjrt, PjrtOptions};
    ///
    /// let pjrt = Pjrt::load_with("/opt/plugins/xla_cuda_plugin.so", PjrtOptions::new().preallocate(true))?;
    /// # Ok::<_, typed_dims_xla::XlaError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`load`](Self::load). Also returns an error if the plugin cannot offer the requested
    /// number of CPU devices.
    pub fn load_with(path: impl AsRef<Path>, options: PjrtOptions) -> Result<Pjrt, XlaError> {
        let path = path.as_ref();
        let kind = find::Kind::of(path);
        let libraries = if kind == find::Kind::Cuda { find::cuda_libraries(path) } else { Vec::new() };
        let api = ffi::Api::load(path, &libraries, !options.logging)?;
        let mut client_options = Vec::new();
        match kind {
            find::Kind::Cuda | find::Kind::Rocm => {
                client_options
                    .push(ffi::ClientOption::Bool("preallocate", options.preallocate.unwrap_or(false)));
            }
            find::Kind::Cpu | find::Kind::Unknown => {
                let count = match options.cpu_devices {
                    // Some plugins offer more than one device by default.
                    None => (kind == find::Kind::Cpu).then_some(1),
                    Some(count @ 1..=1024) => Some(count as i64),
                    Some(count) => {
                        return Err(XlaError::arguments(format!(
                            "a CPU plugin can offer from 1 to 1,024 devices, but {count} are requested"
                        )));
                    }
                };
                client_options.extend(count.map(|count| ffi::ClientOption::Int("cpu_device_count", count)));
            }
            find::Kind::Other => {}
        }
        let client = match ffi::Client::new(api, &client_options) {
            // The plugin may not know the option, which the caller did not set.
            Err(_) if kind == find::Kind::Cpu && options.cpu_devices.is_none() => ffi::Client::new(api, &[])?,
            client => client?,
        };
        let client = Arc::new(client);
        let devices = (0..client.device_count()).map(|index| {
            let ffi::DeviceText { id, kind, text } = client.describe(index)?;
            Ok(Device { index, id, kind, text })
        });
        let inner = Inner {
            devices: devices.collect::<Result<_, XlaError>>()?,
            platform: client.platform_name()?,
            platform_version: client.platform_version()?,
            api,
            path: path.to_owned(),
            client,
            skipped: Vec::new(),
        };
        Ok(Pjrt { inner: Arc::new(inner) })
    }

    /// Finds a plugin and loads it. Accelerators come before CPUs.
    ///
    /// If the environment variable `TYPED_DIMS_PJRT_PLUGIN` is not empty, it is the path of the
    /// plugin. Otherwise this looks for the plugins of JAX and others in the `site-packages` of the
    /// active virtual or Conda environment, and of the Python on the `PATH`. Plugins that are found
    /// but cannot be used, such as the CUDA plugin on a machine without a GPU, are skipped: see
    /// [`skipped`](Self::skipped).
    ///
    /// ```no_run
    /// use typed_dims_xla::pjrt::Pjrt;
    ///
    /// let pjrt = Pjrt::find()?;
    /// println!("{} {}", pjrt.platform_name(), pjrt.platform_version());
    /// for (path, reason) in pjrt.skipped() {
    ///     println!("not used: {}: {reason}", path.display());
    /// }
    /// # Ok::<_, typed_dims_xla::XlaError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if no plugin can be used. Unless `TYPED_DIMS_PJRT_PLUGIN` is set, the error
    /// lists the paths that were tried, and says how to install plugins.
    pub fn find() -> Result<Pjrt, XlaError> {
        Pjrt::find_with(PjrtOptions::new())
    }

    /// [`find`](Self::find) with options.
    ///
    /// # Errors
    ///
    /// As for [`find`](Self::find).
    pub fn find_with(options: PjrtOptions) -> Result<Pjrt, XlaError> {
        if let Some(path) = find::from_environment() {
            return Pjrt::load_with(path, options);
        }
        let (found, searched) = find::candidates(options.platform.as_deref());
        let mut failed = Vec::new();
        for path in found {
            match Pjrt::load_with(&path, options.clone()) {
                Ok(mut pjrt) => {
                    if let Some(inner) = Arc::get_mut(&mut pjrt.inner) {
                        inner.skipped = failed;
                    }
                    return Ok(pjrt);
                }
                Err(error) => failed.push((path, error.to_string())),
            }
        }
        Err(XlaError::PluginNotFound { searched, failed })
    }

    /// The path of the plugin.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// The plugins that [`find`](Self::find) found before this one but could not use, each with the
    /// reason.
    #[must_use]
    pub fn skipped(&self) -> &[(PathBuf, String)] {
        &self.inner.skipped
    }

    /// The platform, such as `cpu`, `cuda` or `tpu`.
    #[must_use]
    pub fn platform_name(&self) -> &str {
        &self.inner.platform
    }

    /// The version of the platform that the plugin reports, such as the CUDA version.
    #[must_use]
    pub fn platform_version(&self) -> &str {
        &self.inner.platform_version
    }

    /// The version of the plugin's PJRT interface: major and minor.
    #[must_use]
    pub fn api_version(&self) -> (i32, i32) {
        self.inner.api.version()
    }

    /// The version of StableHLO that the plugin was built with, if the plugin reports it.
    #[must_use]
    pub fn stablehlo_version(&self) -> Option<[i64; 3]> {
        self.inner.api.attributes().into_iter().find_map(|(name, value)| match value {
            ffi::Attribute::Ints(version) if name == "stablehlo_current_version" => version.try_into().ok(),
            _ => None,
        })
    }

    /// The devices that programs can run on. Methods that take a device take a position in this
    /// list.
    #[must_use]
    pub fn devices(&self) -> &[Device] {
        &self.inner.devices
    }

    /// How much memory of a device is in use.
    ///
    /// ```no_run
    /// # use typed_dims_xla::pjrt::Pjrt;
    /// # let pjrt = Pjrt::find()?;
    /// let stats = pjrt.memory_stats(0)?;
    /// println!("{} bytes of {:?}", stats.bytes_in_use, stats.bytes_limit);
    /// # Ok::<_, typed_dims_xla::XlaError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such device, or if the plugin does not count memory, as on
    /// CPUs.
    pub fn memory_stats(&self, device: usize) -> Result<MemoryStats, XlaError> {
        self.inner.client.memory_stats(device)
    }

    /// Copies an array to a device.
    ///
    /// Without `byte_strides`, the elements are in row-major order. Otherwise `byte_strides[axis]`
    /// is the distance in bytes between consecutive elements along the axis. The slice starts at
    /// the element with the lowest address: along an axis with a negative stride, at the last
    /// element. An axis with stride 0 repeats its elements.
    ///
    /// Elements have the byte order of the machine.
    ///
    /// ```no_run
    /// # use typed_dims_xla::pjrt::{ElementType, Pjrt};
    /// # let pjrt = Pjrt::find()?;
    /// // The transpose of a 2x3 matrix of bytes: 3x2.
    /// let transposed = pjrt.upload(&[1, 2, 3, 4, 5, 6], ElementType::U8, &[3, 2], Some(&[1, 3]), 0)?;
    /// assert_eq!(transposed.to_host()?, [1, 4, 2, 5, 3, 6]);
    /// # Ok::<_, typed_dims_xla::XlaError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Without `byte_strides`, returns an error if the slice is not exactly as long as the array.
    /// With strides, returns an error if their number is not the number of axes, or if the slice
    /// does not contain all elements. Also returns an error if the array has more than `isize::MAX`
    /// bytes, if there is no such device, or if the device has too little memory.
    pub fn upload(
        &self,
        data: &[u8],
        element_type: ElementType,
        sizes: &[usize],
        byte_strides: Option<&[isize]>,
        device: usize,
    ) -> Result<DeviceBuffer, XlaError> {
        let takes_strides = ["cpu", "cuda", "rocm", "tpu"].contains(&self.inner.platform.as_str());
        let source = pack::source(data, element_type, sizes, byte_strides, takes_strides)?;
        let strides = source.strides.as_deref();
        self.inner.client.upload(&source.data, element_type, sizes, strides, device).map(DeviceBuffer::new)
    }

    /// Compiles a program: StableHLO text with a function `main` that takes and returns arrays.
    ///
    /// ```no_run
    /// # use typed_dims_xla::pjrt::{CompileOptions, Pjrt};
    /// # let pjrt = Pjrt::find()?;
    /// let program = r#"
    /// func.func @main(%a: tensor<3xf32>) -> tensor<3xf32> {
    ///   %0 = stablehlo.exponential %a : tensor<3xf32>
    ///   return %0 : tensor<3xf32>
    /// }"#;
    /// let exp = pjrt.compile_text(program, &CompileOptions::new().cache("target/xla"))?;
    /// # Ok::<_, typed_dims_xla::XlaError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if XLA cannot compile the program, if the client does not have the devices
    /// in the options, if the options are contradictory, choose no device or choose a device twice,
    /// or if the folder of the cache cannot be created.
    pub fn compile_text(&self, text: &str, options: &CompileOptions) -> Result<Executable, XlaError> {
        let devices = self.devices().len();
        let partitions = match (&options.devices, options.partitions) {
            (Some(chosen), Some(partitions)) if chosen.len() != partitions => {
                return Err(XlaError::arguments(format!(
                    "the program has {partitions} partitions, and {} devices are chosen for it",
                    chosen.len()
                )));
            }
            (Some(chosen), _) => chosen.len(),
            (None, partitions) => partitions.unwrap_or(1),
        };
        if partitions == 0 {
            return Err(XlaError::arguments("a program needs at least one device"));
        }
        if partitions > devices {
            return Err(XlaError::arguments(format!(
                "the program needs {partitions} devices, and the client has {devices}"
            )));
        }
        let mut ids = Vec::new();
        for &device in options.devices.iter().flatten() {
            let Some(device) = self.devices().get(device) else {
                return Err(XlaError::arguments(format!(
                    "there is no device {device}: the client has {devices}"
                )));
            };
            if ids.contains(&device.id) {
                return Err(XlaError::arguments(format!("device {} is chosen twice", device.index)));
            }
            ids.push(device.id);
        }
        let ids = options.devices.is_some().then_some(&ids[..]);
        let proto = proto::compile_options(partitions, ids, &options.flags);
        let compile = || self.inner.client.compile(text, &proto);
        let Some(folder) = &options.cache else { return Ok(Executable::new(compile()?, self)) };
        let store = Store::open(folder)?;
        let Some(plugin) = self.file_hash(|path| store.hash_file(path)) else {
            return Ok(Executable::new(compile()?, self));
        };
        let key = self.identity().with(&plugin).with(&proto).with(text.as_bytes());
        if let Some(bytes) = store.read(&key)
            && let Ok(executable) = self.inner.client.deserialize(&bytes)
        {
            return Ok(Executable::new(executable, self));
        }
        let executable = compile()?;
        if let Ok(bytes) = executable.serialize() {
            store.write(&key, &bytes);
        }
        Ok(Executable::new(executable, self))
    }

    /// Loads an executable that [`Executable::serialize`] returned.
    ///
    /// Unless the process already knows the hash of the plugin's file, this method reads the whole
    /// file to compute it.
    ///
    /// ```no_run
    /// # use typed_dims_xla::pjrt::{Executable, Pjrt};
    /// # fn copy(pjrt: &Pjrt, executable: &Executable) -> Result<Executable, typed_dims_xla::XlaError> {
    /// let bytes = executable.serialize()?;
    /// let again = pjrt.load_executable(&bytes)?;
    /// # Ok(again)
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the bytes are damaged, if the plugin cannot load executables, or if its
    /// file, when it is first hashed, cannot be read or has changed since it was loaded. Also
    /// returns an error if the executable was compiled by another plugin or another version of this
    /// one, for other devices, with other flags in the environment variables `XLA_FLAGS` and
    /// `LIBTPU_INIT_ARGS`, or, on CPUs, for another processor.
    pub fn load_executable(&self, bytes: &[u8]) -> Result<Executable, XlaError> {
        let key = self.serialized_key(self.identity())?;
        let payload = cache::unpack(bytes, &key).map_err(XlaError::arguments)?;
        Ok(Executable::new(self.inner.client.deserialize(payload)?, self))
    }

    /// The key of a serialized executable that was compiled with this [identity](Self::identity).
    fn serialized_key(&self, identity: Key) -> Result<Key, XlaError> {
        let hash = self.file_hash(cache::hash_file).ok_or_else(|| {
            let path = self.inner.api.file.0.display();
            XlaError::arguments(format!(
                "the plugin `{path}` cannot be read, or has changed since it was loaded, so executables cannot be serialized or loaded"
            ))
        })?;
        Ok(identity.with(&hash))
    }

    /// The hash of the plugin's file. If it is not known yet, `hash` computes it. `None` if the
    /// file cannot be read, or has changed since it was loaded.
    fn file_hash(&self, hash: impl FnOnce(&Path) -> std::io::Result<u128>) -> Option<[u8; 16]> {
        let ffi::Api { file: (path, loaded), file_hash, .. } = self.inner.api;
        let compute = || hash(path).ok().filter(|_| cache::file_state(path) == *loaded);
        file_hash.get_or_init(compute).map(u128::to_le_bytes)
    }

    /// What an executable depends on besides its program, its options and the plugin's file: the
    /// platform, versions, devices, environment variables and, on CPUs, the processor.
    fn identity(&self) -> Key {
        let (major, minor) = self.api_version();
        let mut key = Key::default()
            .with(self.inner.platform.as_bytes())
            .with(self.inner.platform_version.as_bytes())
            .with(format!("{major}.{minor}").as_bytes());
        for device in &self.inner.devices {
            key = key.with(format!("{} {}", device.id, device.kind).as_bytes());
        }
        if self.inner.platform == "cpu" {
            key = key.with(cache::processor().as_bytes());
        }
        for variable in ["XLA_FLAGS", "LIBTPU_INIT_ARGS"] {
            key = key.with(std::env::var_os(variable).unwrap_or_default().as_encoded_bytes());
        }
        key
    }
}

impl fmt::Debug for Pjrt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pjrt")
            .field("path", &self.inner.path)
            .field("platform", &self.inner.platform)
            .field("devices", &self.inner.devices)
            .finish_non_exhaustive()
    }
}

/// A device of a client.
///
/// ```no_run
/// # use typed_dims_xla::pjrt::Pjrt;
/// for device in Pjrt::find()?.devices() {
///     println!("{}: {}", device.index(), device.kind());
/// }
/// # Ok::<_, typed_dims_xla::XlaError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Device {
    index: usize,
    id: i32,
    kind: String,
    text: String,
}

impl Device {
    /// The position in [`Pjrt::devices`].
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// The plugin's number for the device.
    #[must_use]
    pub fn id(&self) -> i32 {
        self.id
    }

    /// The model, such as `NVIDIA H100 80GB HBM3`.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The plugin's text for the device.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.text
    }
}

/// The memory that one call of a program needs on a device, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProgramMemory {
    /// Machine code.
    pub code: u64,
    /// Arguments.
    pub arguments: u64,
    /// Outputs.
    pub outputs: u64,
    /// The part of the outputs that takes over the memory of donated arguments.
    pub donated: u64,
    /// Intermediate results.
    pub temporary: u64,
    /// The peak, if the plugin reports it.
    pub peak: Option<u64>,
}

/// The memory of a device. Sizes are in bytes. A number that the plugin does not report is `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryStats {
    /// The memory that is allocated now.
    pub bytes_in_use: u64,
    /// The peak of allocated memory.
    pub peak_bytes_in_use: Option<u64>,
    /// The most that can be allocated.
    pub bytes_limit: Option<u64>,
    /// The memory that the plugin reports as reserved.
    pub bytes_reserved: Option<u64>,
    /// The memory that the allocator holds, whether or not it is in use.
    pub pool_bytes: Option<u64>,
    /// The largest block that could be allocated now.
    pub largest_free_block: Option<u64>,
    /// The number of allocations so far.
    pub allocations: Option<u64>,
    /// The largest allocation so far.
    pub largest_allocation: Option<u64>,
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// Without a plugin for the CPU, or if its file cannot be hard-linked, this test does nothing.
    #[test]
    fn links_to_a_plugin_are_one_plugin() {
        let Ok(pjrt) = Pjrt::find_with(PjrtOptions::new().platform("cpu")) else { return };
        // `TYPED_DIMS_PJRT_PLUGIN` may name the plugin of another platform.
        if pjrt.platform_name() != "cpu" {
            return;
        }
        let file = pjrt.path().canonicalize().unwrap();
        let link = std::env::temp_dir().join(format!("typed-dims-xla-{}_cpu.so", std::process::id()));
        if std::fs::hard_link(&file, &link).is_err() {
            return;
        }
        let other = Pjrt::load(&link);
        std::fs::remove_file(&link).unwrap();
        assert!(std::ptr::eq(pjrt.inner.api, other.unwrap().inner.api));
    }
}
