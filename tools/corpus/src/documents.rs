//! The unpacked documents of the corpus.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use tempfile::TempDir;
use xtask_support::process;

/// The largest document, of 20 MB. It has as many operations as all others together, and would hide their results.
const GRAPH: &str = "microsoft.com-graph";

/// Archives of documents in one file, and in several files.
const ARCHIVES: [&str; 2] = ["specs.tar.xz", "multifile.tar.xz"];

/// All documents, in a folder that is removed with this value.
pub(super) struct DocumentCorpus(TempDir);

/// One document.
pub(super) struct CorpusDocument {
    /// Path in the corpus.
    pub(super) name: String,
    /// The root file.
    pub(super) root: PathBuf,
}

impl CorpusDocument {
    pub(super) fn is_graph(&self) -> bool {
        self.name.contains(GRAPH)
    }

    pub(super) fn is_several_files(&self) -> bool {
        self.name.starts_with("multifile/")
    }
}

impl DocumentCorpus {
    pub(super) fn unpack(corpora: &Path) -> anyhow::Result<Self> {
        let folder = TempDir::new().context("create a folder")?;
        for archive in ARCHIVES.map(|name| corpora.join(name)) {
            ensure!(archive.is_file(), "no file {}", archive.display());
            process::run(Command::new("tar").arg("xJf").arg(&archive).arg("-C").arg(folder.path()))?;
        }
        Ok(Self(folder))
    }

    /// The documents whose name contains `only`, sorted by name.
    pub(super) fn documents(&self, only: &str) -> anyhow::Result<Vec<CorpusDocument>> {
        let mut documents = Vec::new();
        for root in files(&self.0.path().join("specs"))? {
            documents.push(self.document(root)?);
        }
        // Of several files, one is the root of the document.
        for root in files(&self.0.path().join("multifile"))? {
            if !is_document(&root) {
                continue;
            }
            let text = std::fs::read(&root).with_context(|| format!("read {}", root.display()))?;
            if has_version_field(&String::from_utf8_lossy(&text)) {
                documents.push(self.document(root)?);
            }
        }
        documents.retain(|document| document.name.contains(only));
        documents.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(documents)
    }

    fn document(&self, root: PathBuf) -> anyhow::Result<CorpusDocument> {
        let name = root.strip_prefix(self.0.path()).context("file outside of the corpus")?;
        Ok(CorpusDocument { name: name.display().to_string(), root })
    }
}

/// `true` if a document of OpenAPI may begin with this text. A plain search, as the parser is under test.
fn has_version_field(text: &str) -> bool {
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
    let mut paths = Vec::new();
    let entries = std::fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))?;
    for entry in entries {
        let path = entry.context("read a folder")?.path();
        if path.is_dir() {
            paths.extend(files(&path)?);
        } else {
            paths.push(path);
        }
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_document_has_a_version_field() {
        let check = |text: &str, expected: bool| assert_eq!(has_version_field(text), expected, "{text}");
        check("openapi: 3.1.0\n", true);
        check("# x\nswagger: '2.0'\n", true);
        check("{\n    \"swagger\": \"2.0\"}", true);
        check("type: object\nproperties:\n  openapi:\n", true);
        check("description: an openapi: one\n", false);
    }
}
