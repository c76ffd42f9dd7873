//! The section `cluster`: several gateways that serve the same clients.

use crate::{field_type::TextField, formats, handler::SecretString, section::section};

section! {
    /// A gateway's view of its cluster. All members have the same manifest and the same `key`.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ClusterSettings = "cluster" {
        /// Origin at which the other members reach this one, without the load balancer. They forward requests for its
        /// sessions and calls to it, with the original headers.
        pub address: String = "address",
            TextField::new(formats::http_origin)
                .pattern(r"^https?://[A-Za-z0-9._:\[\]-]+$")
                .examples(&["http://10.0.0.5:8080"]),
            required;
        /// Key that seals tokens given to clients: the same on all members, and hard to guess.
        ///
        /// Each member can then read the tokens of another.
        pub key: SecretString = "key",
            TextField::new(formats::cluster_key).secret().pattern("^.{32}").examples(&["${file:cluster.key}"]),
            required;
    }
}
