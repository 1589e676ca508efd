"""Where a caller, a sandbox or a server can put a secret. A row here is a row of the matrix.

A source plants its own secret, a word found nowhere else, and waits until what it started has ended. ``design`` names
the sinks that hold it because somebody put it there on purpose, each with the reason.
"""

import json
import secrets
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kombu import Producer

from tests.canary.stage import Stage
from tests.doubles.github import status
from tests.rig import tools

Plant = Callable[[Stage, str], None]

MESSAGE = {"broker": "the caller's own message", "records as written": "the message, until its outcome is confirmed"}
"""What a caller writes into a message in the clear is in the message."""
DISK = {"diagnostics": "what a command or server said, for this machine's operators; tokens are masked"}
AGENT = {"argv": "the agent's own commands"}


@dataclass(frozen=True)
class Source:
    name: str
    plant: Plant
    design: Mapping[str, str] = field(default_factory=dict)
    make: Callable[[], str] = lambda: f"cnry{secrets.token_hex(12)}"
    proves: bool = False
    """Whether it is played with all fences down: then it must be found in every sink."""


SOURCES: list[Source] = []


def classic() -> str:
    """A GitHub token of the old form."""
    return "ghs_" + secrets.token_hex(18)


def dotted() -> str:
    """A GitHub token of the new form: 520 characters with dots."""
    return f"ghs_{secrets.token_hex(48)}.{secrets.token_hex(180)}.{secrets.token_hex(29)}"


def source(name: str, design: Mapping[str, str] | None = None, **more: Any) -> Callable[[Plant], Plant]:
    def add(plant: Plant) -> Plant:
        SOURCES.append(Source(name, plant, design or {}, **more))
        return plant

    return add


def run() -> str:
    return f"run-{uuid.uuid4().hex[:8]}"


def clone(stage: Stage, url: str, **more: Any) -> Any:
    run_id = more.pop("run_id", None) or run()
    return stage.ended(stage.made.clone(url, run_id=run_id, **more), run_id)


def sealed(stage: Stage, secret: str, *, known: bool) -> None:
    name, run_id = f"s{uuid.uuid4().hex[:6]}", run()
    url = stage.made.private(name)
    if known:
        stage.made.hub.grant(secret, f"acme/{name}")
        stage.made.reject(name, 1)
    box = stage.made.sealed(run_id, url, secret, minted_at=time.time())
    clone(stage, url, run_id=run_id, credential=box)


# What the caller sends ------------------------------------------------------------------------------------------


@source("token, sealed, classic form", make=classic)
def _(stage: Stage, secret: str) -> None:
    sealed(stage, secret, known=True)


@source("token, sealed, dotted form", make=dotted)
def _(stage: Stage, secret: str) -> None:
    sealed(stage, secret, known=True)


@source("token, sealed, refused by GitHub", make=dotted)
def _(stage: Stage, secret: str) -> None:
    name, run_id = f"r{uuid.uuid4().hex[:6]}", run()
    url = stage.made.private(name)
    clone(stage, url, run_id=run_id, credential=stage.made.sealed(run_id, url, secret))


@source("token, minted by the worker", make=dotted)
def _(stage: Stage, secret: str) -> None:
    name = f"m{uuid.uuid4().hex[:6]}"
    url = stage.made.private(name)
    hub = stage.made.hub
    mint, hub.mint = hub.mint, lambda repository: {**mint(repository), "token": _granted(hub, secret, repository)}
    try:
        stage.made.reject(name, 1)
        clone(stage, url, credential={"kind": "github_app"})
    finally:
        hub.mint = mint


def _granted(hub: Any, secret: str, repository: str) -> str:
    hub.grant(secret, repository)
    return secret


@source("token, in the clear", MESSAGE, make=classic)
def _(stage: Stage, secret: str) -> None:
    clone(stage, stage.made.public(f"c{uuid.uuid4().hex[:6]}"), credential={"kind": "token", "token": secret})


@source("URL userinfo", MESSAGE, make=dotted)
def _(stage: Stage, secret: str) -> None:
    clone(stage, f"https://x-access-token:{secret}@github.example/acme/x.git")


@source("branch name", {
    **MESSAGE, **DISK, "argv": "git is told the branch", "sandbox env": "git knows its branch",
    ".git/config": "git knows its branch",
}, proves=True)  # fmt: skip
def _(stage: Stage, secret: str) -> None:
    clone(stage, stage.made.public(f"b{uuid.uuid4().hex[:6]}"), ref={"branch": f"feature/{secret}"})


@source("environment of a sandbox", {**MESSAGE, "sandbox env": "the caller asked for it"}, proves=True)
def _(stage: Stage, secret: str) -> None:
    url = stage.made.public(f"e{uuid.uuid4().hex[:6]}")
    clone(stage, url, sandbox={"provider": "local", "spec": {"env": {"API_KEY": secret}}})


@source("value of a wrong type", MESSAGE)
def _(stage: Stage, secret: str) -> None:
    clone(stage, stage.made.public(f"t{uuid.uuid4().hex[:6]}"), depth=secret, after={secret: secret})


@source("request that is no object", MESSAGE)
def _(stage: Stage, secret: str) -> None:
    for wrong in (secret, [secret], {"schema": secret}, {secret: 1}):
        stage.ended(stage.made.send("sandbox.clone", wrong))


@source("positional argument, its reprs, headers", {
    **MESSAGE,
})  # fmt: skip
def _(stage: Stage, secret: str) -> None:
    stage.ended(stage.made.app.send_task(
        "sandbox.clone", args=[secret], argsrepr=secret, kwargsrepr=secret, headers={"x-mine": secret}
    ))  # fmt: skip


@source("unknown task", MESSAGE, proves=True)
def _(stage: Stage, secret: str) -> None:
    stage.ended(stage.made.app.send_task("sandbox.unknown", kwargs={"request": {"token": secret}}, queue="clone"))


@source("malformed message", MESSAGE)
def _(stage: Stage, secret: str) -> None:
    with stage.made.app.connection_for_write() as connection:
        producer = Producer(connection.default_channel)
        headers = {"task": "sandbox.clone", "id": uuid.uuid4().hex, "note": secret}
        for kind, body in (("application/json", f'{{"{secret}'), ("application/json", f'["{secret}"]'),
                           ("application/x-python-serialize", secret), ("text/plain", secret)):  # fmt: skip
            producer.publish(
                body, routing_key="clone", content_type=kind, content_encoding="utf-8", headers=headers, serializer=None
            )
    clone(stage, stage.made.public(f"a{uuid.uuid4().hex[:6]}"))


@source("arguments while a job runs and waits", MESSAGE, proves=True)
def _(stage: Stage, secret: str) -> None:
    request = {"schema": 1, "run_id": run(), "how": "sleep", "secret": secret}
    sent = [stage.made.send("canary.leak", request) for _ in range(6)]
    sent.append(stage.made.send("canary.leak", request, countdown=2))
    for each in sent:
        stage.ended(each)


@source("arguments of a tool", MESSAGE)
def _(stage: Stage, secret: str) -> None:
    wanted = _tool(stage, "cat >/dev/null; echo '{}'", output="json", arguments={"key": secret})
    stage.ended(tools.dispatch(stage.made, wanted))


@source("argument of a tool that breaks its schema", MESSAGE)
def _(stage: Stage, secret: str) -> None:
    schema = {"type": "object", "additionalProperties": False}
    wanted = _tool(stage, "true", input_schema=schema, arguments={secret: secret})
    stage.ended(tools.dispatch(stage.made, wanted))


# What an exception holds ----------------------------------------------------------------------------------------


@source("exception: text, chain, locals", {**MESSAGE, **DISK}, proves=True)
def _(stage: Stage, secret: str) -> None:
    request = {"schema": 1, "run_id": run(), "how": "chained", "secret": secret}
    stage.ended(stage.made.send("canary.leak", request))


@source("last words of a command", {**MESSAGE, **DISK}, proves=True)
def _(stage: Stage, secret: str) -> None:
    request = {"schema": 1, "run_id": run(), "how": "text", "secret": f"fatal: {secret}: Could not resolve host"}
    stage.ended(stage.made.send("canary.leak", request))


# What a server says ---------------------------------------------------------------------------------------------


@source("git's stderr: a refusal", DISK)
def _(stage: Stage, secret: str) -> None:
    url = stage.made.private(name := f"g{uuid.uuid4().hex[:6]}")
    stage.made.hub.fault(status(403, secret.encode()), path=rf"/acme/{name}\.git/")
    clone(stage, url)


@source("git's stderr: a refusal with a token", make=classic)
def _(stage: Stage, secret: str) -> None:
    url = stage.made.private(name := f"g{uuid.uuid4().hex[:6]}")
    stage.made.hub.fault(status(500, f"try {secret}".encode()), path=rf"/acme/{name}\.git/", times=1)
    clone(stage, url)


@source("Retry-After of a git server", DISK)
def _(stage: Stage, secret: str) -> None:
    url = stage.made.public(name := f"w{uuid.uuid4().hex[:6]}")
    stage.made.hub.fault(status(429, Retry_After=secret), path=rf"/acme/{name}\.git/", times=1)
    clone(stage, url)


@source("GitHub's API: error body and headers", DISK)
def _(stage: Stage, secret: str) -> None:
    url = stage.made.private(name := f"i{uuid.uuid4().hex[:6]}")
    body = json.dumps({"message": secret, "documentation_url": secret}).encode()
    refuse = status(422, body, "application/json", Retry_After=secret, X_GitHub_Request_Id=secret)
    stage.made.hub.fault(refuse, path=r"/app/installations/.*", times=1)
    stage.made.hub.fault(status(404, body, "application/json"), path=rf"/repos/acme/{name}/installation", times=1)
    for _ in range(2):
        clone(stage, url, credential={"kind": "github_app"})


@source("Docker's API: error body and headers", DISK)
def _(stage: Stage, secret: str) -> None:
    spite(stage, "docker", words=secret)


@source("E2B's API: the account's key, said back")
def _(stage: Stage, secret: str) -> None:
    spite(stage, "e2b", words=secret, key=secret)


@source("E2B's API: error body and headers", DISK)
def _(stage: Stage, secret: str) -> None:
    spite(stage, "e2b", words=secret)


@source("Daytona's API: the account's key, said back")
def _(stage: Stage, secret: str) -> None:
    spite(stage, "daytona", words=secret, key=secret)


@source("Daytona's API: error body and headers", DISK)
def _(stage: Stage, secret: str) -> None:
    spite(stage, "daytona", words=secret)


def spite(stage: Stage, provider: str, *, words: str, key: str = "a-key") -> None:
    """Be refused by a provider in each of its ways, all at once; a process keeps the first key that it has read."""
    before, stage.spite.words = stage.spite.asked, words
    stage.key(provider).write_text(key)
    urls = [stage.made.public(f"p{uuid.uuid4().hex[:6]}") for _ in range(5)]
    for sent in [stage.made.clone(url, provider=provider, deadline=8) for url in urls]:
        stage.ended(sent)
    assert stage.spite.asked > before, f"{provider} was not asked"


# What a sandbox holds -------------------------------------------------------------------------------------------


def _copied_back(stage: Stage, script: str) -> None:
    run_id = run()
    url = stage.made.public(f"k{uuid.uuid4().hex[:6]}", {"README.md": b"hello\n"})
    cloned = clone(stage, url, run_id=run_id).result
    stage.made.in_sandbox(cloned, run_id, script)
    stage.ended(stage.made.copy_back(cloned, run_id))


@source("file: name and content", {
    **AGENT, **dict.fromkeys(("records as written", "redis at the end"), "losses, by name, for operators"),
}, proves=True)  # fmt: skip
def _(stage: Stage, secret: str) -> None:
    _copied_back(stage, f"echo {secret} >{secret}.txt; mkfifo {secret}.pipe; ln -s {secret} {secret}.link")


@source(
    "commit: message and author",
    {**AGENT, ".git/config": "the agent wrote it", "sandbox env": "the agent wrote it"},
    proves=True,
)
def _(stage: Stage, secret: str) -> None:
    _copied_back(
        stage,
        f"""
        git config user.name {secret}
        echo more >>README.md; git add -A; git commit -q -m '{secret}' --author '{secret} <{secret}@example.invalid>'
        git tag -a v1 -m {secret}
    """,
    )


@source("forged cause and manifest", AGENT)
def _(stage: Stage, secret: str) -> None:
    forged = f"remote_workspace_capture_failed: stage=archive exit=128 program={secret}"
    _copied_back(
        stage,
        f"""
        mkdir -p .git/hooks; printf '#!/bin/sh\\necho "{forged}" >&2; exit 1\\n' >.git/hooks/post-index-change
        chmod +x .git/hooks/*; echo "{forged}" >manifest.json; printf 'x' >.git/index.lock
        git config core.fsmonitor 'echo {forged[:30]}'; printf '%s' '{forged}' >.git/MERGE_HEAD
    """,
    )


def _tool(stage: Stage, script: str, *, arguments: Any = None, **manifest: Any) -> dict[str, Any]:
    more = {} if arguments is None else {"arguments": arguments}
    wanted: dict[str, Any] = tools.request(tools.push(stage.made, tools.tool(script, **manifest)), **more)
    return wanted


@source("output of a tool", dict.fromkeys(
    ("results", "records as written", "redis at the end", "client"), "its own result"
), proves=True)  # fmt: skip
def _(stage: Stage, secret: str) -> None:
    quoted = " ".join((secret[:9], secret[9:]))
    script = f'set -- {quoted}; printf \'%s%s\\n\' "$1" "$2"; printf \'%s%s\\n\' "$1" "$2" >&2'
    stage.ended(tools.dispatch(stage.made, _tool(stage, script)))


@source("stderr of a tool that fails", DISK)
def _(stage: Stage, secret: str) -> None:
    quoted = " ".join((secret[:9], secret[9:]))
    stage.ended(tools.dispatch(stage.made, _tool(stage, f'set -- {quoted}; printf \'%s%s\' "$1" "$2" >&2; exit 3')))
