//! Selection and loading of versions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use toolyard_core::SecretRedactor;
use toolyard_core::store::Store;

use super::{FunctionHost, HostOptions, LentVariable};
use crate::code::FunctionCode;
use crate::error::FunctionError;
use crate::function_index::{IndexSnapshot, IndexedFunction, unreadable};
use crate::loaded_version::{LoadedVersion, VersionSlot, unload_unused};
use crate::parts;
use crate::project::{FunctionProject, requirements};
use crate::record::{RecordError, VersionContent};
use crate::version::{FunctionVersion, VersionSelector};

impl FunctionHost {
    /// Returns the selected version of a function, ready to run. A loaded version needs no access to the store; an
    /// unknown function or version is looked up there, at a limited rate.
    ///
    /// # Errors
    /// If there is none, or it cannot be loaded: packages, a host variable or a part is missing, or a part is damaged.
    pub async fn resolve(
        &self,
        id: &str,
        wanted: VersionSelector,
    ) -> Result<Arc<LoadedVersion>, FunctionError> {
        let snapshot = self.shared.index.snapshot();
        let selected = snapshot
            .get(id)
            .and_then(|function| function.select(wanted).map(|selected| (function, selected)));
        if let Some((function, (version, slot))) = selected {
            return self.load_slot(function, version, slot).await;
        }
        self.shared.index.refresh_if_stale().await?;
        let snapshot = self.shared.index.snapshot();
        let (function, version, slot) = find(&snapshot, id, wanted)?;
        self.load_slot(function, version, slot).await
    }

    async fn load_slot(
        &self,
        function: &IndexedFunction,
        version: Option<FunctionVersion>,
        slot: &VersionSlot,
    ) -> Result<Arc<LoadedVersion>, FunctionError> {
        let now = self.shared.uses.fetch_add(1, Ordering::Relaxed);
        if let Some(loaded) = slot.get(now) {
            return Ok(loaded);
        }
        // The semaphore is never closed.
        let _turn = slot.loading.acquire().await;
        if let Some(loaded) = slot.get(now) {
            return Ok(loaded);
        }
        let store = &**self.shared.index.store();
        let stored = LoadableContent::read(store, &function.id, slot.digest()).await?;
        let loaded = Arc::new(
            stored.into_loaded_version(&self.shared.options, &function.id, version_name(version)).await?,
        );
        slot.set(Some(loaded.clone()));
        unload_unused(self.shared.index.snapshot().slots(), self.shared.options.loaded_bytes);
        Ok(loaded)
    }

    /// Loads a project that is not saved.
    ///
    /// # Errors
    /// If the project is invalid or cannot be loaded.
    pub async fn load_project(
        &self,
        id: &str,
        project: &FunctionProject,
    ) -> Result<Arc<LoadedVersion>, FunctionError> {
        load_project(&self.shared.options, id, project).await.map(Arc::new)
    }
}

/// Loads a project under an id.
pub(crate) async fn load_project(
    options: &HostOptions,
    id: &str,
    project: &FunctionProject,
) -> Result<LoadedVersion, FunctionError> {
    project.check()?;
    let (content, _) = VersionContent::of(project);
    let digest = crate::record::digest(&content.to_bytes());
    LoadableContent { digest, content, files: project.files.clone() }
        .into_loaded_version(options, id, "draft".into())
        .await
}

fn find<'a>(
    snapshot: &'a IndexSnapshot,
    id: &str,
    wanted: VersionSelector,
) -> Result<(&'a IndexedFunction, Option<FunctionVersion>, &'a VersionSlot), FunctionError> {
    let function = snapshot.get(id).ok_or_else(|| FunctionError::UnknownFunction(id.to_owned()))?;
    let record = function.record.as_ref().map_err(|why| unreadable(id, why))?;
    let unknown = || FunctionError::UnknownVersion {
        id: id.to_owned(),
        wanted: wanted.to_string(),
        latest: record.latest(),
    };
    let (version, slot) = function.select(wanted).ok_or_else(unknown)?;
    Ok((function, version, slot))
}

/// Returns the name of a version.
pub(super) fn version_name(version: Option<FunctionVersion>) -> String {
    version.map_or_else(|| "draft".to_owned(), |version| version.to_string())
}

/// A content with its files.
struct LoadableContent {
    digest: String,
    content: VersionContent,
    files: Vec<(String, bytes::Bytes)>,
}

impl LoadableContent {
    async fn read(store: &dyn Store, id: &str, digest: &str) -> Result<Self, FunctionError> {
        let part = async |name: &str| {
            let part = parts::get(store, name).await?;
            part.map_err(|why| unreadable(id, &why))
        };
        let content = VersionContent::read(&part(digest).await?).map_err(|why| unreadable(id, &why))?;
        let mut files = Vec::new();
        for file in &content.files {
            files.push((file.path.clone(), part(&file.digest).await?));
        }
        Ok(Self { digest: digest.to_owned(), content, files })
    }

    async fn into_loaded_version(
        self,
        options: &HostOptions,
        id: &str,
        version: String,
    ) -> Result<LoadedVersion, FunctionError> {
        let Self { digest, content, files } = self;
        let tests = content.tests().map_err(|why| unreadable(id, &why))?;
        let list =
            requirements(content.language, &files).map(|list| String::from_utf8_lossy(list).into_owned());
        let environment = match (list, &options.packages) {
            (None, _) => None,
            (Some(list), Some(packages)) => Some(packages.environment(&list).await?),
            (Some(_), None) => {
                let why =
                    RecordError::Damaged("packages are required, but this host does not install any".into());
                return Err(unreadable(id, &why));
            }
        };
        let code = FunctionCode {
            key: format!("{id}@{version}#{digest}").into(),
            language: content.language,
            files,
            packages: environment.as_ref().map(|environment| environment.path().to_owned()),
            environment: expand_variables(id, &content.environment, &options.host_variables)?,
            network: content.network,
            tools: false,
            limits: content.limits.clone().into(),
        };
        let secrets = SecretRedactor::new(used_values(&content.environment, &options.host_variables));
        Ok(LoadedVersion {
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

/// Expands `${NAME}` in the variables of a function with host variables. `$${` stands for `${`.
fn expand_variables(
    id: &str,
    variables: &BTreeMap<String, String>,
    host_variables: &BTreeMap<String, LentVariable>,
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
            let refused = |to: Option<&str>| FunctionError::VariableUnavailable {
                variable: variable.clone(),
                name: name.to_owned(),
                to: to.map(str::to_owned),
            };
            let host_variables = host_variables.get(name).ok_or_else(|| refused(None))?;
            if !host_variables.is_for(id) {
                return Err(refused(Some(id)));
            }
            text.extend([before, &host_variables.value]);
            rest = after;
        }
        text.push_str(rest);
        Ok((variable.clone(), text))
    });
    expanded.collect()
}

/// Returns the values of the host variables that these variables use.
fn used_values(
    variables: &BTreeMap<String, String>,
    host_variables: &BTreeMap<String, LentVariable>,
) -> Vec<String> {
    let is_used = |name: &str| variables.values().any(|value| value.contains(&format!("${{{name}}}")));
    host_variables
        .iter()
        .filter(|(name, _)| is_used(name))
        .map(|(_, host_variables)| host_variables.value.clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_variables_are_expanded() {
        let token = LentVariable {
            value: "${hunter2}".to_owned(),
            functions: ["weather", "geo-*"].map(|pattern| pattern.parse().unwrap()).to_vec(),
        };
        let host_variables = BTreeMap::from([("TOKEN".to_owned(), token)]);
        let check = |id: &str, value: &str, expected: Result<&str, &str>| {
            let variables = BTreeMap::from([("A".to_owned(), value.to_owned())]);
            let result =
                expand_variables(id, &variables, &host_variables).map(|mut result| result.remove(0).1);
            let result = result.map_err(|error| error.to_string());
            assert_eq!(result.as_deref().map_err(String::as_str), expected, "{id} {value}");
        };
        check("weather", "plain $ {}", Ok("plain $ {}"));
        check("weather", "Bearer ${TOKEN}!", Ok("Bearer ${hunter2}!"));
        check("weather", "$${TOKEN}", Ok("${TOKEN}"));
        check("geo-", "${TOKEN}", Ok("${hunter2}"));
        check("geo-coder", "${TOKEN}", Ok("${hunter2}"));
        check("other", "$${TOKEN}", Ok("${TOKEN}"));
        let unknown = "the variable A refers to ${PATH}, which this host does not provide";
        check("weather", "${TOKEN}${PATH}", Err(unknown));
        check("weather", "${PATH", Err(unknown));
        for id in ["other", "weather2", "Weather", "my-weather", "geo", "xgeo-coder", "*", "geo*"] {
            let refused = format!(
                "the variable A refers to ${{TOKEN}}, which this host does not provide to the function {id:?}: \
                 `functions.lend.TOKEN.functions` in the gateway's manifest lists those that may have it"
            );
            check(id, "a ${TOKEN}", Err(&refused));
        }
    }
}
