//! Compresses the files of the console, which `cargo xtask console` builds from `console/src`, and writes the table of
//! them that `frontends::console` includes. A build of the gateway needs no Node.js.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use flate2::write::GzEncoder;
use flate2::{Compression, Crc};

fn main() -> io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../console/dist");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?);
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files = Vec::new();
    add_files(&folder, &mut files)?;
    files.sort();
    let mut table = format!("static FILES: [ConsoleFile; {}] = [\n", files.len());
    for (number, file) in files.iter().enumerate() {
        let text = fs::read(file)?;
        let compressed = out.join(format!("console_{number}.gz"));
        let mut encoder = GzEncoder::new(File::create(&compressed)?, Compression::best());
        encoder.write_all(&text)?;
        encoder.finish()?;
        let name = file.strip_prefix(&folder).map_err(io::Error::other)?.to_string_lossy().into_owned();
        let path = if name == "index.html" { String::new() } else { name };
        let mut crc = Crc::new();
        crc.update(&text);
        let tag = format!("W/\"{:08x}-{:x}\"", crc.sum(), text.len());
        writeln!(
            table,
            "    ConsoleFile {{ path: \"/{path}\", tag: {tag:?}, gzip: include_bytes!({compressed:?}) }},"
        )
        .map_err(io::Error::other)?;
    }
    table.push_str("];\n");
    fs::write(out.join("console_files.rs"), table)
}

/// Adds the files of a folder and those below it.
fn add_files(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            add_files(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
