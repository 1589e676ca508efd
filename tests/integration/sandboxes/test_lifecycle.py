"""Create, find, connect, lease and release, on every driver."""

import threading

import pytest

from tests.integration.sandboxes.conftest import new_labels, release_all
from tests.integration.sandboxes.helpers import running, soon, wait_for
from worker.failures.model import Category, EndedBy, InvalidRequest, OperationFailed
from worker.sandboxes.base import LABEL_REQUEST, LABEL_RUN, Completed, Spec


@pytest.fixture
def made(provider, labels):
    return provider.create(Spec(ttl=600), labels, deadline=soon())


class TestCreate:
    def test_makes_the_layout(self, made):
        places = (made.layout.workspace, made.layout.repos, made.layout.scratch)
        script = 'for d; do [ -d "$d" ] && [ -O "$d" ] || exit 1; done; ls -ld "$d"'
        done = made.run(["sh", "-c", script, "sh", *places], deadline=soon())
        assert done.exit_code == 0
        assert done.stdout.startswith(b"drwx------")  # the last one: scratch is private

    def test_the_same_request_gets_the_same_sandbox(self, provider, made, labels):
        assert provider.create(Spec(), labels, deadline=soon()).id == made.id
        assert len(provider.find(labels, deadline=soon())) == 1

    def test_another_request_gets_another(self, provider, made, labels):
        other = provider.create(Spec(), {**labels, LABEL_REQUEST: "another"}, deadline=soon())
        assert other.id != made.id
        assert [found.id for found in provider.find({LABEL_RUN: labels[LABEL_RUN]}, deadline=soon())] == [
            made.id,
            other.id,
        ]

    @pytest.mark.parametrize("missing", [LABEL_RUN, LABEL_REQUEST])
    def test_labels_it_could_not_be_found_by(self, provider, labels, missing):
        with pytest.raises(ValueError, match="labels need"):
            provider.create(Spec(), {**labels, missing: ""}, deadline=soon())

    def test_its_environment_reaches_commands(self, provider, labels):
        sandbox = provider.create(Spec(env={"MADE_WITH": "this"}), labels, deadline=soon())
        assert b"MADE_WITH=this\n" in sandbox.run(["env"], deadline=soon()).stdout

    def test_an_image_nobody_allowed(self, provider, labels):
        with pytest.raises(InvalidRequest, match="sandbox_spec_image: image_not_allowed"):
            provider.create(Spec(image="postgres:17"), labels, deadline=soon())
        assert provider.find(labels, deadline=soon()) == []


class TestConnect:
    def test_gives_the_same_sandbox(self, provider, made, labels):
        made.write(f"{made.layout.workspace}/f", b"here", deadline=soon())
        again = provider.connect(made.id, labels, deadline=soon())
        assert (again.id, again.provider, again.layout) == (made.id, provider.name, made.layout)
        assert again.labels.items() >= labels.items()
        assert b"".join(again.read(f"{again.layout.workspace}/f", deadline=soon())) == b"here"

    def test_refuses_another_run(self, provider, made):
        with pytest.raises(InvalidRequest, match="sandbox_id: foreign_sandbox"):
            provider.connect(made.id, new_labels(), deadline=soon())

    @pytest.mark.parametrize(
        "hostile",
        ["", ".", "..", "../../etc", "/etc", "a" * 63, "A" * 64, "a" * 64 + "\n", "local-" + "0" * 31, "x?y=z", "a\0b"],
    )
    def test_refuses_hostile_ids(self, provider, labels, hostile):
        with pytest.raises(InvalidRequest, match="sandbox_id: malformed"):
            provider.connect(hostile, labels, deadline=soon())

    def test_one_that_is_gone(self, provider, made, labels):
        made.release(deadline=soon())
        with pytest.raises(OperationFailed) as failed:
            provider.connect(made.id, labels, deadline=soon())
        failure = failed.value.failure
        assert (failure.category, failure.reason) == (Category.SANDBOX_LOST, "sandbox_lost")


class TestFind:
    def test_wants_every_label_exactly(self, provider, made, labels):
        assert [found.id for found in provider.find(labels, deadline=soon())] == [made.id]
        for key in labels:
            assert provider.find({**labels, key: labels[key] + "x"}, deadline=soon()) == []
            assert provider.find({**labels, key: labels[key][:-1]}, deadline=soon()) == []
        assert provider.find({**labels, "more": "x"}, deadline=soon()) == []


class TestEnd:
    def test_ends_it_once(self, provider, made, labels):
        assert provider.end(made.id, {LABEL_RUN: labels[LABEL_RUN]}, deadline=soon()) is True
        assert provider.find(labels, deadline=soon()) == []
        assert provider.end(made.id, labels, deadline=soon()) is False

    def test_another_runs_is_left_alone(self, provider, made, labels):
        with pytest.raises(InvalidRequest, match="sandbox_id: foreign_sandbox"):
            provider.end(made.id, new_labels(), deadline=soon())
        assert [found.id for found in provider.find(labels, deadline=soon())] == [made.id]

    @pytest.mark.parametrize("hostile", ["", "..", "/etc", "a" * 63, "local-" + "0" * 31, "x?y=z"])
    def test_refuses_hostile_ids(self, provider, labels, hostile):
        with pytest.raises(InvalidRequest, match="sandbox_id: malformed"):
            provider.end(hostile, labels, deadline=soon())


class TestEndCommands:
    def test_ends_what_another_worker_left_and_nothing_else(self, provider, made, labels):
        """Two workers in one sandbox; a third ends the commands of one of them by its task."""
        others = {tag: provider.connect(made.id, labels, deadline=soon()) for tag in ("task-1", "task-2")}
        done: dict[str, Completed] = {}

        def work(tag: str, seconds: int) -> None:
            others[tag].mark(tag)
            argv = ["sh", "-c", f"trap '' TERM; sleep {seconds} & wait; sleep {seconds}"]
            done[tag] = others[tag].run(argv, deadline=soon(60))

        threads = [threading.Thread(target=work, args=(tag, 400 + n)) for n, tag in enumerate(others)]
        for thread in threads:
            thread.start()
        wait_for(lambda: running(made, "sleep 400") and running(made, "sleep 401"))

        made.end_commands("task-1", deadline=soon())

        assert running(made, "sleep 400") == ""
        assert running(made, "sleep 401") != ""
        threads[0].join(10)
        assert (done["task-1"].signal, done["task-1"].ended_by) == ("SIGKILL", EndedBy.UNKNOWN)
        made.end_commands("task-2", deadline=soon())
        threads[1].join(10)
        assert running(made, "sleep 401") == ""

    def test_nothing_to_end(self, made):
        made.mark("task")
        assert made.run(["true"], deadline=soon()).ok
        made.end_commands("task", deadline=soon())
        made.end_commands("never seen", deadline=soon())


class TestRelease:
    def test_ends_all_in_it_and_may_be_repeated(self, provider, made, labels):
        made.run(["sh", "-c", "mkdir -p ro/deep && touch ro/deep/f && chmod 500 ro/deep ro"], deadline=soon())
        made.run(["sh", "-c", "sleep 300 >/dev/null 2>&1 &"], deadline=soon())
        for _ in range(2):
            made.release(deadline=soon())
        assert provider.find(labels, deadline=soon()) == []

    def test_afterwards_every_call_says_lost(self, made):
        made.release(deadline=soon())
        path = f"{made.layout.workspace}/f"
        calls = (
            lambda: made.run(["true"], deadline=soon()),
            lambda: made.write(path, b"x", deadline=soon()),
            lambda: list(made.read(path, deadline=soon())),
            lambda: made.keep_alive(5, deadline=soon()),
            lambda: made.end_commands("task", deadline=soon()),
        )
        for call in calls:
            with pytest.raises(OperationFailed) as failed:
                call()
            assert failed.value.failure.category is Category.SANDBOX_LOST

    def test_the_same_request_may_make_a_new_one(self, provider, made, labels):
        made.release(deadline=soon())
        again = provider.create(Spec(), labels, deadline=soon())
        assert again.id != made.id
        assert again.run(["true"], deadline=soon()).ok
        release_all(provider, labels)
