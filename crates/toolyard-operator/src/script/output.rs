//! Reading of container logs.

use futures_util::io::{AsyncReadExt, copy};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::LogParams;
use tokio::time::{sleep, timeout};

use super::observer::ANSWER_TIMEOUT;
use crate::error::{ErrorCause, OperatorError};

/// Number of attempts: the node of a container may be slow.
const ATTEMPTS: u32 = 3;

/// Maximum size of pip's log, in bytes and lines. Errors are in the last lines.
const PIP_LOG_BYTES: u64 = 4096;
const PIP_LOG_LINES: i64 = 20;

/// Returns the first `bytes` of a container's log: standard output and standard error in their order.
pub(crate) async fn read_script_output(
    pods: &Api<Pod>,
    name: &str,
    container: &str,
    bytes: usize,
) -> Result<String, OperatorError> {
    let limit = i64::try_from(bytes).ok();
    let params =
        LogParams { container: Some(container.to_owned()), limit_bytes: limit, ..LogParams::default() };
    read(pods, name, &params, bytes as u64).await
}

/// Returns the last lines of pip's log.
pub(crate) async fn read_package_log(
    pods: &Api<Pod>,
    name: &str,
    container: &str,
) -> Result<String, OperatorError> {
    let params = LogParams {
        container: Some(container.to_owned()),
        tail_lines: Some(PIP_LOG_LINES),
        ..LogParams::default()
    };
    read(pods, name, &params, PIP_LOG_BYTES).await
}

async fn read(pods: &Api<Pod>, name: &str, params: &LogParams, limit: u64) -> Result<String, OperatorError> {
    let mut attempt = 1;
    loop {
        match timeout(ANSWER_TIMEOUT, read_once(pods, name, params, limit))
            .await
            .unwrap_or_else(|late| Err(late.into()))
        {
            Ok(text) => return Ok(text),
            Err(error) if attempt == ATTEMPTS => {
                return Err(OperatorError::Lost { reason: "NoOutput".to_owned(), detail: error });
            }
            Err(error) => tracing::debug!(pod = name, error, "no output yet"),
        }
        sleep(ANSWER_TIMEOUT / 10 * attempt).await;
        attempt += 1;
    }
}

/// Reads a log once. Invalid UTF-8 is replaced. The cluster may send slightly more than requested.
async fn read_once(
    pods: &Api<Pod>,
    name: &str,
    params: &LogParams,
    limit: u64,
) -> Result<String, ErrorCause> {
    let stream = pods.log_stream(name, params).await?;
    let mut bytes = Vec::new();
    copy(Box::pin(stream).take(limit), &mut bytes).await?;
    Ok(whole_characters(&bytes))
}

/// Drops a partial character at the end.
fn whole_characters(bytes: &[u8]) -> String {
    let is_cut = |error: &std::str::Utf8Error| error.error_len().is_none();
    let end = match std::str::from_utf8(bytes) {
        Err(error) if is_cut(&error) => error.valid_up_to(),
        _ => bytes.len(),
    };
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partial_character_is_dropped() {
        assert_eq!(whole_characters("aä".as_bytes()), "aä");
        assert_eq!(whole_characters(&"aä".as_bytes()[..2]), "a");
        assert_eq!(whole_characters(b"a\xff\xe2b"), "a\u{fffd}\u{fffd}b");
    }
}
