//! Requests that change objects, sent only if something differs.

use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::difference::{includes, without_nulls};
use super::{Context, ControllerError};
use crate::labels;
use crate::text::short_digest;

/// Result of applying an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// Nothing differed, and nothing was sent.
    Unchanged,
    /// The object was created.
    Created,
    /// The object was changed.
    Changed,
}

/// Applies an object by server-side apply, unless the observed one includes it and is as it was applied last. Without an
/// observed object, the server is asked for it first, so that an object of the same name that belongs to something else
/// is not taken over.
///
/// # Errors
/// If an object of this name has another owner, if another manager changes it back as often as it is restored, or if the
/// server refuses the request.
pub async fn apply<K>(context: &Context, object: &K, observed: Option<&K>) -> Result<Applied, ControllerError>
where
    K: Resource<DynamicType = ()> + Serialize,
{
    let observed = observed.map(to_value).transpose()?;
    apply_value(context, &ApiResource::erase::<K>(&()), to_value(object)?, observed).await
}

/// Applies an object of any kind as JSON, as [`apply`] does.
///
/// # Errors
/// As [`apply`].
pub async fn apply_value(
    context: &Context,
    resource: &ApiResource,
    mut object: Value,
    observed: Option<Value>,
) -> Result<Applied, ControllerError> {
    without_nulls(&mut object);
    let digest = short_digest(&object.to_string());
    let annotations = object["metadata"].as_object_mut().map(|metadata| metadata.entry("annotations"));
    let annotations = annotations.map(|entry| entry.or_insert_with(|| Value::Object(Map::new())));
    if let Some(annotations) = annotations {
        annotations[labels::APPLIED] = digest.clone().into();
    }
    let (name, api) = api_of(context, resource, &object)?;
    let read = async || api.get_opt(&name).await?.map(|found| to_value(&found)).transpose();
    let mut found = match observed {
        Some(found) => Some(found),
        None => read().await?,
    };
    if let Some(found) = &found {
        check_owner(resource, &name, &object, found)?;
        if is_as_desired(resource, found, &object) {
            return Ok(Applied::Unchanged);
        }
    }
    let key = object_key(resource, &object);
    let delay = context.restored.delay(&key, &digest);
    if !delay.is_zero() {
        // The observed object may be older than the last write.
        found = read().await?;
        if found.as_ref().is_some_and(|found| is_as_desired(resource, found, &object)) {
            return Ok(Applied::Unchanged);
        }
        return Err(ControllerError::Contended { kind: resource.kind.clone(), name, delay });
    }
    let params = PatchParams::apply(&context.config.manager).force();
    api.patch(&name, &params, &Patch::Apply(&object)).await?;
    context.restored.written(&key, &digest);
    context.metrics.count_write(&resource.kind, "apply");
    Ok(if found.is_some() { Applied::Changed } else { Applied::Created })
}

/// Returns `true` if applying an object would change nothing.
fn is_as_desired(resource: &ApiResource, found: &Value, desired: &Value) -> bool {
    includes(found, desired) && (resource.kind != NETWORK_POLICY || is_same_policy(found, desired))
}

/// Returns the key of an object in [`super::RestoredObjects`].
fn object_key(resource: &ApiResource, object: &Value) -> String {
    let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default();
    format!("{}/{}/{}", resource.kind, text("namespace"), text("name"))
}

/// Kind of the objects that must have nothing in addition.
const NETWORK_POLICY: &str = "NetworkPolicy";

/// Returns `true` if an observed policy admits what the desired one does. Each member more could admit more traffic: an
/// empty selector of namespaces admits all of them.
fn is_same_policy(found: &Value, desired: &Value) -> bool {
    let mut found = found["spec"].clone();
    without_nulls(&mut found);
    found == desired["spec"]
}

/// Applies the status of an object, unless it is the observed one. It should have no empty text in a list: Kubernetes 1.20
/// stores it as `null`, and refuses this.
///
/// # Errors
/// If the server refuses the request.
pub async fn apply_status<K>(
    context: &Context,
    observed: &K,
    status: &impl Serialize,
) -> Result<Applied, ControllerError>
where
    K: Resource<DynamicType = ()> + Serialize,
{
    apply_status_value(context, &ApiResource::erase::<K>(&()), &to_value(observed)?, to_value(status)?).await
}

/// Applies the status of an object of any kind as JSON, as [`apply_status`] does.
///
/// # Errors
/// As [`apply_status`].
pub async fn apply_status_value(
    context: &Context,
    resource: &ApiResource,
    observed: &Value,
    mut status: Value,
) -> Result<Applied, ControllerError> {
    without_nulls(&mut status);
    let mut current = observed["status"].clone();
    without_nulls(&mut current);
    if current == status {
        return Ok(Applied::Unchanged);
    }
    let (name, api) = api_of(context, resource, observed)?;
    let patch = json!({
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        // A resource of the same name that was created meanwhile has another status.
        "metadata": {"name": name, "uid": observed["metadata"]["uid"]},
        "status": status,
    });
    let params = PatchParams::apply(&context.config.manager).force();
    api.patch_status(&name, &params, &Patch::Apply(&patch)).await?;
    context.metrics.count_write(&resource.kind, "status");
    Ok(Applied::Changed)
}

/// Deletes an observed object, unless another one has its name by now.
///
/// # Errors
/// If the server refuses the request.
pub async fn delete<K>(context: &Context, observed: &K) -> Result<(), ControllerError>
where
    K: Resource<DynamicType = ()> + Serialize,
{
    delete_value(context, &ApiResource::erase::<K>(&()), &to_value(observed)?).await
}

/// Deletes an observed object of any kind, as [`delete`] does.
///
/// # Errors
/// As [`delete`].
pub async fn delete_value(
    context: &Context,
    resource: &ApiResource,
    observed: &Value,
) -> Result<(), ControllerError> {
    let (name, api) = api_of(context, resource, observed)?;
    let uid = observed["metadata"]["uid"].as_str().map(str::to_owned);
    let params = DeleteParams {
        preconditions: Some(Preconditions { uid, resource_version: None }),
        ..DeleteParams::background()
    };
    match api.delete(&name, &params).await {
        Ok(_) => {
            context.restored.forget(&object_key(resource, observed));
            context.metrics.count_write(&resource.kind, "delete");
        }
        // It is gone, or another object.
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// Returns the name of an object, and the API for it.
fn api_of(
    context: &Context,
    resource: &ApiResource,
    object: &Value,
) -> Result<(String, Api<DynamicObject>), ControllerError> {
    let metadata = &object["metadata"];
    let name =
        metadata["name"].as_str().ok_or_else(|| ControllerError::Object("object without name".into()))?;
    let client = context.client.clone();
    let api = match metadata["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client, namespace, resource),
        None => Api::all_with(client, resource),
    };
    Ok((name.to_owned(), api))
}

/// Refuses an object that has another controller than the desired one. An object of several owners has no controller: it
/// is the operator's by its label.
fn check_owner(
    resource: &ApiResource,
    name: &str,
    object: &Value,
    found: &Value,
) -> Result<(), ControllerError> {
    let is_own = match controller_of(object) {
        Some(owner) => controller_of(found) == Some(owner),
        None => found["metadata"]["labels"][labels::MANAGED_BY] == labels::MANAGER,
    };
    if is_own {
        return Ok(());
    }
    Err(ControllerError::Foreign { kind: resource.kind.clone(), name: name.to_owned() })
}

/// Returns the UID of the controller of an object.
fn controller_of(object: &Value) -> Option<&str> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    owners.iter().find(|owner| owner["controller"] == true)?["uid"].as_str()
}

/// Converts an object to JSON.
pub(crate) fn to_value(object: &impl Serialize) -> Result<Value, ControllerError> {
    serde_json::to_value(object).map_err(|error| ControllerError::Object(error.to_string()))
}

/// Returns a reference to an object for its dependents.
///
/// # Errors
/// If the object was not read from the server.
pub fn owner_of<K: Resource<DynamicType = ()>>(
    object: &K,
) -> Result<k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference, ControllerError> {
    let owner = object.controller_owner_ref(&());
    owner.ok_or_else(|| ControllerError::Object(format!("{} has no UID", object.name_any())))
}
