//! Locations of stores.

use std::fmt;
use std::path::PathBuf;

use crate::error::StoreOpenError;

/// The location of a store. `Display` and `Debug` show no password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabaseLocation {
    /// In the memory of this process.
    Memory,
    /// An SQLite database in a file. The file and its parent folders are created if they are missing.
    File(PathBuf),
    /// A PostgreSQL database.
    Postgres(PostgresUrl),
}

/// The URL of a PostgreSQL database, which may hold a password.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresUrl {
    url: String,
    redacted: String,
}

impl DatabaseLocation {
    /// The name of this kind of store.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::File(_) => "sqlite",
            Self::Postgres(_) => "postgres",
        }
    }
}

impl fmt::Display for DatabaseLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory"),
            Self::File(path) => path.display().fmt(f),
            Self::Postgres(url) => url.fmt(f),
        }
    }
}

// === impl PostgresUrl ===

impl PostgresUrl {
    /// Parses `postgres://user:password@host:port/database?sslmode=require`. The connection is encrypted only with
    /// `sslmode=require`.
    ///
    /// # Errors
    /// Errors if the URL is invalid, or if this program was built without PostgreSQL support.
    pub fn parse(url: &str) -> Result<Self, StoreOpenError> {
        let config: tokio_postgres::Config =
            url.parse().map_err(|error| StoreOpenError::Url(crate::postgres::message_with_cause(&error)))?;
        Ok(Self { url: url.to_owned(), redacted: redacted_url(&config) })
    }

    /// Refuses the URL: this program was built without PostgreSQL.
    ///
    /// # Errors
    /// Always.
    /// The URL with its password, for connecting.
    pub(crate) fn expose(&self) -> &str {
        &self.url
    }
}

/// Builds the redacted URL from the parsed parts, so that no password has to be found in the text.
fn redacted_url(config: &tokio_postgres::Config) -> String {
    use tokio_postgres::config::Host;
    let ports = config.get_ports();
    let endpoint = |(at, host): (usize, &Host)| {
        let port = ports.get(at).or(ports.first()).copied().unwrap_or(5432);
        match host {
            Host::Tcp(name) => format!("{name}:{port}"),
            Host::Unix(folder) => folder.display().to_string(),
        }
    };
    let endpoints: Vec<_> = config.get_hosts().iter().enumerate().map(endpoint).collect();
    let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
    format!("postgres://{}/{database}", endpoints.join(","))
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.redacted)
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgresUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn displayed_url_has_no_secrets() {
        let cases = [
            ("postgres://me:hunter2@db.example:5433/yard?sslmode=require", "postgres://db.example:5433/yard"),
            ("postgresql://me:hunter2@db.example", "postgres://db.example:5432/me"),
            ("postgres://me:hunter2@a,b:7/yard?options=-c%20x%3Dhunter2", "postgres://a:5432,b:7/yard"),
            ("postgres://me@%2Frun%2Fpg/yard?password=hunter2", "postgres:///run/pg/yard"),
        ];
        for (url, expected) in cases {
            let location = DatabaseLocation::Postgres(PostgresUrl::parse(url).unwrap());
            assert_eq!(location.to_string(), expected);
            assert!(!format!("{location:?}").contains("hunter2"), "{location:?}");
        }
    }

    #[test]
    fn error_of_invalid_url_has_no_password() {
        for url in ["postgres://me:hunter2@db:port/yard", "postgres://me:hunter2@db/yard?sslmode=maybe"] {
            let error = PostgresUrl::parse(url).unwrap_err().to_string();
            assert!(error.starts_with("invalid URL of the store: "), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
