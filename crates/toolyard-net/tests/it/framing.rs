//! Requests that a server refuses by RFC 9112, as bytes on a socket.

use tokio::io::AsyncWriteExt;

use crate::test_listener::{LONG, TestListener, read_to_end};

/// The status of each response to these bytes. The last accepted request of a case asks to close the connection.
async fn statuses(site: &TestListener, bytes: &str) -> Vec<u16> {
    let mut stream = site.connect().await;
    stream.write_all(bytes.as_bytes()).await.unwrap();
    let output = String::from_utf8(read_to_end(&mut stream).await).unwrap();
    let lines = output.match_indices("HTTP/1.").map(|(at, start)| &output[at + start.len() + 2..]);
    lines.map(|line| line[..3].parse().unwrap()).collect()
}

#[tokio::test]
async fn requests_with_ambiguous_framing_are_refused() {
    let site = TestListener::open(LONG, |listener| vec![listener]).await;
    let end = "\r\nconnection: close\r\n\r\n";
    let get = |headers: &str| format!("GET / HTTP/1.1\r\n{headers}{end}");
    let chunked = |headers: &str| format!("GET / HTTP/1.1\r\nhost: a\r\n{headers}\r\n\r\n0\r\n\r\n");
    let ok = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";
    let cases = [
        ("one host", get("host: a"), vec![200]),
        ("two hosts", get("host: a\r\nhost: b"), vec![400]),
        ("the same host twice", get("host: a\r\nHost: a"), vec![400]),
        ("no host", get("x: y"), vec![400]),
        ("no host in HTTP/1.0", "GET / HTTP/1.0\r\n\r\n".to_owned(), vec![200]),
        ("chunked", chunked("transfer-encoding: chunked\r\nconnection: close"), vec![200]),
        ("chunked in capitals", chunked("Transfer-Encoding: CHUNKED\r\nconnection: close"), vec![200]),
        ("another coding", chunked("transfer-encoding: gzip"), vec![400]),
        ("another coding first", chunked("transfer-encoding: gzip, chunked"), vec![400]),
        ("identity first", chunked("transfer-encoding: identity, chunked"), vec![400]),
        ("identity last", chunked("transfer-encoding: chunked, identity"), vec![400]),
        ("chunked twice", chunked("transfer-encoding: chunked, chunked"), vec![400]),
        (
            "chunked in two lines",
            chunked("transfer-encoding: chunked\r\ntransfer-encoding: chunked"),
            vec![400],
        ),
        (
            "two codings in two lines",
            chunked("transfer-encoding: identity\r\ntransfer-encoding: chunked"),
            vec![400],
        ),
        ("xchunked", chunked("transfer-encoding: xchunked"), vec![400]),
        ("a quoted coding", chunked("transfer-encoding: \"chunked\""), vec![400]),
        ("an empty coding", chunked("transfer-encoding:"), vec![400]),
        ("a parameter", chunked("transfer-encoding: chunked;q=1"), vec![400]),
        ("a blank before the colon", chunked("transfer-encoding : chunked"), vec![400]),
        ("a vertical tab", chunked("transfer-encoding: \x0bchunked"), vec![400]),
        ("a folded line", chunked("transfer-encoding:\r\n chunked"), vec![400]),
        (
            "chunked in HTTP/1.0",
            "GET / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n".to_owned(),
            vec![400],
        ),
        ("a length behind chunked", chunked("transfer-encoding: chunked\r\ncontent-length: 5"), vec![400]),
        ("a length before chunked", chunked("content-length: 5\r\ntransfer-encoding: chunked"), vec![400]),
        (
            "a length with bare line ends",
            "GET / HTTP/1.1\nhost: a\nContent-Length: 5\ntransfer-encoding: chunked\n\n0\r\n\r\n".to_owned(),
            vec![400],
        ),
        (
            "a length behind another request",
            format!("{ok}{}", chunked("content-length: 5\r\ntransfer-encoding: chunked")),
            vec![200, 400],
        ),
        (
            "requests with lengths, then chunked",
            format!(
                "GET / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello{}",
                chunked("transfer-encoding: chunked\r\nconnection: close")
            ),
            vec![200, 200],
        ),
        ("two lengths", get("host: a\r\ncontent-length: 1\r\ncontent-length: 2"), vec![400]),
        ("a list of lengths", get("host: a\r\ncontent-length: 5, 5"), vec![400]),
        ("a signed length", get("host: a\r\ncontent-length: +5"), vec![400]),
        ("a negative length", get("host: a\r\ncontent-length: -5"), vec![400]),
    ];
    for (case, bytes, expected) in cases {
        assert_eq!(statuses(&site, &bytes).await, expected, "{case}: {bytes:?}");
    }
    site.stop().await;
}
