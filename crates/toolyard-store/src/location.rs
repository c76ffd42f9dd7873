//! Where a store is.

use std::fmt;
use std::path::PathBuf;

use crate::error::OpenError;

/// Where a store is. `Display` and `Debug` show no password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// In the memory of this process, with which it ends.
    Memory,
    /// An SQLite database in a file. The file, and the folders above it, are made where they are missing.
    File(PathBuf),
    /// A PostgreSQL database.
    Postgres(PostgresUrl),
}

/// The URL of a PostgreSQL database, which may hold a password.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresUrl {
    url: String,
    shown: String,
}

impl Location {
    /// The word for this kind of store.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::File(_) => "sqlite",
            Self::Postgres(_) => "postgres",
        }
    }
}

impl fmt::Display for Location {
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
    /// Parses `postgres://user:password@host:port/database?sslmode=require`. Whose `sslmode` is not `require` is not
    /// encrypted.
    ///
    /// # Errors
    /// When it is no such URL, or this program was built without PostgreSQL.
    #[cfg(feature = "postgres")]
    pub fn parse(url: &str) -> Result<Self, OpenError> {
        let config: tokio_postgres::Config =
            url.parse().map_err(|error| OpenError::Url(crate::postgres::reason(&error)))?;
        Ok(Self { url: url.to_owned(), shown: shown(&config) })
    }

    /// Refuses the URL: this program was built without PostgreSQL.
    ///
    /// # Errors
    /// Always.
    #[cfg(not(feature = "postgres"))]
    pub fn parse(_: &str) -> Result<Self, OpenError> {
        Err(OpenError::WithoutPostgres)
    }

    /// The URL, for where it is used.
    #[cfg(feature = "postgres")]
    pub(crate) fn expose(&self) -> &str {
        &self.url
    }
}

/// What may be shown is made of what was understood: nobody has to find out where a password ends.
#[cfg(feature = "postgres")]
fn shown(config: &tokio_postgres::Config) -> String {
    use tokio_postgres::config::Host;
    let ports = config.get_ports();
    let place = |(at, host): (usize, &Host)| {
        let port = ports.get(at).or(ports.first()).copied().unwrap_or(5432);
        match host {
            Host::Tcp(name) => format!("{name}:{port}"),
            Host::Unix(folder) => folder.display().to_string(),
        }
    };
    let places: Vec<_> = config.get_hosts().iter().enumerate().map(place).collect();
    let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
    format!("postgres://{}/{database}", places.join(","))
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgresUrl({self})")
    }
}

#[cfg(all(test, feature = "postgres"))]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_shown_without_what_may_be_secret() {
        let cases = [
            ("postgres://me:hunter2@db.example:5433/yard?sslmode=require", "postgres://db.example:5433/yard"),
            ("postgresql://me:hunter2@db.example", "postgres://db.example:5432/me"),
            ("postgres://me:hunter2@a,b:7/yard?options=-c%20x%3Dhunter2", "postgres://a:5432,b:7/yard"),
            ("postgres://me@%2Frun%2Fpg/yard?password=hunter2", "postgres:///run/pg/yard"),
        ];
        for (url, shown) in cases {
            let location = Location::Postgres(PostgresUrl::parse(url).unwrap());
            assert_eq!(location.to_string(), shown);
            assert!(!format!("{location:?}").contains("hunter2"), "{location:?}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_url_is_said_without_its_password() {
        for url in ["postgres://me:hunter2@db:port/yard", "postgres://me:hunter2@db/yard?sslmode=maybe"] {
            let error = PostgresUrl::parse(url).unwrap_err().to_string();
            assert!(error.starts_with("the URL of the store cannot be understood: "), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
