use std::sync::{Arc, Mutex};
use std::time::Duration;

use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};
use serde_json::json;
use tokio::task::JoinSet;
use toolyard_manifest::{AgentCardSource, AgentSettings, CardKeys, EndpointUrl};
use toolyard_net::client::HttpClient;
use toolyard_testing::memory_store::MemoryStore;
use toolyard_testing::upstream::{ReceivedRequest, ScriptedReply, TestUpstream};
use toolyard_testing::wait;

use super::*;
use crate::agents::{Agents, OwnAgent};
use crate::client::AgentClient;

/// A signer of cards.
struct Signer {
    pair: EcdsaKeyPair,
}

impl Signer {
    fn new() -> Self {
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).expect("a key");
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, key.as_ref(), &random);
        Self { pair: pair.expect("a key") }
    }

    /// Returns the public key with these further members.
    fn key(&self, more: Value) -> Value {
        let point = self.pair.public_key().as_ref();
        let [x, y] = [&point[1..33], &point[33..]].map(|part| URL_SAFE_NO_PAD.encode(part));
        let mut key = json!({"kty": "EC", "crv": "P-256", "kid": "k1", "x": x, "y": y});
        key.as_object_mut().expect("a key").extend(more.as_object().cloned().unwrap_or_default());
        key
    }

    /// Returns a signature of a text with this header.
    fn signature(&self, header: &Value, payload: &str) -> Value {
        let protected = URL_SAFE_NO_PAD.encode(header.to_string());
        let message = format!("{protected}.{}", URL_SAFE_NO_PAD.encode(payload));
        let signature = self.pair.sign(&SystemRandom::new(), message.as_bytes()).expect("a signature");
        json!({"protected": protected, "signature": URL_SAFE_NO_PAD.encode(signature)})
    }
}

fn card() -> Value {
    json!({
        "name": "Signed", "description": "", "version": "1", "skills": [], "iconUrl": "",
        "capabilities": {"streaming": false, "extensions": []}, "supportedInterfaces": [],
        "defaultInputModes": ["text/plain"], "defaultOutputModes": [],
    })
}

fn signed(card: &Value, signatures: &[Value]) -> Value {
    let mut card = card.clone();
    card["signatures"] = json!(signatures);
    card
}

fn header() -> Value {
    json!({"alg": "ES256", "typ": "JOSE", "kid": "k1"})
}

fn outcome(card: &Value, keys: &[Value]) -> String {
    let keys: Vec<_> = keys.iter().filter_map(|key| CardKey::parse(key.as_object()?)).collect();
    verified(card, &keys).map_or_else(|error| error.to_string(), |_| "valid".to_owned())
}

#[test]
fn all_forms_of_a_card_are_accepted() {
    let signer = Signer::new();
    for form in [card(), without_defaults(&card()), without_empty(&card())] {
        let signature = signer.signature(&header(), &canonical(&form));
        assert_eq!(outcome(&signed(&card(), &[signature]), &[signer.key(json!({}))]), "valid");
    }
}

#[test]
fn members_that_are_not_signed_are_left_out() {
    let signer = Signer::new();
    let signature = signer.signature(&header(), &canonical(&without_empty(&card())));
    let mut extended = signed(&card(), &[signature]);
    extended["url"] = json!("http://evil.example/");
    extended["capabilities"]["stateTransitionHistory"] = json!(true);
    let key = CardKey::parse(signer.key(json!({})).as_object().expect("an object")).expect("a key");
    assert_eq!(verified(&extended, &[key]), Ok(without_empty(&card())));
}

#[test]
fn other_signatures_are_refused() {
    let (signer, other) = (Signer::new(), Signer::new());
    let text = canonical(&without_defaults(&card()));
    let (key, signature) = (|| signer.key(json!({})), |header: Value| signer.signature(&header, &text));
    let check = |card: Value, keys: &[Value], expected: &str| {
        let found = outcome(&card, keys);
        assert!(found.ends_with(expected), "{found} is not {expected}");
    };
    let one = |signature: Value| signed(&card(), &[signature]);
    let mut changed = one(signature(header()));
    changed["description"] = json!("Gives away secrets.");
    check(changed, &[key()], "it does not match the card");
    check(one(other.signature(&header(), &text)), &[key()], "it does not match the card");
    check(one(other.signature(&header(), &text)), &[key(), other.key(json!({}))], "valid");
    // Several signatures support the change of a key.
    let both = [other.signature(&header(), &text), signature(header())];
    check(signed(&card(), &both), &[key()], "valid");
    let no_key = "is none of those in `signature` of the manifest";
    check(one(signature(json!({"alg": "ES256", "kid": "k2"}))), &[key()], no_key);
    check(one(signature(json!({"alg": "none", "kid": "k1"}))), &[key()], no_key);
    check(one(signature(json!({"alg": "HS256", "kid": "k1"}))), &[key()], no_key);
    check(one(signature(header())), &[signer.key(json!({"alg": "ES384"}))], no_key);
    check(one(signature(header())), &[signer.key(json!({"use": "enc"}))], no_key);
    check(one(signature(json!({"alg": "ES256"}))), &[key()], "valid");
    let critical = json!({"alg": "ES256", "kid": "k1", "crit": ["b64"], "b64": false});
    check(one(signature(critical)), &[key()], "which are not known here");
    check(one(json!({"protected": "x"})), &[key()], "it is malformed");
    check(one(json!({"protected": "!", "signature": ""})), &[key()], "it is malformed");
    let missing = "the agent card has no signature, which `signature` of the manifest requires";
    check(card(), &[key()], missing);
    check(signed(&card(), &[]), &[key()], missing);
    check(json!([]), &[key()], missing);
    let padding = json!({"protected": "x", "signature": "y"});
    let many: Vec<_> = vec![padding; 8].into_iter().chain([signature(header())]).collect();
    check(signed(&card(), &many), &[key()], "it is malformed");
}

/// The example of RFC 8037, appendix A.4.
#[test]
fn signature_of_the_rfc_is_valid() {
    let key = json!({"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"});
    let key = CardKey::parse(key.as_object().expect("an object")).expect("a key");
    let message = b"eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc";
    let signature = "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
    let signature = URL_SAFE_NO_PAD.decode(signature).expect("a signature");
    assert!(key.fits("EdDSA", None) && !key.fits("ES256", None));
    assert!(key.verify("EdDSA", message, &signature));
    assert!(!key.verify("EdDSA", b"another message", &signature));
    let random = SystemRandom::new();
    let pair = Ed25519KeyPair::from_pkcs8(Ed25519KeyPair::generate_pkcs8(&random).expect("a key").as_ref());
    let foreign = pair.expect("a key").sign(message);
    assert!(!key.verify("EdDSA", message, foreign.as_ref()));
}

/// The example of RFC 7515, appendix A.2.
#[test]
fn signature_by_rsa_is_valid() {
    let key = json!({"keys": [{"kty": "RSA", "e": "AQAB", "n": "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"}, {"kty": "new"}]});
    let keys = CardKey::of_set(key.to_string().as_bytes()).expect("a set");
    let message = b"eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
    let signature = "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw";
    let signature = URL_SAFE_NO_PAD.decode(signature).expect("a signature");
    let [key] = keys.as_slice() else { panic!("{keys:?}") };
    assert!(key.verify("RS256", message, &signature));
    assert!(!key.verify("PS256", message, &signature) && !key.verify("ES256", message, &signature));
}

#[tokio::test]
async fn agent_whose_signature_is_wrong_is_not_available() {
    let signer = Signer::new();
    let signature = signer.signature(&header(), &canonical(&without_defaults(&card())));
    let valid = signed(&card(), &[signature]);
    let mut forged = valid.clone();
    forged["skills"] = json!([{"id": "forged"}]);
    let served = Arc::new(Mutex::new(forged.to_string()));
    let (serving, set) = (served.clone(), json!({"keys": [signer.key(json!({}))]}).to_string());
    let upstream = TestUpstream::start(move |request: &ReceivedRequest| {
        let is_set = request.head.text().starts_with("GET /jwks.json ");
        let text = if is_set { set.clone() } else { serving.lock().expect("a lock").clone() };
        ScriptedReply::json(&text)
    });
    let url = |path: &str| EndpointUrl::parse(&format!("http://{}{path}", upstream.address)).expect("a URL");
    let keys = CardKeys { url: Some(url("/jwks.json")), keys: Vec::new() };
    let source = AgentCardSource { url: url(""), endpoint: None, signature: Some(keys), headers: Vec::new() };
    let settings =
        AgentSettings { cards: vec![source], refresh: Duration::from_millis(5), ..AgentSettings::default() };
    let client = AgentClient::new(HttpClient::without_roots);
    let agents = Agents::new(OwnAgent::default(), Arc::<MemoryStore>::default(), client);
    agents.enable(Some(Arc::new(settings)));
    let (following, mut followers) = (agents.clone(), JoinSet::new());
    followers.spawn(async move { following.follow().await });
    let told = || {
        let agent = agents.directory().find("signed")?;
        let skills: Vec<_> = agent.card.skills.iter().map(|skill| skill.id.clone()).collect();
        Some((skills, agent.problem.as_deref().map(str::to_owned)))
    };
    let wrong = "the agent card has no valid signature: it does not match the card";
    let is_refused =
        || told().is_some_and(|(skills, problem)| skills.is_empty() && problem.as_deref() == Some(wrong));
    wait::until_async("the forged card is refused", is_refused).await;
    *served.lock().expect("a lock") = valid.to_string();
    wait::until_async("the valid card is used", || told() == Some((Vec::new(), None))).await;
    let mut unsigned = valid;
    unsigned.as_object_mut().expect("a card").remove("signatures");
    *served.lock().expect("a lock") = unsigned.to_string();
    let missing = "the agent card has no signature, which `signature` of the manifest requires";
    let is_missing = || told().is_some_and(|(_, problem)| problem.as_deref() == Some(missing));
    wait::until_async("a card without a signature is refused", is_missing).await;
}
