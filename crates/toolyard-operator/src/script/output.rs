//! What a container has written, as far as it is kept.

use futures_util::io::{AsyncReadExt, copy};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::LogParams;
use tokio::time::{sleep, timeout};

use super::sightings::ANSWER;
use crate::error::{Cause, OperatorError};

/// How often it is asked for: the node of a container may be slow, or busy with its end.
const ATTEMPTS: u32 = 3;

/// How many bytes of what pip said are kept. Its errors stand at the end, in few lines.
const OF_PIP: u64 = 4096;
const LINES_OF_PIP: i64 = 20;

/// The first `bytes` that a container has written, standard output and standard error as they came.
pub(crate) async fn of_script(
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

/// The last lines of what pip has said.
pub(crate) async fn of_packages(
    pods: &Api<Pod>,
    name: &str,
    container: &str,
) -> Result<String, OperatorError> {
    let params = LogParams {
        container: Some(container.to_owned()),
        tail_lines: Some(LINES_OF_PIP),
        ..LogParams::default()
    };
    read(pods, name, &params, OF_PIP).await
}

async fn read(pods: &Api<Pod>, name: &str, params: &LogParams, limit: u64) -> Result<String, OperatorError> {
    let mut attempt = 1;
    loop {
        match timeout(ANSWER, once(pods, name, params, limit)).await.unwrap_or_else(|late| Err(late.into())) {
            Ok(text) => return Ok(text),
            Err(error) if attempt == ATTEMPTS => {
                return Err(OperatorError::Lost { reason: "NoOutput".to_owned(), detail: error });
            }
            Err(error) => tracing::debug!(pod = name, error, "there is no output yet"),
        }
        sleep(ANSWER / 10 * attempt).await;
        attempt += 1;
    }
}

/// What is no UTF-8 becomes the sign for that. The cluster may send a little more than it was asked for.
async fn once(pods: &Api<Pod>, name: &str, params: &LogParams, limit: u64) -> Result<String, Cause> {
    let stream = pods.log_stream(name, params).await?;
    let mut bytes = Vec::new();
    copy(Box::pin(stream).take(limit), &mut bytes).await?;
    Ok(whole_characters(&bytes))
}

/// A character that was cut off at the end is left out.
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
    fn a_character_that_is_cut_off_is_left_out() {
        assert_eq!(whole_characters("aä".as_bytes()), "aä");
        assert_eq!(whole_characters(&"aä".as_bytes()[..2]), "a");
        assert_eq!(whole_characters(b"a\xff\xe2b"), "a\u{fffd}\u{fffd}b");
    }
}
