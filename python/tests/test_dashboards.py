"""The alerts and the dashboard of the gateway: their metrics exist, and the alerts fire.

Prometheus and Grafana's own types read them. That each panel shows something of a running gateway
is a test of crates/cli (`gateway::prometheus`).
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from tests.needs import need

ROOT = Path(__file__).parents[2]
RULES = ROOT / "dist" / "prometheus" / "airtcp.rules.yml"
DASHBOARD = ROOT / "dist" / "grafana" / "airtcp-gateway.json"
METRICS = ROOT / "docs" / "gateway-metrics.md"
"""What `airtcp gateway metrics --markdown` prints; a test of crates/gateway compares both."""

NAME = re.compile(r"\bairtcp_gateway_\w+")
SAMPLES = """
rule_files: [{rules}]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - series: up{{job="airtcp-gateway", instance="r:4711"}}
        values: 1x5 0x60
      - series: airtcp_gateway_ongoing_outages{{instance="r:4711", group="cars", cause="agent"}}
        values: 0x5 2x60
      - series: airtcp_gateway_resets_total{{instance="r:4711", group="cars", mechanism="m-tcp"}}
        values: 0x30 1x30
    alert_rule_test:
      - alertname: AirtcpGatewayDown
        eval_time: 5m
        exp_alerts: []
      - alertname: AirtcpGatewayDown
        eval_time: 8m
        exp_alerts:
          - exp_labels: {{ job: airtcp-gateway, instance: "r:4711", severity: critical }}
            exp_annotations:
              summary: "r:4711: no gateway"
              description: >-
                Packets are forwarded without protection. What M-TCP+ and holdover hold waits for
                the next start.
      - alertname: AirtcpGatewayLongOutage
        eval_time: 30m
        exp_alerts: []
      - alertname: AirtcpGatewayLongOutage
        eval_time: 40m
        exp_alerts:
          - exp_labels: {{ instance: "r:4711", group: cars, severity: warning }}
            exp_annotations:
              summary: "r:4711: mobiles of cars have been away for 30 minutes"
              description: "`airtcp gateway status` lists them. 2 were away at every moment."
      - alertname: AirtcpGatewayConnectionsLost
        eval_time: 20m
        exp_alerts: []
      - alertname: AirtcpGatewayConnectionsLost
        eval_time: 35m
        exp_alerts:
          - exp_labels: {{ instance: "r:4711", group: cars, severity: warning }}
            exp_annotations:
              summary: "r:4711: connections were reset or left to their hosts"
              description: >-
                Their mobile was away for longer than max-down, a restart could not continue them,
                or /run is full.
"""


def known() -> set[str]:
    return set(re.findall(r"^\| `(airtcp_gateway_\w+)`", METRICS.read_text(), re.MULTILINE))


def expressions() -> str:
    """Those of the dashboard, its variables' too."""
    dashboard = json.loads(DASHBOARD.read_text())
    panels = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    queries = [v["query"]["query"] for v in dashboard["templating"]["list"] if v["type"] == "query"]
    return "\n".join(panels + queries)


def test_every_metric_exists() -> None:
    assert len(known()) > 50
    for text in (RULES.read_text(), expressions()):
        used = set(NAME.findall(text))
        assert used
        assert used <= known(), used - known()


def leaves(value: object, place: str = "") -> dict[str, object]:
    """The values of a dashboard by their places."""
    match value:
        case dict():
            inside = {f"{place}.{key}": item for key, item in value.items()}
        case list():
            inside = {f"{place}[{n}]": item for n, item in enumerate(value)}
        case _:
            return {place: value}
    return {at: leaf for below, item in inside.items() for at, leaf in leaves(item, below).items()}


def unknown_to_grafana(dashboard: dict[str, object]) -> set[str]:
    """The places whose values Grafana's types do not keep."""
    register_default_plugins()
    kept = json.loads(JSONEncoder(sort_keys=True).encode(Dashboard.from_json(dashboard)))
    return {place for place, _ in leaves(dashboard).items() - leaves(kept).items()}


def test_grafana_knows_every_key_of_the_dashboard() -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    assert unknown_to_grafana(dashboard) == set()
    panel = dashboard["panels"][0]
    panel["targets"][0]["exprr"] = "up"
    panel["fieldConfig"]["defaults"]["units"] = "s"
    wrong = {".panels[0].targets[0].exprr", ".panels[0].fieldConfig.defaults.units"}
    assert unknown_to_grafana(dashboard) == wrong


def promtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    tool = shutil.which("promtool", path=f"{ROOT}/target/tools") or shutil.which("promtool")
    need(tool is not None, "promtool (package prometheus)")
    return subprocess.run([str(tool), *arguments], capture_output=True, text=True, check=False)


def test_promtool_accepts_the_rules() -> None:
    checked = promtool("check", "rules", str(RULES))
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_promtool_accepts_the_expressions_of_the_dashboard(tmp_path: Path) -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    rules = [
        {
            "record": f"panel:{panel['id']}:{target['refId']}",
            "expr": target["expr"].replace("$__rate_interval", "5m"),
        }
        for panel in dashboard["panels"]
        for target in panel["targets"]
    ]
    file = tmp_path / "panels.yml"
    file.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    checked = promtool("check", "rules", str(file))
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_alerts_fire(tmp_path: Path) -> None:
    samples = tmp_path / "samples.yml"
    samples.write_text(SAMPLES.format(rules=RULES))
    tested = promtool("test", "rules", str(samples))
    assert tested.returncode == 0, tested.stdout + tested.stderr
