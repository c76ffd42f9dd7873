//! Where is kept what outlives the process.

use std::path::PathBuf;

use crate::{cursor::Cursor, forms, handler::Secret};

/// Where the store is, by the field of `store` that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StorePlace {
    /// `path`: an SQLite database in a file, from the folder of the manifest on.
    File(PathBuf),
    /// `url`: a PostgreSQL database. The URL may hold a password.
    Url(Secret),
    /// `memory: true`: with the process it ends.
    Memory,
}

/// Reads the object `store`.
pub(super) fn store(cursor: Cursor<'_>) -> Option<StorePlace> {
    let mut fields = cursor.clone().fields()?;
    let place = if let Some(file) = fields.optional("path", |cursor| Some(file(cursor))) {
        fields.misplaced(&["url", "memory"], "`path` says where the store is");
        file
    } else if let Some(url) = fields.optional("url", |cursor| Some(url(cursor))) {
        fields.misplaced(&["memory"], "`url` says where the store is");
        url
    } else if let Some(memory) = fields.optional("memory", |cursor| Some(memory(cursor))) {
        memory
    } else {
        let problem = cursor.problem("this does not say where the store is");
        cursor.report(problem.expected("one of path, url, memory"));
        None
    };
    fields.finish();
    place
}

fn file(cursor: Cursor<'_>) -> Option<StorePlace> {
    let path = cursor.clone().parse(forms::file)?;
    Some(StorePlace::File(cursor.path_from_here(&path)))
}

fn url(cursor: Cursor<'_>) -> Option<StorePlace> {
    cursor.parse_secret(forms::postgres_url).map(StorePlace::Url)
}

fn memory(cursor: Cursor<'_>) -> Option<StorePlace> {
    if cursor.clone().flag()? {
        return Some(StorePlace::Memory);
    }
    let problem = cursor.problem("this is false").expected("true");
    cursor.report(problem.hint("leave `store` out for a file in the usual place"));
    None
}
