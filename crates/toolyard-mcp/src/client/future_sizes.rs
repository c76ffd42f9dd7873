//! Sizes of the futures of a call, each of which is copied when it is boxed. What is rare has a box of its own.

use toolyard_core::Client;
use toolyard_net::client::HttpClient;

use super::*;
use crate::client::transport::streamable_http::HttpTransport;

/// Returns the size of the future that a function returns, without calling it.
fn size<F: Future>(_function: impl FnOnce() -> F) -> usize {
    size_of::<F>()
}

/// Stands for an argument of a function that is not called.
fn any<T>() -> T {
    unreachable!("the function is not called")
}

#[test]
fn futures_of_a_call_are_small() {
    let client = || any::<&'static Arc<dyn Client>>();
    let backend = || any::<&'static McpBackend>();
    let connection = || any::<&'static UpstreamConnection>();
    let cases = [
        ("HttpClient::send", 2048, size(|| any::<&'static HttpClient>().send(any()))),
        ("HttpTransport::request", 3072, size(|| any::<&'static HttpTransport>().request(any(), client()))),
        ("UpstreamConnection::invoke", 4608, size(|| connection().invoke(any(), any()))),
        ("McpBackend::attempt", 6144, size(|| backend().attempt(any()))),
        (
            "UpstreamRetry::run_attempts",
            7168,
            size(|| any::<&'static UpstreamRetry>().run_attempts(any(), |call| backend().attempt(call))),
        ),
    ];
    for (function, max_bytes, bytes) in cases {
        assert!(bytes <= max_bytes, "{function}: {bytes} bytes, at most {max_bytes}");
    }
}
