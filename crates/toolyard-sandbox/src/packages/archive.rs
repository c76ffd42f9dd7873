//! Stream of installed files from a sandbox: for each a length, a header in JSON, and the content; a length of zero
//! ends the stream. The sandbox is not trusted: only regular files with paths inside the folder are accepted, within
//! limits.

use std::fs::{self, FileTimes, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::inspect::{InstalledFile, InstalledFiles};

/// Maximum length of a header, in bytes.
const MAX_HEADER_BYTES: u32 = 8 << 10;

/// Maximum length of a path, in bytes, and maximum number of its components.
const MAX_PATH_BYTES: usize = 2000;
const MAX_DEPTH: usize = 64;

/// Maximum number of files of one installation.
const MAX_FILES: usize = 200_000;

/// Latest accepted modification time: the end of the year 2099, in seconds since 1970.
const MAX_MTIME: u64 = 4_102_444_800;

/// Error of receiving files.
#[derive(Debug)]
pub(super) enum ArchiveError {
    /// The files exceed the maximum size or number.
    TooLarge,
    /// The stream is malformed.
    Malformed(String),
    /// The stream ended early, or the folder cannot be written to.
    Broken(io::Error),
}

impl From<io::Error> for ArchiveError {
    fn from(error: io::Error) -> Self {
        Self::Broken(error)
    }
}

#[derive(Serialize, Deserialize)]
struct FileHeader {
    path: String,
    bytes: u64,
    /// Modification time, in seconds since 1970. Compiled modules refer to the time of their source.
    modified: u64,
    executable: bool,
}

/// Sends all files of a folder.
///
/// # Errors
/// If an entry is neither a file nor a folder, has a path that is not UTF-8, or changes meanwhile.
pub(super) fn send(folder: &Path, to: &mut impl Write) -> io::Result<()> {
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next)? {
            let entry = entry?;
            let (path, metadata) = (entry.path(), entry.metadata()?);
            if metadata.is_dir() {
                folders.push(path);
                continue;
            }
            let relative = path.strip_prefix(folder).unwrap_or(&path).to_owned();
            if !metadata.is_file() {
                let kind = if metadata.is_symlink() { "a symbolic link" } else { "a special file" };
                return Err(io::Error::other(format!("{} is {kind}", relative.display())));
            }
            let relative = relative.into_os_string().into_string();
            let header = FileHeader {
                path: relative.map_err(|path| io::Error::other(format!("the path {path:?} is not UTF-8")))?,
                bytes: metadata.len(),
                modified: metadata.mtime().try_into().unwrap_or_default(),
                executable: metadata.mode() & 0o111 != 0,
            };
            send_file(&header, &path, to)?;
        }
    }
    to.write_all(&[0; 4])?;
    to.flush()
}

fn send_file(header: &FileHeader, path: &Path, to: &mut impl Write) -> io::Result<()> {
    let text = serde_json::to_vec(header)?;
    let length = u32::try_from(text.len()).map_err(io::Error::other)?;
    to.write_all(&length.to_be_bytes())?;
    to.write_all(&text)?;
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(path)?;
    match io::copy(&mut file.take(header.bytes), to)? == header.bytes {
        true => Ok(()),
        false => Err(io::Error::other(format!("{} changed while it was read", header.path))),
    }
}

/// Writes the received files to a folder and returns their list. The caller removes the folder after an error.
///
/// # Errors
/// If the stream exceeds a limit, is malformed, or ends early.
pub(super) fn receive(
    from: &mut impl Read,
    folder: &Path,
    max_bytes: u64,
) -> Result<InstalledFiles, ArchiveError> {
    let mut files = InstalledFiles::new();
    let mut remaining = max_bytes;
    while let Some(header) = read_header(from)? {
        // An empty file takes disk space, too.
        let counted = header.bytes.max(512);
        remaining = remaining
            .checked_sub(counted)
            .filter(|_| files.len() < MAX_FILES)
            .ok_or(ArchiveError::TooLarge)?;
        check_path(&header.path)?;
        let installed = write_file(&header, from, folder)?;
        files.insert(header.path, installed);
    }
    Ok(files)
}

fn read_header(from: &mut impl Read) -> Result<Option<FileHeader>, ArchiveError> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length);
    if length == 0 {
        return Ok(None);
    }
    if length > MAX_HEADER_BYTES {
        return Err(ArchiveError::Malformed(format!("a header of {length} bytes")));
    }
    let mut text = vec![0; length as usize];
    from.read_exact(&mut text)?;
    let header = serde_json::from_slice(&text);
    header.map(Some).map_err(|error| ArchiveError::Malformed(error.to_string()))
}

/// Checks that a path is normalized and lies in the folder.
fn check_path(path: &str) -> Result<(), ArchiveError> {
    let parts: Vec<_> = Path::new(path).components().collect();
    let is_plain = |part: &Component<'_>| matches!(part, Component::Normal(_));
    let joined = parts.iter().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/");
    let is_sound = !parts.is_empty()
        && parts.iter().all(is_plain)
        && joined == path
        && path.len() <= MAX_PATH_BYTES
        && parts.len() <= MAX_DEPTH
        && !path.contains(char::is_control);
    match is_sound {
        true => Ok(()),
        false => {
            Err(ArchiveError::Malformed(format!("the path {:?}", path.chars().take(200).collect::<String>())))
        }
    }
}

/// Writes one file. All parent folders were created here, so no link leads elsewhere.
fn write_file(
    header: &FileHeader,
    from: &mut impl Read,
    folder: &Path,
) -> Result<InstalledFile, ArchiveError> {
    let path = folder.join(&header.path);
    make_folders(folder, Path::new(&header.path))?;
    let mode = if header.executable { 0o755 } else { 0o644 };
    let mut file = OpenOptions::new().write(true).create_new(true).open(&path)?;
    let mut hasher = Sha256::new();
    let mut remaining = header.bytes;
    let mut buffer = vec![0; 64 << 10];
    while remaining > 0 {
        let most = usize::try_from(remaining).map_or(buffer.len(), |left| left.min(buffer.len()));
        from.read_exact(&mut buffer[..most])?;
        hasher.update(&buffer[..most]);
        file.write_all(&buffer[..most])?;
        remaining -= most as u64;
    }
    let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(header.modified.min(MAX_MTIME));
    file.set_times(FileTimes::new().set_modified(modified))?;
    file.set_permissions(Permissions::from_mode(mode))?;
    Ok(InstalledFile { sha256: hasher.finalize().into(), bytes: header.bytes })
}

/// Creates the parent folders of a file. Sandboxed programs can read them regardless of the gateway's umask.
fn make_folders(folder: &Path, file: &Path) -> io::Result<()> {
    let mut above: Vec<_> = file.ancestors().skip(1).filter(|path| *path != Path::new("")).collect();
    above.reverse();
    for path in above {
        let path = folder.join(path);
        match fs::create_dir(&path) {
            Ok(()) => fs::set_permissions(&path, Permissions::from_mode(0o755))?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
