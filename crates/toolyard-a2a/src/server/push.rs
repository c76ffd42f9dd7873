//! Push notifications: tells URLs about the changes of tasks.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, pin_mut};
use http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;
use tokio::time::sleep;
use toolyard_manifest::{EndpointUrl, PushSettings};
use toolyard_net::egress::is_public;

use super::events;
use super::tasks::TaskClaim;
use crate::client::error::AgentError;
use crate::client::{AgentClient, random_id};
use crate::wire::or_default;
use crate::wire::push::{MEDIA_TYPE, PushConfig, TOKEN_HEADER};
use crate::wire::rpc::{RpcError, code};
use crate::wire::task::TaskEvent;

/// Maximum length of the texts of a configuration, in bytes.
const MAX_TEXT: usize = 2_048;

/// Maximum time until a notification is sent again.
const LAST_PAUSE: Duration = Duration::from_secs(60);

/// Parameters that name a configuration, or all of a task.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ConfigParams {
    pub(super) task_id: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) id: String,
}

/// Sends notifications.
pub(super) struct PushSender {
    client: AgentClient,
    settings: PushSettings,
    /// Permits for requests that run at a time.
    requests: Semaphore,
}

/// A URL that is being notified, until it is dropped.
pub(super) struct PushDelivery {
    pub(super) config: PushConfig,
    pub(super) run: AbortHandle,
}

impl Drop for PushDelivery {
    fn drop(&mut self) {
        self.run.abort();
    }
}

impl PushSender {
    pub(super) fn new(client: AgentClient, settings: PushSettings) -> Arc<Self> {
        let requests = Semaphore::new(settings.concurrent);
        Arc::new(Self { client, settings, requests })
    }

    /// Returns the maximum number of configurations of a task.
    pub(super) const fn limit(&self) -> usize {
        self.settings.per_task
    }

    /// Checks a configuration of a client, and gives it an id unless it has one.
    ///
    /// # Errors
    /// If its URL may not be notified, or its credentials cannot be sent.
    pub(super) fn checked(&self, config: PushConfig) -> Result<PushConfig, RpcError> {
        let invalid = |message: &str| Err(RpcError::new(code::INVALID_PARAMS, message));
        let texts = [&config.id, &config.url, &config.token].into_iter();
        let credentials = config.authentication.iter().map(|authentication| &authentication.credentials);
        if texts.chain(credentials).any(|text| text.len() > MAX_TEXT) {
            return invalid("a text of the configuration is longer than 2,048 bytes");
        }
        let Ok(url) = EndpointUrl::parse(&config.url) else {
            return invalid("`url` is no http or https URL without user information");
        };
        if !self.settings.private && is_private(url.uri()) {
            return invalid("`url` has no public address");
        }
        if headers(&config).is_none() {
            return invalid("`token` or `authentication` has characters that a header cannot have");
        }
        let id = match config.id.is_empty() {
            true => random_id().map_err(|error| RpcError::new(code::INTERNAL_ERROR, error.to_string()))?,
            false => config.id,
        };
        Ok(PushConfig { id, ..config })
    }

    /// Notifies a URL of the changes of a task until its end, or until a notification has failed too often.
    pub(super) async fn deliver(self: Arc<Self>, config: PushConfig, claim: TaskClaim) {
        let (Ok(url), Some(headers)) = (config.url.parse::<Uri>(), headers(&config)) else { return };
        let events = events::follow(claim, None);
        pin_mut!(events);
        while let Some(event) = events.next().await {
            if let Err(error) = self.send(&url, &headers, &event).await {
                let error = &error as &dyn std::error::Error;
                return tracing::warn!(error, task = config.task_id, "a URL is no longer notified of a task");
            }
        }
    }

    /// Sends a notification, and again after a failure that may pass.
    async fn send(&self, url: &Uri, headers: &HeaderMap, event: &TaskEvent) -> Result<(), AgentError> {
        let body = Bytes::from(json!(event).to_string());
        let (mut attempt, mut pause) = (1, self.settings.retry_delay);
        loop {
            let sent = async {
                // It is never closed.
                let _permit = self.requests.acquire().await;
                let settings = &self.settings;
                self.client.post(url, headers, body.clone(), settings.private, settings.timeout).await
            };
            match sent.await {
                Err(error) if attempt < self.settings.attempts && error.is_transient() => {
                    attempt += 1;
                    sleep(pause).await;
                    pause = LAST_PAUSE.min(pause * 2);
                }
                sent => return sent,
            }
        }
    }
}

/// Returns the headers of a notification; `None` if they cannot be sent.
fn headers(config: &PushConfig) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    let mut secret = |name: HeaderName, value: &str| {
        let mut value = HeaderValue::from_str(value).ok()?;
        value.set_sensitive(true);
        headers.insert(name, value);
        Some(())
    };
    if !config.token.is_empty() {
        secret(HeaderName::from_static(TOKEN_HEADER), &config.token)?;
    }
    if let Some(authentication) = &config.authentication {
        let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let scheme = &authentication.scheme;
        if scheme.is_empty() || scheme.len() > 64 || !scheme.bytes().all(is_scheme) {
            return None;
        }
        let credentials = &authentication.credentials;
        let separator = if credentials.is_empty() { "" } else { " " };
        secret(header::AUTHORIZATION, &format!("{scheme}{separator}{credentials}"))?;
    }
    Some(headers)
}

/// Returns true for an address that is not public. Names are checked when they are resolved.
fn is_private(url: &Uri) -> bool {
    let host = url.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(|address| !is_public(address))
}

/// Returns a configuration as its client reads it, without the credentials.
pub(super) fn shown(config: &PushConfig) -> Value {
    let mut shown = json!(config);
    if let Some(authentication) = shown.get_mut("authentication").and_then(Value::as_object_mut) {
        authentication.remove("credentials");
    }
    shown
}

#[cfg(test)]
mod tests {
    use toolyard_net::client::HttpClient;

    use super::*;

    fn problem(private: bool, config: Value) -> String {
        let settings = PushSettings { private, ..PushSettings::default() };
        let sender = PushSender::new(AgentClient::new(HttpClient::without_roots), settings);
        let config = serde_json::from_value(config).expect("a configuration");
        match sender.checked(config) {
            Ok(config) => format!("ok {}", config.url),
            Err(error) => error.message,
        }
    }

    #[test]
    fn configurations_are_checked() {
        let check = |config: Value, expected: &str| assert_eq!(problem(false, config), expected);
        check(json!({"url": "https://a.example/hook?x=1"}), "ok https://a.example/hook?x=1");
        let no_url = "`url` is no http or https URL without user information";
        check(json!({"url": "file:///etc/passwd"}), no_url);
        check(json!({"url": "https://me@a.example/"}), no_url);
        check(json!({"url": ""}), no_url);
        for address in ["127.0.0.1", "10.0.0.1", "169.254.169.254", "[::1]", "localhost", "LOCALHOST:80"] {
            check(json!({"url": format!("http://{address}/")}), "`url` has no public address");
        }
        let no_header = "`token` or `authentication` has characters that a header cannot have";
        check(json!({"url": "https://a.example/", "token": "a\nb"}), no_header);
        let authentication = |scheme: &str, credentials: &str| {
            let authentication = json!({"scheme": scheme, "credentials": credentials});
            json!({"url": "https://a.example/", "authentication": authentication})
        };
        check(authentication("Bearer", "x"), "ok https://a.example/");
        check(authentication("Bearer x\r\nHost:", "x"), no_header);
        check(authentication("Bearer", "x\r\n"), no_header);
        check(authentication("", "x"), no_header);
        let long = "a text of the configuration is longer than 2,048 bytes";
        check(json!({"url": "https://a.example/", "token": "x".repeat(2_049)}), long);
        let private = json!({"url": "http://10.0.0.1/"});
        assert_eq!(problem(true, private), "ok http://10.0.0.1/");
    }

    #[test]
    fn credentials_are_not_shown() {
        let config = json!({"id": "1", "url": "https://a", "token": "t",
            "authentication": {"scheme": "Bearer", "credentials": "hunter2"}});
        let config: PushConfig = serde_json::from_value(config).expect("a configuration");
        let expected =
            json!({"id": "1", "url": "https://a", "token": "t", "authentication": {"scheme": "Bearer"}});
        assert_eq!(shown(&config), expected);
        assert!(!format!("{config:?} {:?}", config.authentication).contains("hunter2"));
    }
}
