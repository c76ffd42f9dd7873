//! Groups of routes by the right that they require.

use axum::extract::{Request, State};
use axum::middleware::Next;
use http::Extensions;
use serde::Deserialize;

use super::extract::UrlPath;
use super::{ProblemDetails, RestResult};
use crate::keys::{AuthenticatedCaller, KeyAccess};

/// A group of routes, named after the callers that may use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RouteGroup {
    /// Callers of any part of this API.
    ApiCaller,
    /// Callers of tools.
    ToolCaller,
    /// Readers of the status: callers of tools and administrators.
    StatusReader,
    /// Administrators.
    Admin,
    /// Callers of hosted functions.
    FunctionCaller,
    /// Callers and authors of hosted functions; of the one in the path, if there is one.
    FunctionReader,
    /// Authors of the hosted function in the path.
    FunctionAuthor,
}

/// The id in a path: in the routes of functions, the function's.
#[derive(Deserialize)]
pub(super) struct IdParam {
    id: Option<String>,
}

/// Refuses callers that do not belong to the group.
pub(super) async fn authorize(
    State(group): State<RouteGroup>,
    UrlPath(IdParam { id }): UrlPath<IdParam>,
    request: Request,
    next: Next,
) -> RestResult {
    group.check(request.extensions(), id.as_deref())?;
    Ok(next.run(request).await)
}

impl RouteGroup {
    fn check(self, extensions: &Extensions, function: Option<&str>) -> Result<(), ProblemDetails> {
        let caller = match (self, function) {
            (Self::FunctionAuthor, Some(id)) => AuthenticatedCaller::authorize_publisher(extensions, id),
            (Self::FunctionReader, Some(id)) => AuthenticatedCaller::authorize_reader(extensions, id),
            _ => AuthenticatedCaller::authorize(extensions, |access| self.admits(*access)),
        };
        caller.map(drop)
    }

    /// True if the group admits a caller with this access, whatever the path is.
    const fn admits(self, access: KeyAccess) -> bool {
        match self {
            Self::ApiCaller => access.rest || access.admin || access.functions || access.publish,
            Self::ToolCaller => access.rest,
            Self::StatusReader => access.rest || access.admin,
            Self::Admin => access.admin,
            Self::FunctionCaller => access.functions || access.admin,
            Self::FunctionReader => access.functions || access.admin || access.publish,
            // The right depends on the function.
            Self::FunctionAuthor => false,
        }
    }
}
