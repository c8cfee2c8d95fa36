//! Safe wrappers of PJRT's C interface. This is the only file of the crate with `unsafe` code.
//!
//! # Soundness
//!
//! The plugin is trusted to keep the contract of `pjrt_c_api.h`, like any shared library. Under
//! that assumption:
//!
//! * Handles are owned. [`Client`], [`Buffer`] and [`Event`] each own one pointer that the plugin
//!   returned and that no other value owns, and [`RawExecutable`] owns two. They destroy each
//!   pointer once, in `drop`. Devices belong to their client. Pointers do not leave this file.
//! * Handles do not outlive their client: buffers and executables hold an `Arc` of it, and events
//!   are dropped in the method that creates them. Libraries are never unloaded, so the functions of
//!   a client outlive it.
//! * Memory that the plugin reads or writes is borrowed for the whole call. If the plugin uses it
//!   after the call, this file waits, before the borrow ends, for the event that marks the end of
//!   the use.
//! * Lengths are checked in this file, next to the call that relies on them.
//! * The contract allows a client to be used from many threads. Calls that read, consume or free
//!   memory on the device are nevertheless serialized by a mutex per client, because some plugins
//!   have data races there.

#![allow(unsafe_code)]

use super::ElementType;
use super::cache::{Key, file_state};
use crate::XlaError;
use std::collections::HashMap;
use std::ffi::{c_char, c_void};
use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// An object of the plugin with unknown contents.
#[repr(C)]
struct Opaque {
    contents: [u8; 0],
}

type Handle = NonNull<Opaque>;

/// A function of the plugin's table. Its real type depends on its slot.
type Function = unsafe extern "C" fn();

// ----------------------------------------------------------------------------------------------------------------------------
// Arguments

/// The struct that a function of PJRT takes.
///
/// # Safety
///
/// The type is the struct that `pjrt_c_api.h` declares for the function at `SLOT` of the table, or
/// a prefix of it, with `struct_size` and `extension_start` first. All zeros, and any value that
/// the plugin writes, are valid values of the type.
unsafe trait Arguments: Sized {
    const SLOT: usize;
    const FUNCTION: &'static str;

    /// All fields are zero except the size of the struct.
    fn new() -> Self;
}

macro_rules! arguments {
    ($($slot:literal $function:literal $name:ident { $($field:ident: $type:ty),* $(,)? })*) => {$(
        #[repr(C)]
        #[derive(Clone, Copy)]
        struct $name {
            struct_size: usize,
            extension_start: *mut c_void,
            $($field: $type,)*
        }

        // SAFETY: The invocation below copies slots and fields from the header. Fields are
        // integers, raw pointers and optional functions, for which zero is valid. C's booleans and
        // enums are integers here, so any value that the plugin writes is valid.
        unsafe impl Arguments for $name {
            const SLOT: usize = $slot;
            const FUNCTION: &'static str = $function;

            fn new() -> Self {
                #[allow(unused_mut, unused_assignments)]
                const SIZE: usize = {
                    // As in the header, the size reaches up to the end of the last field, without
                    // trailing padding.
                    let mut end = offset_of!($name, extension_start) + size_of::<*mut c_void>();
                    $(end = offset_of!($name, $field) + size_of::<$type>();)*
                    end
                };
                // SAFETY: All zeros are a valid value, by the contract of the trait.
                let mut this: Self = unsafe { std::mem::zeroed() };
                this.struct_size = SIZE;
                this
            }
        }
    )*};
}

type Raw = *mut Opaque;

arguments! {
    0 "PJRT_Error_Destroy" ErrorDestroy { error: Raw }
    1 "PJRT_Error_Message" ErrorMessage { error: Raw, message: *const c_char, message_size: usize }
    2 "PJRT_Error_GetCode" ErrorGetCode { error: Raw, code: i32 }
    3 "PJRT_Plugin_Initialize" PluginInitialize {}
    4 "PJRT_Plugin_Attributes" PluginAttributes { attributes: *const NamedValue, num_attributes: usize }
    5 "PJRT_Event_Destroy" EventDestroy { event: Raw }
    8 "PJRT_Event_Await" EventAwait { event: Raw }
    10 "PJRT_Client_Create" ClientCreate {
        create_options: *const NamedValue, num_options: usize,
        kv_get_callback: Option<Function>, kv_get_user_arg: *mut c_void,
        kv_put_callback: Option<Function>, kv_put_user_arg: *mut c_void,
        client: Raw,
        kv_try_get_callback: Option<Function>, kv_try_get_user_arg: *mut c_void,
    }
    11 "PJRT_Client_Destroy" ClientDestroy { client: Raw }
    12 "PJRT_Client_PlatformName" ClientPlatformName { client: Raw, text: *const c_char, text_size: usize }
    14 "PJRT_Client_PlatformVersion" ClientPlatformVersion { client: Raw, text: *const c_char, text_size: usize }
    16 "PJRT_Client_AddressableDevices" ClientAddressableDevices { client: Raw, devices: *const Raw, num_devices: usize }
    20 "PJRT_Client_Compile" ClientCompile {
        client: Raw, program: *const Program, compile_options: *const c_char, compile_options_size: usize, executable: Raw,
    }
    22 "PJRT_Client_BufferFromHostBuffer" BufferFromHostBuffer {
        client: Raw, data: *const c_void, element_type: i32, dims: *const i64, num_dims: usize,
        byte_strides: *const i64, num_byte_strides: usize, host_buffer_semantics: i32,
        device: Raw, memory: Raw, device_layout: *mut MemoryLayout, done_with_host_buffer: Raw, buffer: Raw,
    }
    23 "PJRT_DeviceDescription_Id" DescriptionId { description: Raw, id: i32 }
    26 "PJRT_DeviceDescription_Kind" DescriptionKind { description: Raw, text: *const c_char, text_size: usize }
    28 "PJRT_DeviceDescription_ToString" DescriptionToString { description: Raw, text: *const c_char, text_size: usize }
    29 "PJRT_Device_GetDescription" DeviceGetDescription { device: Raw, description: Raw }
    34 "PJRT_Device_MemoryStats" DeviceMemoryStats {
        device: Raw, bytes_in_use: i64,
        peak_bytes_in_use: i64, peak_bytes_in_use_is_set: u8,
        num_allocs: i64, num_allocs_is_set: u8,
        largest_alloc_size: i64, largest_alloc_size_is_set: u8,
        bytes_limit: i64, bytes_limit_is_set: u8,
        bytes_reserved: i64, bytes_reserved_is_set: u8,
        peak_bytes_reserved: i64, peak_bytes_reserved_is_set: u8,
        bytes_reservable_limit: i64, bytes_reservable_limit_is_set: u8,
        largest_free_block_bytes: i64, largest_free_block_bytes_is_set: u8,
        pool_bytes: i64, pool_bytes_is_set: u8,
        peak_pool_bytes: i64, peak_pool_bytes_is_set: u8,
    }
    40 "PJRT_Executable_Destroy" ExecutableDestroy { executable: Raw }
    44 "PJRT_Executable_NumOutputs" ExecutableNumOutputs { executable: Raw, num_outputs: usize }
    48 "PJRT_Executable_OptimizedProgram" ExecutableOptimizedProgram { executable: Raw, program: *mut Program }
    49 "PJRT_Executable_Serialize" ExecutableSerialize {
        executable: Raw, serialized_bytes: *const c_char, serialized_bytes_size: usize,
        serialized_executable: Raw, deleter: Option<unsafe extern "C" fn(Raw)>,
    }
    50 "PJRT_LoadedExecutable_Destroy" LoadedDestroy { executable: Raw }
    51 "PJRT_LoadedExecutable_GetExecutable" LoadedGetExecutable { loaded: Raw, executable: Raw }
    52 "PJRT_LoadedExecutable_AddressableDevices" LoadedAddressableDevices {
        executable: Raw, devices: *const Raw, num_devices: usize,
    }
    55 "PJRT_LoadedExecutable_Execute" LoadedExecute {
        executable: Raw, options: *mut ExecuteOptions, argument_lists: *const *const Raw, num_devices: usize, num_args: usize,
        output_lists: *const *mut Raw, device_complete_events: *mut Raw, execute_device: Raw,
    }
    56 "PJRT_Executable_DeserializeAndLoad" DeserializeAndLoad {
        client: Raw, serialized: *const c_char, serialized_size: usize, loaded: Raw,
        options: *const c_char, options_size: usize,
    }
    58 "PJRT_Buffer_Destroy" BufferDestroy { buffer: Raw }
    59 "PJRT_Buffer_ElementType" BufferElementType { buffer: Raw, element_type: i32 }
    60 "PJRT_Buffer_Dimensions" BufferDimensions { buffer: Raw, dims: *const i64, num_dims: usize }
    68 "PJRT_Buffer_IsDeleted" BufferIsDeleted { buffer: Raw, is_deleted: u8 }
    70 "PJRT_Buffer_ToHostBuffer" BufferToHostBuffer {
        src: Raw, host_layout: *mut MemoryLayout, dst: *mut c_void, dst_size: usize, event: Raw,
    }
    72 "PJRT_Buffer_ReadyEvent" BufferReadyEvent { buffer: Raw, event: Raw }
    90 "PJRT_Executable_OutputElementTypes" OutputElementTypes { executable: Raw, types: *const i32, num_types: usize }
    91 "PJRT_Executable_OutputDimensions" OutputDimensions {
        executable: Raw, num_outputs: usize, dims: *const i64, dim_sizes: *const usize,
    }
    96 "PJRT_Executable_GetCompiledMemoryStats" CompiledMemoryStats {
        executable: Raw, code: i64, argument: i64, output: i64, alias: i64, temporary: i64,
        host_code: i64, host_argument: i64, host_output: i64, host_alias: i64, host_temporary: i64,
        peak: i64,
    }
}

/// The slots that every program needs. A table that lacks one is rejected when it is loaded.
const NEEDED: [usize; 27] =
    [0, 1, 2, 3, 5, 8, 10, 11, 12, 14, 16, 20, 22, 23, 29, 40, 44, 50, 51, 52, 55, 58, 59, 60, 68, 70, 72];

/// The fields are as in `pjrt_c_api.h`.
#[repr(C)]
#[derive(Clone, Copy)]
struct NamedValue {
    struct_size: usize,
    extension_start: *mut c_void,
    name: *const c_char,
    name_size: usize,
    value_type: i32,
    value: NamedValueData,
    value_size: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
union NamedValueData {
    string: *const c_char,
    int: i64,
    ints: *const i64,
    float: f32,
    boolean: u8,
}

#[repr(C)]
struct Program {
    struct_size: usize,
    extension_start: *mut c_void,
    code: *mut c_char,
    code_size: usize,
    format: *const c_char,
    format_size: usize,
}

#[repr(C)]
struct TiledLayout {
    struct_size: usize,
    extension_start: *mut c_void,
    minor_to_major: *const i64,
    minor_to_major_size: usize,
    tile_dims: *const i64,
    tile_dim_sizes: *const usize,
    num_tiles: usize,
}

/// A layout without tiles. In the header, `tiled` is in a union with a struct of strides, which is
/// smaller.
#[repr(C)]
struct MemoryLayout {
    struct_size: usize,
    extension_start: *mut c_void,
    tiled: TiledLayout,
    layout_type: i32,
}

#[repr(C)]
struct ExecuteOptions {
    struct_size: usize,
    extension_start: *mut c_void,
    send_callbacks: *mut c_void,
    recv_callbacks: *mut c_void,
    num_send_ops: usize,
    num_recv_ops: usize,
    launch_id: i32,
    non_donatable_input_indices: *const i64,
    num_non_donatable_input_indices: usize,
    context: *mut c_void,
    call_location: *const c_char,
    num_tasks: usize,
    task_ids: *mut i32,
    incarnation_ids: *mut i64,
}

const PROGRAM_SIZE: usize = size_of::<Program>();

// ---------------------------------------------------------------------------------------------------------------------------
// The table

/// The head of the table. The functions follow it.
#[repr(C)]
struct TableHead {
    struct_size: usize,
    extension_start: *mut c_void,
    version_struct_size: usize,
    version_extension_start: *mut c_void,
    major: i32,
    minor: i32,
}

/// The functions of a loaded and initialized plugin.
pub(super) struct Api {
    slots: Box<[Option<Function>]>,
    version: (i32, i32),
    /// The plugin's file, and its state when it was loaded.
    pub(super) file: (PathBuf, Option<Key>),
    /// The hash of the plugin's file, set when it is first needed. `None` if the file cannot be
    /// read or has changed.
    pub(super) file_hash: OnceLock<Option<u128>>,
}

impl Api {
    /// Loads and initializes a plugin, unless that has been done already, even under another path.
    ///
    /// `before` lists libraries that the plugin needs. Those that can be loaded are loaded into the
    /// global scope first.
    pub(super) fn load(path: &Path, before: &[PathBuf], quiet: bool) -> Result<&'static Api, XlaError> {
        /// The initialized plugins, by the addresses of their tables.
        static LOADED: Mutex<Option<HashMap<usize, &'static Api>>> = Mutex::new(None);
        let failed = |reason: String| XlaError::PluginNotLoaded { path: path.to_owned(), reason };
        let file = path.canonicalize().map_err(|error| failed(error.to_string()))?;
        if !file.is_file() {
            return Err(failed("it is not a file".to_owned()));
        }
        let state = file_state(&file);
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        let loaded = loaded.get_or_insert_default();
        super::elf::check(&file).map_err(failed)?;
        if quiet {
            library::quiet();
        }
        library::open_all(before);
        let library = library::open(&file, false).map_err(failed)?;
        let symbol = library::symbol(library, c"GetPjrtApi")
            .ok_or_else(|| failed("it is a shared library without the function `GetPjrtApi`".to_owned()))?;
        // SAFETY: A symbol of this name is `const PJRT_Api* GetPjrtApi()` in every PJRT plugin. The
        // library stays loaded.
        let table = unsafe {
            let get = std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> *const TableHead>(symbol);
            get()
        };
        // The loader maps a file once, whatever path it is given, so links to a plugin share a
        // table.
        if let Some(api) = loaded.get(&table.addr()) {
            return Ok(api);
        }
        // SAFETY: A plugin returns null or its table, which lives as long as the library and starts
        // with its size.
        let mut api = unsafe { Api::read(table, path)? };
        api.file = (file, state);
        // SAFETY: The arguments contain no pointers. No other function of the table has been
        // called, and `LOADED` prevents a second initialization once this one has succeeded.
        unsafe { api.call(&mut PluginInitialize::new())? };
        let api: &'static Api = Box::leak(Box::new(api));
        loaded.insert(table.addr(), api);
        Ok(api)
    }

    /// Copies the table after checking its size and version.
    ///
    /// # Safety
    ///
    /// `table` is null, not aligned, or the start of a table that has as many bytes as it says.
    unsafe fn read(table: *const TableHead, path: &Path) -> Result<Api, XlaError> {
        let refused = |reason: String| XlaError::PluginVersion { path: path.to_owned(), reason };
        if table.is_null() || !table.is_aligned() {
            return Err(refused("`GetPjrtApi` returned no table of functions".to_owned()));
        }
        // SAFETY: By the caller's promise, the table starts with its size.
        let size = unsafe { (*table).struct_size };
        if size < size_of::<TableHead>() {
            return Err(refused(format!("its table of functions has only {size} bytes")));
        }
        // SAFETY: The size has just been checked.
        let version = unsafe { ((*table).major, (*table).minor) };
        if version.0 != 0 {
            return Err(refused(format!(
                "it has version {}.{} of the PJRT interface, and this crate needs version 0",
                version.0, version.1
            )));
        }
        // Real tables have far fewer than 1024 functions. A larger size would be garbage.
        let count = ((size - size_of::<TableHead>()) / size_of::<Function>()).min(1024);
        // SAFETY: By its own size, the table has `count` pointers after its head. Each is null or a
        // function.
        let slots: Box<[Option<Function>]> =
            unsafe { std::slice::from_raw_parts(table.add(1).cast::<Option<Function>>(), count).into() };
        if let Some(slot) = NEEDED.into_iter().find(|slot| !matches!(slots.get(*slot), Some(Some(_)))) {
            return Err(refused(format!(
                "its table of functions (version {}.{}, {count} functions) lacks number {slot}; install a newer plugin",
                version.0, version.1
            )));
        }
        Ok(Api { slots, version, file: (path.to_owned(), None), file_hash: OnceLock::new() })
    }

    pub(super) fn version(&self) -> (i32, i32) {
        self.version
    }

    /// Calls the function that takes `A` and returns `R`. `None` if the plugin lacks it.
    ///
    /// # Safety
    ///
    /// The header declares the function with the result `R`. The pointers in `arguments` are valid
    /// as the header requires for this function, for as long as it requires.
    unsafe fn invoke<A: Arguments, R>(&self, arguments: &mut A) -> Option<R> {
        let function = self.slots.get(A::SLOT).copied().flatten()?;
        // SAFETY: The function at this slot takes a pointer to `A`, by the contract of `Arguments`.
        // The caller has promised the rest.
        unsafe {
            let function = std::mem::transmute::<Function, unsafe extern "C" fn(*mut A) -> R>(function);
            Some(function(arguments))
        }
    }

    /// Calls a function that returns an error or null.
    ///
    /// # Safety
    ///
    /// As for [`invoke`](Self::invoke), and the function returns a pointer to an error.
    unsafe fn call<A: Arguments>(&self, arguments: &mut A) -> Result<(), XlaError> {
        // SAFETY: The caller's promise.
        let error = unsafe { self.invoke::<A, Raw>(arguments) };
        let error = error.ok_or(XlaError::Unsupported { function: A::FUNCTION })?;
        // SAFETY: The plugin has just returned the error to us.
        NonNull::new(error).map_or(Ok(()), |error| Err(unsafe { self.take_error(error, A::FUNCTION) }))
    }

    /// Reads an error and frees it.
    ///
    /// # Safety
    ///
    /// The plugin returned the error, and nothing else uses it.
    unsafe fn take_error(&self, error: Handle, function: &'static str) -> XlaError {
        let mut text = ErrorMessage::new();
        text.error = error.as_ptr();
        // SAFETY: The error is valid, as the caller promised. The text lives as long as the error,
        // and is copied before the error is freed.
        let message = unsafe {
            self.invoke::<_, ()>(&mut text);
            copy_text(text.message, text.message_size)
        };
        let mut code = ErrorGetCode::new();
        code.error = error.as_ptr();
        // SAFETY: As before. If `PJRT_Error_GetCode` itself returned an error, that error would
        // leak: passing it to this method could recurse.
        unsafe { self.invoke::<_, Raw>(&mut code) };
        let mut destroy = ErrorDestroy::new();
        destroy.error = error.as_ptr();
        // SAFETY: Nothing else uses the error, and this is the last use of it.
        unsafe { self.invoke::<_, ()>(&mut destroy) };
        XlaError::Xla { function, code: code.code, message }
    }

    /// The attributes of the plugin, such as its versions of StableHLO.
    pub(super) fn attributes(&self) -> Vec<(String, Attribute)> {
        let mut arguments = PluginAttributes::new();
        // SAFETY: The arguments contain no pointers.
        if unsafe { self.call(&mut arguments) }.is_err() || arguments.attributes.is_null() {
            return Vec::new();
        }
        let mut attributes = Vec::new();
        // SAFETY: There is a first element unless the array is empty, and it starts with its size.
        let is_known = arguments.num_attributes > 0
            && unsafe { (*arguments.attributes).struct_size } == size_of::<NamedValue>();
        for index in 0..if is_known { arguments.num_attributes } else { 0 } {
            // SAFETY: The plugin returns an array of this length that lives as long as the process.
            // Its elements have the size of `NamedValue`.
            let value = unsafe { &*arguments.attributes.add(index) };
            // SAFETY: The type says which field of the union is set, and the pointers in it are
            // valid for `value_size` elements. The name is valid for `name_size` bytes.
            let (name, attribute) = unsafe {
                let attribute = match value.value_type {
                    0 => Attribute::Text(copy_text(value.value.string, value.value_size)),
                    1 => Attribute::Ints(vec![value.value.int]),
                    2 => Attribute::Ints(copy_slice(value.value.ints, value.value_size)),
                    3 => Attribute::Float(value.value.float),
                    4 => Attribute::Bool(value.value.boolean != 0),
                    _ => continue,
                };
                (copy_text(value.name, value.name_size), attribute)
            };
            attributes.push((name, attribute));
        }
        attributes
    }
}

/// The value of an attribute of a plugin.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Attribute {
    Text(String),
    Ints(Vec<i64>),
    Float(f32),
    Bool(bool),
}

/// Copies text. Null is the empty text.
///
/// # Safety
///
/// `text` is null or valid for `size` bytes.
unsafe fn copy_text(text: *const c_char, size: usize) -> String {
    // SAFETY: The caller's promise.
    String::from_utf8_lossy(&unsafe { copy_slice(text.cast::<u8>(), size) }).into_owned()
}

/// Copies an array. Null is the empty array.
///
/// # Safety
///
/// `start` is null, or valid and aligned for `size` elements.
unsafe fn copy_slice<T: Copy>(start: *const T, size: usize) -> Vec<T> {
    if start.is_null() || size == 0 {
        return Vec::new();
    }
    // SAFETY: The caller's promise.
    unsafe { std::slice::from_raw_parts(start, size) }.to_vec()
}

/// A pointer that the plugin must have set.
fn given(pointer: Raw, function: &'static str) -> Result<Handle, XlaError> {
    NonNull::new(pointer).ok_or_else(|| XlaError::unexpected(function, "an object", "a null pointer"))
}

// --------------------------------------------------------------------------------------------------------------------------------
// Event

/// An operation of the plugin that may still be running.
struct Event {
    api: &'static Api,
    raw: Handle,
}

impl Event {
    fn wait(self) -> Result<(), XlaError> {
        let mut arguments = EventAwait::new();
        arguments.event = self.raw.as_ptr();
        // SAFETY: We own the event.
        unsafe { self.api.call(&mut arguments) }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let mut arguments = EventDestroy::new();
        arguments.event = self.raw.as_ptr();
        // SAFETY: We own the event, and this is the last use of it. An error would mean that
        // nothing was freed, which a destructor cannot report.
        let _ = unsafe { self.api.call(&mut arguments) };
    }
}

// -------------------------------------------------------------------------------------------------------------------------------
// Client

/// An option for the creation of a client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ClientOption {
    Int(&'static str, i64),
    Bool(&'static str, bool),
}

#[derive(Clone, Debug)]
pub(super) struct DeviceText {
    pub(super) id: i32,
    pub(super) kind: String,
    pub(super) text: String,
}

pub(super) struct Client {
    api: &'static Api,
    raw: Handle,
    devices: Vec<Handle>,
    lock: Mutex<()>,
}

// SAFETY: PJRT clients, their devices, executables, buffers and events may be used from any thread,
// and from several at once: JAX and PyTorch/XLA rely on it. None of them is tied to the thread that
// created it.
unsafe impl Send for Client {}
// SAFETY: As above.
unsafe impl Sync for Client {}

impl Client {
    pub(super) fn new(api: &'static Api, options: &[ClientOption]) -> Result<Client, XlaError> {
        let options: Vec<NamedValue> = options
            .iter()
            .map(|option| {
                let (name, value_type, value) = match *option {
                    ClientOption::Int(name, int) => (name, 1, NamedValueData { int }),
                    ClientOption::Bool(name, value) => (name, 4, NamedValueData { boolean: u8::from(value) }),
                };
                NamedValue {
                    struct_size: size_of::<NamedValue>(),
                    extension_start: ptr::null_mut(),
                    name: name.as_ptr().cast(),
                    name_size: name.len(),
                    value_type,
                    value,
                    value_size: 1,
                }
            })
            .collect();
        let mut arguments = ClientCreate::new();
        arguments.create_options = options.as_ptr();
        arguments.num_options = options.len();
        // SAFETY: The options live until the end of this function. There are no callbacks.
        unsafe { api.call(&mut arguments)? };
        let raw = given(arguments.client, ClientCreate::FUNCTION)?;
        let mut client = Client { api, raw, devices: Vec::new(), lock: Mutex::new(()) };
        let mut list = ClientAddressableDevices::new();
        list.client = raw.as_ptr();
        // SAFETY: The client is valid, and the array that it returns is valid for the number of
        // devices that it returns.
        client.devices = unsafe {
            api.call(&mut list)?;
            handles(list.devices, list.num_devices)
        };
        if client.devices.is_empty() {
            let function = ClientAddressableDevices::FUNCTION;
            return Err(XlaError::unexpected(function, "at least one", "no devices"));
        }
        Ok(client)
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn platform_name(&self) -> Result<String, XlaError> {
        let mut arguments = ClientPlatformName::new();
        arguments.client = self.raw.as_ptr();
        // SAFETY: The client is valid, and the text lives as long as the client.
        unsafe {
            self.api.call(&mut arguments)?;
            Ok(copy_text(arguments.text, arguments.text_size))
        }
    }

    pub(super) fn platform_version(&self) -> Result<String, XlaError> {
        let mut arguments = ClientPlatformVersion::new();
        arguments.client = self.raw.as_ptr();
        // SAFETY: The client is valid, and the text lives as long as the client.
        unsafe {
            self.api.call(&mut arguments)?;
            Ok(copy_text(arguments.text, arguments.text_size))
        }
    }

    pub(super) fn device_count(&self) -> usize {
        self.devices.len()
    }

    fn device(&self, index: usize) -> Result<Handle, XlaError> {
        self.devices.get(index).copied().ok_or_else(|| {
            XlaError::arguments(format!("there is no device {index}: the client has {}", self.devices.len()))
        })
    }

    pub(super) fn describe(&self, device: usize) -> Result<DeviceText, XlaError> {
        let mut description = DeviceGetDescription::new();
        description.device = self.device(device)?.as_ptr();
        // SAFETY: The device lives as long as the client.
        unsafe { self.api.call(&mut description)? };
        let description = given(description.description, DeviceGetDescription::FUNCTION)?.as_ptr();
        let mut id = DescriptionId::new();
        id.description = description;
        let mut kind = DescriptionKind::new();
        kind.description = description;
        let mut text = DescriptionToString::new();
        text.description = description;
        // SAFETY: The description and its texts live as long as the device. A text stays null if a
        // function is missing or fails.
        unsafe {
            self.api.call(&mut id)?;
            let _ = self.api.call(&mut kind);
            let _ = self.api.call(&mut text);
            Ok(DeviceText {
                id: id.id,
                kind: copy_text(kind.text, kind.text_size),
                text: copy_text(text.text, text.text_size),
            })
        }
    }

    pub(super) fn memory_stats(&self, device: usize) -> Result<super::MemoryStats, XlaError> {
        let mut arguments = DeviceMemoryStats::new();
        arguments.device = self.device(device)?.as_ptr();
        // SAFETY: The device lives as long as the client.
        unsafe { self.api.call(&mut arguments)? };
        let a = arguments;
        let set = |value: i64, is_set: u8| (is_set != 0).then(|| value.max(0).unsigned_abs());
        Ok(super::MemoryStats {
            bytes_in_use: a.bytes_in_use.max(0).unsigned_abs(),
            peak_bytes_in_use: set(a.peak_bytes_in_use, a.peak_bytes_in_use_is_set),
            bytes_limit: set(a.bytes_limit, a.bytes_limit_is_set),
            bytes_reserved: set(a.bytes_reserved, a.bytes_reserved_is_set),
            pool_bytes: set(a.pool_bytes, a.pool_bytes_is_set),
            largest_free_block: set(a.largest_free_block_bytes, a.largest_free_block_bytes_is_set),
            allocations: set(a.num_allocs, a.num_allocs_is_set),
            largest_allocation: set(a.largest_alloc_size, a.largest_alloc_size_is_set),
        })
    }

    /// Copies elements to a device. Strides are in bytes and not negative. Without strides, the
    /// elements are in row-major order.
    pub(super) fn upload(
        self: &Arc<Self>,
        data: &[u8],
        element_type: ElementType,
        sizes: &[usize],
        strides: Option<&[i64]>,
        device: usize,
    ) -> Result<Buffer, XlaError> {
        let raw_device = self.device(device)?;
        let dims = dims(sizes)?;
        let reach = match strides {
            Some(strides) if strides.len() != sizes.len() => None,
            Some(strides) => reach(sizes, strides, element_type.size()),
            None => element_type.bytes(sizes),
        };
        if reach.is_none_or(|reach| reach > data.len()) {
            return Err(XlaError::arguments(format!(
                "the elements of {element_type}{sizes:?} do not fit in the {} bytes given",
                data.len()
            )));
        }
        let mut arguments = BufferFromHostBuffer::new();
        arguments.client = self.raw.as_ptr();
        arguments.data = data.as_ptr().cast();
        arguments.element_type = element_type.code();
        arguments.dims = dims.as_ptr();
        arguments.num_dims = dims.len();
        if let Some(strides) = strides {
            arguments.byte_strides = strides.as_ptr();
            arguments.num_byte_strides = strides.len();
        }
        arguments.host_buffer_semantics = 0; // kImmutableOnlyDuringCall
        arguments.device = raw_device.as_ptr();
        // SAFETY: The client and its device are valid. The plugin reads `reach` bytes, which the
        // slice has, and only during the call. The other arrays live until the end of this
        // function.
        unsafe { self.api.call(&mut arguments)? };
        let done = NonNull::new(arguments.done_with_host_buffer).map(|raw| Event { api: self.api, raw });
        // By the contract, the data is not read after the call. Plugins that break the contract
        // still set this event after their last read. The event's error is ignored, because it is
        // also the buffer's error, which is reported to readers.
        if let Some(done) = done {
            let _ = done.wait();
        }
        let raw = given(arguments.buffer, BufferFromHostBuffer::FUNCTION)?;
        Ok(Buffer { client: self.clone(), raw, device, element_type, sizes: sizes.into() })
    }

    /// Compiles StableHLO text. `options` is a serialized `CompileOptionsProto`.
    pub(super) fn compile(self: &Arc<Self>, text: &str, options: &[u8]) -> Result<RawExecutable, XlaError> {
        const FORMAT: &str = "mlir";
        // The parser of some plugins reads up to a zero byte, whatever the size is.
        let mut code = Vec::with_capacity(text.len() + 1);
        code.extend_from_slice(text.as_bytes());
        code.push(0);
        let program = Program {
            struct_size: PROGRAM_SIZE,
            extension_start: ptr::null_mut(),
            code: code.as_mut_ptr().cast(),
            code_size: text.len(),
            format: FORMAT.as_ptr().cast(),
            format_size: FORMAT.len(),
        };
        let mut arguments = ClientCompile::new();
        arguments.client = self.raw.as_ptr();
        arguments.program = &raw const program;
        arguments.compile_options = options.as_ptr().cast();
        arguments.compile_options_size = options.len();
        // SAFETY: The client is valid. Program and options are only read, and live until the end of
        // this function.
        unsafe { self.api.call(&mut arguments)? };
        let loaded = given(arguments.executable, ClientCompile::FUNCTION)?;
        // SAFETY: The client has just compiled it, and nothing else owns it.
        unsafe { RawExecutable::new(self, loaded) }
    }

    /// Loads the bytes that [`RawExecutable::serialize`] returned.
    pub(super) fn deserialize(self: &Arc<Self>, bytes: &[u8]) -> Result<RawExecutable, XlaError> {
        let mut arguments = DeserializeAndLoad::new();
        arguments.client = self.raw.as_ptr();
        arguments.serialized = bytes.as_ptr().cast();
        arguments.serialized_size = bytes.len();
        // SAFETY: The client is valid. The bytes are only read during the call. The caller has
        // verified by a checksum that they are undamaged, and by a key that they come from this
        // plugin; a forged executable is like a forged shared library.
        unsafe { self.api.call(&mut arguments)? };
        let loaded = given(arguments.loaded, DeserializeAndLoad::FUNCTION)?;
        // SAFETY: The client has just loaded it, and nothing else owns it.
        unsafe { RawExecutable::new(self, loaded) }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let mut arguments = ClientDestroy::new();
        arguments.client = self.raw.as_ptr();
        // SAFETY: This is the last handle of the client: buffers and executables hold an `Arc` of
        // it, and are destroyed before.
        let _ = unsafe { self.api.call(&mut arguments) };
    }
}

/// Copies an array of handles, without null handles.
///
/// # Safety
///
/// `start` is null, or valid and aligned for `size` pointers.
unsafe fn handles(start: *const Raw, size: usize) -> Vec<Handle> {
    // SAFETY: The caller's promise.
    unsafe { copy_slice(start, size) }.into_iter().filter_map(NonNull::new).collect()
}

fn dims(sizes: &[usize]) -> Result<Vec<i64>, XlaError> {
    let dims: Option<Vec<i64>> = sizes.iter().map(|&size| i64::try_from(size).ok()).collect();
    dims.ok_or_else(|| XlaError::arguments(format!("the sizes {sizes:?} are too large")))
}

/// The number of bytes from the start of the first element to the end of the last one at these
/// strides: 0 if there are no elements. Otherwise, `None` if a stride is negative or the number is
/// too large.
fn reach(sizes: &[usize], strides: &[i64], element: usize) -> Option<usize> {
    if sizes.contains(&0) {
        return Some(0);
    }
    sizes.iter().zip(strides).try_fold(element, |reach, (&size, &stride)| {
        usize::try_from(stride).ok()?.checked_mul(size - 1)?.checked_add(reach)
    })
}

// -------------------------------------------------------------------------------------------------------------------------------
// Buffer

/// An array in the memory of a device.
pub(super) struct Buffer {
    client: Arc<Client>,
    raw: Handle,
    device: usize,
    element_type: ElementType,
    sizes: Box<[usize]>,
}

// SAFETY: See `Client`.
unsafe impl Send for Buffer {}
// SAFETY: See `Client`.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Takes a buffer that a program returned, and asks for its type.
    ///
    /// # Safety
    ///
    /// `raw` is a buffer of this client without another owner.
    unsafe fn new(client: &Arc<Client>, raw: Handle, device: usize) -> Result<Buffer, XlaError> {
        // The type is set below. The buffer is owned from here on, so that an error frees it.
        let element_type = ElementType::Bool;
        let mut buffer = Buffer { client: client.clone(), raw, device, element_type, sizes: Box::default() };
        let mut code = BufferElementType::new();
        code.buffer = raw.as_ptr();
        let mut dims = BufferDimensions::new();
        dims.buffer = raw.as_ptr();
        // SAFETY: The buffer is valid. The array of sizes lives as long as the buffer.
        let sizes = unsafe {
            client.api.call(&mut code)?;
            client.api.call(&mut dims)?;
            copy_slice(dims.dims, dims.num_dims)
        };
        buffer.element_type = ElementType::from_code(code.element_type).ok_or_else(|| {
            XlaError::arguments(format!(
                "an output of the program has the element type number {} of PJRT, which has no Rust type",
                code.element_type
            ))
        })?;
        let sizes: Option<Box<[usize]>> = sizes.iter().map(|&size| usize::try_from(size).ok()).collect();
        buffer.sizes = sizes.ok_or_else(|| {
            XlaError::unexpected("PJRT_Buffer_Dimensions", "the sizes of an output", "a negative size")
        })?;
        Ok(buffer)
    }

    pub(super) fn device(&self) -> usize {
        self.device
    }

    pub(super) fn element_type(&self) -> ElementType {
        self.element_type
    }

    pub(super) fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// Whether the memory has been donated to a program.
    pub(super) fn is_deleted(&self) -> bool {
        let mut arguments = BufferIsDeleted::new();
        arguments.buffer = self.raw.as_ptr();
        // SAFETY: The buffer is valid.
        unsafe { self.client.api.call(&mut arguments) }.is_ok() && arguments.is_deleted != 0
    }

    /// Calls a function that reads the array. Returns an error if the array was donated.
    ///
    /// # Safety
    ///
    /// As for [`Api::call`].
    unsafe fn call<A: Arguments>(&self, arguments: &mut A) -> Result<(), XlaError> {
        let _lock = self.client.lock();
        // This check is within the lock, so that no other thread donates the buffer before the
        // call.
        if self.is_deleted() {
            return Err(XlaError::arguments(format!(
                "{}{:?} on device {} was donated to a program, which took its memory; use the program's output instead",
                self.element_type, self.sizes, self.device
            )));
        }
        // SAFETY: The caller's promise.
        unsafe { self.client.api.call(arguments) }
    }

    /// Waits until the array has been computed.
    pub(super) fn ready(&self) -> Result<(), XlaError> {
        let mut arguments = BufferReadyEvent::new();
        arguments.buffer = self.raw.as_ptr();
        // SAFETY: The buffer is valid. We own the event that is returned.
        unsafe { self.call(&mut arguments)? };
        let raw = given(arguments.event, BufferReadyEvent::FUNCTION)?;
        Event { api: self.client.api, raw }.wait()
    }

    /// Waits until the array has been computed, and copies its elements in row-major order.
    pub(super) fn read(&self, target: &mut [u8]) -> Result<(), XlaError> {
        let bytes = self.element_type.bytes(&self.sizes);
        if bytes != Some(target.len()) {
            return Err(XlaError::arguments(format!(
                "{}{:?} has {} bytes, and the slice to copy them to has {}",
                self.element_type,
                self.sizes,
                bytes.map_or_else(|| "too many".to_owned(), |bytes| bytes.to_string()),
                target.len()
            )));
        }
        let minor_to_major: Vec<i64> = (0..self.sizes.len() as i64).rev().collect();
        let mut layout = MemoryLayout {
            struct_size: offset_of!(MemoryLayout, layout_type) + size_of::<i32>(),
            extension_start: ptr::null_mut(),
            tiled: TiledLayout {
                struct_size: size_of::<TiledLayout>(),
                extension_start: ptr::null_mut(),
                minor_to_major: minor_to_major.as_ptr(),
                minor_to_major_size: minor_to_major.len(),
                tile_dims: ptr::null(),
                tile_dim_sizes: ptr::null(),
                num_tiles: 0,
            },
            layout_type: 0, // tiled
        };
        let mut arguments = BufferToHostBuffer::new();
        arguments.src = self.raw.as_ptr();
        arguments.host_layout = &raw mut layout;
        // SAFETY: The buffer is valid, and the layout lives until the end of this function. Without
        // a target, this queries the size.
        unsafe { self.call(&mut arguments)? };
        drop(NonNull::new(arguments.event).map(|raw| Event { api: self.client.api, raw }));
        if arguments.dst_size != target.len() {
            return Err(XlaError::unexpected(
                BufferToHostBuffer::FUNCTION,
                format!("{} bytes for {}{:?}", target.len(), self.element_type, self.sizes),
                format!("a size of {} bytes", arguments.dst_size),
            ));
        }
        if target.is_empty() {
            return self.ready();
        }
        let mut arguments = BufferToHostBuffer::new();
        arguments.src = self.raw.as_ptr();
        arguments.host_layout = &raw mut layout;
        arguments.dst = target.as_mut_ptr().cast();
        arguments.dst_size = target.len();
        // SAFETY: As before. The plugin writes at most `dst_size` bytes before the event occurs.
        // The next lines wait for it while `target` is still borrowed.
        unsafe { self.call(&mut arguments)? };
        let raw = given(arguments.event, BufferToHostBuffer::FUNCTION)?;
        Event { api: self.client.api, raw }.wait()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut arguments = BufferDestroy::new();
        arguments.buffer = self.raw.as_ptr();
        let _lock = self.client.lock();
        // SAFETY: We own the buffer, and this is the last use of it. The plugin keeps the memory
        // until programs that read it are done.
        let _ = unsafe { self.client.api.call(&mut arguments) };
    }
}

// ---------------------------------------------------------------------------------------------------------------------------
// RawExecutable

/// A compiled program.
pub(super) struct RawExecutable {
    client: Arc<Client>,
    loaded: Handle,
    /// `None` only until `new` has set it.
    raw: Option<Handle>,
    devices: Vec<usize>,
    outputs: usize,
}

// SAFETY: See `Client`.
unsafe impl Send for RawExecutable {}
// SAFETY: See `Client`.
unsafe impl Sync for RawExecutable {}

impl RawExecutable {
    /// # Safety
    ///
    /// `loaded` is an executable of this client without another owner.
    unsafe fn new(client: &Arc<Client>, loaded: Handle) -> Result<RawExecutable, XlaError> {
        let api = client.api;
        let client = client.clone();
        let mut this = RawExecutable { client, loaded, raw: None, devices: Vec::new(), outputs: 0 };
        let mut arguments = LoadedGetExecutable::new();
        arguments.loaded = loaded.as_ptr();
        // SAFETY: The executable is valid. We own the second handle that is returned.
        unsafe { api.call(&mut arguments)? };
        let raw = given(arguments.executable, LoadedGetExecutable::FUNCTION)?;
        this.raw = Some(raw);
        let mut outputs = ExecutableNumOutputs::new();
        outputs.executable = raw.as_ptr();
        let mut list = LoadedAddressableDevices::new();
        list.executable = loaded.as_ptr();
        // SAFETY: Both handles are valid, and the array that is returned is valid for the number of
        // devices that is returned.
        let devices = unsafe {
            api.call(&mut outputs)?;
            api.call(&mut list)?;
            handles(list.devices, list.num_devices)
        };
        this.outputs = outputs.num_outputs;
        let index = |device: &Handle| this.client.devices.iter().position(|known| known == device);
        let indices: Option<Vec<usize>> = devices.iter().map(index).collect();
        this.devices = indices.filter(|indices| !indices.is_empty()).ok_or_else(|| {
            let found = if devices.is_empty() { "no devices" } else { "a device of another client" };
            XlaError::unexpected(LoadedAddressableDevices::FUNCTION, "devices of the client", found)
        })?;
        Ok(this)
    }

    fn raw(&self) -> Raw {
        self.raw.map_or(ptr::null_mut(), NonNull::as_ptr)
    }

    pub(super) fn devices(&self) -> &[usize] {
        &self.devices
    }

    pub(super) fn outputs(&self) -> usize {
        self.outputs
    }

    /// Queues the program. Takes a list of arguments for each of its devices, and returns lists of
    /// outputs.
    pub(super) fn execute(&self, arguments: &[Vec<&Buffer>]) -> Result<Vec<Vec<Buffer>>, XlaError> {
        let count = arguments.first().map_or(0, Vec::len);
        if arguments.len() != self.devices.len() {
            return Err(XlaError::arguments(format!(
                "the program needs a list of arguments for each of its devices: {}, not {}",
                self.devices.len(),
                arguments.len()
            )));
        }
        for (list, &device) in arguments.iter().zip(&self.devices) {
            if list.len() != count {
                return Err(XlaError::arguments(format!(
                    "device {} is given {count} arguments, but device {device} is given {}",
                    self.devices[0],
                    list.len()
                )));
            }
            for (position, buffer) in list.iter().enumerate() {
                if !Arc::ptr_eq(&buffer.client, &self.client) {
                    return Err(XlaError::arguments(format!(
                        "argument {position} belongs to another client"
                    )));
                }
                if buffer.device != device {
                    return Err(XlaError::arguments(format!(
                        "argument {position} is on device {}, and the program wants it on device {device}",
                        buffer.device
                    )));
                }
            }
        }
        let inputs: Vec<Vec<Raw>> =
            arguments.iter().map(|list| list.iter().map(|buffer| buffer.raw.as_ptr()).collect()).collect();
        let input_lists: Vec<*const Raw> = inputs.iter().map(|list| list.as_ptr()).collect();
        let mut outputs: Vec<Vec<Raw>> = vec![vec![ptr::null_mut(); self.outputs]; self.devices.len()];
        let output_lists: Vec<*mut Raw> = outputs.iter_mut().map(|list| list.as_mut_ptr()).collect();
        let mut options = ExecuteOptions {
            struct_size: size_of::<ExecuteOptions>(),
            extension_start: ptr::null_mut(),
            send_callbacks: ptr::null_mut(),
            recv_callbacks: ptr::null_mut(),
            num_send_ops: 0,
            num_recv_ops: 0,
            launch_id: 0,
            non_donatable_input_indices: ptr::null(),
            num_non_donatable_input_indices: 0,
            context: ptr::null_mut(),
            call_location: ptr::null(),
            num_tasks: 0,
            task_ids: ptr::null_mut(),
            incarnation_ids: ptr::null_mut(),
        };
        let mut call = LoadedExecute::new();
        call.executable = self.loaded.as_ptr();
        call.options = &raw mut options;
        call.argument_lists = input_lists.as_ptr();
        call.num_devices = self.devices.len();
        call.num_args = count;
        call.output_lists = output_lists.as_ptr();
        {
            let _lock = self.client.lock();
            // This check is within the lock, so that no other thread donates the buffers before the
            // call.
            for list in arguments {
                if let Some(position) = list.iter().position(|buffer| buffer.is_deleted()) {
                    return Err(XlaError::arguments(format!(
                        "argument {position} was donated to an earlier call, which took its memory; pass the output of that call"
                    )));
                }
            }
            // SAFETY: The executable and all buffers are valid, of this client, and on the devices
            // of the program. There is a list for each device, with `count` arguments each, and
            // room for all outputs of the program. All arrays outlive the call, and the plugin does
            // not use them after it. The plugin reports a wrong number of arguments, and wrong
            // types and sizes.
            unsafe { self.client.api.call(&mut call)? };
        }
        let mut results = Vec::with_capacity(outputs.len());
        let mut failure = None;
        for (list, &device) in outputs.into_iter().zip(&self.devices) {
            let mut result = Vec::with_capacity(list.len());
            for raw in list {
                // All outputs are taken before an error is returned, so that none leaks.
                let output = given(raw, LoadedExecute::FUNCTION);
                // SAFETY: The program returned the buffer to us.
                let output = output.and_then(|raw| unsafe { Buffer::new(&self.client, raw, device) });
                match output {
                    Ok(buffer) => result.push(buffer),
                    Err(error) => failure = Some(error),
                }
            }
            results.push(result);
        }
        failure.map_or(Ok(results), Err)
    }

    /// The executable in a form that [`Client::deserialize`] takes.
    pub(super) fn serialize(&self) -> Result<Vec<u8>, XlaError> {
        let mut arguments = ExecutableSerialize::new();
        arguments.executable = self.raw();
        // SAFETY: The executable is valid.
        unsafe { self.client.api.call(&mut arguments)? };
        // SAFETY: The bytes live until the deleter is called. It is called once, after they have
        // been copied.
        unsafe {
            let bytes = copy_slice(arguments.serialized_bytes.cast::<u8>(), arguments.serialized_bytes_size);
            if let (Some(delete), false) = (arguments.deleter, arguments.serialized_executable.is_null()) {
                delete(arguments.serialized_executable);
            }
            Ok(bytes)
        }
    }

    /// The format of XLA's optimized program, such as `hlo_with_config`, and the program.
    pub(super) fn optimized_program(&self) -> Result<(String, Vec<u8>), XlaError> {
        let mut program = Program {
            struct_size: PROGRAM_SIZE,
            extension_start: ptr::null_mut(),
            code: ptr::null_mut(),
            code_size: 0,
            format: ptr::null(),
            format_size: 0,
        };
        let mut arguments = ExecutableOptimizedProgram::new();
        arguments.executable = self.raw();
        arguments.program = &raw mut program;
        // SAFETY: The executable and the program are valid. Without memory for the code, this
        // queries its size.
        unsafe { self.client.api.call(&mut arguments)? };
        let mut code = vec![0_u8; program.code_size];
        program.code = code.as_mut_ptr().cast();
        arguments.program = &raw mut program;
        // SAFETY: As before. The plugin writes `code_size` bytes, which the vector has.
        unsafe { self.client.api.call(&mut arguments)? };
        // SAFETY: The plugin has set the format, which it owns and keeps.
        let format = unsafe { copy_text(program.format, program.format_size) };
        code.truncate(program.code_size);
        Ok((format, code))
    }

    /// PJRT's element type and the sizes of each output.
    pub(super) fn output_types(&self) -> Result<Vec<(i32, Vec<i64>)>, XlaError> {
        let mut types = OutputElementTypes::new();
        types.executable = self.raw();
        let mut dims = OutputDimensions::new();
        dims.executable = self.raw();
        // SAFETY: The executable is valid. The arrays live as long as the executable. The number of
        // sizes is the sum of the ranks.
        let (types, ranks, sizes) = unsafe {
            self.client.api.call(&mut types)?;
            self.client.api.call(&mut dims)?;
            let ranks = copy_slice(dims.dim_sizes, dims.num_outputs);
            let sizes = copy_slice(dims.dims, ranks.iter().sum());
            (copy_slice(types.types, types.num_types), ranks, sizes)
        };
        let mut sizes = sizes.into_iter();
        Ok(types
            .into_iter()
            .zip(ranks)
            .map(|(code, rank)| (code, sizes.by_ref().take(rank).collect()))
            .collect())
    }

    pub(super) fn memory(&self) -> Result<super::ProgramMemory, XlaError> {
        let mut arguments = CompiledMemoryStats::new();
        arguments.executable = self.raw();
        // SAFETY: The executable is valid.
        unsafe { self.client.api.call(&mut arguments)? };
        let bytes = |value: i64| value.max(0).unsigned_abs();
        Ok(super::ProgramMemory {
            code: bytes(arguments.code),
            arguments: bytes(arguments.argument),
            outputs: bytes(arguments.output),
            donated: bytes(arguments.alias),
            temporary: bytes(arguments.temporary),
            peak: (arguments.peak > 0).then(|| bytes(arguments.peak)),
        })
    }
}

impl Drop for RawExecutable {
    fn drop(&mut self) {
        let _lock = self.client.lock();
        if let Some(raw) = self.raw {
            let mut arguments = ExecutableDestroy::new();
            arguments.executable = raw.as_ptr();
            // SAFETY: We own this handle, and this is the last use of it.
            let _ = unsafe { self.client.api.call(&mut arguments) };
        }
        let mut arguments = LoadedDestroy::new();
        arguments.executable = self.loaded.as_ptr();
        // SAFETY: We own this handle, and this is the last use of it. Running calls keep the memory
        // that they need.
        let _ = unsafe { self.client.api.call(&mut arguments) };
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Shared libraries

#[cfg(unix)]
mod library {
    use std::ffi::{CStr, CString, c_char, c_void};
    use std::os::unix::ffi::OsStrExt;
    use std::path::{Path, PathBuf};
    use std::ptr::{self, NonNull};
    use std::sync::atomic::{AtomicPtr, Ordering};

    /// Loads a shared library, which is never unloaded.
    pub(super) fn open(path: &Path, global: bool) -> Result<NonNull<c_void>, String> {
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
        let scope = if global { libc::RTLD_GLOBAL } else { libc::RTLD_LOCAL };
        // SAFETY: The name is a C string. The library's initializers run; they are trusted like the
        // library.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | scope) };
        NonNull::new(library).ok_or_else(|| {
            // SAFETY: The text is valid until this thread calls the loader again, and is copied at
            // once.
            let text = unsafe {
                let text = libc::dlerror();
                (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
            };
            text.unwrap_or_else(|| "the loader gives no reason".to_owned())
        })
    }

    /// Loads as many of these libraries as possible, in an order in which each finds the libraries
    /// that it needs.
    pub(super) fn open_all(paths: &[PathBuf]) {
        let mut left: Vec<&PathBuf> = paths.iter().collect();
        loop {
            let before = left.len();
            left.retain(|path| open(path, true).is_err());
            if left.is_empty() || left.len() == before {
                break;
            }
        }
    }

    pub(super) fn symbol(library: NonNull<c_void>, name: &CStr) -> Option<*mut c_void> {
        // SAFETY: The library is loaded, and the name is a C string.
        let symbol = unsafe { libc::dlsym(library.as_ptr(), name.as_ptr()) };
        (!symbol.is_null()).then_some(symbol)
    }

    /// The variable `environ` of the C library.
    fn environment() -> *mut *mut *mut c_char {
        #[cfg(target_vendor = "apple")]
        {
            // SAFETY: The function has no conditions.
            unsafe { libc::_NSGetEnviron() }
        }
        #[cfg(not(target_vendor = "apple"))]
        {
            unsafe extern "C" {
                static mut environ: *mut *mut c_char;
            }
            &raw mut environ
        }
    }

    /// Unless `TF_CPP_MIN_LOG_LEVEL` is set, sets it so that XLA logs only fatal errors.
    ///
    /// XLA reads the variable when it logs for the first time, and has no other switch. The caller
    /// holds a lock, so calls do not overlap.
    pub(super) fn quiet() {
        static DONE: AtomicPtr<c_char> = AtomicPtr::new(ptr::null_mut());
        if std::env::var_os("TF_CPP_MIN_LOG_LEVEL").is_some() || !DONE.load(Ordering::Relaxed).is_null() {
            return;
        }
        let entry = CString::from(c"TF_CPP_MIN_LOG_LEVEL=3").into_raw();
        DONE.store(entry, Ordering::Relaxed);
        let environment = environment();
        // SAFETY: `setenv` may move or free the list while other threads read it. This code does
        // not: it makes a longer copy of the list, publishes it with one atomic store, and never
        // frees either of them. A thread that reads the environment meanwhile sees the old or the
        // new list, both complete. The list is a null-terminated array of pointers, as in the C
        // library. A thread that changes the environment at the same time would race with this
        // code; the conditions of `set_var` and `setenv` exclude that.
        unsafe {
            let shared = AtomicPtr::from_ptr(environment);
            let old = shared.load(Ordering::Acquire);
            let mut count = 0;
            while !old.is_null() && !(*old.add(count)).is_null() {
                count += 1;
            }
            let mut list: Vec<*mut c_char> = (0..count).map(|index| *old.add(index)).collect();
            list.extend([entry, ptr::null_mut()]);
            shared.store(Box::leak(list.into_boxed_slice()).as_mut_ptr(), Ordering::Release);
        }
    }
}

#[cfg(not(unix))]
mod library {
    use std::ffi::{CStr, c_void};
    use std::path::{Path, PathBuf};
    use std::ptr::NonNull;

    pub(super) fn open(_: &Path, _: bool) -> Result<NonNull<c_void>, String> {
        Err("PJRT plugins can only be loaded on Unix".to_owned())
    }

    pub(super) fn open_all(_: &[PathBuf]) {}

    pub(super) fn symbol(_: NonNull<c_void>, _: &CStr) -> Option<*mut c_void> {
        None
    }

    pub(super) fn quiet() {}
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C" fn nothing() {}

    /// A table whose functions do nothing and are never called.
    #[repr(C)]
    struct Table {
        head: TableHead,
        slots: [Option<Function>; 120],
    }

    fn table() -> Table {
        let head = TableHead {
            struct_size: size_of::<Table>(),
            extension_start: ptr::null_mut(),
            version_struct_size: 24,
            version_extension_start: ptr::null_mut(),
            major: 0,
            minor: 81,
        };
        Table { head, slots: [Some(nothing); 120] }
    }

    fn read(table: &Table) -> Result<Api, String> {
        let table = ptr::from_ref(table).cast();
        // SAFETY: The table has as many bytes as it says, or is refused before that matters.
        unsafe { Api::read(table, Path::new("plugin.so")) }.map_err(|error| error.to_string())
    }

    #[test]
    fn tables_that_do_not_fit_are_refused() {
        assert!(read(&table()).is_ok_and(|api| api.version() == (0, 81) && api.slots.len() == 120));
        // SAFETY: Null is allowed.
        assert!(unsafe { Api::read(ptr::null(), Path::new("")) }.is_err());
        for size in [0, 8, 39, 40, 48, 40 + 8 * 70] {
            let mut table = table();
            table.head.struct_size = size;
            let error = read(&table).err().expect("the table is too small");
            assert!(error.starts_with("cannot use the PJRT plugin `plugin.so`: its table"), "{error}");
        }
        let mut other = table();
        other.head.major = 1;
        let error = read(&other).err().expect("the version differs");
        assert!(error.contains("it has version 1.81 of the PJRT interface"), "{error}");
        let mut lacking = table();
        lacking.slots[55] = None;
        let error = read(&lacking).err().expect("the table cannot execute");
        assert!(error.contains("lacks number 55"), "{error}");
    }

    #[test]
    fn functions_that_are_missing_are_errors() {
        let mut table = table();
        table.slots[96] = None;
        table.head.struct_size = 40 + 8 * 100;
        let api = read(&table).unwrap();
        // SAFETY: The function is missing, so nothing is called.
        let (missing, beyond) = unsafe { (api.call(&mut CompiledMemoryStats::new()), api.slots.get(110)) };
        assert_eq!(
            missing,
            Err(XlaError::Unsupported { function: "PJRT_Executable_GetCompiledMemoryStats" })
        );
        assert!(beyond.is_none());
    }

    #[test]
    fn null_in_place_of_an_object_is_an_error() {
        let error = given(ptr::null_mut(), ClientCreate::FUNCTION).unwrap_err();
        assert_eq!(error, XlaError::unexpected("PJRT_Client_Create", "an object", "a null pointer"));
    }

    #[test]
    fn structs_have_the_sizes_of_the_header() {
        assert_eq!(size_of::<TableHead>(), 40);
        assert_eq!(ErrorGetCode::new().struct_size, 28);
        assert_eq!(PluginInitialize::new().struct_size, 16);
        assert_eq!(ClientCreate::new().struct_size, 88);
        assert_eq!(BufferFromHostBuffer::new().struct_size, 120);
        assert_eq!(BufferIsDeleted::new().struct_size, 25);
        assert_eq!(LoadedExecute::new().struct_size, 80);
        assert_eq!(DeviceMemoryStats::new().struct_size, 185);
        assert_eq!(CompiledMemoryStats::new().struct_size, 112);
        assert_eq!(
            (size_of::<NamedValue>(), size_of::<MemoryLayout>(), size_of::<ExecuteOptions>()),
            (56, 80, 112)
        );
    }

    #[test]
    fn elements_reach_as_far_as_their_strides_say() {
        assert_eq!(reach(&[2, 3], &[12, 4], 4), Some(24));
        assert_eq!(reach(&[], &[], 4), Some(4));
        assert_eq!(reach(&[0, 3], &[i64::MAX, 4], 4), Some(0));
        assert_eq!(reach(&[2], &[-4], 4), None);
        assert_eq!(reach(&[usize::MAX, 2], &[8, 8], 4), None);
    }
}
