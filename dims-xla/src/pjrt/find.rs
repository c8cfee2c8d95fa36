//! Finds installed plugins.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The platform of a plugin, from its file name. The platform decides which options the client
/// gets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Cpu,
    Cuda,
    Rocm,
    /// Another platform, whose client gets no options.
    Other,
    Unknown,
}

impl Kind {
    pub(super) fn of(path: &Path) -> Kind {
        let real = path.canonicalize();
        let names = [Some(path), real.as_deref().ok()].into_iter().flatten().filter_map(Path::file_name);
        for name in names {
            let name = name.to_string_lossy().to_lowercase();
            let kinds = [
                ("cuda", Kind::Cuda),
                ("rocm", Kind::Rocm),
                ("tpu", Kind::Other),
                ("oneapi", Kind::Other),
                ("xpu", Kind::Other),
                ("cpu", Kind::Cpu),
            ];
            if let Some((_, kind)) = kinds.into_iter().find(|(part, _)| name.contains(part)) {
                return kind;
            }
        }
        Kind::Unknown
    }
}

/// The path of a plugin that the user has set in the environment, unless it is empty.
pub(super) fn from_environment() -> Option<PathBuf> {
    env::var_os("TYPED_DIMS_PJRT_PLUGIN").filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Plugins within `site-packages`, the preferred platform first. `*` stands for any part of a name.
const PLUGINS: [(&str, &str); 8] = [
    ("cuda", "jax_plugins/xla_cuda*/xla_cuda_plugin.so"),
    ("rocm", "jax_plugins/xla_rocm*/xla_rocm_plugin.so"),
    ("tpu", "libtpu/libtpu.so"),
    ("oneapi", "jax_plugins/xla_oneapi*/xla_oneapi_plugin.so"),
    ("oneapi", "jax_plugins/intel_extension_for_openxla/pjrt_plugin_xpu.so"),
    ("cpu", "lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so"),
    ("cpu", "xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so"),
    ("cpu", "fastatomstruct_xla_cpu/*cpu*.so"),
];

/// The plugins that exist, and the paths where plugins could be, which may contain `*`.
pub(super) fn candidates(platform: Option<&str>) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let (mut found, mut searched) = (Vec::new(), Vec::new());
    let folders = site_packages();
    for (name, pattern) in PLUGINS {
        if platform.is_some_and(|platform| platform != name) {
            continue;
        }
        for folder in &folders {
            searched.push(folder.join(pattern));
            // Without a TPU, the TPU plugin looks for a metadata server and takes minutes to give
            // up.
            if name != "tpu" || has_tpu() {
                found.extend(matches(folder, pattern));
            }
        }
    }
    (found, searched)
}

fn has_tpu() -> bool {
    ["/dev/accel0", "/dev/vfio/0"].iter().any(|path| Path::new(path).exists())
}

/// The files that match a pattern, in descending order of names, so that `xla_cuda13` comes before
/// `xla_cuda12`.
fn matches(folder: &Path, pattern: &str) -> Vec<PathBuf> {
    let (name, rest) = pattern.split_once('/').map_or((pattern, None), |(name, rest)| (name, Some(rest)));
    let mut paths = match name.split_once('*') {
        None => vec![folder.join(name)],
        Some(_) => entries(folder).into_iter().filter(|path| fits(path.file_name(), name)).collect(),
    };
    paths.sort();
    paths.reverse();
    match rest {
        None => paths.into_iter().filter(|path| path.is_file()).collect(),
        Some(rest) => paths.iter().flat_map(|path| matches(path, rest)).collect(),
    }
}

fn fits(name: Option<&OsStr>, pattern: &str) -> bool {
    let Some(mut name) = name.and_then(OsStr::to_str) else { return false };
    let mut parts = pattern.split('*');
    let Some(rest) = name.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    name = rest;
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return name.is_empty() };
    for part in middle {
        let Some((_, rest)) = name.split_once(part) else { return false };
        name = rest;
    }
    name.ends_with(last)
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).map(|list| list.flatten().map(|entry| entry.path()).collect()).unwrap_or_default()
}

/// The folders into which `pip` installs. The active environment comes first.
fn site_packages() -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for variable in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        let Some(root) = env::var_os(variable).filter(|root| !root.is_empty()) else { continue };
        let root = PathBuf::from(root);
        folders.extend(["lib", "lib64"].iter().flat_map(|lib| folders_of(&root.join(lib))));
    }
    folders.extend(python().iter().cloned());
    let mut known = Vec::new();
    folders.retain(|folder| {
        let real = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        let new = !known.contains(&real);
        known.push(real);
        new
    });
    folders
}

/// `python3*/site-packages` in a folder.
fn folders_of(lib: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> =
        entries(lib).into_iter().filter(|path| fits(path.file_name(), "python3*")).collect();
    folders.sort();
    folders.into_iter().map(|path| path.join("site-packages")).filter(|path| path.is_dir()).collect()
}

/// The package folders of the Python on the `PATH`.
fn python() -> &'static [PathBuf] {
    static FOLDERS: OnceLock<Vec<PathBuf>> = OnceLock::new();
    const SCRIPT: &str = "import sys; print('\\n'.join(p for p in sys.path if p.endswith('-packages')))";
    FOLDERS.get_or_init(|| {
        for python in ["python3", "python"] {
            let output = Command::new(python).args(["-c", SCRIPT]).stdin(Stdio::null()).output();
            if let Ok(output) = output
                && output.status.success()
            {
                let text = String::from_utf8_lossy(&output.stdout).into_owned();
                return text.lines().filter(|line| !line.is_empty()).map(PathBuf::from).collect();
            }
        }
        Vec::new()
    })
}

/// The CUDA libraries that a plugin needs, in `nvidia/*/lib` of a folder that contains the plugin.
///
/// The loader would not find them by itself. Other libraries in these folders, such as `libnvblas`,
/// must not be loaded into a process that does not ask for them.
pub(super) fn cuda_libraries(plugin: &Path) -> Vec<PathBuf> {
    const NEEDED: [&str; 12] = [
        "libcudart.so*",
        "libnvJitLink.so*",
        "libnvrtc.so*",
        "libnvrtc-builtins.so*",
        "libcublasLt.so*",
        "libcublas.so*",
        "libcufft.so*",
        "libcusparse.so*",
        "libcusolver.so*",
        "libcupti.so*",
        "libcudnn*.so*",
        "libnccl.so*",
    ];
    const NVSHMEM: &str = "libnvshmem_host.so*";
    let plugin = plugin.canonicalize().unwrap_or_else(|_| plugin.to_owned());
    let Some(nvidia) = plugin.ancestors().skip(1).take(4).map(|at| at.join("nvidia")).find(|at| at.is_dir())
    else {
        return Vec::new();
    };
    let mut libraries = Vec::new();
    for package in entries(&nvidia) {
        libraries.extend(entries(&package.join("lib")));
    }
    libraries.retain(|path| {
        NEEDED.iter().chain([&NVSHMEM]).any(|pattern| fits(path.file_name(), pattern)) && path.is_file()
    });
    libraries.sort();
    libraries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        let fits = |name: &str, pattern: &str| super::fits(Some(OsStr::new(name)), pattern);
        assert!(fits("xla_cuda13", "xla_cuda*") && fits("xla_cuda", "xla_cuda*"));
        assert!(fits("libcudnn_ops.so.9", "libcudnn*.so*") && fits("libcudnn.so.9", "libcudnn*.so*"));
        assert!(!fits("libcudnn.a", "libcudnn*.so*") && !fits("libnvblas.so.13", "libcublas.so*"));
        assert!(fits("a", "a") && !fits("ab", "a"));
    }

    #[test]
    fn kinds() {
        assert_eq!(Kind::of(Path::new("/x/cpu/xla_cuda_plugin.so")), Kind::Cuda);
        assert_eq!(Kind::of(Path::new("pjrt_c_api_cpu_plugin.so")), Kind::Cpu);
        assert_eq!(Kind::of(Path::new("libtpu.so")), Kind::Other);
        assert_eq!(Kind::of(Path::new("plugin.so")), Kind::Unknown);
    }
}
