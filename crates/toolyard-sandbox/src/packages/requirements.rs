//! What a list of packages may say: names, versions and markers, as a `requirements.txt` has them, but no options and no
//! places.

use super::PackageError;

/// The most lines of a list.
const MOST_LINES: usize = 200;

/// The longest list, in bytes.
const LONGEST: usize = 64 << 10;

/// A list that was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirements(String);

impl Requirements {
    /// Reads a list.
    ///
    /// # Errors
    /// When it is too long, or one of its lines says something else than which package is wanted.
    pub fn parse(list: &str) -> Result<Self, PackageError> {
        if list.len() > LONGEST {
            return Err(PackageError::TooMany(MOST_LINES));
        }
        // A line may go on behind a backslash, as lists with digests do.
        let joined = list.replace("\r\n", "\n").replace("\\\n", " ");
        let mut lines = Vec::new();
        for (number, line) in (1..).zip(joined.lines()) {
            let line = without_comment(line).trim();
            if line.is_empty() {
                continue;
            }
            check(line).map_err(|why| PackageError::BadLine {
                number,
                line: line.chars().take(80).collect(),
                why,
            })?;
            lines.push(line);
        }
        match lines.len() {
            0..=MOST_LINES => Ok(Self(lines.join("\n"))),
            _ => Err(PackageError::TooMany(MOST_LINES)),
        }
    }

    /// One package a line.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Whether nothing is wanted.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn without_comment(line: &str) -> &str {
    match line.trim_start().starts_with('#') {
        true => "",
        false => line.split_once(" #").map_or(line, |(before, _)| before),
    }
}

fn check(line: &str) -> Result<(), &'static str> {
    let (line, digests) = line.split_once("--hash=").unwrap_or((line, ""));
    let is_digest = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || c == ':');
    if !digests.split(" --hash=").all(|digest| is_digest(digest.trim())) {
        return Err("a digest is of letters and digits");
    }
    if line.starts_with('-') {
        return Err("options are for pip's own configuration");
    }
    if line.contains(['@', '/', '\\']) || line.contains("://") {
        return Err("where packages come from is for pip's own configuration to say");
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let end = line.find(|c| !is_plain(c)).unwrap_or(line.len());
    let name = &line[..end];
    let is_name = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.ends_with(|c: char| c.is_ascii_alphanumeric());
    if !is_name {
        return Err("a name begins and ends with a letter or digit");
    }
    let is_known = |c: char| is_plain(c) || " \t<>=!~,*+[]();'\"".contains(c);
    let rest = line[end..].trim_start();
    let goes_on = rest.is_empty() || rest.starts_with(['<', '>', '=', '!', '~', '[', '(', ';']);
    match goes_on && rest.chars().all(is_known) {
        true => Ok(()),
        false => Err("a version begins with `==`, `>=`, `<=`, `~=`, `!=`, `<` or `>`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_list_says() {
        let check = |list: &str, expected: &str| {
            assert_eq!(Requirements::parse(list).unwrap().text(), expected, "{list:?}");
        };
        check("", "");
        check("# nothing\n\n  # at all", "");
        check("requests\r\nnumpy == 1.2  # fast\n", "requests\nnumpy == 1.2");
        check("a[b,c]>=1,<2; python_version < '3.12'", "a[b,c]>=1,<2; python_version < '3.12'");
        check("a==1.*", "a==1.*");
        check("a (>=1)", "a (>=1)");
        check(
            "a==1 \\\n  --hash=sha256:abc \\\n  --hash=sha256:def",
            "a==1    --hash=sha256:abc    --hash=sha256:def",
        );
    }

    #[test]
    fn what_a_list_may_not_say() {
        for line in [
            "--index-url=http://evil",
            "-r other.txt",
            "-e .",
            "--hash=sha256:abc",
            "git+https://example.com/x",
            "a @ https://example.com/a.whl",
            "./a.whl",
            "/etc/passwd",
            "../a",
            "file:a",
            "a --global-option=x",
            "a==1 --hash=sha256:abc --index-url=http://evil",
            "a b",
            "a\u{0}",
            "ä",
            ".",
            "a-",
            "$(touch x)",
            "a;`x`",
        ] {
            let refused = Requirements::parse(&format!("fine\n{line}")).unwrap_err();
            assert!(matches!(refused, PackageError::BadLine { number: 2, .. }), "{line:?}: {refused:?}");
        }
        assert_eq!(Requirements::parse(&"a\n".repeat(201)), Err(PackageError::TooMany(200)));
        assert_eq!(Requirements::parse(&"#".repeat(65537)), Err(PackageError::TooMany(200)));
    }
}
