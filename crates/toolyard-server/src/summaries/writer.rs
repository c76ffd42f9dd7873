//! Has summaries written for servers whose tools are others than before.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use sha2::{Digest, Sha256};
use tokio::sync::watch;
use tokio::time::sleep;
use toolyard_core::registry::{Entry, Kind};
use toolyard_core::store::{Condition, Put, Space, Store};
use toolyard_core::{Phase, Registry};
use toolyard_manifest::Handler;

use super::chat::{Chat, ChatError};
use super::prompt::{self, TASK, Told};
use super::{Summary, Written};

/// Where summaries are kept, by what they were written of.
const SUMMARIES: Space = Space("server-summaries");

/// How long one is kept. A server that is there goes on with the one that it has.
const KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// So many are written at a time.
const TOGETHER: usize = 2;

/// How long to wait after a failure, which is twice as long after each, up to the second.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(60 * 60));

/// What a summary is to be written of.
struct Job {
    handler: Arc<str>,
    /// By the names that callers have for them.
    tools: Vec<Arc<str>>,
    question: String,
    digest: String,
}

/// Writes summaries.
pub struct Writer {
    /// Where they go.
    pub written: Arc<Written>,
    /// Who writes them.
    pub chat: Chat,
    /// Where they are kept.
    pub store: Arc<dyn Store>,
}

impl Writer {
    /// Follows what there is, for as long as it is polled.
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
                // A server more is no reason to ask sooner.
                sleep(backoff(failures)).await;
            }
        }
    }

    /// What is not written yet, and nobody has described.
    fn jobs(&self, registry: &Registry, done: &mut HashMap<Arc<str>, String>) -> Vec<Job> {
        let mut servers = Vec::<(Arc<str>, Vec<&Arc<Entry>>)>::new();
        let is_wanted = |entry: &&Arc<Entry>| {
            &*entry.handler.name != Handler::BUILTINS && entry.handler.description.is_none()
        };
        for entry in registry.entries(Kind::Tools).iter().filter(is_wanted) {
            match servers.iter_mut().find(|(name, _)| *name == entry.handler.name) {
                Some((_, entries)) => entries.push(entry),
                None => servers.push((entry.handler.name.clone(), vec![entry])),
            }
        }
        // One that is away for a while keeps what was written of it.
        let there: HashSet<_> = registry.phases().iter().map(|(name, _)| name.clone()).collect();
        done.retain(|name, _| there.contains(name));
        self.written.keep(|name| there.contains(name));
        let is_ready = |name: &Arc<str>| {
            registry.phases().iter().any(|(other, phase)| other == name && *phase == Phase::Ready)
        };
        let jobs = servers.into_iter().filter(|(name, _)| is_ready(name));
        let jobs = jobs.map(|(name, entries)| self.job(name, &entries));
        jobs.filter(|job| done.get(&job.handler) != Some(&job.digest)).collect()
    }

    fn job(&self, handler: Arc<str>, entries: &[&Arc<Entry>]) -> Job {
        let described: Vec<_> = entries.iter().map(|entry| (&*entry.name, description(entry))).collect();
        let told: Vec<_> = described.iter().map(|(name, description)| Told { name, description }).collect();
        let mut tools: Vec<_> = entries.iter().map(|entry| entry.name.clone()).collect();
        tools.sort();
        let question = prompt::question(&handler, &told);
        let mut digest = Sha256::new();
        let all = described.iter().flat_map(|(name, description)| [*name, &**description]);
        for part in [&*self.chat.model, TASK, &*handler].into_iter().chain(all) {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        let digest = digest.finalize().iter().fold(String::new(), |mut hex, byte| {
            // What is written to a text is written.
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        Job { handler, tools, question, digest }
    }

    /// Writes what is to be written, a few at a time; says whether the model has failed. The first failure ends it: one that
    /// fails for one server fails for all.
    async fn write(&self, jobs: Vec<Job>, done: &mut HashMap<Arc<str>, String>, is_well: bool) -> bool {
        let answers = stream::iter(jobs).map(|job| async move {
            let answer = self.summary(&job).await;
            (job, answer)
        });
        let mut answers = std::pin::pin!(answers.buffer_unordered(TOGETHER));
        while let Some((job, answer)) = answers.next().await {
            match answer {
                Ok(text) => {
                    let Job { handler, tools, digest, .. } = job;
                    done.insert(handler.clone(), digest);
                    if let Some(text) = text {
                        self.written.learn(handler, Summary { tools, text: text.into() });
                    }
                }
                Err(error) => {
                    if is_well {
                        let error = &error as &dyn std::error::Error;
                        tracing::warn!(
                            error,
                            "no summaries of servers are written: the names of tools stand for them"
                        );
                    }
                    return true;
                }
            }
        }
        false
    }

    /// The summary of a server: as it was written before, here or elsewhere, or as it is written now. `None`: what the model
    /// says is none.
    async fn summary(&self, job: &Job) -> Result<Option<String>, ChatError> {
        // Without the store it is written again.
        let kept = self.store.get(SUMMARIES, &job.digest).await.ok().flatten();
        if let Some(kept) = kept.and_then(|kept| String::from_utf8(kept.bytes.to_vec()).ok()) {
            return Ok(prompt::summary(&kept));
        }
        let answer = self.chat.ask(TASK, &job.question).await?;
        let Some(summary) = prompt::summary(&answer) else {
            tracing::debug!(handler = &*job.handler, "what the language model has written is no summary");
            return Ok(None);
        };
        let put = Put {
            bytes: Bytes::from(summary.clone()),
            condition: Condition::Always,
            expires: Some(SystemTime::now() + KEPT),
        };
        if let Err(error) = self.store.put(SUMMARIES, &job.digest, put).await {
            tracing::debug!(error = &error as &dyn std::error::Error, "a summary is not kept");
        }
        Ok(Some(summary))
    }
}

fn description(entry: &Entry) -> String {
    let tool = entry.tool.as_ref();
    tool.and_then(|tool| tool.definition.get_str("description")).unwrap_or_default().into_owned()
}

fn backoff(failures: u32) -> Duration {
    let (first, longest) = BACKOFF;
    first.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1).min(16))).min(longest)
}
