//! The connections to one server: the shared one, which a background task keeps open, and dedicated ones, which serve a
//! single client each.

pub(super) mod connection_keeper;
pub(super) mod connector;
pub(super) mod dedicated_connection;
pub(super) mod dedicated_pool;
pub(super) mod open_connections;
mod owner_updates;
pub(super) mod usage;
