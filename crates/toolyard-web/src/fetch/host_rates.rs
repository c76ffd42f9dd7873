//! Limits requests to one host.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tokio::time::{Duration, Instant};

use super::FetchError;

/// The time to which the limit applies.
const WINDOW: Duration = Duration::from_secs(60);

/// Number of hosts above which those without recent requests are forgotten.
const MAX_HOSTS: usize = 4096;

/// Requests to each host in the current minute. The minute of a host begins with its first request.
#[derive(Debug)]
pub(super) struct HostRates {
    limit: usize,
    hosts: Mutex<HashMap<String, HostWindow>>,
}

#[derive(Debug)]
struct HostWindow {
    start: Instant,
    requests: usize,
}

impl HostRates {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, hosts: Mutex::default() }
    }

    /// Counts a request to a host.
    ///
    /// # Errors
    /// Errors if there are too many.
    pub(super) fn take(&self, host: &str) -> Result<(), FetchError> {
        let now = Instant::now();
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if hosts.len() >= MAX_HOSTS && !hosts.contains_key(host) {
            hosts.retain(|_, window| now.duration_since(window.start) < WINDOW);
            if hosts.len() >= MAX_HOSTS {
                return Err(FetchError::TooManyRequests { host: host.to_owned(), seconds: WINDOW.as_secs() });
            }
        }
        let window = hosts.entry(host.to_owned()).or_insert(HostWindow { start: now, requests: 0 });
        let age = now.duration_since(window.start);
        if age >= WINDOW {
            *window = HostWindow { start: now, requests: 0 };
        } else if window.requests >= self.limit {
            let seconds = (WINDOW - age).as_secs().max(1);
            return Err(FetchError::TooManyRequests { host: host.to_owned(), seconds });
        }
        window.requests += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn requests_beyond_the_limit_are_refused_until_the_minute_is_over() {
        let rates = HostRates::new(2);
        let take = |host: &str| rates.take(host).map_err(|error| error.to_string());
        for host in ["a", "a", "b"] {
            assert_eq!(take(host), Ok(()));
        }
        advance(Duration::from_secs(20)).await;
        let why = "There are too many requests to a: try again in 40 s, or use another source.";
        assert_eq!(take("a"), Err(why.to_owned()));
        assert_eq!(take("b"), Ok(()));
        advance(Duration::from_secs(40)).await;
        assert_eq!(take("a"), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn number_of_hosts_is_bounded() {
        let rates = HostRates::new(1);
        for host in 0..MAX_HOSTS {
            assert!(rates.take(&host.to_string()).is_ok());
        }
        assert!(rates.take("one more").is_err());
        advance(WINDOW).await;
        assert!(rates.take("one more").is_ok());
        assert_eq!(rates.hosts.lock().unwrap().len(), 1);
    }
}
