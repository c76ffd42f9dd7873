//! The reader of `guides`.

use std::{fs, path::PathBuf};

use crate::{cursor::Cursor, forms};

/// How some tools are used well, for a model: one of `guides` of a `ToolRegistry`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guide {
    /// `name`: what it is asked for by.
    pub name: String,
    /// `summary`: what it is about, in one line.
    pub summary: String,
    /// The whole, as Markdown: `text`, or what is in `file`.
    pub document: String,
}

/// How long a guide may be, in bytes. A model has to read it whole.
const LONGEST: usize = 256 << 10;

/// Reads the list `guides`.
pub(super) fn guides(cursor: Cursor<'_>) -> Option<Vec<Guide>> {
    cursor.list(guide)
}

fn guide(cursor: Cursor<'_>) -> Option<Guide> {
    let mut fields = cursor.fields()?;
    let name = fields.required("name", name);
    let summary = fields.required("summary", |cursor| cursor.parse(forms::summary));
    let document = match fields.optional("file", |cursor| Some(file(&cursor))) {
        Some(document) => {
            fields.misplaced(&["text"], "`file` has the guide already");
            document
        }
        None => fields.required("text", text),
    };
    fields.finish();
    Some(Guide { name: name?, summary: summary?, document: document? })
}

fn name(cursor: Cursor<'_>) -> Option<String> {
    let name = cursor.clone().parse(forms::guide_name)?;
    // A model that asks for one may write it in any case, and with either of these.
    cursor.declare("guide of this name", &name.to_lowercase().replace('_', "-"));
    Some(name)
}

/// A guide in place: as the author wrote it, since `${` may stand for itself in it.
fn text(cursor: Cursor<'_>) -> Option<String> {
    let text = cursor.literal()?.to_owned();
    bounded(&cursor, text)
}

fn file(cursor: &Cursor<'_>) -> Option<String> {
    let path: PathBuf = cursor.path_from_here(&cursor.clone().parse(forms::file)?);
    let length = fs::metadata(&path).map(|metadata| metadata.len());
    // One that is too long is not read to learn that.
    let text = match length {
        Ok(length) if length > LONGEST as u64 => Ok(" ".repeat(LONGEST + 1)),
        Ok(_) => fs::read_to_string(&path),
        Err(error) => Err(error),
    };
    match text {
        Ok(text) => bounded(cursor, text),
        Err(error) => {
            let problem = cursor.problem(format!("this file cannot be read: {error}"));
            cursor
                .report(problem.expected("the path of a file in Markdown, from the folder of the manifest"));
            None
        }
    }
}

fn bounded(cursor: &Cursor<'_>, text: String) -> Option<String> {
    let message = match text.len() {
        _ if text.trim().is_empty() => "this guide is empty",
        length if length > LONGEST => "this guide is too long",
        _ => return Some(text),
    };
    cursor.report(cursor.problem(message).expected("Markdown of at most 256 KiB"));
    None
}
