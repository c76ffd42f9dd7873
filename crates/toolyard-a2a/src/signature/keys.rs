//! Public keys as JSON Web Keys (RFC 7517), and the algorithms that they are for.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey, VerificationAlgorithm,
};
use serde_json::{Map, Value};

/// Maximum number of keys of a set that are read.
const MAX_KEYS: usize = 64;

/// A public key.
#[derive(Clone)]
pub struct CardKey {
    id: Option<String>,
    /// The only algorithm that the key is for, if it names one.
    algorithm: Option<String>,
    material: KeyMaterial,
}

#[derive(Clone)]
enum KeyMaterial {
    /// A point, and the algorithm of its curve.
    Curve(&'static str, Vec<u8>),
    /// Modulus and exponent.
    Rsa(Vec<u8>, Vec<u8>),
}

/// Algorithms of keys on curves, by the type and the curve of the key.
const CURVES: [(&str, &str, &str); 3] =
    [("EC", "P-256", "ES256"), ("EC", "P-384", "ES384"), ("OKP", "Ed25519", "EdDSA")];

/// Algorithms of RSA keys.
const RSA: [(&str, &RsaParameters); 6] = [
    ("RS256", &RSA_PKCS1_2048_8192_SHA256),
    ("RS384", &RSA_PKCS1_2048_8192_SHA384),
    ("RS512", &RSA_PKCS1_2048_8192_SHA512),
    ("PS256", &RSA_PSS_2048_8192_SHA256),
    ("PS384", &RSA_PSS_2048_8192_SHA384),
    ("PS512", &RSA_PSS_2048_8192_SHA512),
];

impl CardKey {
    /// Returns a key; `None` if it is not one for signatures by an algorithm that is known here.
    #[must_use]
    pub fn parse(key: &Map<String, Value>) -> Option<Self> {
        let text = |name: &str| key.get(name).and_then(Value::as_str);
        let bytes = |name: &str| URL_SAFE_NO_PAD.decode(text(name)?.trim_end_matches('=')).ok();
        if text("use").is_some_and(|use_of| use_of != "sig") {
            return None;
        }
        let material = match text("kty")? {
            "RSA" => KeyMaterial::Rsa(bytes("n")?, bytes("e")?),
            kind => {
                let curve = text("crv")?;
                let (.., algorithm) = CURVES.iter().find(|(of, name, _)| *of == kind && *name == curve)?;
                let point = match kind {
                    "EC" => [vec![4], bytes("x")?, bytes("y")?].concat(),
                    _ => bytes("x")?,
                };
                KeyMaterial::Curve(algorithm, point)
            }
        };
        let [id, algorithm] = ["kid", "alg"].map(|name| text(name).map(str::to_owned));
        Some(Self { id, algorithm, material })
    }

    /// Returns the usable keys of a JSON Web Key Set; `None` if the text is none.
    #[must_use]
    pub fn of_set(text: &[u8]) -> Option<Vec<Self>> {
        let set: Value = serde_json::from_slice(text).ok()?;
        let keys = set.get("keys")?.as_array()?.iter().take(MAX_KEYS);
        Some(keys.filter_map(|key| Self::parse(key.as_object()?)).collect())
    }

    /// Returns true if a signature by this algorithm and with this id of a key may be by this key.
    #[must_use]
    pub fn fits(&self, algorithm: &str, id: Option<&str>) -> bool {
        let is_named = match (id, &self.id) {
            (Some(id), Some(own)) => id == own,
            _ => true,
        };
        let is_for = match &self.material {
            KeyMaterial::Curve(own, _) => *own == algorithm,
            KeyMaterial::Rsa(..) => RSA.iter().any(|(name, _)| *name == algorithm),
        };
        is_named && is_for && self.algorithm.as_deref().is_none_or(|own| own == algorithm)
    }

    /// Returns true if this is a signature of a message by this key.
    #[must_use]
    pub fn verify(&self, algorithm: &str, message: &[u8], signature: &[u8]) -> bool {
        match &self.material {
            KeyMaterial::Curve(own, point) => {
                let curve: &dyn VerificationAlgorithm = match *own {
                    "ES256" => &ECDSA_P256_SHA256_FIXED,
                    "ES384" => &ECDSA_P384_SHA384_FIXED,
                    _ => &ED25519,
                };
                *own == algorithm && UnparsedPublicKey::new(curve, point).verify(message, signature).is_ok()
            }
            KeyMaterial::Rsa(n, e) => {
                RSA.iter().find(|(name, _)| *name == algorithm).is_some_and(|(_, parameters)| {
                    RsaPublicKeyComponents { n, e }.verify(parameters, message, signature).is_ok()
                })
            }
        }
    }
}

impl fmt::Debug for CardKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CardKey").field("id", &self.id).finish_non_exhaustive()
    }
}
