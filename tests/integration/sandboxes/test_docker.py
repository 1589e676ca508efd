"""What only a Docker engine can get wrong."""

import threading
import time

import docker
import pytest
import requests
from docker.errors import DockerException, NotFound

from tests.doubles.docker_proxy import AFTER, BEFORE, COALESCE, CUT_STREAM, SILENT, DockerProxy
from tests.integration.sandboxes.conftest import docker_settings, release_all
from tests.integration.sandboxes.helpers import running, soon, wait_for
from worker.failures.classify import classify
from worker.failures.model import Category, EndedBy, InvalidRequest, OperationFailed
from worker.sandboxes.base import LABEL_REQUEST, LABEL_RUN, Spec
from worker.sandboxes.deadline import Deadline
from worker.sandboxes.docker.container import CAPABILITIES, LAYOUT, container_config, container_name, host_config
from worker.sandboxes.docker.provider import DockerProvider

pytestmark = pytest.mark.docker


@pytest.fixture
def api(docker_engine):
    client = docker.APIClient(docker_engine)
    yield client
    client.close()


@pytest.fixture
def made(docker_provider, labels):
    return docker_provider.create(Spec(), labels, deadline=soon())


@pytest.fixture
def through(docker_engine, git_image):
    """A provider behind a proxy that breaks what it is told to."""
    proxies = []

    def build(**breaks):
        proxy = DockerProxy(docker_engine, **breaks).__enter__()
        proxies.append(proxy)
        return proxy, DockerProvider(docker_settings(proxy.url, git_image, api_version="1.41"))

    yield build
    for proxy in proxies:
        proxy.__exit__()


class TestFullDisk:
    """Nothing of ours can be written down, so nothing is run; whoever asks hears why."""

    @pytest.fixture
    def full(self, api, docker_provider, docker_engine, git_image, labels):
        settings = docker_settings(docker_engine, git_image)
        limits = {**host_config(Spec(), settings), "Tmpfs": {f"{LAYOUT.scratch}/exec": "size=64k,mode=700"}}
        config = {**container_config(Spec(), labels, settings), "HostConfig": limits}
        container = api.create_container_from_config(config, container_name(labels))["Id"]
        api.start(container)
        sandbox = docker_provider.connect(container, labels, deadline=soon())
        sandbox.run(["sh", "-c", f"cat /dev/zero >{LAYOUT.scratch}/exec/fill"], deadline=soon())
        return sandbox

    @pytest.mark.parametrize(
        "call",
        [
            lambda sandbox: sandbox.run(["touch", "/tmp/ran"], deadline=soon()),
            lambda sandbox: list(sandbox.read("/etc/hostname", deadline=soon())),
        ],
        ids=["run", "read"],
    )
    def test_it_is_named(self, full, api, call):
        with pytest.raises(OperationFailed) as caught:
            call(full)
        match = classify(caught.value.failure)
        assert (match.category, match.reason) == (Category.RESOURCE_EXHAUSTED, "disk_full")
        looked = api.exec_create(full.id, ["ls", "/tmp"])["Id"]
        assert b"ran" not in api.exec_start(looked)


class TestAmbiguousCreate:
    @pytest.mark.parametrize("faults", [[BEFORE], [AFTER], [BEFORE, AFTER], [AFTER, AFTER]])
    def test_ends_with_one_sandbox(self, through, docker_provider, labels, faults):
        proxy, provider = through(containers__create=faults)
        sandbox = provider.create(Spec(), labels, deadline=soon())
        assert sandbox.run(["echo", "works"], deadline=soon()).stdout == b"works\n"
        assert [found.id for found in docker_provider.find(labels, deadline=soon())] == [sandbox.id]
        assert sum("containers/create" in line for line in proxy.seen) <= 2

    def test_an_answer_that_never_comes(self, through, docker_provider, labels, monkeypatch):
        monkeypatch.setattr("worker.sandboxes.docker.engine.CALL", 1.0)
        _, provider = through(containers__create=[SILENT])
        sandbox = provider.create(Spec(), labels, deadline=soon())
        assert [found.id for found in docker_provider.find(labels, deadline=soon())] == [sandbox.id]

    def test_a_start_whose_answer_was_lost(self, through, labels, docker_provider):
        proxy, provider = through(start=[AFTER])
        assert provider.create(Spec(), labels, deadline=soon()).run(["true"], deadline=soon()).ok
        assert len(docker_provider.find(labels, deadline=soon())) == 1
        assert sum("containers" in line and "/start" in line for line in proxy.seen) == 2

    def test_two_at_once_make_one(self, docker_provider, labels):
        made = []
        threads = [
            threading.Thread(target=lambda: made.append(docker_provider.create(Spec(), labels, deadline=soon())))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(made) == 4
        assert len({sandbox.id for sandbox in made}) == 1

    def test_a_name_that_another_container_has(self, api, docker_provider, git_image, labels):
        foreign = api.create_container(git_image, ["true"], name=container_name(labels))["Id"]
        try:
            with pytest.raises(OperationFailed) as failed:
                docker_provider.create(Spec(), labels, deadline=soon())
            assert failed.value.failure.reason == "name_taken"
            assert api.inspect_container(foreign)["Id"] == foreign
        finally:
            api.remove_container(foreign)

    def test_a_dead_one_is_replaced(self, api, docker_provider, made, labels):
        api.kill(made.id)
        again = docker_provider.create(Spec(), labels, deadline=soon())
        assert again.id != made.id
        assert [found.id for found in docker_provider.find(labels, deadline=soon())] == [again.id]

    def test_an_image_that_is_not_there(self, docker_engine, labels):
        provider = DockerProvider(docker_settings(docker_engine, "sandferry-test:absent"))
        with pytest.raises(OperationFailed) as failed:
            provider.create(Spec(), labels, deadline=soon())
        failure = failed.value.failure
        assert (failure.category, failure.reason, failure.http_status) == (Category.NOT_FOUND, "image_missing", 404)
        assert "absent" not in str(failed.value)

    def test_an_image_that_settings_allow(self, docker_engine, git_image, busybox_image, labels):
        provider = DockerProvider(docker_settings(docker_engine, git_image, allowed_images=("sandferry-test-*",)))
        sandbox = provider.create(Spec(image=busybox_image), labels, deadline=soon())
        try:
            assert sandbox.run(["git", "--version"], deadline=soon()).exit_code == 127
        finally:
            release_all(provider, labels)


class TestStream:
    def test_a_first_frame_that_comes_with_the_header(self, through, made, labels):
        _, provider = through(start=[COALESCE] * 5)
        sandbox = provider.connect(made.id, labels, deadline=soon())
        for number in range(4):
            assert sandbox.run(["echo", str(number)], deadline=soon()).stdout == f"{number}\n".encode()

    def test_a_cut_is_no_end(self, through, made, labels):
        proxy, provider = through()
        sandbox = provider.connect(made.id, labels, deadline=soon())
        proxy.breaks["/start"] = [CUT_STREAM]
        with pytest.raises(OperationFailed) as failed:
            sandbox.run(["sh", "-c", "echo ready; sleep 302; echo never seen"], deadline=soon())
        failure = failed.value.failure
        assert (failure.category, failure.reason) == (Category.TRANSIENT_NETWORK, "stream_cut")
        assert not running(made, "sleep 302")

    def test_a_cut_while_output_flows(self, through, made, labels):
        proxy, provider = through()
        sandbox = provider.connect(made.id, labels, deadline=soon())
        proxy.breaks["/start"] = [CUT_STREAM]
        with pytest.raises(OperationFailed) as failed:
            sandbox.run(["yes", "ready303"], deadline=soon(), output_limit=10**9)
        assert failed.value.failure.reason == "stream_cut"
        assert not running(made, "ready303")

    def test_a_start_that_never_arrives_runs_nothing_later(self, through, made, labels):
        proxy, provider = through()
        sandbox = provider.connect(made.id, labels, deadline=soon())
        proxy.breaks["/start"] = [BEFORE]
        with pytest.raises((requests.RequestException, DockerException)) as raised:
            sandbox.run(["sleep", "304"], deadline=soon())
        assert provider.facts(raised.value, operation="clone", stage="git").exception.startswith("requests.")
        assert not running(made, "sleep 304")


class TestBehindOurBack:
    def test_a_removed_container_is_lost(self, api, made):
        api.remove_container(made.id, force=True)
        with pytest.raises(OperationFailed) as failed:
            made.run(["true"], deadline=soon())
        assert failed.value.failure.reason == "sandbox_lost"

    @pytest.mark.parametrize("end", ["kill", "remove"])
    def test_while_a_command_runs(self, api, made, end):
        def end_it():
            wait_for(lambda: any("sleep 305" in " ".join(row) for row in api.top(made.id)["Processes"]))
            api.kill(made.id) if end == "kill" else api.remove_container(made.id, force=True)

        thread = threading.Thread(target=end_it)
        thread.start()
        with pytest.raises(OperationFailed) as failed:
            made.run(["sleep", "305"], deadline=soon())
        thread.join()
        assert failed.value.failure.category is Category.SANDBOX_LOST

    def test_a_layout_that_was_taken_away_is_made_again(self, docker_provider, made, labels):
        made.run(["rm", "-rf", "/repos", made.layout.scratch], deadline=soon(), cwd="/")
        again = docker_provider.connect(made.id, labels, deadline=soon())
        assert again.run(["ls", "/repos"], deadline=soon()).ok

    def test_a_layout_that_leads_elsewhere_is_refused(self, docker_provider, made, labels):
        made.run(["sh", "-c", "rmdir /repos && ln -s /etc /repos"], deadline=soon(), cwd="/")
        with pytest.raises(OperationFailed) as failed:
            docker_provider.connect(made.id, labels, deadline=soon())
        assert failed.value.failure.reason == "layout_invalid"


HOSTILE = {
    "no shell": "rm -f /bin/sh /usr/bin/sh",
    "a shell that never ends": "cp /bin/sh /bin/real; printf '#!/bin/real\nwhile :; do echo y; done\n' >/bin/sh",
    "a link for a layout": "rm -rf /repos; ln -s /tmp /repos",
    "no processes left": "i=0; while [ $i -lt 600 ]; do sleep 500 & i=$((i + 1)); done",
}


class TestHostileInside:
    @pytest.mark.parametrize("script", HOSTILE.values(), ids=HOSTILE)
    def test_nothing_inside_can_keep_it(self, docker_provider, made, labels, script):
        made.run(["sh", "-c", script], deadline=soon(20), cwd="/")
        began = time.monotonic()
        made.keep_alive(60, deadline=soon(10))
        assert [found.id for found in docker_provider.find(labels, deadline=soon(10))] == [made.id]
        assert docker_provider.end(made.id, labels, deadline=soon(20)) is True
        assert docker_provider.find(labels, deadline=soon(10)) == []
        assert time.monotonic() - began < 15

    def test_one_that_stopped_is_ended_too(self, api, docker_provider, made, labels):
        """As after a reboot of the host: the container is there, its files with it, and does not run."""
        api.kill(made.id)
        wait_for(lambda: not api.inspect_container(made.id)["State"]["Running"])
        with pytest.raises(OperationFailed) as failed:
            made.keep_alive(60, deadline=soon())
        assert failed.value.failure.category is Category.SANDBOX_LOST
        assert docker_provider.end(made.id, labels, deadline=soon()) is True
        with pytest.raises(NotFound):
            api.inspect_container(made.id)


class TestForeign:
    @pytest.mark.parametrize("foreign_labels", [{}, {"com.example": "database"}, {LABEL_REQUEST: "x"}])
    def test_a_container_without_our_labels_is_refused(self, api, docker_provider, git_image, foreign_labels):
        foreign = api.create_container(git_image, ["sleep", "60"], labels=foreign_labels)["Id"]
        try:
            for wanted in ({}, {LABEL_RUN: "run"}, foreign_labels):
                with pytest.raises(InvalidRequest, match="sandbox_id: foreign_sandbox"):
                    docker_provider.connect(foreign, wanted, deadline=soon())
            assert foreign not in [found.id for found in docker_provider.find({}, deadline=soon())]
        finally:
            api.remove_container(foreign, force=True)


class TestHardening:
    def effective(self, sandbox):
        status = sandbox.run(["cat", "/proc/self/status"], deadline=soon()).stdout.decode()
        return dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)

    def test_defaults(self, api, made):
        status = self.effective(made)
        # CHOWN 0, DAC_OVERRIDE 1, FOWNER 3, KILL 5, SETGID 6, SETUID 7 of linux/capability.h
        assert int(status["CapEff"], 16) == sum(1 << bit for bit in (0, 1, 3, 5, 6, 7))
        assert status["NoNewPrivs"] == "1"
        host = api.inspect_container(made.id)["HostConfig"]
        assert (host["PidsLimit"], host["Memory"], host["MemorySwap"], host["NanoCpus"], host["Init"]) == (
            512,
            2048 * 1024 * 1024,
            2048 * 1024 * 1024,
            2_000_000_000,
            True,
        )
        assert set(host["CapAdd"]) <= set(CAPABILITIES) | {f"CAP_{name}" for name in CAPABILITIES}
        assert (host["Privileged"], host["Binds"], host["CapDrop"]) == (False, None, ["ALL"])

    def test_strict_leaves_no_capability_and_still_works(self, docker_provider, labels):
        sandbox = docker_provider.create(Spec(strict=True), labels, deadline=soon())
        assert int(self.effective(sandbox)["CapEff"], 16) == 0
        sandbox.write("/workspace/f", b"x", deadline=soon())
        assert b"".join(sandbox.read("/workspace/f", deadline=soon())) == b"x"
        assert sandbox.run(["sleep", "306"], deadline=Deadline.after(0.5)).ended_by is EndedBy.DEADLINE
        assert not running(sandbox, "sleep 306")

    def test_limits_of_the_spec(self, api, docker_provider, labels):
        spec = Spec(memory_mb=64, cpus=0.5, pids=40)
        host = api.inspect_container(docker_provider.create(spec, labels, deadline=soon()).id)["HostConfig"]
        assert (host["Memory"], host["NanoCpus"], host["PidsLimit"]) == (64 * 1024 * 1024, 500_000_000, 40)

    def test_out_of_memory_is_named(self, docker_provider, labels):
        sandbox = docker_provider.create(Spec(memory_mb=32), labels, deadline=soon())
        done = sandbox.run(["tail", "/dev/zero"], deadline=soon())
        assert (done.signal, done.ended_by, done.reason) == ("SIGKILL", EndedBy.UNKNOWN, "out_of_memory")

    def test_a_command_of_another_user_is_ended_too(self, made):
        script = 'chmod 755 /var/lib; exec perl -e \'$) = $( = 1000; $> = $< = 1000; exec "sleep", "307"\''
        done = made.run(["sh", "-c", script], deadline=Deadline.after(1))
        assert done.ended_by is EndedBy.DEADLINE
        assert not running(made, "sleep 307")


class TestImageUser:
    def test_an_image_whose_user_is_not_root(self, api, docker_engine, made, labels):
        api.commit(made.id, repository="sandferry-test-user", tag="1000", changes="USER 1000:1000")
        provider = DockerProvider(docker_settings(docker_engine, "sandferry-test-user:1000"))
        other = {**labels, LABEL_REQUEST: "another user"}
        api.remove_container(made.id, force=True)
        # The layout of the committed image is root's: refused, not taken over.
        with pytest.raises(OperationFailed) as failed:
            provider.create(Spec(), other, deadline=soon())
        assert failed.value.failure.reason == "layout_invalid"
        release_all(provider, labels)
        api.remove_image("sandferry-test-user:1000", force=True)

    def test_gets_a_layout_of_its_own(self, api, docker_engine, git_image, labels):
        bare = api.create_container(git_image, ["true"])["Id"]
        api.commit(bare, repository="sandferry-test-user", tag="bare", changes="USER 1000:1000")
        api.remove_container(bare)
        provider = DockerProvider(docker_settings(docker_engine, "sandferry-test-user:bare"))
        try:
            sandbox = provider.create(Spec(), labels, deadline=soon())
            assert sandbox.run(["id", "-u"], deadline=soon()).stdout == b"1000\n"
            sandbox.write("/workspace/f", b"x", deadline=soon())
            assert sandbox.run(["cat"], stdin=b"in", deadline=soon()).stdout == b"in"
            assert b"".join(sandbox.read("/workspace/f", deadline=soon())) == b"x"
            assert sandbox.run(["sleep", "308"], deadline=Deadline.after(0.5)).ended_by is EndedBy.DEADLINE
            assert not running(sandbox, "sleep 308")
            sandbox.keep_alive(7200, deadline=soon())
        finally:
            release_all(provider, labels)
            api.remove_image("sandferry-test-user:bare", force=True)


class TestUnreachable:
    @pytest.mark.parametrize(
        ("url", "name", "errno"),
        [
            ("unix:///no/such/docker.sock", "requests.exceptions.ConnectionError", "ENOENT"),
            ("tcp://127.0.0.1:1", "requests.exceptions.ConnectionError", "ECONNREFUSED"),
        ],
    )
    @pytest.mark.parametrize("version", [None, "1.41"])
    def test_says_what_happened(self, labels, url, name, errno, version):
        provider = DockerProvider(docker_settings(url, "x", api_version=version))
        with pytest.raises((requests.RequestException, DockerException)) as raised:
            provider.create(Spec(), labels, deadline=soon())
        failure = provider.facts(raised.value, operation="clone", stage="acquire")
        assert (failure.exception, failure.errno, failure.reason, failure.provider) == (name, errno, None, "docker")


def test_nothing_of_a_command_stays_behind(made):
    made.run(["cat"], stdin=b"private", deadline=soon())
    made.run(["sleep", "309"], stdin=b"private", deadline=Deadline.after(0.5))
    directory = f"{made.layout.scratch}/exec"
    # Watchdogs clear the records within a second; the one that is left is this command's own.
    script = "for i in 1 2 3 4 5 6 7 8; do set -- *; [ $# = 1 ] && exit 0; sleep 0.5; done; ls; exit 1"
    done = made.run(["sh", "-c", script], cwd=directory, deadline=soon())
    assert (done.exit_code, done.stdout) == (0, b"")
