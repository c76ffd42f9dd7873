//! Certificates and keys in PEM files.

use std::path::Path;

use rustls::pki_types::pem::{Error, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use toolyard_core::file;

/// Maximum size of a file. Those with the authorities of a system have a fifth of a megabyte.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// Reads all certificates of a file. Blocks on the file system.
///
/// # Errors
/// If the file cannot be read, or is not PEM.
pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let text = file::read(path, MAX_BYTES).map_err(Error::Io)?;
    CertificateDer::pem_slice_iter(&text).collect()
}

/// Reads the private key of a file. Blocks on the file system.
///
/// # Errors
/// If the file cannot be read, or has no key in PEM.
pub(crate) fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, Error> {
    PrivateKeyDer::from_pem_slice(&file::read(path, MAX_BYTES).map_err(Error::Io)?)
}
