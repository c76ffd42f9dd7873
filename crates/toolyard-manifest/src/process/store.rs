//! The reader of `store`, the location of persistent data.

use std::path::PathBuf;

use crate::{cursor::ValueCursor, formats, handler::SecretString};

/// The location of the store, by the field of `store` that is present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreSettings {
    /// `path`: an SQLite database in a file, relative to the folder of the manifest.
    File(PathBuf),
    /// `url`: a PostgreSQL database. The URL may contain a password.
    Url(SecretString),
    /// `memory: true`: in memory, for the lifetime of the process.
    Memory,
}

/// Reads the object `store`.
pub(super) fn store(cursor: ValueCursor<'_>) -> Option<StoreSettings> {
    let mut fields = cursor.clone().fields()?;
    let place = if let Some(file) = fields.optional("path", |cursor| Some(file(cursor))) {
        fields.reject_misplaced(&["url", "memory"], "`path` already selects the store");
        file
    } else if let Some(url) = fields.optional("url", |cursor| Some(url(cursor))) {
        fields.reject_misplaced(&["memory"], "`url` already selects the store");
        url
    } else if let Some(memory) = fields.optional("memory", |cursor| Some(memory(cursor))) {
        memory
    } else {
        let problem = cursor.problem("this selects no store");
        cursor.report(problem.expected("one of path, url, memory"));
        None
    };
    fields.finish();
    place
}

fn file(cursor: ValueCursor<'_>) -> Option<StoreSettings> {
    let path = cursor.clone().parse(formats::file)?;
    Some(StoreSettings::File(cursor.resolve_path(&path)))
}

fn url(cursor: ValueCursor<'_>) -> Option<StoreSettings> {
    cursor.parse_secret(formats::postgres_url).map(StoreSettings::Url)
}

fn memory(cursor: ValueCursor<'_>) -> Option<StoreSettings> {
    if cursor.clone().flag()? {
        return Some(StoreSettings::Memory);
    }
    let problem = cursor.problem("this is false").expected("true");
    cursor.report(problem.hint("omit `store` to use the default file"));
    None
}
