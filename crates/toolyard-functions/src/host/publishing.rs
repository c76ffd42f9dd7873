//! Drafts, tests, versions, and their end.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::Serialize;
use tokio::time::Instant;

use super::{FunctionDetails, FunctionSummary, Host, TestReport, VersionDetails};
use crate::edition::Edition;
use crate::error::FunctionError;
use crate::invoke::{self, InvokeError};
use crate::parts;
use crate::project::{Project, TestCase, is_id};
use crate::record::{Content, Published, Record, Stored, digest, millis, word};
use crate::shelf::unreadable;
use crate::version::{Bump, Version, Wanted};

/// The most functions of a store.
const MOST_FUNCTIONS: usize = 10_000;

/// The most versions of a function.
const MOST_VERSIONS: usize = 1000;

/// How long the test cases of a version may take together: somebody waits for them.
const TESTS: Duration = Duration::from_secs(600);

/// What was published.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Publication {
    /// The function.
    pub id: String,
    /// The number that it got.
    pub version: Version,
    /// What came of its test cases.
    pub tests: Vec<TestReport>,
}

/// What is to be deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deleted {
    /// The function, with all its versions. Their numbers are not given again.
    Function,
    /// What is not published.
    Draft,
    /// One version. Its number is not given again.
    Version(Version),
}

impl Host {
    /// Keeps a project as the draft of a function, in the place of the draft that it had. The first one makes the function.
    ///
    /// # Errors
    /// When it is no function, or another kind of one than before, or the store is in trouble.
    pub async fn save_draft(&self, id: &str, project: &Project) -> Result<FunctionSummary, FunctionError> {
        if !is_id(id) {
            return Err(FunctionError::BadId(id.to_owned()));
        }
        project.check()?;
        let shelf = &self.shared.shelf;
        let (content, mut parts) = Content::of(project);
        let text = content.written();
        let draft = Stored {
            digest: digest(&text),
            time: millis(SystemTime::now()),
            bytes: project.files.iter().map(|(_, bytes)| bytes.len() as u64).sum(),
            notes: project.notes.clone(),
        };
        parts.insert(draft.digest.clone(), text);
        // First the parts: a record never says more than there is.
        parts::keep(&**shelf.store(), &parts).await?;
        loop {
            let (mut record, read) = match shelf.get(id).await? {
                Some((record, version)) => (record, Some(version)),
                None => {
                    self.check_room().await?;
                    let last = shelf.last_number(id).await?;
                    let mut new = Record::new(project.kind, project.language, SystemTime::now());
                    new.last = last;
                    (new, None)
                }
            };
            if (record.kind, record.language) != (project.kind, project.language) {
                let is = format!("of kind {:?} in {}", record.kind, word::of(record.language)).to_lowercase();
                return Err(FunctionError::Fixed { id: id.to_owned(), is });
            }
            record.draft = Some(draft.clone());
            if shelf.put(id, &record, read).await? {
                shelf.refresh().await?;
                return Ok(FunctionSummary::of_record(id.to_owned(), &record));
            }
        }
    }

    async fn check_room(&self) -> Result<(), FunctionError> {
        self.shared.shelf.refresh().await?;
        match self.shared.shelf.known().functions().count() {
            0..MOST_FUNCTIONS => Ok(()),
            _ => Err(FunctionError::TooMany { what: "functions", most: MOST_FUNCTIONS }),
        }
    }

    /// Publishes the draft of a function under the next number, after all its test cases. With `of` it is published only if
    /// that is its digest, as [`save_draft`](Self::save_draft) gave it.
    ///
    /// A draft stays the draft when it is published. Two who publish at once get two numbers.
    ///
    /// # Errors
    /// When there is no draft, or another one than expected or tested; when it has no tests, or one fails; or when the store is
    /// in trouble.
    pub async fn publish(
        &self,
        id: &str,
        bump: Bump,
        of: Option<&str>,
    ) -> Result<Publication, FunctionError> {
        let shelf = &self.shared.shelf;
        shelf.refresh().await?;
        let draft = self.draft(id).await?;
        if of.is_some_and(|of| of != draft.digest) {
            return Err(FunctionError::Changed(id.to_owned()));
        }
        let edition = self.resolve(id, Wanted::Draft).await?;
        let tests = self.tested(&edition).await?;
        loop {
            let Some((mut record, read)) = shelf.get(id).await? else {
                return Err(FunctionError::UnknownFunction(id.to_owned()));
            };
            let is_tested = |draft: &&Stored| edition.code.key.ends_with(&format!("#{}", draft.digest));
            // What was not tested is not published, nor what somebody else has put in its place.
            let same = record.draft.as_ref().filter(|now| now.digest == draft.digest).filter(is_tested);
            let content = Stored {
                time: millis(SystemTime::now()),
                ..same.ok_or_else(|| FunctionError::Changed(id.to_owned()))?.clone()
            };
            let numbers = FunctionError::TooMany { what: "versions of a function", most: MOST_VERSIONS };
            if record.versions.len() >= MOST_VERSIONS {
                return Err(numbers);
            }
            let next = record.last.map_or(Some(Version::FIRST), |last| last.next(bump));
            let version = next.ok_or(numbers)?;
            // First: whatever becomes of the function then, no other code has this number.
            shelf.keep_number(id, version).await?;
            record.last = Some(version);
            record.versions.push(Published { version, content });
            if shelf.put(id, &record, Some(read)).await? {
                shelf.refresh().await?;
                return Ok(Publication { id: id.to_owned(), version, tests });
            }
        }
    }

    async fn draft(&self, id: &str) -> Result<Stored, FunctionError> {
        let found = self.shared.shelf.get(id).await?;
        let (record, _) = found.ok_or_else(|| FunctionError::UnknownFunction(id.to_owned()))?;
        let latest = record.latest();
        let wanted = Wanted::Draft.to_string();
        record.draft.ok_or_else(|| FunctionError::UnknownVersion { id: id.to_owned(), wanted, latest })
    }

    /// What came of the test cases, where there are some and all pass.
    async fn tested(&self, edition: &Edition) -> Result<Vec<TestReport>, FunctionError> {
        if edition.tests.is_empty() {
            return Err(FunctionError::NoTests);
        }
        let reports = self.test(edition).await;
        match reports.iter().filter(|report| !report.passed).count() {
            0 => Ok(reports),
            failed => Err(FunctionError::TestsFailed { failed, all: reports.len(), reports }),
        }
    }

    /// Runs the test cases of a version, one by one, for ten minutes at most. They are not in the log, and cost nothing.
    pub async fn test(&self, edition: &Edition) -> Vec<TestReport> {
        let mut reports = Vec::new();
        let deadline = Instant::now() + TESTS;
        for (number, test) in edition.tests.iter().enumerate() {
            let request_id = format!("test-{}", number + 1).into();
            reports.push(self.test_case(edition, test, &request_id, deadline).await);
        }
        reports
    }

    async fn test_case(
        &self,
        edition: &Edition,
        test: &TestCase,
        request_id: &Arc<str>,
        deadline: Instant,
    ) -> TestReport {
        let begun = Instant::now();
        let run = &*self.shared.run;
        let ended = invoke::invoke(run, edition, &test.event, request_id, Some(deadline)).await;
        let duration_ms = (begun.elapsed().as_secs_f64() * 1e6).round() / 1e3;
        let name = test.name.clone();
        let invoked = match ended {
            Ok(invoked) => invoked,
            Err(error) => {
                let problem = Some(match error {
                    InvokeError::TimedOut(time) if time.is_zero() => {
                        let most = TESTS.as_secs();
                        format!("not run: all test cases together have {most} s, which were over")
                    }
                    error => error.to_string(),
                });
                let output = String::new();
                return TestReport { name, passed: false, duration_ms, problem, reply: None, output };
            }
        };
        let reply = invoked.reply.to_json();
        let problem = match &test.expect {
            Some(_) if test.is_met_by(&reply) => None,
            Some(_) => Some("the reply does not contain what is expected".to_owned()),
            None if invoked.reply.is_failure() => Some("the reply says that it failed".to_owned()),
            None => None,
        };
        // Why it failed says more than what it should have said.
        let problem = problem.map(|problem| invoked.failure.map_or(problem, |failure| failure.to_string()));
        let passed = problem.is_none();
        TestReport { name, passed, duration_ms, problem, reply: Some(reply), output: invoked.log }
    }

    /// All functions, in the order of their ids; those that cannot be used say why.
    ///
    /// # Errors
    /// When the store is in trouble.
    pub async fn list(&self) -> Result<Vec<FunctionSummary>, FunctionError> {
        self.shared.shelf.refresh().await?;
        Ok(self.shared.shelf.known().functions().map(|shelved| FunctionSummary::of(shelved)).collect())
    }

    /// A function, and its versions.
    ///
    /// # Errors
    /// When there is none, or the store is in trouble.
    pub async fn show(&self, id: &str) -> Result<FunctionDetails, FunctionError> {
        let found = self.shared.shelf.get(id).await?;
        let (record, _) = found.ok_or_else(|| FunctionError::UnknownFunction(id.to_owned()))?;
        Ok(FunctionDetails::of(id.to_owned(), &record))
    }

    /// All of a version but the values of its environment.
    ///
    /// # Errors
    /// When there is none, it was damaged, or the store is in trouble.
    pub async fn show_version(&self, id: &str, wanted: Wanted) -> Result<VersionDetails, FunctionError> {
        let store = &**self.shared.shelf.store();
        let found = self.shared.shelf.get(id).await?;
        let (record, _) = found.ok_or_else(|| FunctionError::UnknownFunction(id.to_owned()))?;
        let version = wanted.pick(record.versions.iter().map(|published| published.version));
        let published = version.and_then(|version| record.published(version));
        let found = match wanted {
            Wanted::Draft => record.draft.as_ref().map(|draft| (wanted.to_string(), draft)),
            _ => published.map(|published| (published.version.to_string(), &published.content)),
        };
        let (version, stored) = found.ok_or_else(|| FunctionError::UnknownVersion {
            id: id.to_owned(),
            wanted: wanted.to_string(),
            latest: record.latest(),
        })?;
        let text = parts::get(store, &stored.digest).await?.map_err(|why| unreadable(id, &why))?;
        let content = Content::read(&text).map_err(|why| unreadable(id, &why))?;
        let tests = content.tests().map_err(|why| unreadable(id, &why))?;
        let tests = tests.into_iter().map(|test| test.name).collect();
        Ok(VersionDetails::of(id, version, stored, content, tests))
    }

    /// Deletes a function, its draft, or one of its versions. Calls of it that run go on to their end. What cannot be read
    /// here can be deleted as a whole.
    ///
    /// # Errors
    /// When there is no such thing, or the store is in trouble.
    pub async fn delete(&self, id: &str, what: Deleted) -> Result<(), FunctionError> {
        let shelf = &self.shared.shelf;
        if what == Deleted::Function {
            let was_there = shelf.remove(id).await?;
            shelf.refresh().await?;
            return was_there.then_some(()).ok_or_else(|| FunctionError::UnknownFunction(id.to_owned()));
        }
        loop {
            let Some((mut record, read)) = shelf.get(id).await? else {
                return Err(FunctionError::UnknownFunction(id.to_owned()));
            };
            let before = record.clone();
            let wanted = match what {
                Deleted::Version(version) => {
                    record.versions.retain(|published| published.version != version);
                    Wanted::Exact(version)
                }
                Deleted::Draft | Deleted::Function => {
                    record.draft = None;
                    Wanted::Draft
                }
            };
            if record == before {
                let (id, wanted) = (id.to_owned(), wanted.to_string());
                return Err(FunctionError::UnknownVersion { id, wanted, latest: record.latest() });
            }
            if shelf.put(id, &record, Some(read)).await? {
                shelf.refresh().await?;
                return Ok(());
            }
        }
    }
}
