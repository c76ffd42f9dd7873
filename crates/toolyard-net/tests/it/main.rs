//! The listener on real sockets: TLS, Unix sockets, proxies, limits and draining.

#![cfg(test)]

mod certificates;
mod connection_limits;
mod connection_reasons;
mod connection_reuse;
mod draining;
mod framing;
mod proxies;
mod test_listener;
mod tls;
mod unix;
