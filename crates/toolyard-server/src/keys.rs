//! Authentication by API keys, and their limits.
//!
//! - [`key`]: a key as stored, and its secret, which is not stored;
//! - [`marker`]: the marker that there were keys, which outlives the store;
//! - [`record`]: creates, lists and revokes keys in the store, from any process;
//! - [`key_cache`]: the keys in a running gateway;
//! - [`open_gateways`]: the gateways at which requests need no key yet;
//! - `rate`, [`quota`]: rate limits and quotas;
//! - [`sessions`]: sessions of browsers, which stand for a key;
//! - `service`: the checks of the keys at startup, and their start and stop;
//! - `key_summary`: a key as shown to users;
//! - `current_callers`: the rights of a key for calls that its client did not wait for;
//! - [`auth_layer`]: the authentication layer in front of the routes that require a key.

pub mod auth_layer;
mod current_callers;
pub mod key;
pub mod key_cache;
mod key_summary;
pub mod marker;
pub mod open_gateways;
pub mod quota;
mod rate;
pub mod record;
mod service;
pub mod sessions;

pub use auth_layer::{AuthLayer, AuthenticatedCaller, KeyAccess, KeyRefusal};
pub(crate) use current_callers::CurrentCallers;
pub use key::{ApiKey, KeyScope, KeySecret, NewApiKey, QuotaAmount, QuotaPeriod};
pub use key_cache::{KeyCache, KeyPolicy};
pub use key_summary::KeySummary;
pub use marker::KeyMarker;
pub(crate) use service::KeyService;
pub use sessions::KeySessions;
