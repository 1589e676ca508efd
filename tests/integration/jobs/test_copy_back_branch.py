"""Delivery to a host branch: conflicts change nothing, runs and rounds build on each other, success stays."""

import itertools
from pathlib import Path

import pytest

from tests.doubles.repositories import git
from tests.rig.jobs import Service

FILES = {"README.md": b"hello\n", "other.txt": b"other\n"}
_numbers = itertools.count(1)


class Place:
    """A branch of its own in the host repository, which all runs of a test clone from."""

    def __init__(self, made: Service, provider: str) -> None:
        self.made, self.provider = made, provider
        self.name = f"{provider}-branch-{next(_numbers)}"
        self.url = made.public(self.name, FILES)
        self.hub = made.home / "hub.git"
        if not self.hub.exists():
            git("init", "-q", "--bare", str(self.hub))
        git("fetch", "-q", self.url, f"+main:refs/heads/{self.name}", cwd=self.hub)

    def run(self, script: str, suffix: str = "") -> tuple[dict, str]:
        """A run with its own sandbox, in which an agent did ``script``."""
        run_id = f"run-{self.name}{suffix}"
        cloned = self.made.outcome(self.made.clone(self.url, provider=self.provider, run_id=run_id)).result
        self.made.in_sandbox(cloned, run_id, script)
        return cloned, run_id

    def send(self, cloned: dict, run_id: str, **more):
        return self.made.copy_back(cloned, run_id, deliver={"repository": "hub", "branch": self.name}, **more)

    def head(self) -> str:
        return git("rev-parse", self.name, cwd=self.hub).stdout.strip()

    def show(self, path: str) -> str:
        return git("show", f"{self.name}:{path}", cwd=self.hub).stdout

    def commit(self, tmp_path: Path, path: str, text: str) -> None:
        """Somebody else's commit on the branch."""
        work = tmp_path / "somebody"
        git("clone", "-q", "-b", self.name, str(self.hub), str(work))
        (work / path).write_text(text)
        git("add", "-A", cwd=work)
        git("commit", "-qm", "somebody else", cwd=work)
        git("push", "-q", "origin", self.name, cwd=work)


@pytest.fixture
def place(made: Service, provider: str) -> Place:
    return Place(made, provider)


def test_a_conflict_changes_nothing_and_its_paths_are_for_operators(made: Service, place: Place, tmp_path: Path):
    cloned, run_id = place.run("printf 'agent\\n' > README.md; printf 'new\\n' > new.txt")
    place.commit(tmp_path, "README.md", "somebody\n")
    before = place.head()

    outcome = made.outcome(place.send(cloned, run_id))

    assert outcome.result["outcome"] == "partial"
    assert outcome.result["merged"] == {"state": "conflict", "commit": None}
    assert (place.head(), place.show("README.md")) == (before, "somebody\n")
    (operation,) = made.services.operations.of_run(run_id)
    assert (operation.status, operation.details["conflicts"]) == ("partial", ["README.md"])
    assert "README.md" not in str(outcome.result) + str(made.events(run_id))
    snapshot = f"refs/sandferry/{run_id}/1/snapshot"
    assert git("show", f"{snapshot}:new.txt", cwd=place.hub).stdout == "new\n"


def test_two_runs_at_once_both_arrive(made: Service, place: Place):
    runs = [place.run(f"printf '{n}\\n' > from-{n}.txt", f"-{n}") for n in "abc"]

    sent = [place.send(*run) for run in runs]
    outcomes = [made.outcome(one) for one in sent]

    assert [one.result.get("outcome") for one in outcomes] == ["succeeded"] * 3, outcomes
    assert [place.show(f"from-{n}.txt") for n in "abc"] == ["a\n", "b\n", "c\n"]
    assert place.show("README.md") == "hello\n"


def test_a_second_copy_back_builds_on_the_first(made: Service, place: Place, tmp_path: Path):
    cloned, run_id = place.run("printf 'one\\n' > work.txt; git add -A; git commit -qm one")
    first = made.outcome(place.send(cloned, run_id)).result
    place.commit(tmp_path, "other.txt", "changed meanwhile\n")
    made.in_sandbox(cloned, run_id, "printf 'two\\n' > work.txt; printf 'more\\n' > more.txt")

    second = made.outcome(place.send(cloned, run_id)).result

    assert (first["merged"]["state"], second["merged"]["state"]) == ("merged", "merged")
    assert (place.show("work.txt"), place.show("more.txt")) == ("two\n", "more\n")
    assert place.show("other.txt") == "changed meanwhile\n"
    refs = git("for-each-ref", "--format=%(refname)", f"refs/sandferry/{run_id}", cwd=place.hub).stdout.split()
    assert {f"refs/sandferry/{run_id}/{number}/snapshot" for number in (1, 2)} <= set(refs)
    assert [one.status for one in made.services.operations.of_run(run_id)] == ["succeeded", "succeeded"]


def test_a_late_copy_of_a_failed_attempt_reopens_nothing(made: Service, place: Place):
    cloned, run_id = place.run("printf 'one\\n' > work.txt")
    sent = place.send(cloned, run_id)
    first = made.outcome(sent)
    before = (place.head(), made.services.operations.of_run(run_id), made.events(run_id))
    made.in_sandbox(cloned, run_id, "printf 'later\\n' > work.txt")
    envelope = made.services.attempts.read(sent.id).envelope

    late = made.send("workspace.copy_back", envelope["kwargs"]["request"], task_id=sent.id, retries=3)

    assert made.outcome(late).result == first.result
    assert (place.head(), made.services.operations.of_run(run_id), made.events(run_id)) == before


def test_nothing_new_is_merged_twice(made: Service, place: Place):
    cloned, run_id = place.run("printf 'one\\n' > work.txt")
    made.outcome(place.send(cloned, run_id))
    head = place.head()

    again = made.outcome(place.send(cloned, run_id)).result

    assert (again["outcome"], again["merged"]["state"]) == ("succeeded", "unchanged")
    assert place.head() == head
