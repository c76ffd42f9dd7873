//! Types of `google.protobuf.Any`.

/// Returns the full name of the type of a URL such as `type.googleapis.com/google.protobuf.Duration`.
pub(super) fn type_name(url: &str) -> Option<&str> {
    let (_, name) = url.rsplit_once('/')?;
    Some(name).filter(|name| !name.is_empty())
}
