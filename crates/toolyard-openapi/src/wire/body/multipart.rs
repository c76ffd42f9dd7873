//! `multipart/form-data` (RFC 7578). Other multipart types have the same parts with the same headers.

use std::collections::HashSet;

use bytes::Bytes;
use memchr::memmem;
use toolyard_core::{Json, ToolError};

use super::{BodyValue, file};
use crate::operation::{FormPart, PartKind};
use crate::wire::escape::PercentEscape;
use crate::wire::out::{self, BoundedText};
use crate::wire::{OpenedValue, is_primitive, media, plain, style};

/// Prefix of each boundary; sixteen digits follow.
const BOUNDARY: &str = "toolyard-";

/// A part to be written.
struct MultipartPart {
    name: String,
    file_name: Option<String>,
    media_type: Option<String>,
    bytes: Vec<u8>,
}

/// Approximate overhead of each part, in bytes.
const PART_OVERHEAD: usize = 128;

/// The parts so far, within the limit of a body.
struct MultipartParts {
    list: Vec<MultipartPart>,
    /// Number of bytes that may follow.
    budget: usize,
    is_full: bool,
}

impl MultipartParts {
    fn push(&mut self, piece: MultipartPart) {
        let size = PART_OVERHEAD + piece.name.len() + piece.bytes.len();
        match self.budget.checked_sub(size) {
            Some(budget) if !self.is_full => {
                self.budget = budget;
                self.list.push(piece);
            }
            _ => self.is_full = true,
        }
    }

    /// Fails early if the body exceeds the limit.
    fn check(&self) -> Result<(), ToolError> {
        if self.is_full { Err(out::too_long()) } else { Ok(()) }
    }
}

/// Encodes a body and returns its boundary.
pub(super) fn write(body: &BodyValue, parts: &[FormPart]) -> Result<(String, Bytes), ToolError> {
    let size = body.value.as_bytes().len();
    let mut pieces = MultipartParts { list: Vec::new(), budget: out::max_body_bytes(size), is_full: false };
    for (name, value) in body.members()? {
        let part = parts.iter().find(|part| part.name == name);
        pieces_of(&body.at(&name), &name, &value, part, &mut pieces)?;
    }
    pieces.check()?;
    let boundary = boundary(&pieces.list);
    let mut out = BoundedText::body(size);
    for piece in &pieces.list {
        out.push(format!("--{boundary}\r\n{}\r\n", head(piece)));
        out.push(&piece.bytes);
        out.push("\r\n");
    }
    out.push(format!("--{boundary}--\r\n"));
    Ok((boundary, out.finish()?.into()))
}

/// Adds the parts of a member. An array is a part for each of its items (RFC 7578, section 4.3).
fn pieces_of(
    at: &str,
    name: &str,
    value: &Json,
    part: Option<&FormPart>,
    pieces: &mut MultipartParts,
) -> Result<(), ToolError> {
    let is_file = part.is_some_and(|part| part.kind == PartKind::File);
    if let Some(styled) = part.and_then(|part| part.styled).filter(|_| !is_file) {
        let mut pair = |name: &str, value: &str| {
            if !pieces.is_full {
                pieces.push(text(name, value, None));
            }
        };
        return match OpenedValue::of(at, value)? {
            OpenedValue::Undefined => Ok(()),
            value => style::pairs(at, name, &value, styled, PercentEscape::Nothing, &mut pair),
        };
    }
    match value.to_items() {
        Ok(items) => {
            for (index, item) in items.iter().enumerate().filter(|(_, item)| !item.is_null()) {
                pieces.push(piece(&format!("{at}/{index}"), name, item, part)?);
                pieces.check()?;
            }
        }
        Err(_) => pieces.push(piece(at, name, value, part)?),
    }
    Ok(())
}

fn piece(at: &str, name: &str, value: &Json, part: Option<&FormPart>) -> Result<MultipartPart, ToolError> {
    if part.is_none() && is_data_url(value) {
        let file = FormPart { name: name.to_owned(), kind: PartKind::File, media_type: None, styled: None };
        return piece(at, name, value, Some(&file));
    }
    let declared = part.and_then(|part| media::concrete(part.media_type.as_deref()?)).map(str::to_owned);
    match part.map(|part| part.kind) {
        Some(PartKind::File) => {
            let file = file::read(at, value)?;
            let media_type = file.media_type.or(declared);
            let media_type = media_type.unwrap_or_else(|| "application/octet-stream".to_owned());
            let file_name = file.name.unwrap_or_else(|| file_name(name, &media_type));
            let (name, bytes) = (name.to_owned(), file.bytes);
            Ok(MultipartPart { name, file_name: Some(file_name), media_type: Some(media_type), bytes })
        }
        Some(PartKind::Json) => {
            let media_type = declared.unwrap_or_else(|| "application/json".to_owned());
            Ok(text(name, value.as_text(), Some(media_type)))
        }
        Some(PartKind::Text) | None => {
            let of_value = (!is_primitive(value)).then(|| "application/json".to_owned());
            Ok(text(name, &plain(value), declared.or(of_value)))
        }
    }
}

/// True for a file in a part that is not described: a `data:` URL with a media type or in base64.
fn is_data_url(value: &Json) -> bool {
    let text = value.to_str();
    let head = text.as_deref().and_then(|text| text.get(..5).zip(text.split_once(',')));
    head.is_some_and(|(scheme, (head, _))| {
        scheme.eq_ignore_ascii_case("data:") && (head.contains('/') || head.ends_with(";base64"))
    })
}

fn text(name: &str, value: &str, media_type: Option<String>) -> MultipartPart {
    MultipartPart { name: name.to_owned(), file_name: None, media_type, bytes: value.as_bytes().to_vec() }
}

/// Returns a file name. Servers treat a part with a file name as a file, and some check its extension.
fn file_name(name: &str, media_type: &str) -> String {
    let extension = match &*media::essence(media_type).to_ascii_lowercase() {
        "image/png" => ".png",
        "image/jpeg" => ".jpg",
        "image/gif" => ".gif",
        "image/webp" => ".webp",
        "image/svg+xml" => ".svg",
        "audio/mpeg" => ".mp3",
        "audio/wav" | "audio/x-wav" => ".wav",
        "video/mp4" => ".mp4",
        "application/pdf" => ".pdf",
        "application/zip" => ".zip",
        "application/json" => ".json",
        "application/xml" | "text/xml" => ".xml",
        "text/plain" => ".txt",
        "text/csv" => ".csv",
        "text/html" => ".html",
        _ => "",
    };
    format!("{name}{extension}")
}

fn head(piece: &MultipartPart) -> String {
    let mut head = format!("Content-Disposition: form-data; name=\"{}\"", quoted(&piece.name));
    if let Some(file_name) = &piece.file_name {
        head.push_str(&format!("; filename=\"{}\"", quoted(file_name)));
    }
    head.push_str("\r\n");
    // The type may come from an argument.
    let fits = |media_type: &&String| media_type.bytes().all(|byte| (b' '..0x7f).contains(&byte));
    if let Some(media_type) = piece.media_type.as_ref().filter(fits) {
        head.push_str(&format!("Content-Type: {media_type}\r\n"));
    }
    head
}

/// Percent-encodes characters that would end the name, as browsers do (the HTML standard, "multipart/form-data encoding
/// algorithm").
fn quoted(name: &str) -> String {
    name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A")
}

/// Returns the first boundary that is in no part.
fn boundary(pieces: &[MultipartPart]) -> String {
    let mut used = HashSet::new();
    let finder = memmem::Finder::new(BOUNDARY);
    for piece in pieces {
        for bytes in
            [&*piece.bytes, piece.name.as_bytes(), piece.file_name.as_deref().unwrap_or_default().as_bytes()]
        {
            let number = |at: usize| {
                let digits = bytes.get(at + BOUNDARY.len()..)?.get(..16)?;
                u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
            };
            used.extend(finder.find_iter(bytes).filter_map(number));
        }
    }
    let free = (0..=u64::MAX).find(|number| !used.contains(number)).unwrap_or_default();
    format!("{BOUNDARY}{free:016x}")
}
