//! The one statement that depends on the query: the selection of log records.

use std::fmt::Write;

/// The syntax of a database.
pub(crate) struct SqlDialect {
    /// Prefix of the number of a parameter.
    pub(crate) parameter_prefix: char,
    /// Prefix of the name of a table.
    pub(crate) table_prefix: &'static str,
}

/// Selects the records of a space that have all of `tags` tags, newest first. Parameters: the space, the earliest
/// time, the time bound (exclusive), the number bound (exclusive), and the limit; then name and value of each tag.
///
/// The table of the first tag drives the join, so that only the records with that tag are read of a long log.
pub(crate) fn log_query(
    tags: usize,
    SqlDialect { parameter_prefix: mark, table_prefix: schema }: SqlDialect,
) -> String {
    let first = if tags == 0 { "log" } else { "tag0" };
    let mut from = String::new();
    let mut conditions = String::new();
    for tag in 0..tags {
        let name = 6 + 2 * tag;
        let value = name + 1;
        let _ = write!(from, "{schema}log_tag AS tag{tag} CROSS JOIN ");
        let _ = write!(
            conditions,
            " AND tag{tag}.space = {mark}1 AND tag{tag}.name = {mark}{name} AND tag{tag}.value = {mark}{value} \
             AND tag{tag}.number = {previous}.number",
            previous = if tag == 0 { "log".to_owned() } else { format!("tag{}", tag - 1) },
        );
    }
    format!(
        "SELECT log.number, log.time_ms, log.body FROM {from}{schema}log AS log \
         WHERE log.space = {mark}1 AND log.time_ms >= {mark}2 AND log.time_ms < {mark}3 \
         AND {first}.number < {mark}4{conditions} ORDER BY {first}.number DESC LIMIT {mark}5"
    )
}
