//! Settings that a build without the feature `full` refuses.

use insta::assert_snapshot;

use super::{problems, registry, toolyard};

#[test]
fn settings_of_a_full_build_are_refused() {
    let check = |settings: &str| problems(&toolyard(settings));
    assert_snapshot!(check("store: {url: 'postgres://me:hunter2@db/yard'}"), @"
    tools.yaml:4:16: spec.store.url: this build has no PostgreSQL
      hint: use the program of a release, or build it with `--features full`
    ");
    assert_snapshot!(check("grpc: {listen: '127.0.0.1:50051'}"), @"
    tools.yaml:4:18: spec.grpc.listen: this build has no gRPC service
      hint: use the program of a release, or build it with `--features full`
    ");
    assert_snapshot!(check("telemetry: {otlp: {endpoint: 'http://127.0.0.1:4317'}}"), @"
    tools.yaml:4:21: spec.telemetry.otlp: this build has no export of telemetry with OTLP
      hint: use the program of a release, or build it with `--features full`
    ");
    assert_snapshot!(check("builtins: {scripts: {runner: kubernetes}}"), @"
    tools.yaml:4:32: spec.builtins.scripts.runner: this build has no runner in Kubernetes
      hint: use the program of a release, or build it with `--features full`
    ");
    assert_snapshot!(check("bus: {url: 'nats://me:hunter2@a:4222'}"), @"
    tools.yaml:4:14: spec.bus.url: this build has no message bus
      hint: use the program of a release, or build it with `--features full`
    ");
    let grpc = registry("  - {name: users, type: grpc, grpcConfig: {endpoint: 'a:1'}}\n");
    assert_snapshot!(problems(&grpc), @"
    tools.yaml:6:5: spec.handlers[0]: this build has no gRPC
      hint: use the program of a release, or build it with `--features full`
    ");
}
