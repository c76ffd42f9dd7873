//! Input of a script, sent on standard input.

use std::path::Path;

use toolyard_core::script::PythonScript;
use toolyard_core::{ErrorCode, ToolError};

/// Maximum share of a script and its input in the memory limit: Python holds each several times.
const MEMORY_SHARE: u64 = 8;

pub(super) struct ScriptPayload<'a> {
    pub(super) source: &'a str,
    pub(super) input: &'a str,
    pub(super) packages: Option<&'a Path>,
    pub(super) memory_bytes: u64,
    pub(super) disk_bytes: u64,
}

impl ScriptPayload<'_> {
    /// Serializes the payload: one line with the lengths of all parts, and the parts.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let (memory, disk) = (format_size(self.memory_bytes), format_size(self.disk_bytes));
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

/// Checks that a script fits the limits.
pub(super) fn check(script: &PythonScript, memory_bytes: u64) -> Result<(), ToolError> {
    let refuse = |why: String| Err(ToolError::new(ErrorCode::InvalidArguments, why));
    let input = script.input.as_deref().unwrap_or_default();
    if input.contains('\0') {
        return refuse("The input contains U+0000, which a variable cannot contain".to_owned());
    }
    let bytes = (script.source.len() + input.len()) as u64;
    let most = memory_bytes / MEMORY_SHARE;
    if bytes > most {
        let (bytes, most) = (format_size(bytes), format_size(most));
        return refuse(format!("The script and its input have {bytes}; the maximum is {most}"));
    }
    Ok(())
}

/// Formats a number of bytes with a unit.
pub(super) fn format_size(bytes: u64) -> String {
    match bytes {
        _ if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} bytes"),
    }
}
