"""Lints, renders, installs and upgrades a chart with Helm's own library. Reads a request and writes a result, as JSON."""

import json
import sys

import helm_python as helm


def run(request):
    chart, values = request["chart"], request["values"]
    name, namespace = request["name"], request["namespace"]
    if request["action"] == "lint":
        report = helm.lint(chart, values, strict=True, namespace=namespace)
        return {"messages": [f"{message['severity']} {message['path']}: {message['error']}" for message in report["messages"]],
                "errors": report["errors"]}
    if request["action"] == "render":
        with helm.Chart.load(chart) as loaded:
            loaded.validate_schema(values)
            return {"files": loaded.render(values, name=name, namespace=namespace)}
    with helm.Config(kubeconfig_path=request["kubeconfig"], namespace=namespace) as config:
        if request["action"] == "uninstall":
            return {"manifest": str(config.uninstall(name))}
        action = {"install": config.install, "upgrade": config.upgrade}[request["action"]]
        options = {"create_namespace": True} if request["action"] == "install" else {}
        return {"manifest": action(chart, name, values, namespace=namespace, **options)["manifest"]}


try:
    result = run(json.load(sys.stdin))
except helm.HelmError as error:
    result = {"error": str(error)}
json.dump(result, sys.stdout)
