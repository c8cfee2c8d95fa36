//! Damaged files and false headers cause no panics.

use super::every_reader::try_all;
use super::{In, Out, counted, mutations};
use typed_dims::file::{npy, npz, safetensors};
use typed_dims::prelude::*;

fn samples() -> Vec<Vec<u8>> {
    let mut many = safetensors::SafetensorsWriter::new();
    many.put("w", counted(2)).unwrap().put("flag", full(Out.of(3), true)).unwrap();
    let (mut stored, mut packed) = (npz::NpzWriter::new(), npz::NpzWriter::compressed());
    stored.put("w", counted(2)).unwrap();
    packed.put("w", counted(2)).unwrap();
    let files = [many.to_bytes(), npy::to_bytes(counted(2)), stored.into_bytes(), packed.into_bytes()];
    files.into_iter().map(Result::unwrap).collect()
}

#[test]
fn files_that_are_cut_off_anywhere() {
    mutations::cut_off(&samples(), try_all);
    for file in samples() {
        assert!(safetensors::SafetensorsReader::new(&file[..file.len() - 1]).is_err());
        let cut = npy::NpyReader::new(&file[..file.len() - 1]);
        assert!(cut.is_err() || cut.unwrap().get().unwrap().load::<f32, (Out, In)>().is_err());
    }
}

#[test]
fn files_with_a_wrong_byte() {
    mutations::wrong_bytes(&samples(), |byte| [byte ^ 0x01, byte ^ 0x80, byte ^ 0xff, b'9', b'('], try_all);
}

#[test]
fn random_changes() {
    let words: [&[u8]; 12] = [
        b"9999999999999999999",
        b"-1",
        b"NaN",
        b"((((((((",
        b"}",
        b"\"",
        b"data_offsets",
        b"[0,0]",
        b"F64",
        b"'<f8'",
        b"\xff\xff",
        b"0",
    ];
    mutations::random_changes(&samples(), &words, try_all);
}

fn with_header(json: &str, data: &[u8]) -> Vec<u8> {
    [&(json.len() as u64).to_le_bytes()[..], json.as_bytes(), data].concat()
}

fn refused(json: &str, data: &[u8]) -> String {
    let bytes = with_header(json, data);
    let reader = match safetensors::SafetensorsReader::new(bytes) {
        Err(error) => return error.to_string(),
        Ok(reader) => reader,
    };
    let entry = match reader.get("x") {
        Err(error) => return error.to_string(),
        Ok(entry) => entry,
    };
    entry.load_as::<f32, _>((Out, In)).expect_err("an error").to_string()
}

#[test]
fn lies_in_headers_of_safetensors() {
    for (json, len) in [
        // Lengths that do not match the file.
        (r#"{"x":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}"#, 20),
        (r#"{"x":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}"#, 28),
        (r#"{"x":{"dtype":"F32","shape":[2,3],"data_offsets":[0,18446744073709551615]}}"#, 24),
        (r#"{"x":{"dtype":"F32","shape":[2,3],"data_offsets":[24,0]}}"#, 24),
        // Sizes whose product does not match the data or overflows, and a huge size next to 0.
        (r#"{"x":{"dtype":"F32","shape":[2,4],"data_offsets":[0,24]}}"#, 24),
        (r#"{"x":{"dtype":"F32","shape":[4294967296,4294967296,4294967296],"data_offsets":[0,0]}}"#, 0),
        (r#"{"x":{"dtype":"F32","shape":[18446744073709551615,0],"data_offsets":[0,0]}}"#, 0),
        // Overlapping tensors, and gaps.
        (
            r#"{"x":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"y":{"dtype":"F32","shape":[2,3],"data_offsets":[4,28]}}"#,
            28,
        ),
        (r#"{"x":{"dtype":"F32","shape":[2,3],"data_offsets":[8,32]}}"#, 32),
        // Dim names that are malformed, or do not match the axes.
        (
            r#"{"__metadata__":{"dims of x":"Out"},"x":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}"#,
            24,
        ),
        (
            r#"{"__metadata__":{"dims of x":"Out, In, Feat"},"x":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}"#,
            24,
        ),
        (
            r#"{"__metadata__":{"dims of x":"Out, Out"},"x":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}"#,
            24,
        ),
        (
            r#"{"__metadata__":{"dims of x":"Out, NaN"},"x":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}"#,
            24,
        ),
        (
            r#"{"__metadata__":{"dims of x":"Out, In = 4"},"x":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}"#,
            24,
        ),
        (
            r#"{"__metadata__":{"dims of x":"Out, In = NaN"},"x":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}"#,
            24,
        ),
        (
            r#"{"__metadata__":{"dims of x":"Out,"},"x":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}"#,
            24,
        ),
        (
            r#"{"__metadata__":{"dims of x":"\u0000\u202e, In"},"x":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}"#,
            24,
        ),
    ] {
        let message = refused(json, &vec![0; len]);
        assert!(message.len() < 400, "{message}");
    }
    let nested = "[".repeat(1 << 20);
    assert!(refused(&nested, &[]).contains("not a valid file"));
    let long = format!(
        r#"{{"__metadata__":{{"dims of x":"{}"}},"x":{{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}}}"#,
        "N".repeat(1 << 16)
    );
    assert!(refused(&long, &[0; 24]).len() < 400);
    // Tensors that would fill the address space: the sum of their end and the header's length
    // overflows.
    let eighth = usize::MAX / 8;
    let tensors = (0..8).map(|at| {
        let (start, end) = (at * eighth, (at + 1) * eighth);
        format!(r#""{at}":{{"dtype":"U8","shape":[{eighth}],"data_offsets":[{start},{end}]}}"#)
    });
    let json = format!("{{{}}}", tensors.collect::<Vec<_>>().join(","));
    let taken = 8 * eighth;
    assert_eq!(
        refused(&json, &[]),
        format!("not a valid file: the tensors take {taken} bytes, but the file has 0 after its header")
    );
    // A header that claims to be larger than the file.
    for len in [u64::MAX, 1 << 62, 1 << 32, 100_000_001] {
        assert!(safetensors::SafetensorsReader::new(len.to_le_bytes()).is_err());
    }
}

fn npy(header: &str, data: &[u8]) -> String {
    npy_of(header.as_bytes(), data)
}

fn npy_of(header: &[u8], data: &[u8]) -> String {
    let bytes = [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header, data].concat();
    match npy::NpyReader::new(bytes) {
        Err(error) => error.to_string(),
        Ok(reader) => match reader.get() {
            Err(error) => error.to_string(),
            Ok(entry) => entry.load_as::<f32, _>((Out, In)).expect_err("an error").to_string(),
        },
    }
}

#[test]
fn files_of_another_kind() {
    let [safetensors, one, archive, _] = &samples()[..] else { unreachable!() };
    let text = |error: typed_dims::file::FileError| error.to_string();
    let as_safetensors = |bytes: &[u8]| safetensors::SafetensorsReader::new(bytes.to_vec()).err().map(text);
    let as_npy = |bytes: &[u8]| npy::NpyReader::new(bytes.to_vec()).err().map(text);
    let as_npz = |bytes: &[u8]| npz::NpzReader::new(bytes.to_vec()).err().map(text);
    let refused =
        |wanted, found| Some(format!("not a valid file: it does not start like {wanted}, but like {found}"));
    let kinds = ["a safetensors file", "a `.npy` file", "an `.npz` archive"];
    assert_eq!(as_safetensors(one), refused(kinds[0], kinds[1]));
    assert_eq!(as_safetensors(archive), refused(kinds[0], kinds[2]));
    assert_eq!(as_npy(safetensors), refused(kinds[1], kinds[0]));
    assert_eq!(as_npy(archive), refused(kinds[1], kinds[2]));
    assert_eq!(as_npz(safetensors), refused(kinds[2], kinds[0]));
    assert_eq!(as_npz(one), refused(kinds[2], kinds[1]));
}

#[test]
fn lies_in_headers_of_npy() {
    for header in [
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 3), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551615, 3), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999999, 3), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-2, 3), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'shape': (2, 3)}",
        "{'descr': '<f4', 'fortran_order': None, 'shape': (2, 3), }",
        "{'descr': '|O', 'fortran_order': False, 'shape': (2, 3), }",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 3), }",
        "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } __import__('os')",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }  # dims: Out",
        "{'descr': '<f4",
        "",
    ] {
        assert!(npy(header, &[0; 24]).len() < 400);
    }
    assert!(npy(&"(".repeat(60_000), &[]).contains("where `{` is expected"));
    // Headers of version 1 are Latin-1.
    let field = npy_of(b"{'descr': [('\xe9', '<f4')], 'fortran_order': False, 'shape': (2, 3), }", &[0; 24]);
    assert!(field.contains("[('\u{e9}', '<f4')]"), "{field}");
    // A header longer than the file, and an unknown version.
    assert!(
        npy::NpyReader::new(b"\x93NUMPY\x02\x00\xff\xff\xff\xff{")
            .err()
            .unwrap()
            .to_string()
            .contains("too long")
    );
    assert!(
        npy::NpyReader::new(b"\x93NUMPY\x09\x01\xff\xff\xff\xff{")
            .err()
            .unwrap()
            .to_string()
            .contains("version 9.1")
    );
}

#[test]
fn a_bool_that_is_none() {
    let mut bytes = npy::to_bytes(full(Out.of(3), true)).unwrap();
    *bytes.last_mut().unwrap() = 2;
    let file = npy::NpyReader::new(bytes).unwrap();
    let entry = file.get().unwrap();
    let loaded = entry.load::<bool, (Out,)>().err().unwrap().to_string();
    assert!(loaded.contains("an element is not a valid `bool`"), "{loaded}");
    assert_eq!(entry.view::<bool, (Out,)>().err().unwrap().to_string(), loaded);
}

/// An array is only unpacked as far as its header says, and memory is only allocated for data that
/// is there.
#[test]
fn archives_with_other_elements_than_their_headers_say() {
    use std::io::{Cursor, Write};
    let archive = |header: &str, elements: &[u8]| {
        let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
        zip.start_file("w.npy", zip::write::SimpleFileOptions::default()).unwrap();
        let text = format!("{header}\n");
        zip.write_all(b"\x93NUMPY\x01\x00").unwrap();
        zip.write_all(&(text.len() as u16).to_le_bytes()).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
        zip.write_all(elements).unwrap();
        npz::NpzReader::new(zip.finish().unwrap().into_inner()).unwrap()
    };
    let header = |descr: &str, shape: &str| {
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}")
    };
    let mut file = archive(&header("<f4", "2, 3"), &[0; 24]);
    assert_eq!(file.load_as::<f32, _>("w", (Out, In)).unwrap().sum((Out, In)).order(()), 0.0);
    // Far more bytes than the header says. They are not unpacked.
    let mut file = archive(&header("<f4", "2, 3"), &vec![0; 1 << 20]);
    for error in [file.get("w").err(), file.load_as::<f32, _>("w", (Out, In)).err()] {
        assert_eq!(error.unwrap().to_string(), "not a valid file: `w` is longer than its header says");
    }
    let mut file = archive(&header("<f4", "1000000000000, 3"), &[0; 24]);
    assert!(file.get("w").is_err() && file.load_as::<f32, _>("w", (Out, In)).is_err());
    let mut file = file.unpacking_up_to(u64::MAX);
    assert!(file.get("w").unwrap().get().unwrap().load_as::<f32, _>((Out, In)).is_err());
    let error = file.load_as::<f32, _>("w", (Out, In)).err().unwrap().to_string();
    assert!(error.starts_with("not a valid file: `w`: "), "{error}");
    let mut file = archive(&header("<f4", "9999999999999999999, 9999999999999999"), &[0; 24]);
    assert!(file.get("w").is_err() && file.load_as::<f32, _>("w", (Out, In)).is_err());
    // Elements of unknown types are not read. A list is the type of records.
    for (descr, elements) in [
        ("|O", &[][..]),
        ("<U5", &[0; 40]),
        ("[('a', '<f4'), ('b', '<i4')]", &[0; 16]),
        ("[('a]', [('b', '<i2', (2,))])]", &[0; 8]),
    ] {
        let mut header = header(descr, "2");
        if descr.starts_with('[') {
            header = header.replacen(&format!("'{descr}'"), descr, 1);
        }
        let mut file = archive(&header, elements);
        let unread = file.get("w").unwrap();
        let entry = unread.get().unwrap();
        assert_eq!((entry.element_type(), entry.sizes()), (descr, &[2][..]));
        let expected = format!("of type {descr} in the file, but `f32` was asked for");
        let of_entry = entry.array::<f32>().err();
        for error in [of_entry, file.array::<f32>("w").err(), file.load_as::<f32, _>("w", Out).err()] {
            let error = error.unwrap().to_string();
            assert!(error.contains(&expected), "{error}");
        }
    }
}

/// The name of a tensor does not displace the reason of an error.
#[test]
fn a_long_name_and_a_wrong_checksum() {
    let name = format!("{}weight", "layers.".repeat(10));
    let mut file = npz::NpzWriter::new();
    file.put(&name, counted(2)).unwrap();
    let mut bytes = file.into_bytes().unwrap();
    let last = 5_f32.to_le_bytes();
    let at = bytes.windows(4).position(|four| four == last).expect("the last element is 5");
    bytes[at] ^= 1;
    let error = npz::NpzReader::new(bytes).unwrap().load::<f32, (Out, In)>(&name).unwrap_err().to_string();
    assert_eq!(error, format!("not a valid file: `{name}`: Invalid checksum"));
}

/// A compressed file of less than a megabyte does not exhaust memory.
#[test]
fn archives_that_unpack_to_too_much() {
    use typed_dims::optim::checkpoint::Saved;
    let mut file = npz::NpzWriter::compressed();
    file.put("w", zeros::<f32, _>((Out.of(100_000_000 / 3), In))).unwrap();
    let bytes = file.into_bytes().unwrap();
    assert!(bytes.len() < 1 << 20);
    let mut file = npz::NpzReader::new(&bytes).unwrap();
    for error in [
        file.get("w").err(),
        file.load::<f32, (Out, In)>("w").err(),
        file.load_as::<f32, _>("w", (Out, In)).err(),
    ] {
        assert_eq!(
            error.unwrap().to_string(),
            "not a valid file: `w` unpacks to 399999996 bytes, more than the limit of 268435456: raise it with `NpzReader::unpacking_up_to`"
        );
    }
    let error = Saved::new(&bytes).err().unwrap().to_string();
    assert!(error.contains("its tensors unpack to 400000"), "{error}");
    assert!(error.contains("more than the limit of 268435456"), "{error}");
    // A program can raise the limit. The limit does not apply to uncompressed arrays, which take as
    // much memory as their file.
    let mut file = npz::NpzReader::new(&bytes).unwrap().unpacking_up_to(400_000_000);
    assert_eq!(file.load::<f32, (Out, In)>("w").unwrap().size(Out), 33_333_333);
    let mut stored = npz::NpzWriter::new();
    stored.put("w", counted(2)).unwrap();
    let mut file = npz::NpzReader::new(stored.into_bytes().unwrap()).unwrap().unpacking_up_to(0);
    assert_eq!(file.load::<f32, (Out, In)>("w").unwrap(), counted(2));
}

#[test]
fn errors_name_the_file_and_the_tensor() {
    use typed_dims::file::load::Weights;
    use typed_dims::optim::checkpoint::{Checkpoint, Saved};
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let shown = |name: &str| path(name).display().to_string();

    npy::save(path("w.npy"), counted(2)).unwrap();
    let file = npy::NpyReader::open(path("w.npy")).unwrap();
    let entry = file.get().unwrap();
    let wrong = "has the axes (Out = 2, In = 3) in the file, but the dims (Out) were asked for: the number of dims is 1, but the number of axes is 2";
    let doubles = "has elements of type f32 in the file, but `f64` was asked for: load it as `f32`, and convert it by `.cast::<f64>()`";
    assert_eq!(
        entry.load_as::<f32, _>(Out).unwrap_err().to_string(),
        format!("{}: tensor `w` {wrong}", shown("w.npy"))
    );
    assert_eq!(
        entry.load::<f64, (Out, In)>().unwrap_err().to_string(),
        format!("{}: tensor `w` {doubles}", shown("w.npy"))
    );
    let error = entry.view::<f64, (Out, In)>().err().unwrap().to_string();
    assert_eq!(error, format!("{}: tensor `w` {doubles}", shown("w.npy")));
    let error = entry.load_as::<f32, _>((Out.of(7), In)).unwrap_err().to_string();
    assert!(error.starts_with(&format!("{}: tensor `w`: dim `Out`", shown("w.npy"))), "{error}");
    assert!(
        npy::NpyReader::open(path("none.npy")).err().unwrap().to_string().starts_with(&shown("none.npy"))
    );

    let mut file = npz::NpzWriter::new();
    file.put("w", counted(2)).unwrap().put("flag", full(Out.of(3), true)).unwrap();
    file.save(path("two.npz")).unwrap();
    let mut file = npz::NpzReader::open(path("two.npz")).unwrap();
    let there = format!("{}: ", shown("two.npz"));
    assert_eq!(
        file.load::<f32, (Out, In)>("v").unwrap_err().to_string(),
        format!("{there}there is no tensor `v` in the file, which has `flag`, `w`")
    );
    assert_eq!(
        file.load_as::<f32, _>("w", Out).unwrap_err().to_string(),
        format!("{there}tensor `w` {wrong}")
    );
    assert_eq!(
        file.load::<f64, (Out, In)>("w").unwrap_err().to_string(),
        format!("{there}tensor `w` {doubles}")
    );
    let array = file.get("w").unwrap();
    let error = array.get().unwrap().load::<f64, (Out, In)>().unwrap_err().to_string();
    assert_eq!(error, format!("{there}tensor `w` {doubles}"));

    let mut file = safetensors::SafetensorsWriter::new();
    file.put("w", counted(2)).unwrap().save(path("one.safetensors")).unwrap();
    let file = safetensors::SafetensorsReader::open(path("one.safetensors")).unwrap();
    let there = format!("{}: ", shown("one.safetensors"));
    let error = file.get("v").err().unwrap().to_string();
    assert_eq!(error, format!("{there}there is no tensor `v` in the file, which has `w`"));
    let error = file.get("w").unwrap().load_as::<f32, _>(Out).unwrap_err().to_string();
    assert_eq!(error, format!("{there}tensor `w` {wrong}"));

    let value = counted(2);
    Checkpoint::new().put("net", &value).unwrap().save(path("saved.safetensors")).unwrap();
    let saved = Saved::open(path("saved.safetensors")).unwrap();
    let there = format!("the weights in {} do not fit:", shown("saved.safetensors"));
    let mut other = counted(5);
    assert!(saved.load("net", &mut other).unwrap_err().to_string().starts_with(&there));
    let mut adam = typed_dims::optim::Adam::new(0.1);
    assert!(saved.load_optimizer("adam", &mut adam, &value).unwrap_err().to_string().starts_with(&there));

    #[derive(Load)]
    struct Layer {
        bias: Tensor<f32, (Out,)>,
    }
    let file = safetensors::SafetensorsReader::open(path("saved.safetensors")).unwrap();
    let error = Weights::of(&file).unwrap().load::<Layer>().map(|layer| drop(layer.bias)).unwrap_err();
    assert!(error.to_string().starts_with(&there), "{error}");
}

#[test]
fn messages_name_the_file_and_its_content() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.npy");
    let write = |header: &str, data: &[u8]| {
        let header = format!("{header:<117}\n");
        let bytes = [&b"\x93NUMPY\x01\x00\x76\x00"[..], header.as_bytes(), data].concat();
        std::fs::write(&path, bytes).unwrap();
        match npy::NpyReader::open(&path) {
            Err(error) => error.to_string(),
            Ok(file) => file.get().unwrap().load_as::<f32, _>(Out).unwrap_err().to_string(),
        }
    };
    assert_eq!(
        write("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}", &[0; 8]),
        format!(
            "{}: tensor `w` has elements of type [('a', '<f4')] in the file, but `f32` was asked for",
            path.display()
        )
    );
    assert_eq!(
        write("{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", &[0; 8]),
        format!(
            "not a valid file: {}: tensor `w` with the axes (3) takes 12 bytes, but the file has 8",
            path.display()
        )
    );
    assert_eq!(
        write("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807,)}", &[0; 8]),
        format!(
            "not a valid file: {}: tensor `w` with the axes (9223372036854775807) has too many elements to be counted",
            path.display()
        )
    );
    let why = write("{'descr': '<f4', 'fortran_order': 'no', 'shape': (3,)}", &[]);
    assert!(
        why.ends_with(": the header has `'no', 'shape': (3,)}` where `True` or `False` is expected"),
        "{why}"
    );
}
