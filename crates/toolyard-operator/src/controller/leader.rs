//! Election of the replica that runs the controllers, by a Lease: a replica that sees no renewal for the duration of the
//! Lease takes it. As in client-go, the holder renews it every two seconds and has two thirds of its duration for
//! attempts that fail. Clocks of replicas are not compared.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tokio::time::Instant;

use super::LeaderElection;

/// Maximum time between two attempts to take or renew a Lease. Shorter Leases have shorter times.
const MAX_RETRY_PERIOD: Duration = Duration::from_secs(2);

/// Time limit for giving a Lease up when the operator stops.
const RELEASE_LIMIT: Duration = Duration::from_secs(5);

/// Result of an attempt to take or renew a Lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LeaseAttempt {
    /// This replica holds the Lease.
    Held,
    /// Another replica holds it.
    HeldByOther,
    /// The Lease was changed meanwhile: its holder is unknown until it is read again.
    Conflict,
}

/// A candidate for a Lease.
pub struct LeaseCandidate {
    leases: Api<Lease>,
    election: LeaderElection,
    /// The last version of the Lease that was seen, and when it was first seen.
    seen: Option<(Option<String>, Instant)>,
}

impl LeaseCandidate {
    /// Creates a candidate.
    #[must_use]
    pub fn new(client: Client, election: LeaderElection) -> Self {
        Self { leases: Api::namespaced(client, &election.namespace), election, seen: None }
    }

    /// Waits until this replica holds the Lease.
    pub async fn acquire(&mut self) {
        loop {
            match self.try_to_take().await {
                Ok(LeaseAttempt::Held) => return,
                Ok(LeaseAttempt::HeldByOther | LeaseAttempt::Conflict) => {}
                Err(error) => tracing::warn!(%error, "the Lease cannot be read or written"),
            }
            tokio::time::sleep(self.retry_period()).await;
        }
    }

    /// Renews the Lease. Returns if it is lost: if another replica has it, or if it was not renewed for two thirds of
    /// its duration, so that this replica stops before another one starts.
    pub async fn hold(&mut self) {
        let mut renewed = Instant::now();
        let deadline = self.election.duration * 2 / 3;
        loop {
            tokio::time::sleep(self.retry_period()).await;
            // The server writes the renewal between the request and the response.
            let began = Instant::now();
            match tokio::time::timeout_at(renewed + deadline, self.try_to_take()).await {
                Ok(Ok(LeaseAttempt::Held)) => renewed = began,
                Ok(Ok(LeaseAttempt::Conflict)) => {}
                Ok(Err(error)) => tracing::warn!(%error, "the Lease was not renewed"),
                Ok(Ok(LeaseAttempt::HeldByOther)) | Err(_) => return,
            }
        }
    }

    /// Gives the Lease up, so that another replica need not wait for its end.
    pub async fn release(&mut self) {
        if tokio::time::timeout(RELEASE_LIMIT, self.try_to_release()).await.is_err() {
            tracing::debug!("the Lease was not released in time");
        }
    }

    async fn try_to_release(&self) {
        let Ok(Some(mut lease)) = self.leases.get_opt(&self.election.lease).await else { return };
        let Some(spec) = lease.spec.as_mut().filter(|spec| self.is_holder(spec)) else { return };
        spec.holder_identity = None;
        spec.lease_duration_seconds = Some(1);
        if let Err(error) = self.replace(&lease).await {
            tracing::debug!(%error, "the Lease was not released");
        }
    }

    fn retry_period(&self) -> Duration {
        MAX_RETRY_PERIOD.min(self.election.duration / 8)
    }

    /// Takes or renews the Lease if it is free, expired or held by this replica.
    async fn try_to_take(&mut self) -> Result<LeaseAttempt, kube::Error> {
        let Some(lease) = self.leases.get_opt(&self.election.lease).await? else {
            let created = self.leases.create(&PostParams::default(), &self.new_lease()).await;
            return attempt(created);
        };
        let version = lease.metadata.resource_version.clone();
        if self.seen.as_ref().is_none_or(|(seen, _)| *seen != version) {
            self.seen = Some((version, Instant::now()));
        }
        let since = self.seen.as_ref().map_or(Duration::ZERO, |(_, since)| since.elapsed());
        match taken(&lease, &self.election, since) {
            Some(lease) => attempt(self.replace(&lease).await),
            None => Ok(LeaseAttempt::HeldByOther),
        }
    }

    async fn replace(&self, lease: &Lease) -> Result<Lease, kube::Error> {
        self.leases.replace(&self.election.lease, &PostParams::default(), lease).await
    }

    fn is_holder(&self, spec: &LeaseSpec) -> bool {
        spec.holder_identity.as_deref() == Some(&self.election.identity)
    }

    fn new_lease(&self) -> Lease {
        let now = MicroTime(Timestamp::now());
        Lease {
            metadata: ObjectMeta { name: Some(self.election.lease.clone()), ..ObjectMeta::default() },
            spec: Some(LeaseSpec {
                holder_identity: Some(self.election.identity.clone()),
                lease_duration_seconds: Some(seconds(self.election.duration)),
                acquire_time: Some(now.clone()),
                renew_time: Some(now),
                lease_transitions: Some(0),
                ..LeaseSpec::default()
            }),
        }
    }
}

/// Returns the Lease as this replica writes it, or `None` if another replica holds it. `since` is the time since its last
/// change.
fn taken(lease: &Lease, election: &LeaderElection, since: Duration) -> Option<Lease> {
    let mut lease = lease.clone();
    let spec = lease.spec.get_or_insert_default();
    let holder = spec.holder_identity.as_deref().unwrap_or_default();
    let duration = spec
        .lease_duration_seconds
        .map_or(election.duration, |seconds| Duration::from_secs(u64::try_from(seconds).unwrap_or_default()));
    let is_holder = holder == election.identity;
    if !is_holder && !holder.is_empty() && since < duration {
        return None;
    }
    let now = MicroTime(Timestamp::now());
    if !is_holder {
        spec.holder_identity = Some(election.identity.clone());
        spec.acquire_time = Some(now.clone());
        spec.lease_transitions = Some(spec.lease_transitions.unwrap_or_default() + 1);
    }
    spec.renew_time = Some(now);
    spec.lease_duration_seconds = Some(seconds(election.duration));
    Some(lease)
}

fn attempt(written: Result<Lease, kube::Error>) -> Result<LeaseAttempt, kube::Error> {
    match written {
        Ok(_) => Ok(LeaseAttempt::Held),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(LeaseAttempt::Conflict),
        Err(error) => Err(error),
    }
}

fn seconds(duration: Duration) -> i32 {
    i32::try_from(duration.as_secs()).unwrap_or(i32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn election() -> LeaderElection {
        LeaderElection {
            lease: "operator".to_owned(),
            namespace: "a".to_owned(),
            identity: "me".to_owned(),
            duration: Duration::from_secs(15),
        }
    }

    #[test]
    fn lease_is_taken_if_free_or_expired_or_own() {
        let check = |holder: Option<&str>, seconds: Option<i32>, since, expected: Option<i32>| {
            let spec = LeaseSpec {
                holder_identity: holder.map(str::to_owned),
                lease_duration_seconds: seconds,
                lease_transitions: Some(4),
                ..LeaseSpec::default()
            };
            let lease = Lease { spec: Some(spec), ..Lease::default() };
            let taken = taken(&lease, &election(), Duration::from_secs(since));
            let transitions = taken.map(|lease| lease.spec.unwrap_or_default().lease_transitions);
            assert_eq!(transitions, expected.map(Some), "{holder:?} {seconds:?} {since}");
        };
        check(None, Some(15), 0, Some(5));
        check(Some(""), Some(15), 0, Some(5));
        check(Some("me"), Some(15), 0, Some(4));
        check(Some("other"), Some(15), 14, None);
        check(Some("other"), Some(15), 15, Some(5));
        check(Some("other"), None, 14, None);
        check(Some("other"), Some(60), 30, None);
        check(Some("other"), Some(-1), 0, Some(5));
    }

    /// A server whose Lease is changed by `PUT`, of which it refuses those numbered in `refused`, counted from zero. Returns
    /// a client, and the number of requests for changes.
    fn server(refused: &'static [usize]) -> (Client, std::sync::Arc<std::sync::atomic::AtomicUsize>) {
        use http::{Method, Request, Response};
        use kube::client::Body;

        let (service, mut handle) = tower_test::mock::pair::<Request<Body>, Response<Body>>();
        let puts = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let counted = puts.clone();
        tokio::spawn(async move {
            let spec = LeaseSpec { holder_identity: Some("me".to_owned()), ..LeaseSpec::default() };
            let metadata = ObjectMeta { name: Some("operator".to_owned()), ..ObjectMeta::default() };
            let lease = serde_json::to_vec(&Lease { metadata, spec: Some(spec) }).unwrap();
            while let Some((request, send)) = handle.next_request().await {
                let is_put = *request.method() == Method::PUT;
                let number = is_put.then(|| counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
                let code = if number.is_some_and(|number| refused.contains(&number)) { 409 } else { 200 };
                let body = if code == 200 {
                    lease.clone()
                } else {
                    br#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}"#.to_vec()
                };
                send.send_response(Response::builder().status(code).body(Body::from(body)).unwrap());
            }
        });
        (Client::new(service, "a"), puts)
    }

    #[tokio::test(start_paused = true)]
    async fn holder_survives_attempts_that_fail_for_less_than_its_deadline() {
        let check = async |refused: &'static [usize], seconds: u64, is_held: bool| {
            let (client, puts) = server(refused);
            let mut candidate = LeaseCandidate::new(client, election());
            let held = tokio::time::timeout(Duration::from_secs(seconds), candidate.hold()).await.is_err();
            let puts = puts.load(std::sync::atomic::Ordering::Relaxed);
            assert_eq!(held, is_held, "{refused:?}, {puts} attempts");
        };
        check(&[], 60, true).await;
        check(&[0], 60, true).await;
        check(&[0, 1, 2, 3], 60, true).await;
        check(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], 9, true).await;
        check(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], 60, false).await;
    }
}
