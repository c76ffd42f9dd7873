//! Checks whether a server is available: by a connection, and if the manifest has a probe by the health service
//! (`grpc.health.v1`), if the server has one.

use futures_util::future::BoxFuture;
use http::Uri;
use tokio::time::Instant;
use tonic::Code;
use toolyard_backends::health::{ServiceCheck, unreachable};
use toolyard_core::{CauseCode, FailureCause};

use super::delivery::SharedDelivery;
use super::status::RequestFault;

const CHECK_PATH: &str = "/grpc.health.v1.Health/Check";

/// The status of a service that serves.
const SERVING: i32 = 1;

#[derive(Clone, PartialEq, prost::Message)]
struct HealthCheckRequest {
    #[prost(string, tag = "1")]
    service: String,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
struct HealthCheckResponse {
    #[prost(int32, tag = "1")]
    status: i32,
}

/// The check of a server.
pub(super) struct GrpcCheck {
    pub(super) delivery: SharedDelivery,
    /// The service that the probe asks about; empty for the whole server. `None` without a probe.
    pub(super) service: Option<String>,
}

impl GrpcCheck {
    async fn run(&self, target: Uri) -> Result<(), FailureCause> {
        let Some(service) = &self.service else {
            let client = self.delivery.channel.client();
            return client.check_connection(target).await.map_err(|error| unreachable(&error));
        };
        let headers = self
            .delivery
            .headers(None)
            .await
            .map_err(|error| FailureCause::new(CauseCode::Credentials, error.message().to_owned()))?;
        let request = HealthCheckRequest { service: service.clone() };
        let until = None::<Instant>;
        match self.delivery.typed(CHECK_PATH, request, &headers, until).await {
            Ok((HealthCheckResponse { status: SERVING }, _)) => Ok(()),
            Ok(_) => Err(FailureCause::new(CauseCode::GrpcStatus, "the health service reports NOT_SERVING")),
            // A server without the health service answers at least.
            Err(RequestFault::Refused(status)) if status.code() == Code::Unimplemented => Ok(()),
            Err(fault) => Err(fault.cause()),
        }
    }
}

impl ServiceCheck for GrpcCheck {
    fn check(&self, target: Uri) -> BoxFuture<'_, Result<(), FailureCause>> {
        Box::pin(self.run(target))
    }
}
