//! The one statement that depends on what is asked for: which records of a log.

use std::fmt::Write;

/// How a database wants a statement written.
pub(crate) struct Dialect {
    /// What stands before the number of a parameter.
    pub(crate) mark: char,
    /// What stands before the name of a table.
    pub(crate) schema: &'static str,
}

/// Records of a space with so many tags, newest first. Its parameters: the space, the earliest time, the time before which,
/// the number below which, and how many; then name and value of each tag.
///
/// Of the tables of tags the first leads, so that of a long log only what has that tag is looked at.
pub(crate) fn records(tags: usize, Dialect { mark, schema }: Dialect) -> String {
    let first = if tags == 0 { "log" } else { "tag0" };
    let mut from = String::new();
    let mut fit = String::new();
    for tag in 0..tags {
        let name = 6 + 2 * tag;
        let value = name + 1;
        let _ = write!(from, "{schema}log_tag AS tag{tag} CROSS JOIN ");
        let _ = write!(
            fit,
            " AND tag{tag}.space = {mark}1 AND tag{tag}.name = {mark}{name} AND tag{tag}.value = {mark}{value} \
             AND tag{tag}.number = {previous}.number",
            previous = if tag == 0 { "log".to_owned() } else { format!("tag{}", tag - 1) },
        );
    }
    format!(
        "SELECT log.number, log.time_ms, log.body FROM {from}{schema}log AS log \
         WHERE log.space = {mark}1 AND log.time_ms >= {mark}2 AND log.time_ms < {mark}3 \
         AND {first}.number < {mark}4{fit} ORDER BY {first}.number DESC LIMIT {mark}5"
    )
}
