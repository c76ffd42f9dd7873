//! The built binary as a gateway. The rest of the support is in `toolyard-testing`.

pub(crate) mod gateway;
pub(crate) mod otlp;
