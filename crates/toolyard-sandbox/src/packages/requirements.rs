//! Lists of packages in the grammar of dependency specifiers (PEP 508): names, extras, versions, markers and digests.
//! Options, URLs and paths are refused, and the installer gets the list as it was parsed, not the original text.

mod line;
mod marker;
mod scanner;

use super::PackageError;
pub use line::PackageRequirement;

/// Maximum number of packages of a list.
const MAX_LINES: usize = 200;

/// Maximum length of a list, in bytes.
const MAX_BYTES: usize = 64 << 10;

/// A parsed list of packages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequirementList {
    packages: Vec<PackageRequirement>,
    text: String,
}

impl RequirementList {
    /// Parses a list in the format of `requirements.txt`.
    ///
    /// # Errors
    /// If the list is too long, or a line is not a dependency specifier with a name and versions.
    pub fn parse(list: &str) -> Result<Self, PackageError> {
        if list.len() > MAX_BYTES {
            return Err(PackageError::TooLong(MAX_LINES));
        }
        let mut packages = Vec::new();
        for (number, text) in logical_lines(list) {
            let text = without_comment(&text).trim();
            if text.is_empty() {
                continue;
            }
            let refuse = |why| PackageError::InvalidLine {
                number,
                line: text.chars().take(80).collect(),
                reason: why,
            };
            packages.push(PackageRequirement::parse(text).map_err(refuse)?);
            if packages.len() > MAX_LINES {
                return Err(PackageError::TooLong(MAX_LINES));
            }
        }
        let text = packages.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        Ok(Self { packages, text })
    }

    /// One requirement per line.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The parsed requirements.
    #[must_use]
    pub fn packages(&self) -> &[PackageRequirement] {
        &self.packages
    }

    /// True if the list is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.packages.is_empty()
    }
}

/// Returns logical lines with their numbers. A line that ends with a backslash continues in the next one.
fn logical_lines(list: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut continues = false;
    for (number, line) in (1..).zip(list.lines()) {
        let (text, is_continued) = line.strip_suffix('\\').map_or((line, false), |text| (text, true));
        match lines.last_mut().filter(|_| continues) {
            Some((_, previous)) => *previous = format!("{previous} {text}"),
            None => lines.push((number, text.to_owned())),
        }
        continues = is_continued;
    }
    lines
}

fn without_comment(line: &str) -> &str {
    let begins = |(at, _): &(usize, &str)| line[..*at].chars().next_back().is_none_or(char::is_whitespace);
    line.match_indices('#').find(begins).map_or(line, |(at, _)| &line[..at])
}

#[cfg(test)]
mod tests;
