//! One requirement of a list.

use std::fmt;
use std::str::FromStr;

use pep440_rs::VersionSpecifiers;

use super::marker::EnvironmentMarker;
use super::scanner::{TextScanner, is_blank};

/// Maximum length of a name of a package or an extra, in bytes.
const MAX_NAME_BYTES: usize = 128;

/// Maximum number of extras and of digests of one requirement.
const MAX_PARTS: usize = 64;

/// Digest algorithms of pip, with their number of hexadecimal digits.
const DIGESTS: [(&str, usize); 3] = [("sha256", 64), ("sha384", 96), ("sha512", 128)];

/// A requirement: `name[extra]>=1,<2; python_version < "3.12" --hash=sha256:...`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageRequirement {
    name: String,
    extras: Vec<String>,
    versions: VersionSpecifiers,
    marker: Option<EnvironmentMarker>,
    /// Digests with their algorithm: `sha256:` and hexadecimal digits.
    digests: Vec<String>,
}

impl PackageRequirement {
    /// Parses one line without comments.
    pub(super) fn parse(line: &str) -> Result<Self, &'static str> {
        let (line, digests) = split_digests(line)?;
        if line.split(is_blank).any(|word| word.starts_with('-')) {
            return Err("options are set in pip's own configuration");
        }
        let mut scanner = TextScanner::new(line);
        let name = parse_name(&mut scanner)?;
        scanner.skip_blanks();
        let extras = parse_extras(&mut scanner)?;
        scanner.skip_blanks();
        if scanner.peek() == Some('@') {
            return Err("packages come from the index, not from a URL");
        }
        let versions = parse_versions(&mut scanner)?;
        scanner.skip_blanks();
        let marker = scanner.take(";").then(|| EnvironmentMarker::parse(&mut scanner)).transpose()?;
        scanner.skip_blanks();
        match scanner.rest() {
            "" => Ok(Self { name, extras, versions, marker, digests }),
            _ => Err("a version begins with `==`, `>=`, `<=`, `~=`, `!=`, `<` or `>`"),
        }
    }

    /// Normalized name (PEP 503).
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// True if the requirement restricts the digests of files, which requires a list in a file.
    #[must_use]
    pub const fn has_digests(&self) -> bool {
        !self.digests.is_empty()
    }
}

impl fmt::Display for PackageRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if !self.extras.is_empty() {
            write!(f, "[{}]", self.extras.join(","))?;
        }
        for (number, version) in self.versions.iter().enumerate() {
            write!(f, "{}{version}", if number == 0 { "" } else { "," })?;
        }
        if let Some(marker) = &self.marker {
            write!(f, " ; {marker}")?;
        }
        self.digests.iter().try_for_each(|digest| write!(f, " --hash={digest}"))
    }
}

/// Splits off pip's extension of the grammar: any number of `--hash=sha256:...` at the end.
fn split_digests(line: &str) -> Result<(&str, Vec<String>), &'static str> {
    let Some((line, digests)) = line.split_once("--hash=") else { return Ok((line, Vec::new())) };
    if !line.ends_with(is_blank) {
        return Err("expected a blank before `--hash=`");
    }
    let digests: Vec<_> = digests.split("--hash=").map(|text| text.trim_matches(is_blank)).collect();
    if digests.len() > MAX_PARTS || !digests.iter().all(|digest| is_digest(digest)) {
        return Err("a digest is `sha256:` and 64 hexadecimal digits, or one of SHA-384 or SHA-512");
    }
    Ok((line, digests.into_iter().map(str::to_ascii_lowercase).collect()))
}

fn is_digest(text: &str) -> bool {
    text.split_once(':').is_some_and(|(algorithm, digits)| {
        DIGESTS.contains(&(algorithm, digits.len())) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

fn parse_extras(scanner: &mut TextScanner<'_>) -> Result<Vec<String>, &'static str> {
    let mut extras = Vec::new();
    if !scanner.take("[") {
        return Ok(extras);
    }
    scanner.skip_blanks();
    if scanner.take("]") {
        return Ok(extras);
    }
    loop {
        scanner.skip_blanks();
        extras.push(parse_name(scanner)?);
        scanner.skip_blanks();
        if scanner.take("]") {
            return Ok(extras);
        }
        if !scanner.take(",") || extras.len() == MAX_PARTS {
            return Err("invalid extras: expected comma-separated names in brackets");
        }
    }
}

/// Parses and normalizes a name: lower case, with a hyphen for each run of hyphens, dots and underscores.
fn parse_name(scanner: &mut TextScanner<'_>) -> Result<String, &'static str> {
    let is_separator = |c: char| matches!(c, '.' | '_' | '-');
    let name = scanner.take_while(|c| c.is_ascii_alphanumeric() || is_separator(c));
    let is_sound = name.len() <= MAX_NAME_BYTES
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.ends_with(|c: char| c.is_ascii_alphanumeric());
    if !is_sound {
        return Err("a name begins and ends with a letter or digit");
    }
    let words = name.split(is_separator).filter(|word| !word.is_empty());
    Ok(words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-"))
}

fn parse_versions(scanner: &mut TextScanner<'_>) -> Result<VersionSpecifiers, &'static str> {
    let in_parentheses = scanner.take("(");
    let text = scanner.take_while(|c| c.is_ascii_alphanumeric() || ".-_+!*=<>~, \t".contains(c));
    if in_parentheses && !scanner.take(")") {
        return Err("the parenthesis before a version is not closed");
    }
    if text.trim_matches(is_blank).is_empty() {
        return Ok(VersionSpecifiers::empty());
    }
    VersionSpecifiers::from_str(text)
        .map_err(|_| "a version is as in `==1.2`, `>=1.2,<2` or `~=1.2` (PEP 440), and comes before any `;`")
}
