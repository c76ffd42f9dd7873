//! Bytes after a PROXY protocol header do not change how it is parsed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use toolyard_net::listener::proxy::parse;

fuzz_target!(|bytes: &[u8]| {
    let whole = parse(bytes);
    if let Ok(Some((_, end))) = whole {
        assert_eq!(parse(&bytes[..end]), whole);
        assert_eq!(parse(&bytes[..end - 1]), Ok(None));
    }
    if let Ok(None) = whole {
        return;
    }
    let more = [bytes, &[0x55; 100]].concat();
    assert_eq!(parse(&more), whole);
});
