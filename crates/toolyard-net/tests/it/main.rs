//! The listener on real sockets: TLS, Unix sockets, and proxies in front of it.

#![cfg(test)]

mod certificates;
mod proxies;
mod site;
mod tls;
mod unix;
