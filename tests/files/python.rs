//! Exchanges files with the Python packages `numpy` and `safetensors`, in both directions. If a
//! package is missing, its tests are skipped with a notice. Set `PYTHON` to choose an interpreter.

use super::{In, Out, counted};
use std::path::Path;
use std::process::Command;
use typed_dims::file::{npy, npz, safetensors};
use typed_dims::prelude::*;

/// Runs a script in a directory, if Python has the packages.
fn python(dir: &Path, packages: &str, script: &str) -> bool {
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".into());
    let run = |code: &str| Command::new(&python).args(["-c", code]).current_dir(dir).output();
    match run(&format!("import {packages}")) {
        Ok(output) if output.status.success() => {
            let output = run(script).unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            true
        }
        _ => {
            eprintln!("skipped: {python} cannot import {packages}");
            false
        }
    }
}

#[test]
fn numpy() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    npy::save(at("ours.npy"), counted(2)).unwrap();
    let (mut stored, mut packed) = (npz::NpzWriter::new(), npz::NpzWriter::compressed());
    stored.put("w", counted(2)).unwrap().put("b", full(Out.of(2), true)).unwrap();
    packed.put("w", counted(2).cast::<f64>()).unwrap();
    stored.save(at("ours.npz")).unwrap();
    packed.save(at("packed.npz")).unwrap();
    let script = "
import numpy as np
w = np.arange(6, dtype='f4').reshape(2, 3)
assert (np.load('ours.npy') == w).all() and np.load('ours.npy').dtype == np.float32
assert (np.load('ours.npy', mmap_mode='r') == w).all()
ours = np.load('ours.npz')
assert (ours['w'] == w).all() and ours['b'].tolist() == [True, True]
assert (np.load('packed.npz')['w'] == w).all() and np.load('packed.npz')['w'].dtype == np.float64
np.save('theirs.npy', w)
np.save('fortran.npy', np.asfortranarray(w))
np.save('big.npy', w.astype('>f4'))
np.savez('theirs.npz', w=w, b=np.array([1 + 2j]))
np.savez_compressed('theirs_packed.npz', w=w)
";
    if !python(dir.path(), "numpy", script) {
        return;
    }
    let expected = counted(2).order((Out, In));
    for name in ["theirs.npy", "fortran.npy", "big.npy"] {
        let file = npy::NpyReader::open(at(name)).unwrap();
        assert_eq!(
            file.get().unwrap().load_as::<f32, _>((Out, In)).unwrap().order((Out, In)),
            expected,
            "{name}"
        );
    }
    for name in ["theirs.npz", "theirs_packed.npz"] {
        let mut file = npz::NpzReader::open(at(name)).unwrap();
        let w = file.get("w").unwrap();
        assert_eq!(
            w.get().unwrap().load_as::<f32, _>((Out, In)).unwrap().order((Out, In)),
            expected,
            "{name}"
        );
        assert_eq!(file.load_as::<f32, _>("w", (Out, In)).unwrap().order((Out, In)), expected, "{name}");
    }
}

#[test]
fn safetensors_of_python() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let mut file = safetensors::SafetensorsWriter::new();
    file.put("w", counted(2))
        .unwrap()
        .put("flag", full(Out.of(3), true))
        .unwrap()
        .note("by", "typed-dims")
        .unwrap();
    file.save(at("ours.safetensors")).unwrap();
    let script = "
import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
w = np.arange(6, dtype='f4').reshape(2, 3)
ours = load_file('ours.safetensors')
assert (ours['w'] == w).all() and ours['flag'].tolist() == [True] * 3
with safe_open('ours.safetensors', 'np') as f:
    assert f.metadata() == {'by': 'typed-dims', 'dims of w': 'Out, In = 3', 'dims of flag': 'Out'}, f.metadata()
save_file({'w': w, 'n': np.array([1, 2], dtype='i8')}, 'theirs.safetensors')
save_file({'w': w}, 'named.safetensors', metadata={'dims of w': 'Out, In'})
";
    if !python(dir.path(), "numpy, safetensors", script) {
        return;
    }
    let expected = counted(2).order((Out, In));
    let file = safetensors::SafetensorsReader::open(at("theirs.safetensors")).unwrap();
    assert_eq!(file.tensors(), ["n", "w"]);
    assert_eq!(file.get("w").unwrap().load_as::<f32, _>((Out, In)).unwrap().order((Out, In)), expected);
    assert!(file.get("w").unwrap().load::<f32, (Out, In)>().is_err());
    let named = safetensors::SafetensorsReader::open(at("named.safetensors")).unwrap();
    assert_eq!(named.get("w").unwrap().load::<f32, (Out, In)>().unwrap().order((Out, In)), expected);
}
