//! The catalog of a server: its lists and their expiry, and the resources that clients follow.

pub(super) mod change_stream;
pub(super) mod expiry;
pub(super) mod filter;
pub(super) mod followed_resources;
pub(super) mod list_invalidation;
mod lists;
pub(super) mod published;
mod subscriptions;
