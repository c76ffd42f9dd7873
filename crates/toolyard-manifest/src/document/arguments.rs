//! Arguments of programs for display.

use serde_json::Value;

use super::{REDACTED, is_reference};

/// Options without a value, and options whose value is a package or a module.
const PLAIN_OPTIONS: &[&str] = &[
    "-y",
    "-q",
    "-i",
    "-t",
    "-it",
    "-m",
    "--yes",
    "--quiet",
    "--verbose",
    "--rm",
    "--interactive",
    "--from",
    "--with",
    "--package",
    "--python",
    "--module",
];

/// Hides all arguments that may be secret: the values of options, and texts that are more than a word, a path or the name
/// of a package.
pub(super) fn without_secret_arguments(args: &mut [Value]) {
    let mut is_value = false;
    for arg in args {
        let Value::String(text) = arg else { continue };
        let is_option = text.starts_with('-');
        let shown = if is_reference(text) || text.contains(REDACTED) {
            text.clone()
        } else if let Some((name, value)) = text.split_once('=').filter(|(name, _)| is_word(name)) {
            format!("{name}={}", if is_reference(value) { value } else { REDACTED })
        } else if (is_option && is_option_name(text)) || (!is_option && !is_value && is_word(text)) {
            text.clone()
        } else {
            REDACTED.to_owned()
        };
        is_value = is_option
            && !PLAIN_OPTIONS.contains(&&**text)
            && !text.starts_with("--no-")
            && !text.contains('=');
        *text = shown;
    }
}

/// Returns true for `--name`, `-x` and options in [`PLAIN_OPTIONS`]. Others with one dash may have their value joined.
fn is_option_name(text: &str) -> bool {
    PLAIN_OPTIONS.contains(&text) || text.len() == 2 || (text.starts_with("--") && is_word(text))
}

/// Returns true for a text of the characters that names and paths have.
fn is_word(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./@+".contains(&byte))
}
