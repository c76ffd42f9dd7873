//! Listening sockets of the process.

use insta::assert_snapshot;

use super::{problems, toolyard, valid};

fn listens(fields: &str) -> Vec<String> {
    valid(&toolyard(fields)).process.listen.iter().map(ToString::to_string).collect()
}

#[test]
fn one_or_several_addresses() {
    assert_eq!(listens("{}"), ["127.0.0.1:8080"]);
    assert_eq!(listens("listen: '[::]:1'"), ["[::]:1"]);
    assert_eq!(listens("listen: unix:a.sock"), ["unix:a.sock"]);
    assert_eq!(listens("listen: ['127.0.0.1:1', 'unix:/a']"), ["127.0.0.1:1", "unix:/a"]);
    assert_snapshot!(problems(&toolyard("listen: ['127.0.0.1', 'unix:///a', 80]")), @"
    tools.yaml:4:12: spec.listen[0]: `127.0.0.1` is not an address to listen on
      expected an IP address and a port, such as 127.0.0.1:8080 or [::]:8080, or a socket such as unix:/run/toolyard.sock
    tools.yaml:4:25: spec.listen[1]: `unix:///a` is not an address to listen on
      expected an IP address and a port, such as 127.0.0.1:8080 or [::]:8080, or a socket such as unix:/run/toolyard.sock
      hint: write `unix:/path` without `//`
    tools.yaml:4:38: spec.listen[2]: found a number
      expected an IP address and a port, such as 127.0.0.1:8080 or [::]:8080, or a socket such as unix:/run/toolyard.sock
    ");
    assert_snapshot!(problems(&toolyard("listen: ['127.0.0.1:1', 'unix:a', '127.0.0.1:1', 'unix:a']")), @"
    tools.yaml:4:37: spec.listen[2]: this address is already in the list
    tools.yaml:4:52: spec.listen[3]: this address is already in the list
    ");
    assert_eq!(listens("listen: ['127.0.0.1:0', '127.0.0.1:0']").len(), 2);
    assert_snapshot!(problems(&toolyard("listen: []")), @"
    tools.yaml:4:11: spec.listen: this list is empty
      expected at least one item
    ");
}

#[test]
fn addresses_of_grpc() {
    let listens = |fields: &str| {
        let process = valid(&toolyard(fields)).process;
        process.addresses().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(listens("grpc: {}"), "127.0.0.1:8080");
    assert_eq!(listens("grpc: {listen: '[::]:50051'}"), "127.0.0.1:8080 [::]:50051");
    assert_eq!(
        listens("{listen: unix:a, grpc: {listen: ['127.0.0.1:1', 'unix:b']}}"),
        "unix:a 127.0.0.1:1 unix:b"
    );
    assert_snapshot!(problems(&toolyard("grpc: {listen: ':50051', port: 1}")), @"
    tools.yaml:4:18: spec.grpc.listen: `:50051` is not an address to listen on
      expected an IP address and a port, such as 127.0.0.1:8080 or [::]:8080, or a socket such as unix:/run/toolyard.sock
    tools.yaml:4:28: spec.grpc.port: unknown field
      expected listen
    ");
    assert_snapshot!(problems(&toolyard("grpc: {listen: []}")), @"
    tools.yaml:4:18: spec.grpc.listen: this list is empty
      expected at least one item
    ");
}

#[test]
fn tls() {
    let process = valid(&toolyard("tls: {certFile: /a, keyFile: b}")).process;
    let tls = process.tls.unwrap();
    assert_eq!([tls.certificate, tls.key].map(|path| path.display().to_string()), ["/a", "b"]);
    assert_snapshot!(problems(&toolyard("tls: {certfile: a, clientCAFile: ''}")), @"
    tools.yaml:4:8: spec.tls.keyFile: this field is required
    tools.yaml:4:9: spec.tls.certfile: unknown field
      expected one of certFile, keyFile, clientCAFile
      hint: did you mean `certFile`?
    tools.yaml:4:36: spec.tls.clientCAFile: `` is not a file
      expected the path of a file
    ");
}

#[test]
fn proxies() {
    let process = valid(&toolyard("proxyProtocol: {from: [10.0.0.0/8, '::1']}")).process;
    assert_eq!(
        process.proxy_protocol.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["10.0.0.0/8", "::1/128"]
    );
    assert_snapshot!(problems(&toolyard("proxyProtocol: {from: [all, 10.0.0.0/33]}")), @"
    tools.yaml:4:26: spec.proxyProtocol.from[0]: `all` is not a network
      expected a network such as 10.0.0.0/8, or an address such as ::1
    tools.yaml:4:31: spec.proxyProtocol.from[1]: `10.0.0.0/33` is not a network
      expected a network such as 10.0.0.0/8, or an address such as ::1
    ");
    assert_snapshot!(problems(&toolyard("proxyProtocol: {from: [], version: 2}")), @"
    tools.yaml:4:25: spec.proxyProtocol.from: this list is empty
      expected at least one item
    tools.yaml:4:29: spec.proxyProtocol.version: unknown field
      expected from
    ");
}
