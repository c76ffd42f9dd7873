//! Writes summaries of servers whose tools have changed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use sha2::{Digest, Sha256};
use tokio::sync::watch;
use tokio::time::sleep;
use toolyard_core::random::hex;
use toolyard_core::registry::{EntryKind, RegistryEntry};
use toolyard_core::store::{KeySpace, PutRequest, Store, WriteCondition};
use toolyard_core::{BackendPhase, Registry};
use toolyard_manifest::HandlerConfig;

use super::chat::{ChatClient, ChatError};
use super::prompt::{self, PromptTool, TASK};
use super::{ServerSummaries, ServerSummary};

/// Space of the summaries, by the digest of their input.
const SUMMARIES: KeySpace = KeySpace("server-summaries");

/// Retention of a stored summary. A running gateway keeps the ones that it has.
const RETENTION: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Maximum number of summaries written at a time.
const MAX_CONCURRENT: usize = 2;

/// First and longest delay after a failure. Each failure doubles it.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(60 * 60));

/// A summary to write.
struct SummaryJob {
    handler: Arc<str>,
    /// Published names of the tools.
    tools: Vec<Arc<str>>,
    question: String,
    digest: String,
}

/// Writes summaries.
pub struct SummaryWriter {
    /// Receives the summaries.
    pub summaries: Arc<ServerSummaries>,
    /// The language model.
    pub chat: ChatClient,
    /// The store of summaries.
    pub store: Arc<dyn Store>,
}

impl SummaryWriter {
    /// Follows the registry for as long as the future is polled.
    pub async fn follow(&self, mut registry: watch::Receiver<Arc<Registry>>) {
        let mut done = HashMap::<Arc<str>, String>::new();
        let mut failures = 0_u32;
        loop {
            let now = registry.borrow_and_update().clone();
            let jobs = self.jobs(&now, &mut done);
            let failed = self.write(jobs, &mut done, failures == 0).await;
            failures = if failed { failures + 1 } else { 0 };
            let changed = registry.changed();
            let again = async {
                match failures {
                    0 => std::future::pending().await,
                    failures => sleep(backoff(failures)).await,
                }
            };
            tokio::select! {
                changed = changed => if changed.is_err() { return },
                () = again => continue,
            }
            if failures > 0 {
                // A new server is no reason to retry earlier.
                sleep(backoff(failures)).await;
            }
        }
    }

    /// Returns the servers that have neither a current summary nor a description.
    fn jobs(&self, registry: &Registry, done: &mut HashMap<Arc<str>, String>) -> Vec<SummaryJob> {
        let mut servers = Vec::<(Arc<str>, Vec<&Arc<RegistryEntry>>)>::new();
        let needs_summary = |entry: &&Arc<RegistryEntry>| {
            &*entry.handler.name != HandlerConfig::BUILTINS && entry.handler.description.is_none()
        };
        for entry in registry.entries(EntryKind::Tools).iter().filter(needs_summary) {
            match servers.iter_mut().find(|(name, _)| *name == entry.handler.name) {
                Some((_, entries)) => entries.push(entry),
                None => servers.push((entry.handler.name.clone(), vec![entry])),
            }
        }
        // An unavailable server keeps its summary.
        let known_servers: HashSet<_> = registry.phases().iter().map(|(name, _)| name.clone()).collect();
        done.retain(|name, _| known_servers.contains(name));
        self.summaries.retain(|name| known_servers.contains(name));
        let is_ready = |name: &Arc<str>| {
            registry.phases().iter().any(|(other, phase)| other == name && *phase == BackendPhase::Ready)
        };
        let jobs = servers.into_iter().filter(|(name, _)| is_ready(name));
        let jobs = jobs.map(|(name, entries)| self.job(name, &entries));
        jobs.filter(|job| done.get(&job.handler) != Some(&job.digest)).collect()
    }

    fn job(&self, handler: Arc<str>, entries: &[&Arc<RegistryEntry>]) -> SummaryJob {
        let described: Vec<_> = entries.iter().map(|entry| (&*entry.name, description(entry))).collect();
        let prompt_tools: Vec<_> =
            described.iter().map(|(name, description)| PromptTool { name, description }).collect();
        let mut tools: Vec<_> = entries.iter().map(|entry| entry.name.clone()).collect();
        tools.sort();
        let question = prompt::question(&handler, &prompt_tools);
        let mut digest = Sha256::new();
        let all = described.iter().flat_map(|(name, description)| [*name, &**description]);
        for part in [&*self.chat.model, TASK, &*handler].into_iter().chain(all) {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        let digest = hex(&digest.finalize());
        SummaryJob { handler, tools, question, digest }
    }

    /// Writes summaries, a few at a time. Returns true if the model has failed. The first failure ends the round,
    /// because the others would fail as well.
    async fn write(
        &self,
        jobs: Vec<SummaryJob>,
        done: &mut HashMap<Arc<str>, String>,
        is_healthy: bool,
    ) -> bool {
        let answers = stream::iter(jobs).map(|job| async move {
            let answer = self.summary(&job).await;
            (job, answer)
        });
        let mut answers = std::pin::pin!(answers.buffer_unordered(MAX_CONCURRENT));
        while let Some((job, answer)) = answers.next().await {
            match answer {
                Ok(text) => {
                    let SummaryJob { handler, tools, digest, .. } = job;
                    done.insert(handler.clone(), digest);
                    if let Some(text) = text {
                        self.summaries.insert(handler, ServerSummary { tools, text: text.into() });
                    }
                }
                Err(error) => {
                    if is_healthy {
                        let error = &error as &dyn std::error::Error;
                        tracing::warn!(
                            error,
                            "cannot write summaries of servers: tool names are used instead"
                        );
                    }
                    return true;
                }
            }
        }
        false
    }

    /// Returns the stored summary of a server, or writes one. `None`: the model's answer is not a valid summary.
    async fn summary(&self, job: &SummaryJob) -> Result<Option<String>, ChatError> {
        // Without the store it is written anew.
        let stored = self.store.get(SUMMARIES, &job.digest).await.ok().flatten();
        if let Some(stored) = stored.and_then(|stored| String::from_utf8(stored.bytes.to_vec()).ok()) {
            return Ok(prompt::summary(&stored));
        }
        let answer = self.chat.ask(TASK, &job.question).await?;
        let Some(summary) = prompt::summary(&answer) else {
            tracing::debug!(
                handler = &*job.handler,
                "the answer of the language model is not a valid summary"
            );
            return Ok(None);
        };
        let put = PutRequest {
            bytes: Bytes::from(summary.clone()),
            condition: WriteCondition::Always,
            expires: Some(SystemTime::now() + RETENTION),
        };
        if let Err(error) = self.store.put(SUMMARIES, &job.digest, put).await {
            tracing::debug!(error = &error as &dyn std::error::Error, "cannot store a summary");
        }
        Ok(Some(summary))
    }
}

fn description(entry: &RegistryEntry) -> String {
    let tool = entry.tool.as_ref();
    tool.and_then(|tool| tool.definition.get_str("description")).unwrap_or_default().into_owned()
}

fn backoff(failures: u32) -> Duration {
    let (first, longest) = BACKOFF;
    first.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1).min(16))).min(longest)
}
