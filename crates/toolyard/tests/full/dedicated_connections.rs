//! Legacy servers that send requests to clients through one gateway: each request reaches only the client of its call.
//!
//! `clients` and `own_lists` use third-party clients and servers; `pool` and `asking_backend` use scripted ones.

mod asking_backend;
mod clients;
mod own_lists;
mod pool;
mod url_elicitation;
