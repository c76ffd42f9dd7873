//! Builds handlers of the type `grpc`, which are not served yet.

use std::sync::Arc;

use toolyard_core::Backend;
use toolyard_manifest::{GrpcHandler, HandlerConfig};

use super::{UnsupportedBackend, explicit_tool};

pub(super) fn backend(handler: &HandlerConfig, grpc: &GrpcHandler) -> Arc<dyn Backend> {
    Arc::new(UnsupportedBackend::new(handler.kind.name(), Some(explicit_tool(&grpc.tool))))
}
