//! No URI that a scope allows leads out of it, however its server resolves it; patterns and templates are parsed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use toolyard_core::UriTemplate;
use toolyard_core::access::{AccessScope, ScopePattern};
use toolyard_core::uri_path::has_dot_segments;

const HANDLER: &str = "h";

fuzz_target!(|input: (&str, &str, &str)| {
    let (behind, pattern, template) = input;
    stays_in_scope(behind);
    if let Ok(read) = pattern.parse::<ScopePattern>() {
        assert_eq!(read.to_string().parse(), Ok(read.clone()));
        let _fits = read.matches(HANDLER, behind);
        let scope: AccessScope = [read].into_iter().collect();
        assert!(scope.contains_uri(HANDLER, behind) || has_dot_segments(behind));
    }
    if let Ok(template) = UriTemplate::parse(template) {
        let _values = template.matches(behind);
    }
});

/// Resolves a URI below `res://open/` as servers do, and checks the result.
fn stays_in_scope(behind: &str) {
    let uri = format!("res://open/{behind}");
    let pattern: ScopePattern = "res://open/*".parse().expect("a pattern");
    let scope: AccessScope = [pattern].into_iter().collect();
    if !scope.allows_name(HANDLER, &uri) || !scope.contains_uri(HANDLER, &uri) {
        return;
    }
    let path = uri.strip_prefix("res:/").expect("a path");
    let mut decoded = path.as_bytes().to_vec();
    for times in 0..4 {
        // Some servers cut off a query, some treat it as part of a name; some treat a backslash as a slash.
        let cut = decoded.split(|byte| matches!(byte, b'?' | b'#')).next().unwrap_or_default();
        for whole in [&decoded[..], cut] {
            for separators in [&b"/"[..], b"/\\"] {
                for parameters in [false, true] {
                    let resolved = resolve(whole, separators, parameters);
                    assert!(resolved.starts_with(b"/open"), "{uri:?} decoded {times} times is {resolved:?}");
                }
            }
        }
        decoded = decode(&decoded);
    }
}

/// RFC 3986, section 5.2.4, for a path that begins with a slash. With `parameters`, removes the text after a `;`.
fn resolve(path: &[u8], separators: &[u8], parameters: bool) -> Vec<u8> {
    let mut segments: Vec<&[u8]> = Vec::new();
    for segment in path[1..].split(|byte| separators.contains(byte)) {
        let name = match parameters {
            true => segment.split(|byte| *byte == b';').next().unwrap_or_default(),
            false => segment,
        };
        match name {
            b"." => {}
            b".." => drop(segments.pop()),
            name => segments.push(name),
        }
    }
    [&b"/"[..], &segments.join(&b'/')].concat()
}

/// Undoes percent-encoding once.
fn decode(text: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::new();
    let mut rest = text;
    while let [first, behind @ ..] = rest {
        let code = behind.get(..2).filter(|_| *first == b'%');
        let code = code.and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok());
        decoded.push(code.unwrap_or(*first));
        rest = if code.is_some() { &behind[2..] } else { behind };
    }
    decoded
}
