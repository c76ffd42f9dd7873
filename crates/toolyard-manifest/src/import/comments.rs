//! Comments in JSON, as VS Code permits them. (YAML permits trailing commas, too.)

/// Replaces comments by blanks, so that all positions stay the same.
pub(super) fn blank_comments(text: &str) -> String {
    let mut blanked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(['"', '/']) {
        let (before, at) = rest.split_at(start);
        blanked.push_str(before);
        let length = if at.starts_with('"') {
            string_length(at)
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

/// Returns the length of the string at the start of a text. The parser reports unterminated strings.
fn string_length(text: &str) -> usize {
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
            assert_eq!(blank_comments(text), expected, "{text}");
        }
    }
}
