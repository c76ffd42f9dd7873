//! Legacy servers that ask, behind one gateway: their questions reach the client whose call it is, and nobody else.
//!
//! `clients` has clients and servers of other people; in `pool` and `yard` both are written here, to do what a test says.

mod clients;
mod pool;
mod visits;
mod yard;
