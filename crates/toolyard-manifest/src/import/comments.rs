//! JSON with comments, as VS Code writes it. (Commas behind the last item are YAML's, too.)

/// The text with blanks in the place of comments, so that every position stays what it was.
pub(super) fn blanked(text: &str) -> String {
    let mut blanked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(['"', '/']) {
        let (before, at) = rest.split_at(start);
        blanked.push_str(before);
        let length = if at.starts_with('"') {
            string(at)
        } else if at.starts_with("//") {
            at.find('\n').unwrap_or(at.len())
        } else if let Some(comment) = at.strip_prefix("/*") {
            comment.find("*/").map_or(at.len(), |end| end + 4)
        } else {
            1
        };
        let (part, behind) = at.split_at(length);
        if part.starts_with("//") || part.starts_with("/*") {
            blanked.extend(part.chars().map(|c| if matches!(c, '\n' | '\r') { c } else { ' ' }));
        } else {
            blanked.push_str(part);
        }
        rest = behind;
    }
    blanked.push_str(rest);
    blanked
}

/// The length of the string with which a text begins. One that does not end is the parser's to report.
fn string(text: &str) -> usize {
    let mut escaped = false;
    for (index, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return index + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_become_blanks() {
        for (text, expected) in [
            ("{} // a\n", "{}     \n"),
            ("{/* a\n b */}", "{    \n     }"),
            ("\"//\" // \"\n\"\"", "\"//\"     \n\"\""),
            (r#""\"//" /**/"#, r#""\"//"     "#),
            ("a / b", "a / b"),
            ("//", "  "),
            ("/*", "  "),
            ("/*/", "   "),
            ("\"", "\""),
            ("// é\r\n1", "    \r\n1"),
            (r#"["a", "http://b"] // c"#, r#"["a", "http://b"]     "#),
        ] {
            assert_eq!(blanked(text), expected, "{text}");
        }
    }
}
