//! Webhooks of tasks, signed according to Standard Webhooks: the header `webhook-signature` has an HMAC-SHA256 of id,
//! time and body.

use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, header};
use http_body_util::Full;
use ring::hmac;
use serde_json::json;
use tokio::sync::OnceCell;
use tokio::time::timeout;
use toolyard_manifest::{ScheduleWebhook, SecretString};
use toolyard_net::body;
use toolyard_net::client::HttpClient;

use super::TaskFiring;

/// Maximum bytes of a response that are read. A result has less.
const MAX_RESPONSE_BYTES: usize = 64 << 10;

/// Prefix of a secret in base64.
const BASE64_PREFIX: &str = "whsec_";

/// Sends webhooks. It reads the certificates of the system with the first one.
#[derive(Default)]
pub(super) struct WebhookSender {
    /// The client for public addresses, and the client for all addresses.
    clients: OnceCell<(HttpClient, HttpClient)>,
}

impl WebhookSender {
    /// Sends the webhook of a task, whose id is that of the run, and returns the response.
    ///
    /// # Errors
    /// The reason, without the URL, if the request fails or the status is not that of a success.
    pub(super) async fn send(
        &self,
        webhook: &ScheduleWebhook,
        firing: &TaskFiring,
        time: &str,
    ) -> Result<String, String> {
        let request = request(webhook, &firing.run_id, SystemTime::now(), payload(firing, time))?;
        match timeout(webhook.timeout, self.exchange(webhook, request)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(format!("the webhook did not answer within {} s", webhook.timeout.as_secs_f64())),
        }
    }

    async fn exchange(
        &self,
        webhook: &ScheduleWebhook,
        request: Request<Full<Bytes>>,
    ) -> Result<String, String> {
        let (public, any) = self.clients.get_or_try_init(clients).await?;
        let client = if webhook.private { any } else { public };
        let response = client.send(request).await;
        let response = response.map_err(|error| format!("cannot send the webhook: {}", error.reason()))?;
        let status = response.status();
        if !status.is_success() {
            return Err(format!("the webhook answered with status {}", status.as_u16()));
        }
        let (start, _) = body::read_start(response.into_body(), MAX_RESPONSE_BYTES)
            .await
            .map_err(|_| "cannot read the response of the webhook".to_owned())?;
        let text = String::from_utf8_lossy(&start);
        Ok(format!("status {} {}", status.as_u16(), text.trim()).trim_end().to_owned())
    }
}

async fn clients() -> Result<(HttpClient, HttpClient), String> {
    let client = tokio::task::spawn_blocking(HttpClient::with_system_roots).await;
    let client = client.ok().and_then(Result::ok).ok_or("cannot read the system's certificates")?;
    Ok((client.public_only(), client))
}

/// Returns the body.
fn payload(firing: &TaskFiring, time: &str) -> String {
    let data = json!({"name": firing.name, "description": firing.description, "time": time, "key": firing.owner.key_id()});
    json!({"type": "task.due", "timestamp": firing.due.to_string(), "data": data}).to_string()
}

fn request(
    webhook: &ScheduleWebhook,
    id: &str,
    time: SystemTime,
    payload: String,
) -> Result<Request<Full<Bytes>>, String> {
    let seconds = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let signature = signature(&webhook.secret, id, seconds, &payload)?;
    let request = Request::post(webhook.url.uri().clone())
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::USER_AGENT, concat!("toolyard/", env!("CARGO_PKG_VERSION")))
        .header("webhook-id", id)
        .header("webhook-timestamp", seconds)
        .header("webhook-signature", signature);
    request.body(Full::new(payload.into())).map_err(|_| "cannot build the webhook".to_owned())
}

/// Returns the signature of Standard Webhooks, version 1.
fn signature(secret: &SecretString, id: &str, seconds: u64, payload: &str) -> Result<String, String> {
    let key = match secret.expose().strip_prefix(BASE64_PREFIX) {
        Some(base64) => STANDARD.decode(base64).map_err(|_| "the secret of the webhook is not base64")?,
        None => secret.expose().as_bytes().to_vec(),
    };
    let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
    let tag = hmac::sign(&key, format!("{id}.{seconds}.{payload}").as_bytes());
    Ok(format!("v1,{}", STANDARD.encode(tag)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the libraries of Standard Webhooks.
    #[test]
    fn signature_of_standard_webhooks() {
        let secret = SecretString::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let signature =
            signature(&secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#);
        assert_eq!(signature.as_deref(), Ok("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="));
    }
}
