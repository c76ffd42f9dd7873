//! The backend of gRPC servers against PyPI's `grpcio`, and against servers that speak something else.

#![cfg(test)]

mod discovery;
mod etcd;
mod faulty_servers;
mod foreign_responses;
mod hostile_reflection;
mod json_mapping;
mod keep_alive;
mod methods;
mod omnia;
mod support;
mod tls;
