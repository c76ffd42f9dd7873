//! Signatures of agent cards: JSON Web Signatures (RFC 7515) of the canonical JSON (RFC 8785) of a card.
//!
//! - `canonical`: the canonical JSON;
//! - `known`: the members that the protocol defines;
//! - [`keys`]: public keys, and the algorithms that they are for.
//!
//! The keys are those of the manifest. A URL of keys that a card names itself is not read: everyone can sign a card with
//! keys of their own.

pub mod canonical;
pub mod keys;
pub mod known;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::Value;

use self::canonical::{canonical, without_defaults, without_empty};
use self::keys::CardKey;
use self::known::known;

/// Maximum number of signatures of a card that are checked.
const MAX_SIGNATURES: usize = 8;

/// A card without a valid signature.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// The card has no signature.
    #[error("the agent card has no signature, which `signature` of the manifest requires")]
    Missing,
    /// No signature is valid.
    #[error("the agent card has no valid signature: {0}")]
    Invalid(&'static str),
    /// There are no usable keys.
    #[error("there are no keys for the signature of the agent card: {0}")]
    NoKeys(String),
}

/// A signature of a card.
#[derive(Deserialize)]
struct CardSignature {
    protected: String,
    signature: String,
}

/// The protected header of a signature.
#[derive(Deserialize)]
struct ProtectedHeader {
    alg: String,
    #[serde(default)]
    kid: Option<String>,
    /// Extensions that a verifier has to know, of which none is known here.
    #[serde(default)]
    crit: Option<Value>,
}

/// Returns a card, as it was received, in the form that it is signed in by one of the keys. Members that the signature does
/// not cover are left out.
///
/// # Errors
/// If it has no valid signature.
pub fn verified(card: &Value, keys: &[CardKey]) -> Result<Value, SignatureError> {
    let signatures = match card.get("signatures") {
        Some(Value::Array(signatures)) if !signatures.is_empty() => signatures,
        _ => return Err(SignatureError::Missing),
    };
    let forms = forms(card);
    let payloads: Vec<_> = forms.iter().map(|form| URL_SAFE_NO_PAD.encode(canonical(form))).collect();
    let mut reason = "it is malformed";
    for signature in signatures.iter().take(MAX_SIGNATURES) {
        match check(signature, &payloads, keys) {
            Ok(at) => return forms.into_iter().nth(at).ok_or(SignatureError::Missing),
            Err(of_this) => reason = of_this,
        }
    }
    Err(SignatureError::Invalid(reason))
}

/// Returns the forms that the signature may be for. Signers differ in what they leave out: some sign the card as they send
/// it, some follow the rules of the protocol, and the Python SDK leaves out all that is empty, and adds members of earlier
/// versions afterwards.
fn forms(card: &Value) -> Vec<Value> {
    let mut unsigned = card.clone();
    if let Value::Object(members) = &mut unsigned {
        members.remove("signatures");
    }
    let known = known(&unsigned);
    let of_protocol = [&unsigned, &known].map(without_defaults);
    let of_sdk = [&unsigned, &known].map(without_empty);
    [unsigned].into_iter().chain(of_protocol).chain(of_sdk).collect()
}

/// Returns the position of the payload that a signature is for, or the reason why it is not valid.
fn check(signature: &Value, payloads: &[String], keys: &[CardKey]) -> Result<usize, &'static str> {
    const MALFORMED: &str = "it is malformed";
    let CardSignature { protected, signature } =
        CardSignature::deserialize(signature).map_err(|_| MALFORMED)?;
    let header = URL_SAFE_NO_PAD.decode(&protected).map_err(|_| MALFORMED)?;
    let header: ProtectedHeader = serde_json::from_slice(&header).map_err(|_| MALFORMED)?;
    let bytes = URL_SAFE_NO_PAD.decode(signature).map_err(|_| MALFORMED)?;
    if header.crit.is_some() {
        return Err("it requires extensions (`crit`), which are not known here");
    }
    let fitting = keys.iter().filter(|key| key.fits(&header.alg, header.kid.as_deref()));
    let mut is_known = false;
    for key in fitting {
        is_known = true;
        let is_valid =
            |payload: &String| key.verify(&header.alg, format!("{protected}.{payload}").as_bytes(), &bytes);
        if let Some(at) = payloads.iter().position(is_valid) {
            return Ok(at);
        }
    }
    match is_known {
        true => Err("it does not match the card"),
        false => Err("its key (`kid`) or algorithm (`alg`) is none of those in `signature` of the manifest"),
    }
}

#[cfg(test)]
mod tests;
