"""The package for OpenWrt: its shell scripts, and its page of LuCI under node.

`uci`, `procd` and LuCI are imitated (dist/openwrt/README.md says what that leaves open).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .needs import native, need

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "dist" / "openwrt" / "airtcp"
PAGE = ROOT / "dist" / "openwrt" / "luci-app-airtcp"
VIEW = PAGE / "htdocs/luci-static/resources/view/airtcp.js"
ACCESS = json.loads((PAGE / "root/usr/share/rpcd/acl.d/luci-app-airtcp.json").read_text())

# OpenWrt's shell is that of busybox.
SHELLS = [shell for shell in (["busybox", "ash"], ["dash"], ["sh"]) if shutil.which(shell[0])]


def translate(export: str, shell: list[str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [*(shell or SHELLS[0]), str(PACKAGE / "files" / "uci-to-toml")]
    return subprocess.run(command, input=export, capture_output=True, text=True, check=False)


def translated(export: str) -> dict[str, Any]:
    """The result, which all shells have in common."""
    results = [translate(export, shell) for shell in SHELLS]
    for result in results:
        assert result.returncode == 0, result.stderr
        assert result.stdout == results[0].stdout
    return tomllib.loads(results[0].stdout)


def quoted(value: str) -> str:
    """As `uci export` quotes."""
    return "'" + value.replace("'", "'\\''") + "'"


ROUTER = """package airtcp

config gateway 'gateway'
	option enabled '1'
	option data_path 'tc'
	option metrics '127.0.0.1:9100'

config mobile 'phones'
	list addresses '10.20.0.0/24'
	list addresses '2001:db8::/64'
	list interfaces 'phy0-ap0'
	option mechanism 'wake'
	option tunnel_packets '8'

config mobile
	option name 'cars'
	option addresses '10.21.0.0/24 10.22.0.0/24'
	option mechanism 'm-tcp-plus'
	option fifo '2 MiB'

config signals 'signals'
	option carrier '1'
	option modem_manager 'off'
	option silence '1 s'

config planned
	option mobile '10.21.0.7'
	option begin '2026-05-01T06:30:00+02:00'
	option length '40 s'

config limits 'limits'
	option flows_per_mobile '100'
"""

AS_INSTALLED = (PACKAGE / "files" / "airtcp.config").read_text()

ON_BOARD = """
config uplink
	option interface 'wwan0'
	option silence '500 ms'
"""


def test_sections_are_tables_and_options_are_keys() -> None:
    assert translated(ROUTER) == {
        "data-path": "tc",
        "metrics": {"listen": "127.0.0.1:9100"},
        "mobile": [
            {
                "name": "phones",
                "addresses": ["10.20.0.0/24", "2001:db8::/64"],
                "interfaces": ["phy0-ap0"],
                "mechanism": "wake",
                "tunnel-packets": 8,
            },
            {
                "name": "cars",
                "addresses": ["10.21.0.0/24", "10.22.0.0/24"],
                "mechanism": "m-tcp-plus",
                "fifo": "2 MiB",
            },
        ],
        "signals": {
            "carrier": True,
            "modem-manager": False,
            "silence": "1 s",
            "planned": [
                {
                    "mobile": "10.21.0.7",
                    "begin": tomllib.loads("a = 2026-05-01T06:30:00+02:00")["a"],
                    "length": "40 s",
                }
            ],
        },
        "limits": {"flows-per-mobile": 100},
    }
    assert translated(ON_BOARD) == {"uplink": [{"interface": "wwan0", "silence": "500 ms"}]}


@pytest.mark.parametrize("value", ["a'b", 'a"b\\n', "$(id) `id` ${HOME}", "*", "é ü", "-n", ""])
def test_a_value_is_the_same_text_in_both(value: str) -> None:
    word = quoted(value)
    export = f"config mobile\n\toption mechanism {word}\n\tlist addresses {word}\n"
    assert translated(export) == {"mobile": [{"mechanism": value, "addresses": [value]}]}


@pytest.mark.parametrize(
    ("export", "complaint"),
    [
        (
            "config mobile 'phones'\n\toption adresses 'x'\n",
            "config mobile 'phones': unknown option 'adresses' (known: name addresses ",
        ),
        ("config mobiles\n", "config mobiles: unknown type of section (known: gateway mobile "),
        ("config signals\n\toption carrier 'x'\n", "option 'carrier': 'x' is neither 1 nor 0"),
        (
            "config signals\n\tlist silence '1 s'\n",
            "'silence' has one value: write option",
        ),
        ("config mobile\n\tlist addresses 'a\nb'\n", "option 'addresses': a value is one line"),
        ("config gateway\n\toption metrics 'a\nb'\n", "option 'metrics': a value is one line"),
        ("config uplink\n\toption copy 'a\nb'\n", "option 'copy': a value is one line of text"),
    ],
)
def test_a_wrong_name_is_refused_and_nothing_is_written(export: str, complaint: str) -> None:
    for shell in SHELLS:
        result = translate(export, shell)
        assert (result.returncode, result.stdout) == (1, "")
        assert complaint in result.stderr


def test_the_options_are_the_keys_of_the_gateway() -> None:
    """Keys and tables are read from the documentation, which is generated from the schema."""
    page = (ROOT / "docs" / "gateway-config.md").read_text()
    tables = {
        name: set(re.findall(r"^\| `([a-z-]+)` \| (?!(?:array of )?tables? )", rows, re.M))
        for name, rows in re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", page, re.M | re.S)
    }
    # The package chooses the paths, and the table with one key is an option.
    tables["gateway"] -= {"state", "control"}
    assert tables.pop("metrics") == {"listen"}
    tables["gateway"] |= {"enabled", "metrics"}
    types = re.findall(r"\(known: (.*)\)", translate("config x\n").stderr)[0].split()
    nested = {"agent": "signals.agent", "planned": "signals.planned"}
    assert {nested.get(section, section) for section in types} == set(tables)
    for section in types:
        complaint = translate(f"config {section}\n\toption x 'x'\n").stderr
        known = re.findall(r"\(known: (.*)\)", complaint)[0].replace("_", "-").split()
        assert set(known) == tables[nested.get(section, section)]


@pytest.mark.parametrize("export", [ROUTER, ON_BOARD, AS_INSTALLED])
def test_check_config_takes_the_result(export: str, tmp_path: Path) -> None:
    binary = native()
    helps = subprocess.run([str(binary), "gateway", "--help"], capture_output=True, check=False)
    need(helps.returncode == 0, "a native binary with the gateway")
    file = tmp_path / "gateway.toml"
    file.write_text(translate(export).stdout)
    command = [str(binary), "gateway", "check-config", str(file)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


# In place of the binary: refuses a configuration with this word.
BINARY = """#!/bin/sh
echo "airtcp $*" >>"$0.log"
! grep -q impossible "$3" 2>/dev/null || exit 2
! grep -q taken "$3" 2>/dev/null
"""

Service = Callable[..., list[str]]


@pytest.fixture
def service(tmp_path: Path) -> Service:
    """Calls a function of the init script; returns the commands that it ran, which are imitated."""
    binary, log, run = tmp_path / "airtcp", tmp_path / "airtcp.log", tmp_path / "run"
    binary.write_text(BINARY)
    binary.chmod(0o755)
    stubs = f"""
uci() {{ cat {tmp_path}/export; }}
logger() {{ echo "logger $4 $5" >>{log}; }}
start() {{ echo start >>{log}; }}
stop() {{ echo stop >>{log}; }}
config_load() {{ :; }}
config_get_bool() {{ eval "$1=$ENABLED"; }}
procd_running() {{ [ "$RUNNING" = 1 ]; }}
for name in open_instance close_instance set_param add_reload_trigger; do
	eval "procd_$name() {{ echo procd_$name \\"\\$*\\" >>{log}; }}"
done
. {PACKAGE}/files/airtcp.init
program={binary} translator={PACKAGE}/files/uci-to-toml folder={run} file={run}/gateway.toml
"""

    def call(function: str, export: str, enabled: int = 1, running: int = 0) -> list[str]:
        (tmp_path / "export").write_text(export)
        log.write_text("")
        environment = os.environ | {"ENABLED": str(enabled), "RUNNING": str(running)}
        command = [*SHELLS[0], "-c", stubs + function]
        subprocess.run(command, env=environment, check=False, capture_output=True)
        return log.read_text().replace(f"{tmp_path}/", "").splitlines()

    return call


def test_the_service_starts_what_was_checked(service: Service, tmp_path: Path) -> None:
    assert service("start_service", ROUTER) == [
        "airtcp gateway check-config run/gateway.toml.new",
        "procd_open_instance ",
        "procd_set_param command airtcp gateway --config run/gateway.toml",
        "procd_set_param respawn 3600 5 0",
        "procd_set_param term_timeout 15",
        "procd_set_param stdout 1",
        "procd_set_param stderr 1",
        "procd_close_instance ",
    ]
    assert tomllib.loads((tmp_path / "run" / "gateway.toml").read_text()) == translated(ROUTER)
    assert service("start_service", ROUTER, enabled=0) == []


def test_a_wrong_configuration_is_neither_started_nor_does_it_replace_the_old_one(
    service: Service, tmp_path: Path
) -> None:
    service("start_service", ROUTER)
    before = (tmp_path / "run" / "gateway.toml").read_text()
    misspelt = ROUTER.replace("option carrier", "option carier")
    for export in (misspelt, ROUTER + "\toption idle 'impossible'\n"):
        for function, running in (("start_service", 0), ("reload_service", 1)):
            commands = "\n".join(service(function, export, running=running))
            assert "procd_" not in commands
            assert "gateway reload" not in commands
            assert "logger daemon.err not started or reloaded: " in commands
    assert (tmp_path / "run" / "gateway.toml").read_text() == before
    assert [file.name for file in (tmp_path / "run").iterdir()] == ["gateway.toml"]


def test_what_is_in_the_way_only_now_does_not_keep_the_service_from_its_attempts(
    service: Service,
) -> None:
    commands = service("start_service", ROUTER + "\toption idle 'taken'\n")
    assert "procd_set_param command airtcp gateway --config run/gateway.toml" in commands


def test_a_reload_keeps_the_process_if_it_runs(service: Service) -> None:
    assert service("reload_service", ROUTER, running=1)[-1] == "airtcp gateway reload"
    assert service("reload_service", ROUTER, running=0) == ["start"]
    assert service("reload_service", ROUTER, enabled=0, running=1) == ["stop"]


def test_shellcheck_has_nothing_to_say() -> None:
    need(shutil.which("shellcheck") is not None, "shellcheck")
    files = [PACKAGE / "files" / name for name in ("uci-to-toml", "airtcp.init")]
    subprocess.run(["shellcheck", "--shell=dash", *files], check=True)


def test_the_packages_have_the_version_of_the_workspace() -> None:
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    for package in (PACKAGE, PAGE):
        assert f"PKG_VERSION:={version}\n" in (package / "Makefile").read_text()


STATUS = {
    "groups": [
        {
            "name": "phones",
            "mechanism": "wake",
            "flows": 3,
            "longest_outage": 41.0,
            "outages": {
                "agent": {"begun": 2, "ongoing": 0, "seconds": 50.0},
                "silence": {"begun": 5, "ongoing": 1, "seconds": 250.0},
            },
        }
    ],
    "outages": [{"mobile": "10.20.0.7", "group": "phones", "cause": "silence", "seconds": 2.5}],
    "counters": {"mirror_missed_packets": 0},
    "report": None,
}
SEEN = {"flows": 312, "stalled": 25, "resumed": 22, "saved_least": 64.1, "saved_most": 70.2}
OF_GROUP = {"name": "cars", "outages_signalled": 9, "outages_silent": 5, "tcp": SEEN, "quic": SEEN}
REPORT = {"seconds": 86400.0, "groups": [OF_GROUP]}


def page(status: dict[str, Any] | None) -> dict[str, Any]:
    need(shutil.which("node") is not None, "node")
    command = ["node", str(Path(__file__).with_name("view.js")), str(VIEW)]
    state = json.dumps(status)
    result = subprocess.run(command, input=state, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    shown: dict[str, Any] = json.loads(result.stdout)
    assert shown["again"] == shown["text"], "and so after some seconds"
    return shown


def test_the_page_shows_outages_and_who_is_out_of_reach() -> None:
    text = page(STATUS)["text"]
    assert "phones wake 3 7 1 5 min 41.0 s" in text
    assert "10.20.0.7 phones silence 2.5 s" in text
    assert "too slow" not in text
    missed = page(STATUS | {"counters": {"mirror_missed_packets": 9}})["text"]
    assert "9 packets were forwarded but not seen" in missed


def test_the_page_shows_what_was_observed() -> None:
    text = page(STATUS | {"report": REPORT})["text"]
    assert "Observed for 1440 min." in text
    assert "cars TCP 312 14 25 22 64.1 s to 70.2 s" in text


def test_the_page_says_so_if_the_gateway_does_not_run() -> None:
    assert "The gateway does not run." in page(None)["text"]


def test_the_page_may_do_what_it_does_and_edits_what_there_is() -> None:
    shown = page(None)
    allowed = ACCESS["luci-app-airtcp"]["read"]["file"]
    assert set(shown["commands"]) == set(allowed)
    assert shown["shown"].pop("config") == "airtcp"
    for section, options in shown["shown"].items():
        for option in options:
            complaint = translate(f"config {section}\n\toption {option} 'x'\n").stderr
            assert "unknown" not in complaint
    menu = json.loads((PAGE / "root/usr/share/luci/menu.d/luci-app-airtcp.json").read_text())
    assert menu["admin/services/airtcp"]["action"]["path"] == VIEW.stem
