//! The PyPI package, a wheel with the binary as a script: `uvx toolyard`.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;
use xtask_support::process;

use crate::checksums::sha256;
use crate::file_tree::{FILE, FileTree, PROGRAM};
use crate::release::{LICENSE, REPOSITORY, Release, SUMMARY, VERSION, size};

/// Packs a folder into a zip archive with permissions, in the order of names and with one time for all files. Python's
/// installers read nothing else, and every machine that tests Toolyard has Python.
const ZIP: &str = r#"
import os, sys, time, zipfile

folder, archive, epoch, level = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
names = sorted(os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder) for name in names)
with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as out:
    for name in names:
        path = os.path.join(folder, name)
        info = zipfile.ZipInfo(name, time.gmtime(epoch)[:6])
        info.external_attr = os.stat(path).st_mode << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        with open(path, "rb") as file:
            out.writestr(info, file.read(), compresslevel=level)
"#;

/// Makes `toolyard-VERSION-py3-none-PLATFORM.whl`, for the glibc that the binary needs.
pub(crate) fn make(release: &Release) -> anyhow::Result<PathBuf> {
    let glibc = release.needs.glibc;
    let platform = format!("manylinux_{}_{}_{}", glibc.major, glibc.minor, release.target.python_machine());
    let version = python_version();
    let tag = format!("py3-none-{platform}");
    let tree = FileTree::new()?;
    let info = format!("toolyard-{version}.dist-info");
    tree.copy(&format!("toolyard-{version}.data/scripts/toolyard"), PROGRAM, &release.binary())?;
    tree.copy_of(&format!("{info}/licenses/LICENSE"), "LICENSE")?;
    tree.write(&format!("{info}/METADATA"), FILE, metadata()?)?;
    let wheel = format!("Wheel-Version: 1.0\nGenerator: xtask-dist\nRoot-Is-Purelib: false\nTag: {tag}\n");
    tree.write(&format!("{info}/WHEEL"), FILE, wheel)?;
    add_record(&tree, &info)?;
    let file = release.file(&format!("toolyard-{version}-{tag}.whl"));
    let mut python = Command::new("python3");
    process::run(
        python
            .args(["-c", ZIP])
            .arg(tree.path())
            .arg(&file)
            .args([release.epoch.to_string(), release.compression.level().to_owned()]),
    )?;
    Ok(file)
}

/// Returns the version as PyPI writes it: `1.0.0-rc.1` is `1.0.0rc1`.
fn python_version() -> String {
    VERSION.replace("-rc.", "rc").replace("-beta.", "b").replace("-alpha.", "a")
}

fn metadata() -> anyhow::Result<String> {
    let readme = xtask_support::root().join("README.md");
    let readme = std::fs::read_to_string(&readme).with_context(|| format!("read {}", readme.display()))?;
    Ok(format!(
        "Metadata-Version: 2.4\nName: toolyard\nVersion: {}\nSummary: {SUMMARY}\nLicense-Expression: \
         {LICENSE}\nLicense-File: LICENSE\nProject-URL: Repository, {REPOSITORY}\nRequires-Python: >=3.8\n\
         Description-Content-Type: text/markdown\n\n{readme}",
        python_version()
    ))
}

/// Adds the list of files with their digests, by which installers check them.
fn add_record(tree: &FileTree, info: &str) -> anyhow::Result<()> {
    let version = python_version();
    let names = [
        format!("toolyard-{version}.data/scripts/toolyard"),
        format!("{info}/METADATA"),
        format!("{info}/WHEEL"),
        format!("{info}/licenses/LICENSE"),
    ];
    let mut record = String::new();
    for name in &names {
        let path = tree.path().join(name);
        record += &format!("{name},sha256={},{}\n", base64_url(&sha256(&path)?)?, size(&path)?);
    }
    record += &format!("{info}/RECORD,,\n");
    tree.write(&format!("{info}/RECORD"), FILE, record)
}

/// Converts hexadecimal digits to Base64 for URLs, without padding.
fn base64_url(hex: &str) -> anyhow::Result<String> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let digits = hex.chars().map(|digit| digit.to_digit(16));
    let bits: Vec<u32> = digits
        .collect::<Option<Vec<_>>>()
        .context("not hexadecimal")?
        .iter()
        .flat_map(|digit| (0..4).rev().map(move |bit| digit >> bit & 1))
        .collect();
    let value = |six: &[u32]| (0..6).fold(0, |value, bit| value << 1 | six.get(bit).unwrap_or(&0));
    Ok(bits.chunks(6).map(|six| char::from(ALPHABET[value(six) as usize])).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_written_in_base64() {
        for (hex, base64) in [("", ""), ("00", "AA"), ("fbff", "-_8"), ("666f6f", "Zm9v")] {
            assert_eq!(base64_url(hex).unwrap(), base64, "{hex}");
        }
        assert!(base64_url("xy").is_err());
    }
}
