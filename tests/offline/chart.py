"""Lints and renders the Helm chart with Helm's own engine, and validates what comes out by Kubernetes' own schema.

Usage: chart.py CHART MANIFEST TASKS
Fails by an assertion that says what is not as it should be.
"""

import pathlib
import sys

import kubernetes_validate
import yaml
from helm_python import chart
from helm_python.errors import HelmError

folder, manifest, tasks = map(pathlib.Path, sys.argv[1:4])
VERSIONS = ["1.25", "1.31", "1.33"]
# What people combine, and what has to be in what comes out.
CASES = {
    "default": {},
    "tasks": {"tasks": {"quickstart.yaml": tasks.read_text()}},
    "pinned": {"pin": True, "clusterName": "east", "extraArgs": ["--cluster-cidr", "10.0.0.0/8"]},
    "privileged": {"privileged": True, "seccompProfile": "RuntimeDefault"},
    "monitored": {"metrics": {"address": "0.0.0.0", "podMonitor": True, "hubble": True}},
    "private": {"image": {"repository": "registry.example/flowlog", "tag": "1"}, "imagePullSecrets": ["pull"]},
    "few": {"owners": [], "tolerations": [], "nodeSelector": {}, "resources": {}, "priorityClassName": ""},
}
WRONG = [
    {"nosuchvalue": 1},
    {"tasks": {"no-suffix": "flowLogs: []"}},
    {"metrics": {"port": 0}},
    {"logPath": "relative"},
    {"image": {"repository": ""}},
]


def validate(documents):
    for document in documents:
        if document["apiVersion"] == "monitoring.coreos.com/v1":
            continue  # The operator's own.
        for version in VERSIONS:
            kubernetes_validate.validate(document, version, strict=True)


def rendered(values):
    pages = chart.Chart.load(str(folder)).render(values, name="flowlog", namespace="logging")
    texts = [text for name, text in pages.items() if not name.endswith(("NOTES.txt", ".tpl"))]
    notes = "".join(text for name, text in pages.items() if name.endswith("NOTES.txt"))
    documents = [document for text in texts for document in yaml.safe_load_all(text) if document]
    return {document["kind"]: document for document in documents}, notes


def container(documents):
    return documents["DaemonSet"]["spec"]["template"]["spec"]["containers"][0]


def main():
    said = chart.lint(str(folder), strict=True)
    assert not said.get("errors") and not [m for m in said.get("messages", []) if m.get("severity", 0) > 1], said
    out = {}
    for name, values in CASES.items():
        out[name], notes = rendered(values)
        validate(out[name].values())
        assert "flowlog status" in notes, name
    for values in WRONG:
        try:
            chart.Chart.load(str(folder)).validate_schema(values)
        except HelmError:
            continue
        raise AssertionError(f"{values} was taken")

    default = container(out["default"])
    assert default["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["BPF", "NET_ADMIN", "PERFMON"]}
    assert "privileged" not in default["securityContext"] and "--listen=127.0.0.1:9477" in default["args"]
    assert "ConfigMap" not in out["default"], "it logs nothing until somebody says what"
    assert container(out["privileged"])["securityContext"]["privileged"] is True
    assert out["tasks"]["ConfigMap"]["data"]["quickstart.yaml"].rstrip() == tasks.read_text().rstrip()
    sources = out["tasks"]["DaemonSet"]["spec"]["template"]["spec"]["volumes"][0]["projected"]["sources"]
    assert sources[0] == {"configMap": {"name": "flowlog-tasks"}} and len(sources) == 17
    # Both forms of an owner's tasks stand beside each other, under one stem; keys that are not there are allowed.
    items = [("tasks.yaml", "owner-{}.yaml"), ("tasks.v1.yaml", "owner-{}.v1.yaml"), ("pools.yaml", "owner-{}-pools.yaml")]
    for owner, source in enumerate(sources[1:]):
        assert source["configMap"]["optional"] is True, source
        found = [(item["key"], item["path"]) for item in source["configMap"]["items"]]
        assert found == [(key, path.format(owner)) for key, path in items], source
    assert "--pin=/sys/fs/bpf/flowlog" in container(out["pinned"])["args"]
    assert container(out["pinned"])["args"][-2:] == ["--cluster-cidr", "10.0.0.0/8"]
    assert "PodMonitor" in out["monitored"] and "PodMonitor" not in out["default"]
    assert container(out["monitored"])["readinessProbe"]["httpGet"]["host"] == "127.0.0.1"
    assert container(out["private"])["image"] == "registry.example/flowlog:1"
    # The plain manifest says the same as the chart does by default.
    plain = {document["kind"]: document for document in yaml.safe_load_all(manifest.read_text())}
    validate(plain.values())
    volumes = [out["DaemonSet"]["spec"]["template"]["spec"]["volumes"][0] for out in (out["default"], plain)]
    assert volumes[0] == volumes[1], volumes
    ours, theirs = container(out["default"]), container(plain)
    for key in ["securityContext", "env", "ports", "volumeMounts", "readinessProbe", "livenessProbe", "resources"]:
        assert ours[key] == theirs[key], f"{key}: {ours[key]} in the chart, {theirs[key]} in the manifest"
    print("the chart is well")


main()
