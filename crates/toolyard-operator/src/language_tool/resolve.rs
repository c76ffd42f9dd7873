//! Addresses of the names in network policies.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};

use super::network::ResolvedNames;
use super::status::PolicyState;

/// Maximum number of addresses of a name.
const ADDRESSES: usize = 32;

/// Maximum number of names of a tool.
const NAMES: usize = 64;

/// Looks names up.
pub trait NameResolver: Send + Sync {
    /// Returns the addresses of a name.
    ///
    /// # Errors
    /// If the name does not exist, or no server answers.
    fn addresses<'a>(&'a self, name: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>>;
}

/// The resolver of the system.
#[derive(Debug, Default)]
pub struct SystemResolver;

impl NameResolver for SystemResolver {
    fn addresses<'a>(&'a self, name: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// Resolves names within a time limit each. Names without an answer are left out, which closes the way to them, and the
/// state names them.
pub(super) async fn resolve(
    resolver: &dyn NameResolver,
    names: BTreeSet<String>,
    limit: Duration,
) -> (ResolvedNames, PolicyState) {
    let (mut late, mut failed) = (Vec::new(), Vec::new());
    if names.len() > NAMES {
        failed.push(format!("more than {NAMES} names"));
    }
    let lookups = names.into_iter().take(NAMES).map(|name| async move {
        let found = tokio::time::timeout(limit, resolver.addresses(&name)).await;
        (name, found)
    });
    let mut resolved = BTreeMap::new();
    for (name, found) in join_all(lookups).await {
        match found {
            Ok(Ok(addresses)) if !addresses.is_empty() => {
                let addresses: BTreeSet<_> = addresses.into_iter().collect();
                resolved.insert(name, addresses.into_iter().take(ADDRESSES).collect());
            }
            Ok(_) => failed.push(name),
            Err(_) => late.push(name),
        }
    }
    let state = if !failed.is_empty() {
        PolicyState::Error(format!("no addresses, so egress to them is closed: {}", failed.join(", ")))
    } else if !late.is_empty() {
        PolicyState::Timeout(format!(
            "not resolved in time, so egress to them is closed: {}",
            late.join(", ")
        ))
    } else {
        PolicyState::Ready
    };
    (resolved, state)
}
