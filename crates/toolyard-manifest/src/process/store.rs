//! The section `store`, the location of persistent data. Its fields exclude each other, so it has a reader of its own.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::{
    cursor::ValueCursor,
    field_type::{FieldType, FileField, TextField},
    formats,
    handler::SecretString,
    object_schema::SchemaDefinitions,
};

/// Example of a URL, for the schema.
const EXAMPLE_URL: &str = "postgres://toolyard:${file:password}@db.example.com/toolyard?sslmode=require";
const URL: TextField<SecretString> =
    TextField::new(formats::postgres_url).secret().pattern("^postgres(ql)?://.").examples(&[EXAMPLE_URL]);

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
    FileField.read(cursor).map(StoreSettings::File)
}

fn url(cursor: ValueCursor<'_>) -> Option<StoreSettings> {
    URL.read(cursor).map(StoreSettings::Url)
}

fn memory(cursor: ValueCursor<'_>) -> Option<StoreSettings> {
    if cursor.clone().flag()? {
        return Some(StoreSettings::Memory);
    }
    let problem = cursor.problem("this is false").expected("true");
    cursor.report(problem.hint("omit `store` to use the default file"));
    None
}

/// Returns the schema of the object `store`.
pub(super) fn schema(definitions: &mut SchemaDefinitions) -> Value {
    let path =
        "An SQLite database in a file, relative to the folder of this document. A missing file is created.";
    let url = "A PostgreSQL database, which several gateways can share. With `?sslmode=require` the connection uses TLS \
        and the certificate is checked; without it the connection is plain text.";
    let memory = "Keep data in memory, until the gateway stops.";
    definitions.object("store", |object| {
        let one = ["path", "url", "memory"].map(|name| json!({"required": [name]}));
        object.constrain("oneOf", json!(one));
        object.field("path", &[path], &FileField);
        object.field("url", &[url], &URL);
        object.property("memory", json!({"description": memory, "enum": [true]}));
    })
}
