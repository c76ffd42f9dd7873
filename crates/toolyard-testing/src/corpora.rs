//! Real documents and recordings, which are no part of the repository.

use std::path::PathBuf;

/// Returns a file or folder of the test data, whose folder `TOOLYARD_CORPORA` names. Without the variable, prints what is
/// not tested.
pub fn corpus(path: &str, subject: &str) -> Option<PathBuf> {
    let Some(corpora) = std::env::var_os("TOOLYARD_CORPORA") else {
        println!("TOOLYARD_CORPORA is not set: {subject} are not tested");
        return None;
    };
    Some(PathBuf::from(corpora).join(path))
}
