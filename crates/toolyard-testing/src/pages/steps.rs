//! The code blocks of a page.

/// A step of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageStep {
    /// A file that the reader writes.
    File {
        /// Its path in the folder of the page.
        name: String,
        /// Its content.
        text: String,
    },
    /// Commands that the reader runs.
    Commands(String),
    /// The output of the last commands.
    Output(String),
}

/// Returns the steps of a page in Markdown.
pub fn steps(page: &str) -> Vec<PageStep> {
    let (mut steps, mut lines) = (Vec::new(), page.lines());
    let mut is_after_commands = false;
    while let Some(line) = lines.next() {
        let Some(info) = line.trim_start().strip_prefix("```") else {
            is_after_commands &= line.trim().is_empty();
            continue;
        };
        let indent = line.len() - line.trim_start().len();
        let block: String = lines
            .by_ref()
            .take_while(|line| !line.trim_start().starts_with("```"))
            .map(|line| format!("{}\n", line.get(indent..).unwrap_or_default()))
            .collect();
        let (language, name) = info.split_once(' ').unwrap_or((info, ""));
        match (language, name) {
            ("sh", _) => steps.push(PageStep::Commands(block)),
            ("text", _) if is_after_commands => steps.push(PageStep::Output(block)),
            (_, "") => {}
            (_, name) => steps.push(PageStep::File { name: name.to_owned(), text: block }),
        }
        is_after_commands = language == "sh";
    }
    steps
}

/// Returns `true` if the output is as expected. `…` stands for any text.
pub(super) fn matches(expected: &str, output: &str) -> bool {
    let mut parts = expected.trim_end().split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = output.trim_end().strip_prefix(first) else { return false };
    let mut parts: Vec<_> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[test]
fn steps_are_files_commands_and_outputs() {
    let page = "# Page\n\n```yaml tools.yaml\na: 1\n```\n\n1. Run\n\n   ```sh\n   toolyard serve\n   ```\n\n\
                ```text\nout\n```\n```text\nnot an output\n```\n```sh\nls\n```\nProse\n```text\nnor this\n```\n```yaml\nno: file\n```\n";
    let expected = [
        PageStep::File { name: "tools.yaml".to_owned(), text: "a: 1\n".to_owned() },
        PageStep::Commands("toolyard serve\n".to_owned()),
        PageStep::Output("out\n".to_owned()),
        PageStep::Commands("ls\n".to_owned()),
    ];
    assert_eq!(steps(page), expected);
}

#[test]
fn ellipsis_stands_for_any_text() {
    for (expected, output, is_match) in [
        ("a\n", "a\n", true),
        ("a", "ab", false),
        ("a…", "ab\nc", true),
        ("…c", "ab\nc\n", true),
        ("a … c … e", "a b c d e", true),
        ("a … c … e", "a b d e", false),
        ("a…b…", "ab", true),
        ("", "a", false),
    ] {
        assert_eq!(matches(expected, output), is_match, "{expected:?} {output:?}");
    }
}
