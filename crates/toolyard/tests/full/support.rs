//! The built binary as a gateway. The rest of the support is in `toolyard-testing`.

#[path = "../support/gateway.rs"]
pub(crate) mod gateway;
pub(crate) mod otlp;
