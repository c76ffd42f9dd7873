//! Tests of descriptors, schemas and the mapping as a whole.

mod corpus;
mod hostile;
mod mapping;
mod round_trip;
mod schemas;
mod support;
