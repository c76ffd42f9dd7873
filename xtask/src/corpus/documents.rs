//! The documents, unpacked.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use tempfile::TempDir;

use crate::process;

/// The largest document, of 20 MB: it has as many operations as all others together, and would hide what becomes of them.
const GRAPH: &str = "microsoft.com-graph";

/// Documents that are one file, and documents that are several.
const ARCHIVES: [&str; 2] = ["specs.tar.xz", "multifile.tar.xz"];

/// All documents, in a folder that is gone with this value.
pub(super) struct Corpus(TempDir);

/// One document.
pub(super) struct Document {
    /// Its path in the corpus.
    pub(super) name: String,
    /// The file that it begins in.
    pub(super) root: PathBuf,
}

impl Document {
    pub(super) fn is_graph(&self) -> bool {
        self.name.contains(GRAPH)
    }

    pub(super) fn is_several_files(&self) -> bool {
        self.name.starts_with("multifile/")
    }
}

impl Corpus {
    pub(super) fn unpack(corpora: &Path) -> anyhow::Result<Self> {
        let folder = TempDir::new().context("make a folder")?;
        for archive in ARCHIVES.map(|name| corpora.join(name)) {
            ensure!(archive.is_file(), "there is no file {}", archive.display());
            process::run(Command::new("tar").arg("xJf").arg(&archive).arg("-C").arg(folder.path()))?;
        }
        Ok(Self(folder))
    }

    /// The documents whose name contains `only`, by name.
    pub(super) fn documents(&self, only: &str) -> anyhow::Result<Vec<Document>> {
        let mut documents = Vec::new();
        for root in files(&self.0.path().join("specs"))? {
            documents.push(self.document(root)?);
        }
        // Of several files, one is where the document begins.
        for root in files(&self.0.path().join("multifile"))? {
            if !is_document(&root) {
                continue;
            }
            let text = std::fs::read(&root).with_context(|| format!("read {}", root.display()))?;
            if says_its_version(&String::from_utf8_lossy(&text)) {
                documents.push(self.document(root)?);
            }
        }
        documents.retain(|document| document.name.contains(only));
        documents.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(documents)
    }

    fn document(&self, root: PathBuf) -> anyhow::Result<Document> {
        let name = root.strip_prefix(self.0.path()).context("a file is in its folder")?;
        Ok(Document { name: name.display().to_string(), root })
    }
}

/// Whether a document of OpenAPI may begin with this text. It is told by looking alone: what reads documents is under test.
fn says_its_version(text: &str) -> bool {
    let begins = |line: &str| {
        let word = line.trim_start_matches([' ', '"']);
        let is_outermost = line.len() - word.len() <= 5;
        is_outermost && (word.starts_with("openapi") || word.starts_with("swagger")) && word.contains(':')
    };
    text.lines().any(begins)
}

fn is_document(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| ["json", "yaml", "yml"].contains(&extension))
}

/// All files below a folder.
fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries = std::fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))?;
    for entry in entries {
        let path = entry.context("read a folder")?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else {
            found.push(path);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_document_begins_its_version_stands() {
        let check = |text: &str, expected: bool| assert_eq!(says_its_version(text), expected, "{text}");
        check("openapi: 3.1.0\n", true);
        check("# x\nswagger: '2.0'\n", true);
        check("{\n    \"swagger\": \"2.0\"}", true);
        check("type: object\nproperties:\n  openapi:\n", true);
        check("description: an openapi: one\n", false);
    }
}
