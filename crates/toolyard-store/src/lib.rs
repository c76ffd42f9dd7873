//! What outlives the process.
