//! The pages with their expected texts.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use serde::Deserialize;

/// A page with what is expected of its text.
pub(crate) struct CorpusPage {
    pub(crate) id: String,
    pub(crate) html: Vec<u8>,
    pub(crate) expected: ExpectedText,
}

/// The text of a page as a person sees it.
#[derive(Deserialize)]
pub(crate) struct ExpectedText {
    pub(crate) url: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) main_content: String,
    /// Texts that must be there.
    pub(crate) with: Vec<String>,
    /// Texts that must not be there.
    pub(crate) without: Vec<String>,
}

impl CorpusPage {
    /// Returns `true` for the half of the pages that rules are tuned on, by a hash (FNV-1a) of the ID.
    pub(crate) fn is_tuned_on(&self) -> bool {
        let hash = self
            .id
            .bytes()
            .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        ((hash >> 16) ^ hash) & 1 == 0
    }
}

/// Unpacks and reads all pages, in the order of their IDs.
pub(crate) fn read_pages(archive: &Path) -> anyhow::Result<Vec<CorpusPage>> {
    let folder = tempfile::tempdir().context("create a folder")?;
    let status = Command::new("tar").arg("-xJf").arg(archive).arg("-C").arg(folder.path()).status();
    ensure!(status.context("run tar")?.success(), "{}: cannot be unpacked", archive.display());
    let files = folder.path().join("pages");
    let mut pages = Vec::new();
    for file in std::fs::read_dir(&files).with_context(|| files.display().to_string())? {
        let path = file?.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let id = path.file_stem().context("a name")?.to_string_lossy().into_owned();
        let expected = serde_json::from_slice(&std::fs::read(&path)?).with_context(|| id.clone())?;
        let html = std::fs::read(path.with_extension("html")).with_context(|| id.clone())?;
        pages.push(CorpusPage { id, html, expected });
    }
    pages.sort_by(|a, b| a.id.cmp(&b.id));
    ensure!(!pages.is_empty(), "{}: no pages", archive.display());
    Ok(pages)
}
