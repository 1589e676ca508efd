"""compose.yaml says what the code knows.

It is read by the few forms of YAML that it uses: no parser is among the dependencies.
"""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from worker.app import QUEUES
from worker.cli import app
from worker.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
WORKERS = {"clone", "copy_back", "dispatch", "upkeep"}
OURS = WORKERS | {"beat", "flower"}
SECRETS = "/run/secrets/"


def tree(lines: list[str]) -> dict[str, Any]:
    """Nested mappings by indentation; a value in the line of its key is text, an anchor of a mapping is left out."""
    made: dict[str, Any] = {}
    for at, line in enumerate(lines):
        depth = len(line) - len(line.lstrip())
        if depth > len(lines[0]) - len(lines[0].lstrip()):
            continue
        key, _, value = line.strip().partition(":")
        inner = []
        for below in lines[at + 1 :]:
            if len(below) - len(below.lstrip()) <= depth:
                break
            inner.append(below)
        made[key] = tree(inner) if inner else value.strip()
    return made


def words(text: str) -> list[str]:
    """The items of a list in one line."""
    assert re.fullmatch(r"\[.*\]", text), text
    return [plain or quoted for quoted, plain in re.findall(r"[\"']([^\"']*)[\"']|([^\s,\[\]\"']+)", text)]


COMPOSE = tree([
    line for line in (ROOT / "compose.yaml").read_text().splitlines() if line.strip() and line.strip()[0] != "#"
])  # fmt: skip
SERVICES = COMPOSE["services"]
SHARED = COMPOSE["x-worker"]
ENVIRONMENTS = {"all": SHARED["environment"], "flower": SERVICES["flower"]["environment"]}
PROCFILE = dict(re.findall(r"(?m)^(\w+): (.*)$", (ROOT / "Procfile").read_text()))


def test_the_services_are_those_of_the_procfile():
    assert set(SERVICES) == OURS | {"valkey"} == set(PROCFILE)
    assert {name for name, service in SERVICES.items() if service.get("<<") == "*worker"} == OURS


@pytest.mark.parametrize("name", sorted(OURS))
def test_commands_are_commands_of_sandferry(name: str):
    assert words(SERVICES[name]["command"])[0] in {command.name for command in app.registered_commands}
    assert 'ENTRYPOINT ["sandferry"]' in (ROOT / "Dockerfile").read_text()


@pytest.mark.parametrize("name", sorted(WORKERS | {"beat"}))
def test_commands_are_those_of_the_procfile(name: str):
    line = shlex.split(PROCFILE[name])
    assert words(SERVICES[name]["command"]) == line[line.index("sandferry") + 1 :]


def test_every_queue_has_a_worker():
    commands = [words(SERVICES[name]["command"]) for name in WORKERS]
    queues = [queue for command in commands for queue in command[command.index("-Q") + 1].split(",")]
    assert sorted(queues) == sorted(QUEUES)


def test_what_ends_is_started_again_and_what_is_needed_is_waited_for():
    assert (SHARED["restart"], SERVICES["valkey"]["restart"]) == ("unless-stopped", "unless-stopped")
    assert [name for name in OURS if "restart" in SERVICES[name]] == []
    assert SHARED["depends_on"] == {"valkey": "{condition: service_healthy}"}


@pytest.mark.parametrize("name", sorted(WORKERS))
def test_health_is_asked_of_the_workers_own_node(name: str):
    command = words(SERVICES[name]["command"])
    assert command[command.index("-n") + 1] == f"{name}@%h"
    health = SERVICES[name]["healthcheck"]
    assert health["<<"] == "*health"
    assert f'celery -A worker.app inspect ping -t 5 -d "{name}@$$HOSTNAME"' in health["test"]
    assert "hostname" not in SERVICES[name], "scaled workers would share a node name"


def test_health_of_the_others():
    assert COMPOSE["x-health"] == {"interval": "30s", "timeout": "20s", "start_period": "20s", "retries": "3"}
    assert words(SERVICES["valkey"]["healthcheck"]["test"]) == ["CMD", "valkey-cli", "ping"]
    assert "http://127.0.0.1:5555/healthcheck" in SERVICES["flower"]["healthcheck"]["test"]


@pytest.mark.parametrize("name", sorted(ENVIRONMENTS))
def test_variables_are_settings(name: str):
    known = {f"SANDFERRY_{field.upper()}" for field in Settings.model_fields}
    assert set(ENVIRONMENTS[name]) - known - {"<<"} == set()


def test_the_settings_that_a_container_reads(monkeypatch: pytest.MonkeyPatch):
    for variable, value in {**ENVIRONMENTS["all"], **ENVIRONMENTS["flower"]}.items():
        monkeypatch.setenv(variable, re.sub(r"\$\{\w+:-(.*)\}", r"\1", value.strip('"')))
    read = Settings()
    assert (read.broker_url, read.records_url, read.results_url) == ("redis://valkey:6379/0",) * 3
    assert (read.metrics_address, read.metrics_port, read.docker_url) == ("0.0.0.0", 9100, None)
    assert (read.keyring_file, read.flower_users_file) == (Path(SECRETS, "keyring"), Path(SECRETS, "flower_users"))


def test_secrets_are_files_only():
    assert COMPOSE["secrets"] == {
        "keyring": "{file: ./secrets/keyring.json}",
        "flower_users": "{file: ./secrets/flower-users}",
    }
    # Flower opens no sealed secret.
    assert (words(SHARED["secrets"]), words(SERVICES["flower"]["secrets"])) == (["keyring"], ["flower_users"])
    for variable, value in {**ENVIRONMENTS["all"], **ENVIRONMENTS["flower"]}.items():
        assert variable.endswith("_FILE") is value.startswith(SECRETS), variable
        assert not re.search(r"(_KEY|_TOKEN|_PASSWORD|_SECRET|_DSN)$", variable)
        assert "@" not in value, "a password in an address"


def test_what_must_outlive_a_container_is_on_its_volume():
    assert (words(SHARED["volumes"]), "state" in COMPOSE["volumes"]) == (["state:/var/lib/sandferry"], True)
    defaults = Settings()
    kept = [str(defaults.local_root), str(defaults.diagnostics_dir), *defaults.artifact_stores.values()]
    assert [place for place in kept if not place.removeprefix("file://").startswith("/var/lib/sandferry/")] == []


@pytest.mark.parametrize("service", [SHARED, SERVICES["valkey"]], ids=["ours", "valkey"])
def test_containers_can_do_little(service: dict[str, Any]):
    assert (service["read_only"], words(service["cap_drop"])) == ("true", ["ALL"])
    assert words(service["security_opt"]) == ["no-new-privileges:true"]
    assert int(service["user"].strip('"')) > 0
