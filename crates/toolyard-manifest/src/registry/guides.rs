//! The reader of `guides`.

use std::{io, path::PathBuf};

use toolyard_core::file;

use crate::{cursor::ValueCursor, formats};

/// A guide for models on the use of some tools: an entry of `guides` of a `ToolRegistry`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolGuide {
    /// `name`: the name that models use.
    pub name: String,
    /// `summary`: the topic, in one line.
    pub summary: String,
    /// The Markdown document: `text`, or the content of `file`.
    pub document: String,
}

/// Maximum size of a guide, in bytes. Models read it as a whole.
const MAX_GUIDE_BYTES: usize = 256 << 10;

/// Reads the list `guides`.
pub(super) fn guides(cursor: ValueCursor<'_>) -> Option<Vec<ToolGuide>> {
    cursor.list(guide)
}

fn guide(cursor: ValueCursor<'_>) -> Option<ToolGuide> {
    let mut fields = cursor.fields()?;
    let name = fields.required("name", name);
    let summary = fields.required("summary", |cursor| cursor.parse(formats::summary));
    let document = match fields.optional("file", |cursor| Some(file(&cursor))) {
        Some(document) => {
            fields.reject_misplaced(&["text"], "`file` already contains the guide");
            document
        }
        None => fields.required("text", text),
    };
    fields.finish();
    Some(ToolGuide { name: name?, summary: summary?, document: document? })
}

fn name(cursor: ValueCursor<'_>) -> Option<String> {
    let name = cursor.clone().parse(formats::guide_name)?;
    // Models may write the name in any case, and with `-` or `_`.
    cursor.declare("guide name", &name.to_lowercase().replace('_', "-"));
    Some(name)
}

/// Reads an inline guide without expanding references, because `${` may be part of the text.
fn text(cursor: ValueCursor<'_>) -> Option<String> {
    let text = cursor.literal_text()?.to_owned();
    check_size(&cursor, text)
}

fn file(cursor: &ValueCursor<'_>) -> Option<String> {
    let path: PathBuf = cursor.resolve_path(&cursor.clone().parse(formats::file)?);
    if !cursor.has_files() {
        let problem = cursor.problem("this file does not exist where the gateway runs");
        cursor.report(problem.hint("write the guide into `text`"));
        return None;
    }
    match file::read_text(&path, MAX_GUIDE_BYTES) {
        Ok(text) => check_size(cursor, text),
        // A file that is too long is not read.
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            check_size(cursor, " ".repeat(MAX_GUIDE_BYTES + 1))
        }
        Err(error) => {
            let problem = cursor.problem(format!("this file cannot be read: {error}"));
            cursor
                .report(problem.expected("the path of a file in Markdown, from the folder of the manifest"));
            None
        }
    }
}

fn check_size(cursor: &ValueCursor<'_>, text: String) -> Option<String> {
    let message = match text.len() {
        _ if text.trim().is_empty() => "this guide is empty",
        length if length > MAX_GUIDE_BYTES => "this guide is too long",
        _ => return Some(text),
    };
    cursor.report(cursor.problem(message).expected("Markdown of at most 256 KiB"));
    None
}
