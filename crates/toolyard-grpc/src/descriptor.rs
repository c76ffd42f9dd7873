//! Descriptors of services as tools; pure functions.
