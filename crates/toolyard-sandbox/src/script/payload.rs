//! What a script is given, by way of its standard input.

use std::path::Path;

use toolyard_core::script::Script;
use toolyard_core::{Code, ToolError};

/// A script and its input take at most one part in so many of its memory: Python has each several times.
const SHARE: u64 = 8;

pub(super) struct Payload<'a> {
    pub(super) source: &'a str,
    pub(super) input: &'a str,
    pub(super) packages: Option<&'a Path>,
    pub(super) memory_bytes: u64,
    pub(super) disk_bytes: u64,
}

impl Payload<'_> {
    /// The lengths of all parts in one line, and the parts.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let (memory, disk) = (size(self.memory_bytes), size(self.disk_bytes));
        let packages = self.packages.map_or(&[][..], |path| path.as_os_str().as_encoded_bytes());
        let parts =
            [self.source.as_bytes(), self.input.as_bytes(), packages, memory.as_bytes(), disk.as_bytes()];
        let lengths = parts.map(|part| part.len().to_string()).join(" ");
        let mut bytes = lengths.into_bytes();
        bytes.push(b'\n');
        bytes.extend(parts.concat());
        bytes
    }
}

/// Refuses what no script can be given.
pub(super) fn check(script: &Script, memory_bytes: u64) -> Result<(), ToolError> {
    let refuse = |why: String| Err(ToolError::new(Code::InvalidArguments, why));
    let input = script.input.as_deref().unwrap_or_default();
    if input.contains('\0') {
        return refuse("The input has the character U+0000, which no variable can have".to_owned());
    }
    let bytes = (script.source.len() + input.len()) as u64;
    let most = memory_bytes / SHARE;
    if bytes > most {
        let (bytes, most) = (size(bytes), size(most));
        return refuse(format!("The script and its input are {bytes}, and may be {most} together"));
    }
    Ok(())
}

/// A number of bytes, as people read it.
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        _ if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} bytes"),
    }
}
