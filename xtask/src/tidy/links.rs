//! Links between the documents of the repository: each leads to a file that exists, and to a heading of it. The pages of
//! the book, in `docs`, link to its pages only, because the book has nothing else.

use std::collections::{BTreeMap, HashMap};
use std::path::{Component, Path, PathBuf};

/// The list of the pages of the book.
const BOOK: &str = "docs/SUMMARY.md";

/// The notes for developers, which are not part of the book.
const DESIGN_NOTES: &str = "docs/design";

/// The documents that were read, by their paths from the root of the repository.
#[derive(Default)]
pub(super) struct LinkedDocuments {
    texts: BTreeMap<PathBuf, String>,
}

impl LinkedDocuments {
    /// Adds a document in Markdown.
    pub(super) fn add(&mut self, path: &Path, text: &str) {
        self.texts.insert(path.to_owned(), text.to_owned());
    }

    /// Returns a problem for each relative link that leads nowhere below `root`.
    pub(super) fn problems(&self, root: &Path) -> Vec<String> {
        let anchors: HashMap<_, _> = self.texts.iter().map(|(path, text)| (path, anchors(text))).collect();
        let mut problems = Vec::new();
        let pages =
            self.texts.get(Path::new(BOOK)).map(|text| targets(Path::new(BOOK), text)).unwrap_or_default();
        let is_page = |path: &PathBuf| pages.iter().any(|(_, page, _)| page == path);
        let is_picture = |path: &PathBuf| {
            path.starts_with("docs") && path.extension().is_some_and(|end| end == "svg" || end == "png")
        };
        for (path, text) in &self.texts {
            let is_of_book = path.starts_with("docs") && !path.starts_with(DESIGN_NOTES);
            if is_of_book && path != Path::new(BOOK) && !is_page(path) {
                problems.push(format!("{}: {BOOK} does not list this page", path.display()));
            }
            for (link, target, anchor) in targets(path, text) {
                if is_of_book && !is_page(&target) && !is_picture(&target) {
                    problems.push(format!(
                        "{}: the link {link} leads to a file outside of the book",
                        path.display()
                    ));
                }
                let has_anchor =
                    || anchors.get(&target).is_none_or(|known| known.iter().any(|one| one == anchor));
                if !root.join(&target).exists() || (!anchor.is_empty() && !has_anchor()) {
                    problems.push(format!("{}: the link {link} leads nowhere", path.display()));
                }
            }
        }
        problems
    }
}

/// Returns the relative links of a document: as they are written, the file, and the anchor.
fn targets<'a>(path: &Path, text: &'a str) -> Vec<(&'a str, PathBuf, &'a str)> {
    let target = |link: &'a str| {
        let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
        let target = match file {
            "" => path.to_owned(),
            file => normalized(&path.with_file_name("").join(file)),
        };
        (link, target, anchor)
    };
    links(text).into_iter().map(target).collect()
}

/// Returns the relative links outside of code.
fn links(text: &str) -> Vec<&str> {
    let mut links = Vec::new();
    for line in prose(text) {
        let code_free = line.split('`').step_by(2);
        // A link text may contain code, so that the target is what follows `](` outside of it.
        links.extend(
            code_free.flat_map(|part| part.split("](").skip(1)).filter_map(|rest| rest.split(')').next()),
        );
    }
    links.retain(|link| !link.contains("://") && !link.starts_with("mailto:"));
    links
}

/// Returns the lines outside of code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// Returns the anchors of the headings, as GitHub and mdBook make them. A repeated one gets a number.
fn anchors(text: &str) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    for heading in prose(text).filter(|line| line.starts_with('#')) {
        let title = heading.trim_start_matches('#').trim().to_lowercase();
        let anchor: String = title
            .chars()
            .filter(|char| char.is_alphanumeric() || matches!(char, ' ' | '-' | '_'))
            .map(|char| if char == ' ' { '-' } else { char })
            .collect();
        let numbered = (1..).map(|number| format!("{anchor}-{number}"));
        let free = std::iter::once(anchor.clone()).chain(numbered).find(|one| !anchors.contains(one));
        anchors.extend(free);
    }
    anchors
}

/// Returns the path without `.` and `..`.
fn normalized(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut whole, part| {
        match part {
            Component::ParentDir => {
                whole.pop();
            }
            Component::CurDir => {}
            part => whole.push(part),
        }
        whole
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let mut documents = LinkedDocuments::default();
        documents.add(Path::new("docs/SUMMARY.md"), "[a](a.md) [b](b.md)");
        documents.add(Path::new("docs/a.md"), text);
        documents.add(Path::new("docs/b.md"), "# Title\n\n## `code` and Words, twice\n\n## Title\n");
        let root = tempfile::TempDir::new().unwrap();
        std::fs::create_dir(root.path().join("docs")).unwrap();
        for file in ["docs/a.md", "docs/b.md", "README.md"] {
            std::fs::write(root.path().join(file), "").unwrap();
        }
        let expected: Vec<_> = expected.iter().map(|problem| format!("docs/a.md: {problem}")).collect();
        assert_eq!(documents.problems(root.path()), expected, "{text}");
    }

    #[test]
    fn links_lead_to_files_and_headings() {
        check("[b](b.md) and [web](https://example.com/x.md#y)", &[]);
        check("[b](b.md#code-and-words-twice) [`b`](b.md#title) [b](b.md#title-1)", &[]);
        check("# Own\n\n[own](#own)", &[]);
        let nowhere = ["the link b.md#none leads nowhere", "the link #none leads nowhere"];
        check("[b](b.md#none) [own](#none)", &nowhere);
        check("![b](b.svg)", &["the link b.svg leads nowhere"]);
        check("`[c](c.md)`\n```sh\n[c](c.md)\n```", &[]);
    }

    #[test]
    fn pages_of_the_book_link_to_its_pages() {
        check("[readme](../README.md)", &["the link ../README.md leads to a file outside of the book"]);
        let missing = ["the link c.md leads to a file outside of the book", "the link c.md leads nowhere"];
        check("[c](c.md)", &missing);
        let mut documents = LinkedDocuments::default();
        documents.add(Path::new("docs/c.md"), "");
        let problems = documents.problems(Path::new("/"));
        assert_eq!(problems, ["docs/c.md: docs/SUMMARY.md does not list this page"]);
    }
}
