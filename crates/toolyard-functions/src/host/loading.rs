//! Which version is meant, and how it becomes ready to run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use toolyard_core::Secrets;
use toolyard_core::store::Store;

use super::{Host, HostOptions};
use crate::code::Code;
use crate::edition::{Edition, Slot, unload};
use crate::error::FunctionError;
use crate::parts;
use crate::project::{Project, requirements};
use crate::record::{Content, Unusable};
use crate::shelf::{Shelved, Snapshot, unreadable};
use crate::version::{Version, Wanted};

impl Host {
    /// The version of a function that is meant, ready to run. What is loaded already needs no store; a function or version that
    /// is not known is looked for there, but not at every call.
    ///
    /// # Errors
    /// When there is none, or it cannot be loaded: its packages cannot be had, a variable is not lent, a part is damaged.
    pub async fn resolve(&self, id: &str, wanted: Wanted) -> Result<Arc<Edition>, FunctionError> {
        let snapshot = self.shared.shelf.known();
        let found =
            snapshot.get(id).and_then(|function| function.pick(wanted).map(|found| (function, found)));
        if let Some((function, (version, slot))) = found {
            return self.edition(function, version, slot).await;
        }
        self.shared.shelf.look_again().await?;
        let snapshot = self.shared.shelf.known();
        let (function, version, slot) = find(&snapshot, id, wanted)?;
        self.edition(function, version, slot).await
    }

    async fn edition(
        &self,
        function: &Shelved,
        version: Option<Version>,
        slot: &Slot,
    ) -> Result<Arc<Edition>, FunctionError> {
        let now = self.shared.uses.fetch_add(1, Ordering::Relaxed);
        if let Some(edition) = slot.get(now) {
            return Ok(edition);
        }
        // It is never closed.
        let _turn = slot.loading.acquire().await;
        if let Some(edition) = slot.get(now) {
            return Ok(edition);
        }
        let store = &**self.shared.shelf.store();
        let stored = Stored::read(store, &function.id, slot.digest()).await?;
        let edition = Arc::new(stored.edition(&self.shared.options, &function.id, word(version)).await?);
        slot.set(Some(edition.clone()));
        unload(self.shared.shelf.known().slots(), self.shared.options.loaded_bytes);
        Ok(edition)
    }

    /// A project as it would run, though nobody has saved it.
    ///
    /// # Errors
    /// When it is no function, or cannot be loaded.
    pub async fn edition_of(&self, id: &str, project: &Project) -> Result<Arc<Edition>, FunctionError> {
        edition_of(&self.shared.options, id, project).await.map(Arc::new)
    }
}

/// A project as it would run under an id.
pub(crate) async fn edition_of(
    options: &HostOptions,
    id: &str,
    project: &Project,
) -> Result<Edition, FunctionError> {
    project.check()?;
    let (content, _) = Content::of(project);
    let digest = crate::record::digest(&content.written());
    Stored { digest, content, files: project.files.clone() }.edition(options, id, "draft".into()).await
}

fn find<'a>(
    snapshot: &'a Snapshot,
    id: &str,
    wanted: Wanted,
) -> Result<(&'a Shelved, Option<Version>, &'a Slot), FunctionError> {
    let function = snapshot.get(id).ok_or_else(|| FunctionError::UnknownFunction(id.to_owned()))?;
    let record = function.record.as_ref().map_err(|why| unreadable(id, why))?;
    let unknown = || FunctionError::UnknownVersion {
        id: id.to_owned(),
        wanted: wanted.to_string(),
        latest: record.latest(),
    };
    let (version, slot) = function.pick(wanted).ok_or_else(unknown)?;
    Ok((function, version, slot))
}

/// What a version is called.
pub(super) fn word(version: Option<Version>) -> String {
    version.map_or_else(|| "draft".to_owned(), |version| version.to_string())
}

/// A content with its files.
struct Stored {
    digest: String,
    content: Content,
    files: Vec<(String, bytes::Bytes)>,
}

impl Stored {
    async fn read(store: &dyn Store, id: &str, digest: &str) -> Result<Self, FunctionError> {
        let part = async |name: &str| {
            let part = parts::get(store, name).await?;
            part.map_err(|why| unreadable(id, &why))
        };
        let content = Content::read(&part(digest).await?).map_err(|why| unreadable(id, &why))?;
        let mut files = Vec::new();
        for file in &content.files {
            files.push((file.path.clone(), part(&file.digest).await?));
        }
        Ok(Self { digest: digest.to_owned(), content, files })
    }

    async fn edition(
        self,
        options: &HostOptions,
        id: &str,
        version: String,
    ) -> Result<Edition, FunctionError> {
        let Self { digest, content, files } = self;
        let tests = content.tests().map_err(|why| unreadable(id, &why))?;
        let list =
            requirements(content.language, &files).map(|list| String::from_utf8_lossy(list).into_owned());
        let environment = match (list, &options.packages) {
            (None, _) => None,
            (Some(list), Some(packages)) => Some(packages.environment(&list).await?),
            (Some(_), None) => {
                let why = Unusable::Damaged("it needs packages, which this host does not install".into());
                return Err(unreadable(id, &why));
            }
        };
        let code = Code {
            key: format!("{id}@{version}#{digest}").into(),
            language: content.language,
            files,
            packages: environment.as_ref().map(|environment| environment.path().to_owned()),
            environment: lend(&content.environment, &options.lent)?,
            network: content.network,
            limits: content.limits.clone().into(),
        };
        let secrets = Secrets::new(used(&content.environment, &options.lent));
        Ok(Edition {
            id: id.into(),
            version: version.into(),
            kind: content.kind,
            price: content.price(),
            code: Arc::new(code),
            tests,
            secrets,
            environment,
        })
    }
}

/// The variables of a function, with those that the host lends it in the place of `${NAME}`. `$${` stands for `${`.
fn lend(
    variables: &BTreeMap<String, String>,
    lent: &BTreeMap<String, String>,
) -> Result<Vec<(String, String)>, FunctionError> {
    let expanded = variables.iter().map(|(variable, value)| {
        let mut text = String::new();
        let mut rest = value.as_str();
        while let Some((before, after)) = rest.split_once("${") {
            if let Some(before) = before.strip_suffix('$') {
                text.extend([before, "${"]);
                rest = after;
                continue;
            }
            let (name, after) = after.split_once('}').unwrap_or((after, ""));
            let lent = lent.get(name).ok_or_else(|| FunctionError::NotLent {
                variable: variable.clone(),
                name: name.to_owned(),
            })?;
            text.extend([before, lent]);
            rest = after;
        }
        text.push_str(rest);
        Ok((variable.clone(), text))
    });
    expanded.collect()
}

/// The values that the host lends to these variables.
fn used(variables: &BTreeMap<String, String>, lent: &BTreeMap<String, String>) -> Vec<String> {
    let is_used = |name: &str| variables.values().any(|value| value.contains(&format!("${{{name}}}")));
    lent.iter().filter(|(name, _)| is_used(name)).map(|(_, value)| value.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_host_lends() {
        let lent = BTreeMap::from([("TOKEN".to_owned(), "${hunter2}".to_owned())]);
        let check = |value: &str, expected: Result<&str, &str>| {
            let variables = BTreeMap::from([("A".to_owned(), value.to_owned())]);
            let found = lend(&variables, &lent).map(|mut found| found.remove(0).1);
            let found = found.map_err(|error| error.to_string());
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{value}");
        };
        check("plain $ {}", Ok("plain $ {}"));
        check("Bearer ${TOKEN}!", Ok("Bearer ${hunter2}!"));
        check("$${TOKEN}", Ok("${TOKEN}"));
        let refused = "the variable A of the function is to be ${PATH}, which this host does not lend";
        check("${TOKEN}${PATH}", Err(refused));
        check("${PATH", Err(refused));
    }
}
