//! Common mistakes in expressions, and what to write instead.
//!
//! A mistake is recognized by its text, outside of names and literals in quotes. Where the remedy can be written down,
//! the hint has the whole expression, if it compiles.

use std::sync::LazyLock;

use regex::{Captures, Regex};

/// Names and literals in quotes, which are skipped.
const QUOTED: &str = r#"'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`|"(?:[^"\\]|\\.)*""#;

/// Maximum length of a corrected expression in a hint, in bytes.
const MAX_SHOWN: usize = 300;

/// Functions of JMESPath that other languages have under another name.
const FUNCTIONS: [(&str, &str); 10] = [
    ("len", "length"),
    ("count", "length"),
    ("size", "length"),
    ("string", "to_string"),
    ("str", "to_string"),
    ("number", "to_number"),
    ("int", "to_number"),
    ("startswith", "starts_with"),
    ("endswith", "ends_with"),
    ("includes", "contains"),
];

/// All functions, for a name that is unknown.
const KNOWN: &str = "abs, avg, ceil, contains, ends_with, floor, join, keys, length, map, max, max_by, merge, min, min_by, \
not_null, reverse, sort, sort_by, starts_with, sum, to_array, to_number, to_string, type, values";

/// The situation in which a mistake shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// The expression does not compile.
    Syntax,
    /// A function fails.
    Runtime,
    /// The expression selects nothing.
    Nothing,
}

/// A mistake.
struct Mistake {
    /// Situations in which it is one.
    shows: &'static [Failure],
    /// Regular expression of its text.
    pattern: &'static str,
    /// Explanation for the model.
    hint: &'static str,
    /// Replacement of the text; empty if there is none.
    replacement: &'static str,
}

use Failure::{Nothing, Runtime, Syntax};

const MISTAKES: [Mistake; 25] = [
    Mistake {
        shows: &[Syntax],
        pattern: r"^\s*\$\.?(?P<rest>[\w\[*]|$)",
        hint: "there is no `$`: begin with a member, or with `@` for the whole value",
        replacement: "${rest}",
    },
    Mistake {
        shows: &[Syntax],
        pattern: r"^\s*\.(?P<rest>[\w\[*]|$)",
        hint: "begin with a member, without a dot",
        replacement: "${rest}",
    },
    Mistake {
        shows: &[Syntax],
        pattern: r"\.\.",
        hint: "there is no `..`: name each level, or write `*` for all members",
        replacement: "",
    },
    Mistake {
        shows: &[Syntax],
        pattern: r"^\s*(?i:select)\s+\*\s+(?i:from)\s+(?P<items>[A-Za-z_]\w*)\s*;?\s*$",
        hint: "there is no SQL: begin with the list, as in `items[*].name`",
        replacement: "${items}[*]",
    },
    Mistake {
        shows: &[Syntax],
        pattern: r"^\s*(?i:select)\s+[^(]",
        hint: "there is no SQL: begin with the list, as in `items[*].name`",
        replacement: "",
    },
    Mistake {
        shows: &[Syntax],
        pattern: r"\bselect\s*\(|\bWHERE\b|=>",
        hint: "select items with `items[?price < `2`]`",
        replacement: "",
    },
    Mistake {
        shows: &[Syntax, Runtime, Nothing],
        pattern: r#"(?P<before>[=!]=\s*|\b(?:contains|starts_with|ends_with)\([^,()]*,\s*)"(?P<text>[^"'\\]*)""#,
        hint: "write texts in single quotes; double quotes are for names of members",
        replacement: "${before}'${text}'",
    },
    Mistake {
        shows: &[Nothing],
        pattern: r"(?P<before>[<>]=?\s*)'(?P<number>-?\d+(?:\.\d+)?)'",
        hint: "`<` and `>` compare numbers, which are in backticks",
        replacement: "${before}`${number}`",
    },
    Mistake {
        shows: &[Syntax],
        pattern: r"'(?P<name>\w+)'\s*:",
        hint: "write names of members without quotes, or in double quotes",
        replacement: "${name}:",
    },
    Mistake {
        shows: &[Syntax, Runtime, Nothing],
        pattern: r"(?P<before>(?:[=!<>]=?)\s*)(?P<number>-?\d+(?:\.\d+)?)",
        hint: "write numbers in backticks",
        replacement: "${before}`${number}`",
    },
    Mistake {
        shows: &[Syntax, Runtime],
        pattern: r"(?P<before>\(\s*|,\s*)(?P<number>-?\d+(?:\.\d+)?)(?P<after>\s*[,)])",
        hint: "write numbers in backticks",
        replacement: "${before}`${number}`${after}",
    },
    Mistake {
        shows: &[Syntax, Nothing],
        pattern: r"(?P<before>(?:[=!]=)\s*)(?P<literal>true|false|null)\b",
        hint: "write true, false and null in backticks",
        replacement: "${before}`${literal}`",
    },
    Mistake {
        shows: &[Syntax],
        pattern: r"(?P<before>[^=!<>\s])\s*=\s*(?P<after>[^=\s])",
        hint: "compare with `==`",
        replacement: "${before} == ${after}",
    },
    Mistake {
        shows: &[Syntax],
        pattern: r"(?P<before>[\s)])(?i:and)(?P<after>[\s(])",
        hint: "write `&&`, `||` and `!` for and, or and not",
        replacement: "${before}&&${after}",
    },
    Mistake {
        shows: &[Syntax],
        pattern: r"(?P<before>[\s)])(?i:or)(?P<after>[\s(])",
        hint: "write `&&`, `||` and `!` for and, or and not",
        replacement: "${before}||${after}",
    },
    Mistake {
        shows: &[Syntax],
        pattern: r"(?P<before>[\s(?])(?i:not)\s+(?P<after>[\w(])",
        hint: "write `&&`, `||` and `!` for and, or and not",
        replacement: "${before}!${after}",
    },
    Mistake {
        shows: &[Syntax],
        pattern: r"(?P<name>[\w\])@])\[(?:'(?P<text>[A-Za-z_]\w*)'|\x22(?P<double>[A-Za-z_]\w*)\x22)\]",
        hint: "write a member behind a dot, as in `items[0].name`",
        replacement: "${name}.${text}${double}",
    },
    Mistake {
        shows: &[Syntax],
        pattern: r"(?P<name>\b[A-Za-z_]\w*)\s+(?i:i?like)\s+'%?(?P<text>[^'\\%]*)%?'",
        hint: "search within texts with `contains(name, 'x')`, `starts_with` and `ends_with`, inside of `[?...]`",
        replacement: "contains(${name}, '${text}')",
    },
    Mistake {
        shows: &[Syntax],
        pattern: r"\)\s*[-+/%*]\s*[\w(`@]|[\w\]`]\s+[-+/%]\s+[\w(`@]|[\w\]`]\s+\*\s+[\d(`]|\w[+*]\w",
        hint: "there is no arithmetic but `sum`, `avg`, `min`, `max` and `length`: select the numbers, and calculate yourself",
        replacement: "",
    },
    Mistake {
        shows: &[Syntax],
        pattern: r"\[(?P<first>\d+)-(?P<last>\d+)\]",
        hint: "write a part of a list as `[0:5]`, without the last item",
        replacement: "[${first}:${last}]",
    },
    Mistake {
        shows: &[Syntax],
        pattern: r"\.(?P<number>\d+)\b",
        hint: "write an item of a list as `items[0]`",
        replacement: "[${number}]",
    },
    Mistake {
        shows: &[Syntax],
        pattern: r"(?P<name>[@$][A-Za-z_]\w*|[A-Za-z_]\w*(?:[-/#]\w+)+)",
        hint: "write names with other characters than letters, digits and `_` in double quotes",
        replacement: "\"${name}\"",
    },
    Mistake {
        shows: &[Syntax, Runtime, Nothing],
        pattern: r"^(?P<items>.*[\w\]*@])\.(?:length|size|count)(?:\(\s*\))?\s*$",
        hint: "a function stands before its value: `length(items)`",
        replacement: "length(${items})",
    },
    Mistake {
        shows: &[Runtime],
        pattern: r"\b(?P<function>(?:sort|max|min)_by\([^,()]*,\s*)(?P<name>[A-Za-z_@])",
        hint: "write `&` before what to sort or compare by",
        replacement: "${function}&${name}",
    },
    Mistake {
        shows: &[Runtime],
        pattern: r"\b(?P<function>map\(\s*)(?P<name>[A-Za-z_@])",
        hint: "write `&` before what to take of each item, and then the list",
        replacement: "${function}&${name}",
    },
];

/// The patterns of [`MISTAKES`], in their order.
static PATTERNS: LazyLock<[Option<Regex>; MISTAKES.len()]> =
    LazyLock::new(|| MISTAKES.each_ref().map(|mistake| unquoted(mistake.pattern)));

/// Comparisons with a literal of another type than the compared member may have.
const MIXED_TYPES: [MixedTypes; 2] = [
    MixedTypes {
        literal: r"'(?P<literal>-?\d+(?:\.\d+)?)'",
        replacement: "${member}${equals}`${literal}`",
        probe: "type(${member})${equals}'number'",
        hint: "This compares a text with numbers, which are never equal.",
    },
    MixedTypes {
        literal: r"`(?P<literal>-?\d+(?:\.\d+)?)`",
        replacement: "${member}${equals}'${literal}'",
        probe: "type(${member})${equals}'string'",
        hint: "This compares a number with texts, which are never equal.",
    },
];

/// A comparison of values that are never equal, because their types differ.
struct MixedTypes {
    /// Regular expression of the literal.
    literal: &'static str,
    /// The comparison with a literal of the other type.
    replacement: &'static str,
    /// The comparison of the type instead of the value.
    probe: &'static str,
    /// Explanation for the model.
    hint: &'static str,
}

/// The patterns of [`MIXED_TYPES`], in their order.
static MIXED: LazyLock<[Option<Regex>; MIXED_TYPES.len()]> = LazyLock::new(|| {
    MIXED_TYPES.each_ref().map(|mixed| {
        let member = r#"(?P<member>(?:[A-Za-z_]\w*|@|"[^"\\]+")(?:\.(?:[A-Za-z_]\w*|"[^"\\]+"))*)"#;
        unquoted(&format!(r"{member}(?P<equals>\s*==\s*){}", mixed.literal))
    })
});

/// Objects of names only.
static SHORTHAND: LazyLock<Option<Regex>> =
    LazyLock::new(|| unquoted(r"\{\s*(?P<names>\w+(?:\s*,\s*\w+)*)\s*\}"));

/// Calls of [`FUNCTIONS`].
static RENAMED: LazyLock<Option<Regex>> =
    LazyLock::new(|| unquoted(&format!(r"\b(?P<name>{})\(", FUNCTIONS.map(|(other, _)| other).join("|"))));

/// Compiles a pattern that matches outside of quotes as the group `unquoted`.
fn unquoted(pattern: &str) -> Option<Regex> {
    Regex::new(&format!("(?P<unquoted>{pattern})|{QUOTED}")).ok()
}

/// Returns what to write instead of an expression; `None` if no mistake is known.
pub(super) fn hint(expression: &str, failure: Failure) -> Option<String> {
    let (mut corrected, mut hints, mut can_be_shown) = (expression.to_owned(), Vec::new(), true);
    for (mistake, pattern) in MISTAKES.iter().zip(&*PATTERNS) {
        let Some(pattern) = pattern.as_ref().filter(|_| mistake.shows.contains(&failure)) else { continue };
        let Some(replaced) = mistake.replace(&corrected, pattern) else { continue };
        can_be_shown &= !mistake.replacement.is_empty();
        corrected = replaced;
        if !hints.contains(&mistake.hint) {
            hints.push(mistake.hint);
        }
    }
    if let Some(written) = shorthand_written(&corrected).filter(|_| failure == Syntax) {
        hints.push("name each member of an object, as in `{id: id}`");
        corrected = written;
    }
    if let Some(renamed) = renamed_functions(&corrected).filter(|_| failure == Runtime) {
        hints.push("some functions have other names");
        corrected = renamed;
    }
    if hints.is_empty() {
        return None;
    }
    let mut hint = format!("In JMESPath, {}.", hints.join("; "));
    if can_be_shown && corrected.len() <= MAX_SHOWN && jmespath::compile(&corrected).is_ok() {
        hint.push_str(&format!(" Try: {corrected}"));
    }
    Some(hint)
}

/// Returns what to write instead of a comparison of a text with numbers, or of a number with texts. `selects` returns
/// `true` if an expression selects something: the members that are compared have the other type then.
pub(super) fn mixed_types(expression: &str, selects: impl Fn(&str) -> bool) -> Option<String> {
    MIXED_TYPES.iter().zip(&*MIXED).find_map(|(mixed, pattern)| {
        let pattern = pattern.as_ref()?;
        let probe = replace_unquoted(expression, pattern, |captures| expanded(captures, mixed.probe))?;
        let corrected =
            replace_unquoted(expression, pattern, |captures| expanded(captures, mixed.replacement))?;
        selects(&probe).then(|| format!("{} Try: {corrected}", mixed.hint))
    })
}

/// Returns a replacement with the groups of a match.
fn expanded(captures: &Captures<'_>, replacement: &str) -> String {
    let mut text = String::new();
    captures.expand(replacement, &mut text);
    text
}

/// Returns what to know about a function that does not exist.
pub(super) fn unknown_function() -> String {
    format!("Functions are: {KNOWN}.")
}

impl Mistake {
    /// Returns the text without the mistake; `None` if it is not there.
    fn replace(&self, expression: &str, pattern: &Regex) -> Option<String> {
        let replacement = if self.replacement.is_empty() { "$0" } else { self.replacement };
        replace_unquoted(expression, pattern, |captures| expanded(captures, replacement))
    }
}

/// Replaces what matches a pattern outside of quotes; `None` if there is nothing.
fn replace_unquoted(
    expression: &str,
    pattern: &Regex,
    replace: impl Fn(&Captures<'_>) -> String,
) -> Option<String> {
    let has_match = std::cell::Cell::new(false);
    let replaced = pattern.replace_all(expression, |captures: &Captures<'_>| {
        if captures.name("unquoted").is_none() {
            return captures[0].to_owned();
        }
        has_match.set(true);
        replace(captures)
    });
    has_match.get().then(|| replaced.into_owned())
}

/// Writes objects of names only with their values: `{id, name}` is no JMESPath.
fn shorthand_written(expression: &str) -> Option<String> {
    replace_unquoted(expression, SHORTHAND.as_ref()?, |found| {
        let names = found["names"].split(',').map(str::trim);
        format!("{{{}}}", names.map(|name| format!("{name}: {name}")).collect::<Vec<_>>().join(", "))
    })
}

fn renamed_functions(expression: &str) -> Option<String> {
    let name = |name: &str| FUNCTIONS.iter().find(|(other, _)| *other == name).map(|(_, known)| *known);
    replace_unquoted(expression, RENAMED.as_ref()?, |found| {
        format!("{}(", name(&found["name"]).unwrap_or(&found["name"]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_patterns_compile() {
        for (mistake, pattern) in MISTAKES.iter().zip(&*PATTERNS) {
            assert!(pattern.is_some(), "{}", mistake.pattern);
        }
        assert!(SHORTHAND.is_some() && RENAMED.is_some() && MIXED.iter().all(Option::is_some));
    }
}
