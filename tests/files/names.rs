use super::{Feat, In, Out, counted};
use typed_dims::file::{FileError, npy, safetensors};
use typed_dims::prelude::*;

mod elsewhere {
    typed_dims::dims! {
        /// Another dim with this name, without a static size.
        pub struct In;
        /// Another dim with this name.
        pub struct Out;
    }
}

fn message<T>(result: Result<T, FileError>) -> String {
    result.err().expect("an error").to_string()
}

fn file() -> safetensors::SafetensorsReader<Vec<u8>> {
    let mut file = safetensors::SafetensorsWriter::new();
    file.put("w", counted(2)).unwrap().put("b", ones::<f32, _>(Out.of(2))).unwrap();
    safetensors::SafetensorsReader::new(file.to_bytes().unwrap()).unwrap()
}

/// An `.npy` file without names, as other programs write it.
fn nameless() -> npy::NpyReader<Vec<u8>> {
    let mut bytes = npy::to_bytes(counted(2)).unwrap();
    let comment = bytes.windows(7).position(|part| part == b"# dims:").unwrap();
    let end = bytes.iter().position(|&byte| byte == b'\n').unwrap();
    bytes[comment..end].fill(b' ');
    npy::NpyReader::new(bytes).unwrap()
}

#[test]
fn names_are_checked() {
    let file = file();
    let w = file.get("w").unwrap();
    assert_eq!(
        message(w.load::<f32, (Out, Feat)>()),
        "tensor `w` has the axes (Out = 2, In = 3) in the file, but the dims (Out, Feat) were asked for: `In` is not one of them"
    );
    assert_eq!(
        message(w.load::<f32, (Out,)>()),
        "tensor `w` has the axes (Out = 2, In = 3) in the file, but the dims (Out) were asked for: `In` is not one of them"
    );
    assert_eq!(
        message(file.get("b").unwrap().load::<f32, (Out, In)>()),
        "tensor `b` has the axes (Out = 2) in the file, but the dims (Out, In = 3) were asked for: the file has no `In`"
    );
    assert_eq!(
        message(w.load_as::<f32, _>((In, Out))),
        "tensor `w` has the axes (Out = 2, In = 3) in the file, but the dims (In = 3, Out) were asked for: `In` has the static size 3, but size 2 in the file"
    );
    assert_eq!(
        message(w.load_as::<f32, _>((elsewhere::In, elsewhere::Out))),
        "tensor `w` has the axes (Out = 2, In = 3) in the file, but the dims (In, Out) were asked for: the file has `Out` where `In` was expected"
    );
    assert_eq!(message(file.get("v")), "there is no tensor `v` in the file, which has `b`, `w`");
}

/// Axes are matched by name, not by their order in the file.
#[test]
fn any_order() {
    dims! { pub struct Wide; pub struct High; }
    let high_wide = npy::to_bytes(ones::<u8, _>((Wide.of(2), High.of(5)))).unwrap();
    mod other {
        typed_dims::dims! { pub struct High; pub struct Wide; }
    }
    let file = npy::NpyReader::new(high_wide).unwrap();
    let back: Tensor<u8, (other::High, other::Wide)> = file.get().unwrap().load().unwrap();
    assert_eq!(back.dims(), [("High", 5), ("Wide", 2)]);
}

#[test]
fn static_sizes_and_element_types_are_checked() {
    dims! { pub struct Out = 7; }
    let file = file();
    let why = message(file.get("w").unwrap().load::<f32, (Out, In)>());
    assert!(why.ends_with("`Out` has the static size 7, but size 2 in the file"), "{why}");
    assert_eq!(
        message(file.get("w").unwrap().load::<f64, (super::Out, In)>()),
        "tensor `w` has elements of type f32 in the file, but `f64` was asked for: load it as `f32`, and convert it by `.cast::<f64>()`"
    );
}

#[test]
fn files_without_names_want_the_order_of_their_axes() {
    let file = nameless();
    let entry = file.get().unwrap();
    assert_eq!(
        message(entry.load::<f32, (Out, In)>()),
        "tensor `npy` has the axes (2, 3) in the file, but the dims (Out, In = 3) were asked for: the file does not name its axes, so give \
         the dims in the order of the axes, with `load_as` or `view_as`"
    );
    assert_eq!(entry.load_as::<f32, _>((Out, In)).unwrap().order((Out, In)), counted(2).order((Out, In)));
    assert!(
        message(entry.load_as::<f32, _>(Out))
            .ends_with("the number of dims is 1, but the number of axes is 2")
    );
    dims!(i = 4, j);
    let why = message(entry.load_as::<f32, _>((i, j)));
    assert!(
        why.starts_with("tensor `npy`: dim `i` has size 4") && why.contains("was also given size 2"),
        "{why}"
    );
    dims!(i, j);
    entry.load_as::<f32, _>((i, j)).unwrap();
    assert_eq!((i.size(), j.size()), (2, 3));
}

#[test]
fn roles_are_checked() {
    mod denoted {
        use typed_dims::prelude::*;
        roles! { pub struct Pixel: DataFeature; }
        dims! { pub struct Row: Pixel; pub struct Channel: DataChannel = 2; }
    }
    mod others {
        use typed_dims::prelude::*;
        dims! { pub struct Row: DataTime; pub struct Channel; }
    }
    mod coarser {
        use typed_dims::prelude::*;
        dims! { pub struct Row: DataFeature; pub struct Channel: DataChannel; }
    }
    let bytes = npy::to_bytes(ones::<f32, _>((denoted::Row.of(3), denoted::Channel))).unwrap();
    let text = String::from_utf8_lossy(&bytes[..192]).into_owned();
    assert!(text.contains("# dims: Row: Pixel/DATA_FEATURE, Channel: DATA_CHANNEL = 2"), "{text}");
    let file = npy::NpyReader::new(bytes).unwrap();
    let entry = file.get().unwrap();
    entry.load::<f32, (denoted::Row, denoted::Channel)>().unwrap();
    entry.load::<f32, (coarser::Row, coarser::Channel)>().unwrap();
    let why = message(entry.load::<f32, (others::Row, others::Channel)>());
    assert_eq!(
        why,
        "tensor `npy` has the axes (Row: Pixel/DATA_FEATURE = 3, Channel: DATA_CHANNEL = 2) in the file, but the dims (Row: DATA_TIME, \
         Channel) were asked for: `Row` has the role Pixel in the file, which is not DATA_TIME"
    );
    assert_eq!(message(entry.load_as::<f32, _>((others::Row, others::Channel))), why);
    // A role is not accepted for a finer role. Data and filter channels count as the same role.
    let bytes = npy::to_bytes(ones::<f32, _>((coarser::Row.of(3), coarser::Channel.of(2)))).unwrap();
    let file = npy::NpyReader::new(bytes).unwrap();
    let why = message(file.get().unwrap().load::<f32, (denoted::Row, denoted::Channel)>());
    assert!(why.ends_with("`Row` has the role DATA_FEATURE in the file, which is not Pixel"), "{why}");
    mod filter {
        use typed_dims::prelude::*;
        use typed_dims::types::role::FilterInChannel;
        dims! { pub struct Row; pub struct Channel: FilterInChannel; }
    }
    file.get().unwrap().load::<f32, (filter::Row, filter::Channel)>().unwrap();
    // An axis without a role may get one.
    let bytes = npy::to_bytes(ones::<f32, _>((filter::Row.of(3), filter::Channel.of(2)))).unwrap();
    let file = npy::NpyReader::new(bytes).unwrap();
    file.get().unwrap().load::<f32, (coarser::Row, coarser::Channel)>().unwrap();
}

#[test]
fn names_that_a_file_cannot_distinguish() {
    let tensor = ones::<f32, _>((Out.of(2), elsewhere::Out.of(3)));
    let what = "cannot be written: a file cannot tell two dims named `Out` apart: rename one of them";
    assert_eq!(message(npy::to_bytes(&tensor)), what);
    assert_eq!(message(safetensors::SafetensorsWriter::new().put("x", &tensor)), what);
    let why = message(file().get("b").unwrap().load::<f32, (Out, elsewhere::Out)>());
    assert!(why.ends_with("two of them are called `Out`"), "{why}");
    let mut twice = safetensors::SafetensorsWriter::new();
    twice.put("x", counted(1)).unwrap();
    assert!(message(twice.put("x", counted(1))).contains("`x` is in the file already"));
}
