//! Drafts, tests, publication and deletion.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::Serialize;
use tokio::time::Instant;

use super::{FunctionDetails, FunctionHost, FunctionSummary, SourceFile, TestReport, VersionDetails};
use crate::error::FunctionError;
use crate::function_index::unreadable;
use crate::invoke::{self, InvokeError};
use crate::loaded_version::LoadedVersion;
use crate::parts;
use crate::project::{FunctionProject, TestCase, is_id};
use crate::record::{
    FunctionRecord, PublishedContent, StoredContent, VersionContent, digest, language_name, millis,
};
use crate::version::{FunctionVersion, VersionBump, VersionSelector};

/// Maximum number of functions of a store.
const MAX_FUNCTIONS: usize = 10_000;

/// Maximum number of versions of a function.
const MAX_VERSIONS: usize = 1000;

/// Time limit of all test cases of a version together.
const TEST_TIMEOUT: Duration = Duration::from_secs(600);

/// Result of a publication.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PublicationResult {
    /// Id of the function.
    pub id: String,
    /// Published version.
    pub version: FunctionVersion,
    /// True if the draft was already published as this version, the latest one.
    pub unchanged: bool,
    /// Reports of the test cases.
    pub tests: Vec<TestReport>,
}

/// Object to delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeletionTarget {
    /// The function with all versions. Their numbers are not reused.
    Function,
    /// The draft.
    Draft,
    /// One version. Its number is not reused.
    Version(FunctionVersion),
}

impl FunctionHost {
    /// Saves a project as the draft of a function, replacing the previous draft. The first draft creates the function.
    ///
    /// # Errors
    /// If the project is invalid, the function has another kind or language, or the store fails.
    pub async fn save_draft(
        &self,
        id: &str,
        project: &FunctionProject,
    ) -> Result<FunctionSummary, FunctionError> {
        if !is_id(id) {
            return Err(FunctionError::InvalidId(id.to_owned()));
        }
        project.check()?;
        let index = &self.shared.index;
        let (content, mut parts) = VersionContent::of(project);
        let text = content.to_bytes();
        let draft = StoredContent {
            digest: digest(&text),
            time: millis(SystemTime::now()),
            bytes: project.files.iter().map(|(_, bytes)| bytes.len() as u64).sum(),
            notes: project.notes.clone(),
        };
        parts.insert(draft.digest.clone(), text);
        // Parts first, so that records never refer to missing parts.
        parts::store_parts(&**index.store(), &parts).await?;
        loop {
            let (mut record, read) = match index.get(id).await? {
                Some((record, version)) => (record, Some(version)),
                None => {
                    self.check_function_count().await?;
                    let last = index.last_number(id).await?;
                    let mut new = FunctionRecord::new(project.kind, project.language, SystemTime::now());
                    new.last = last;
                    (new, None)
                }
            };
            if (record.kind, record.language) != (project.kind, project.language) {
                let is = format!("of kind {:?} in {}", record.kind, language_name::name_of(record.language))
                    .to_lowercase();
                return Err(FunctionError::KindMismatch { id: id.to_owned(), is });
            }
            record.draft = Some(draft.clone());
            if index.put(id, &record, read).await? {
                index.refresh().await?;
                return Ok(FunctionSummary::of_record(id.to_owned(), &record));
            }
        }
    }

    async fn check_function_count(&self) -> Result<(), FunctionError> {
        self.shared.index.refresh().await?;
        match self.shared.index.snapshot().functions().count() {
            0..MAX_FUNCTIONS => Ok(()),
            _ => Err(FunctionError::TooMany { what: "functions", most: MAX_FUNCTIONS }),
        }
    }

    /// Tests the draft of a function and publishes it under the next number. If `of` is given, the draft must have that
    /// digest, as returned by [`save_draft`](Self::save_draft).
    ///
    /// The draft remains the draft. Concurrent publications get different numbers. A draft that is the latest version
    /// already gets no further number.
    ///
    /// # Errors
    /// If there is no draft, or it has changed; if it has no test cases, or one fails; or if the store fails.
    pub async fn publish(
        &self,
        id: &str,
        bump: VersionBump,
        of: Option<&str>,
    ) -> Result<PublicationResult, FunctionError> {
        let index = &self.shared.index;
        index.refresh().await?;
        let draft = self.draft(id).await?;
        if of.is_some_and(|of| of != draft.digest) {
            return Err(FunctionError::Conflict(id.to_owned()));
        }
        let loaded = self.resolve(id, VersionSelector::Draft).await?;
        let tests = self.run_tests(&loaded).await?;
        loop {
            let Some((mut record, read)) = index.get(id).await? else {
                return Err(FunctionError::UnknownFunction(id.to_owned()));
            };
            let is_tested = |draft: &&StoredContent| loaded.code.key.ends_with(&format!("#{}", draft.digest));
            // Only the tested draft is published, not one that replaced it meanwhile.
            let same = record.draft.as_ref().filter(|now| now.digest == draft.digest).filter(is_tested);
            let content = StoredContent {
                time: millis(SystemTime::now()),
                ..same.ok_or_else(|| FunctionError::Conflict(id.to_owned()))?.clone()
            };
            if let Some(latest) =
                record.versions.last().filter(|latest| latest.content.digest == draft.digest)
            {
                return Ok(PublicationResult {
                    id: id.to_owned(),
                    version: latest.version,
                    unchanged: true,
                    tests,
                });
            }
            let numbers = FunctionError::TooMany { what: "versions of a function", most: MAX_VERSIONS };
            if record.versions.len() >= MAX_VERSIONS {
                return Err(numbers);
            }
            let next = record.last.map_or(Some(FunctionVersion::FIRST), |last| last.next(bump));
            let version = next.ok_or(numbers)?;
            // Recorded first, so that the number is never reused for other code.
            index.record_number(id, version).await?;
            record.last = Some(version);
            record.versions.push(PublishedContent { version, content });
            if index.put(id, &record, Some(read)).await? {
                index.refresh().await?;
                return Ok(PublicationResult { id: id.to_owned(), version, unchanged: false, tests });
            }
        }
    }

    async fn draft(&self, id: &str) -> Result<StoredContent, FunctionError> {
        let stored = self.shared.index.get(id).await?;
        let (record, _) = stored.ok_or_else(|| FunctionError::UnknownFunction(id.to_owned()))?;
        let latest = record.latest();
        let selector = VersionSelector::Draft.to_string();
        record.draft.ok_or_else(|| FunctionError::UnknownVersion {
            id: id.to_owned(),
            wanted: selector,
            latest,
        })
    }

    /// Runs the test cases; fails if there are none or one fails.
    async fn run_tests(&self, loaded: &LoadedVersion) -> Result<Vec<TestReport>, FunctionError> {
        if loaded.tests.is_empty() {
            return Err(FunctionError::NoTests);
        }
        let reports = self.test_reports(loaded).await;
        match reports.iter().filter(|report| !report.passed).count() {
            0 => Ok(reports),
            failed => Err(FunctionError::TestsFailed { failed, all: reports.len(), reports }),
        }
    }

    /// Runs the test cases of a version one by one, for at most ten minutes. They are not logged and cost nothing.
    pub async fn test_reports(&self, loaded: &LoadedVersion) -> Vec<TestReport> {
        let mut reports = Vec::new();
        let deadline = Instant::now() + TEST_TIMEOUT;
        for (number, test) in loaded.tests.iter().enumerate() {
            let request_id = format!("test-{}", number + 1).into();
            reports.push(self.test_case(loaded, test, &request_id, deadline).await);
        }
        reports
    }

    async fn test_case(
        &self,
        loaded: &LoadedVersion,
        test: &TestCase,
        request_id: &Arc<str>,
        deadline: Instant,
    ) -> TestReport {
        let started_at = Instant::now();
        let run = &*self.shared.runner;
        let ended = invoke::invoke(run, loaded, &test.event, request_id, Some(deadline)).await;
        let duration_ms = (started_at.elapsed().as_secs_f64() * 1e6).round() / 1e3;
        let name = test.name.clone();
        let invoked = match ended {
            Ok(invoked) => invoked,
            Err(error) => {
                let problem = Some(match error {
                    InvokeError::TimedOut(time) if time.is_zero() => {
                        let most = TEST_TIMEOUT.as_secs();
                        format!("not run: the time limit of {most} s for all test cases was reached")
                    }
                    error => error.to_string(),
                });
                let output = String::new();
                return TestReport { name, passed: false, duration_ms, problem, reply: None, output };
            }
        };
        let reply = invoked.reply.to_json();
        let problem = match &test.expect {
            Some(_) => test.difference(&reply),
            None if invoked.reply.is_failure() => Some("the reply is an error".to_owned()),
            None => None,
        };
        // The cause of a failure is more specific than the mismatch.
        let problem = problem.map(|problem| invoked.failure.map_or(problem, |failure| failure.to_string()));
        let passed = problem.is_none();
        TestReport { name, passed, duration_ms, problem, reply: Some(reply), output: invoked.log }
    }

    /// Lists all functions in the order of their ids; unusable ones have a `problem`.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn list(&self) -> Result<Vec<FunctionSummary>, FunctionError> {
        self.shared.index.refresh().await?;
        Ok(self.shared.index.snapshot().functions().map(|function| FunctionSummary::of(function)).collect())
    }

    /// Returns a function and its versions.
    ///
    /// # Errors
    /// If there is none, or the store fails.
    pub async fn show(&self, id: &str) -> Result<FunctionDetails, FunctionError> {
        let stored = self.shared.index.get(id).await?;
        let (record, _) = stored.ok_or_else(|| FunctionError::UnknownFunction(id.to_owned()))?;
        Ok(FunctionDetails::of(id.to_owned(), &record))
    }

    /// Returns a version, except for the values of its environment.
    ///
    /// # Errors
    /// If there is none, it is damaged, or the store fails.
    pub async fn show_version(
        &self,
        id: &str,
        wanted: VersionSelector,
    ) -> Result<VersionDetails, FunctionError> {
        let (version, stored, content) = self.stored_content(id, wanted).await?;
        let tests = content.tests().map_err(|why| unreadable(id, &why))?;
        let tests = tests.into_iter().map(|test| test.name).collect();
        Ok(VersionDetails::of(id, version, &stored, content, tests))
    }

    /// Returns a file of a version with its text.
    ///
    /// # Errors
    /// If there is none, it is damaged, or the store fails.
    pub async fn show_file(
        &self,
        id: &str,
        wanted: VersionSelector,
        path: &str,
    ) -> Result<SourceFile, FunctionError> {
        let (_, _, content) = self.stored_content(id, wanted).await?;
        let file = content.files.into_iter().find(|file| file.path == path);
        let file =
            file.ok_or_else(|| FunctionError::UnknownFile { id: id.to_owned(), path: path.to_owned() })?;
        let part = parts::get(&**self.shared.index.store(), &file.digest).await?;
        let bytes = part.map_err(|why| unreadable(id, &why))?;
        Ok(SourceFile::of(file, bytes))
    }

    /// Returns the name and the content of a version.
    async fn stored_content(
        &self,
        id: &str,
        wanted: VersionSelector,
    ) -> Result<(String, StoredContent, VersionContent), FunctionError> {
        let store = &**self.shared.index.store();
        let stored = self.shared.index.get(id).await?;
        let (record, _) = stored.ok_or_else(|| FunctionError::UnknownFunction(id.to_owned()))?;
        let version = wanted.select(record.versions.iter().map(|published| published.version));
        let published = version.and_then(|version| record.published(version));
        let stored = match wanted {
            VersionSelector::Draft => record.draft.as_ref().map(|draft| (wanted.to_string(), draft)),
            _ => published.map(|published| (published.version.to_string(), &published.content)),
        };
        let (version, stored) = stored.ok_or_else(|| FunctionError::UnknownVersion {
            id: id.to_owned(),
            wanted: wanted.to_string(),
            latest: record.latest(),
        })?;
        let text = parts::get(store, &stored.digest).await?.map_err(|why| unreadable(id, &why))?;
        let content = VersionContent::read(&text).map_err(|why| unreadable(id, &why))?;
        Ok((version, stored.clone(), content))
    }

    /// Deletes a function, its draft, or one of its versions. Running calls continue. A function with an unreadable
    /// record can be deleted as a whole.
    ///
    /// # Errors
    /// If there is no such object, or the store fails.
    pub async fn delete(&self, id: &str, what: DeletionTarget) -> Result<(), FunctionError> {
        let index = &self.shared.index;
        if what == DeletionTarget::Function {
            let was_there = index.remove(id).await?;
            index.refresh().await?;
            return was_there.then_some(()).ok_or_else(|| FunctionError::UnknownFunction(id.to_owned()));
        }
        loop {
            let Some((mut record, read)) = index.get(id).await? else {
                return Err(FunctionError::UnknownFunction(id.to_owned()));
            };
            let before = record.clone();
            let selector = match what {
                DeletionTarget::Version(version) => {
                    record.versions.retain(|published| published.version != version);
                    VersionSelector::Exact(version)
                }
                DeletionTarget::Draft | DeletionTarget::Function => {
                    record.draft = None;
                    VersionSelector::Draft
                }
            };
            if record == before {
                let (id, wanted) = (id.to_owned(), selector.to_string());
                return Err(FunctionError::UnknownVersion { id, wanted, latest: record.latest() });
            }
            if index.put(id, &record, Some(read)).await? {
                index.refresh().await?;
                return Ok(());
            }
        }
    }
}
