//! gRPC in both directions: the methods of a service as tools, and the gateway's tools as the service of the Omnia tool
//! protocol.

pub mod client;
pub mod descriptor;
pub mod omnia;
pub mod server;
