//! The backend of gRPC servers against PyPI's `grpcio`, and against servers that speak something else.

#![cfg(test)]

mod discovery;
mod etcd;
mod faulty_servers;
mod methods;
mod omnia;
mod support;
mod tls;
