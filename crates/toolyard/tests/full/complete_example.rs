//! The complete example of the contract, unchanged, with servers at its own addresses: `api.example.com` over HTTPS, a
//! gRPC server behind a `serviceRef`, and an MCP server on SSE. They have a network and a hosts file of their own.

use std::fs;

use insta::assert_snapshot;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tempfile::TempDir;
use toolyard_testing::peers::{self, peer, root};
use toolyard_testing::process::run;
use toolyard_testing::scripted_server::script;

#[test]
fn complete_example_is_served_whole() {
    let folder = TempDir::new().unwrap();
    let write = |name: &str, text: String| fs::write(folder.path().join(name), text).unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "authority");
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["api.example.com".to_owned()]).unwrap();
    write("ca.pem", issuer.pem());
    write("api.pem", params.signed_by(&key, &issuer).unwrap().pem());
    write("api-key.pem", key.serialize_pem());

    let mut command = peers::command("unshare", folder.path());
    command.args(["--user", "--map-root-user", "--net", "--mount", "--pid", "--fork", "--kill-child", "sh"]);
    command.arg(script("complete_example.sh")).arg(env!("CARGO_BIN_EXE_toolyard"));
    command.arg(root().join("crates/toolyard-manifest/fixtures/complete-example.yaml"));
    command.arg(peer("")).arg(script(""));
    command.arg(root().join("crates/toolyard-grpc/proto/omnia/tools/v1/tools.proto"));
    assert_snapshot!(run(command.current_dir(folder.path())), @r#"
    Toolyard 0.1.0: Ready. 4 of 4 handlers ready, 17 of 17 tools available.
    $ toolyard call calculate expression=1+2
    {"value": 3}
    $ toolyard call get_user user_id=7
    {"id": "7", "tool": "get_user", "auth": null}
    $ toolyard call echo message=hello
    Echo: hello
    $ toolyard call searchProducts query=chair
    {"path": "/products?query=chair"}
    $ toolyard call getProductDetails id=9
    {"path": "/products/9"}
    --- exit status 0
    "#);
}
