//! Abilities of the server of the cluster.

use kube::Client;

use super::ControllerError;

/// Abilities of the server of the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClusterFacts {
    /// Minor version: 29 for Kubernetes 1.29.
    pub minor: u32,
}

impl ClusterFacts {
    /// Reads the version of the server.
    ///
    /// # Errors
    /// If the server does not respond.
    pub async fn read(client: &Client) -> Result<Self, ControllerError> {
        let version = client.apiserver_version().await?;
        Ok(Self::parse(&version.major, &version.minor))
    }

    /// Parses a version. Providers append signs, as in `29+`. A later major version supports everything.
    fn parse(major: &str, minor: &str) -> Self {
        if major.trim().parse::<u32>().is_ok_and(|major| major > 1) {
            return Self { minor: u32::MAX };
        }
        let digits: String = minor.chars().take_while(char::is_ascii_digit).collect();
        Self { minor: digits.parse().unwrap_or_default() }
    }

    /// Returns the version of the API of autoscalers that scale by several metrics.
    #[must_use]
    pub const fn autoscaling(self) -> Option<&'static str> {
        match self.minor {
            23.. => Some("v2"),
            12.. => Some("v2beta2"),
            _ => None,
        }
    }

    /// Returns `true` if init containers with `restartPolicy: Always` are sidecars (on by default from 1.29).
    #[must_use]
    pub const fn has_native_sidecars(self) -> bool {
        self.minor >= 29
    }

    /// Returns `true` if namespaces have the label `kubernetes.io/metadata.name` (from 1.21).
    #[must_use]
    pub const fn labels_namespaces(self) -> bool {
        self.minor >= 21
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_decides_what_is_supported() {
        let check = |major, minor, expected| {
            let facts = ClusterFacts::parse(major, minor);
            let actual = (facts.autoscaling(), facts.has_native_sidecars(), facts.labels_namespaces());
            assert_eq!(actual, expected, "{major}.{minor}");
        };
        check("1", "11", (None, false, false));
        check("1", "20", (Some("v2beta2"), false, false));
        check("1", "22+", (Some("v2beta2"), false, true));
        check("1", "23-eks", (Some("v2"), false, true));
        check("1", "29", (Some("v2"), true, true));
        check("2", "0", (Some("v2"), true, true));
        check("1", "", (None, false, false));
    }
}
