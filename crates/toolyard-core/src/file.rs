//! Bounded reads of the files that settings name.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// Reads a regular file of at most `max_bytes` bytes. Blocks on the file system.
///
/// # Errors
/// If the file cannot be read, is a pipe or a device, which may have no end, or is larger.
pub fn read(path: &Path, max_bytes: usize) -> io::Result<Vec<u8>> {
    ensure_regular(path)?;
    let limit = u64::try_from(max_bytes).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    File::open(path)?.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() > max_bytes {
        let error = format!("it is larger than {max_bytes} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, error));
    }
    Ok(bytes)
}

/// Reads a file as [`read`] does, as text.
///
/// # Errors
/// As [`read`], or if the file is not UTF-8.
pub fn read_text(path: &Path, max_bytes: usize) -> io::Result<String> {
    String::from_utf8(read(path, max_bytes)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

/// Fails unless a file is a regular one. It is not opened, as opening a pipe waits for its writer.
///
/// # Errors
/// If the file does not exist, or is a folder, a pipe or a device.
pub fn ensure_regular(path: &Path) -> io::Result<()> {
    let metadata = fs::metadata(path)?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &Path, max_bytes: usize, expected: Result<&str, &str>) {
        let read = read_text(path, max_bytes).map_err(|error| error.to_string());
        assert_eq!(read.as_deref().map_err(String::as_str), expected, "{}", path.display());
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "only a program makes a pipe")]
    fn regular_files_are_read_within_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let (text, binary) = (folder.path().join("text"), folder.path().join("binary"));
        fs::write(&text, "four").unwrap();
        fs::write(&binary, [0xff]).unwrap();
        check(&text, 4, Ok("four"));
        check(&text, 3, Err("it is larger than 3 bytes"));
        check(&binary, 3, Err("it is not UTF-8"));
        check(folder.path(), 3, Err("is a directory"));
        check(Path::new("/dev/zero"), 3, Err("it is not a regular file"));
        assert_eq!(read(&folder.path().join("none"), 3).unwrap_err().kind(), io::ErrorKind::NotFound);
        // A pipe without a writer is not waited for.
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        check(&pipe, 3, Err("it is not a regular file"));
    }
}
