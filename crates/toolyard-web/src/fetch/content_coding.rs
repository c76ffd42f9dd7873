//! Decompresses bodies by `Content-Encoding` (RFC 9110, section 8.4).

use std::io::{Cursor, Read};

use bytes::Bytes;
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use http::{HeaderMap, header};

use super::FetchError;

/// Maximum number of codings of one body.
const MAX_CODINGS: usize = 3;

/// Maximum size of the window of a body in Zstandard, as a power of two: 8 MiB (RFC 9659).
const ZSTD_WINDOW: u32 = 23;

/// Size of the buffer of the Brotli decoder, in bytes.
const BROTLI_BUFFER: usize = 16 * 1024;

/// Returns a body without its codings.
///
/// # Errors
/// Errors if a coding is unknown, the body is invalid, or it has more than `limit` bytes.
pub(super) fn decode(body: Bytes, headers: &HeaderMap, limit: usize) -> Result<Bytes, FetchError> {
    // The last coding was applied last.
    codings(headers)?.iter().rev().try_fold(body, |body, name| {
        let DecodedBody { bytes, fault } = decode_one(&body, name, limit)?;
        fault.map_or(Ok(bytes), Err)
    })
}

/// Returns the beginning of a body without its codings, up to `limit` bytes or to its first fault. The body may be cut off.
///
/// # Errors
/// Errors if a coding is unknown.
pub(super) fn decode_start(body: Bytes, headers: &HeaderMap, limit: usize) -> Result<Bytes, FetchError> {
    let decoded = codings(headers)?.iter().rev().try_fold(body, |body, name| {
        let DecodedBody { bytes, .. } = decode_one(&body, name, limit)?;
        Ok::<_, FetchError>(bytes)
    })?;
    Ok(decoded.slice(..decoded.len().min(limit)))
}

/// A body as far as it could be decoded.
struct DecodedBody {
    bytes: Bytes,
    /// The fault that ended the decoding.
    fault: Option<FetchError>,
}

/// Returns the names of the codings of a body, in the order in which they were applied.
fn codings(headers: &HeaderMap) -> Result<Vec<String>, FetchError> {
    let names = headers.get_all(header::CONTENT_ENCODING).iter();
    let names: Vec<_> = names
        .flat_map(|value| value.to_str().unwrap_or("?").split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .filter(|name| !name.is_empty() && name != "identity")
        .collect();
    match names.len() {
        0..=MAX_CODINGS => Ok(names),
        _ => Err(FetchError::Coding(format!("it has more than {MAX_CODINGS} codings"))),
    }
}

fn decode_one(body: &Bytes, name: &str, limit: usize) -> Result<DecodedBody, FetchError> {
    if body.is_empty() {
        return Ok(DecodedBody { bytes: Bytes::new(), fault: None });
    }
    let bytes = body.as_ref();
    let invalid = || FetchError::Coding(format!("it is not valid {name}"));
    Ok(match name {
        "gzip" | "x-gzip" => read(MultiGzDecoder::new(bytes), name, limit),
        // Most servers mean the format of zlib, as RFC 9110 says, and some the bare one.
        "deflate" if is_zlib(bytes) => read(ZlibDecoder::new(bytes), name, limit),
        "deflate" => read(DeflateDecoder::new(bytes), name, limit),
        "br" if has_large_window(bytes) => return Err(invalid()),
        "br" => read(brotli_decompressor::Decompressor::new(bytes, BROTLI_BUFFER), name, limit),
        "zstd" => {
            let mut decoder = zstd::Decoder::new(Cursor::new(bytes)).map_err(|_| invalid())?;
            decoder.window_log_max(ZSTD_WINDOW).map_err(|_| invalid())?;
            read(decoder, name, limit)
        }
        other => {
            let reason = format!("the coding `{}` is unknown", other.escape_default());
            return Err(FetchError::Coding(reason));
        }
    })
}

/// Returns `true` for the head of a zlib stream (RFC 1950, section 2.2).
fn is_zlib(bytes: &[u8]) -> bool {
    matches!(bytes, [first, second, ..] if first & 0x0f == 8 && (u16::from(*first) << 8 | u16::from(*second)) % 31 == 0)
}

/// Returns `true` for the head of a stream with a window of up to 1 GiB, which Brotli (RFC 7932, section 9.1) does not have
/// but the decoder accepts and allocates.
fn has_large_window(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|first| first & 0x7f == 0x11)
}

fn read(decoder: impl Read, name: &str, limit: usize) -> DecodedBody {
    let mut decoded = Vec::new();
    let room = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    let fault = match decoder.take(room).read_to_end(&mut decoded) {
        Err(_) => Some(format!("it is not valid {name}")),
        Ok(_) if decoded.len() > limit => Some(format!("it is larger than {limit} bytes")),
        Ok(_) => None,
    };
    DecodedBody { bytes: decoded.into(), fault: fault.map(FetchError::Coding) }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    const TEXT: &[u8] = b"a page, a page, a page";

    /// `TEXT` as the reference implementation of Brotli compresses it.
    const BROTLI: &[u8] = include_bytes!("testdata/page.br");

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).expect("memory");
        encoder.finish().expect("memory")
    }

    #[track_caller]
    fn check(body: &[u8], coding: &str, limit: usize, expected: Result<&[u8], &str>) {
        let headers: HeaderMap =
            [(header::CONTENT_ENCODING, coding.parse().expect("a header"))].into_iter().collect();
        let decoded =
            decode(Bytes::copy_from_slice(body), &headers, limit).map_err(|error| error.to_string());
        assert_eq!(decoded.as_deref().map_err(String::as_str), expected, "{coding}");
    }

    #[test]
    fn codings_are_removed() {
        let ok = Ok(TEXT);
        check(TEXT, "identity", 100, ok);
        check(&gzip(TEXT), "gzip", 100, ok);
        check(&gzip(TEXT), "X-GZIP", 100, ok);
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(TEXT).expect("memory");
        check(&encoder.finish().expect("memory"), "deflate", 100, ok);
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(TEXT).expect("memory");
        check(&encoder.finish().expect("memory"), "deflate", 100, ok);
        check(BROTLI, "br", 100, ok);
        check(&zstd::encode_all(TEXT, 3).expect("memory"), "zstd", 100, ok);
        check(&gzip(&gzip(TEXT)), "gzip, gzip", 100, ok);
        check(&gzip(BROTLI), "br, gzip", 100, ok);
        check(b"", "gzip", 100, Ok(b""));
    }

    #[test]
    fn start_of_a_long_or_cut_off_body_is_decoded() {
        let check = |body: &[u8], coding: &str, limit: usize| {
            let headers: HeaderMap =
                [(header::CONTENT_ENCODING, coding.parse().expect("a header"))].into_iter().collect();
            let decoded = decode_start(Bytes::copy_from_slice(body), &headers, limit).expect("a start");
            let is_start = !decoded.is_empty() && decoded.iter().all(|byte| *byte == b'x');
            assert!(is_start && decoded.len() <= limit, "{coding}: {} bytes", decoded.len());
        };
        let long = vec![b'x'; 200_000];
        let incompressible: Vec<u8> =
            long.iter().copied().chain((0..100_000_u32).flat_map(u32::to_le_bytes)).collect();
        for (coding, body) in [
            ("gzip", gzip(&incompressible)),
            ("zstd", zstd::encode_all(&incompressible[..], 3).expect("memory")),
        ] {
            check(&body, coding, 1000);
            check(&body[..body.len() / 2], coding, 200_000);
        }
        check(&long, "identity", 1000);
    }

    #[test]
    fn invalid_bodies_are_refused() {
        let error = |why: &'static str| Err(why);
        check(b"page", "gzip", 100, error("The page cannot be decompressed: it is not valid gzip."));
        check(b"page", "br", 100, error("The page cannot be decompressed: it is not valid br."));
        // A window of 1 GiB, and an empty last block.
        check(b"\x11\xde", "br", 100, error("The page cannot be decompressed: it is not valid br."));
        check(b"page", "zstd", 100, error("The page cannot be decompressed: it is not valid zstd."));
        check(
            b"page",
            "compress",
            100,
            error("The page cannot be decompressed: the coding `compress` is unknown."),
        );
        let bomb = gzip(&vec![0; 1 << 20]);
        check(&bomb, "gzip", 1000, error("The page cannot be decompressed: it is larger than 1000 bytes."));
        let codings = "gzip, gzip, gzip, gzip";
        check(b"page", codings, 100, error("The page cannot be decompressed: it has more than 3 codings."));
    }
}
