//! Programs that were saved and loaded again.

use typed_dims::grad::Parameters;
use typed_dims::program::{Program, RecordInputs, SavedProgram};

/// Saves and restores a program. Checks that the restored program equals the original and has the
/// same text.
///
/// Uses JSON, which names the fields, and Postcard, which does not.
#[track_caller]
pub fn reloaded<In: RecordInputs, Out: Parameters>(
    program: &Program<In, Out>,
    like: &Out,
) -> Program<In, Out> {
    let saved = program.to_saved().expect("the program can be saved");
    let text = serde_json::to_string(&saved).expect("the program can be written");
    let read: SavedProgram = serde_json::from_str(&text).expect("the program can be read");
    assert!(read == saved, "JSON preserves the program");
    let bytes = postcard::to_allocvec(&saved).expect("the program can be written");
    let read: SavedProgram = postcard::from_bytes(&bytes).expect("the program can be read");
    assert!(read == saved, "Postcard preserves the program");
    let loaded = read.restore(like).expect("the program can be restored");
    assert!(loaded == *program, "the restored program equals the original: {program}");
    assert_eq!(loaded.to_string(), program.to_string());
    loaded
}
