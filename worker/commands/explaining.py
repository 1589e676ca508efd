"""What `sandferry explain` says: to people in lines, to programs in JSON."""

import json
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from worker.failures.advice import advice
from worker.failures.classify import ALL_RULES
from worker.failures.explanation import SCHEDULES, Explanation
from worker.failures.explanation import explain as judge
from worker.failures.model import Credential, Failure, Verdict
from worker.failures.schedule import CLONE
from worker.retrying.causes import cause_of

_CODES = {"clone": "clone_failed", "copy_back": "copy_back_failed", "dispatch": "dispatch_failed"}
_STAGES = {"clone": "clone", "copy_back": "capture", "dispatch": "dispatch"}
_WHY = {rule.name: rule.why for rule in ALL_RULES} | {"none": "no rule holds; unknown failures are not retried"}
_NO_CREDENTIAL = ("", "na", "none")


class Malformed(ValueError):  # noqa: N818 - what it is, not that it is one
    """A line that is no failure; says which field, never its value."""


def lines(failure: Failure) -> Iterator[tuple[str, str]]:
    """What is printed for a person: (name, value)."""
    known = judge(failure)
    match = known.match
    schedule = SCHEDULES.get(failure.operation, CLONE)
    waits = ", then ".join(f"{seconds:g} s" for seconds in known.plan)
    yield "category", match.category
    yield "reason", match.reason
    if known.retry and known.plan:
        yield "retry", f"yes, after {waits} ({schedule.attempts} attempts within {schedule.deadline:g} s)"
    elif known.plan:
        yield "retry", f"no: waiting does not mend it; the job looks again after {waits}"
    else:
        yield "retry", "no"
    yield "rule", f"{match.rule}: {_WHY[match.rule]}"
    yield "advice", advice(match.category, failure.provider)
    yield "cause", cause_line(failure, known)


def cause_line(failure: Failure, known: Explanation) -> str:
    """The only thing about this failure that would leave the worker."""
    verdict = Verdict(category=known.match.category, reason=known.match.reason, retry=known.retry)
    return str(cause_of(_CODES.get(failure.operation, "lifecycle_failed"), failure, verdict))


def stream(texts: Iterable[bytes]) -> int:
    """Answer each line with one line; 1 when one of them was no failure."""
    code = 0
    for number, line in enumerate(texts, 1):
        if not line.strip():
            continue
        try:
            facts = json.loads(line)
            answer = _answer(facts)
        except Malformed as exc:
            answer, code = {"id": facts.get("id") if isinstance(facts, dict) else None, "error": str(exc)}, 1
        except (ValueError, RecursionError):
            answer, code = {"id": None, "error": f"line {number}: no JSON object"}, 1
        sys.stdout.write(json.dumps(answer) + "\n")
    return code


def _answer(facts: object) -> dict[str, Any]:
    if not isinstance(facts, dict):
        raise Malformed("no JSON object")
    known = judge(failure_of(facts))
    return {
        "id": facts.get("id"),
        "category": known.match.category,
        "retry": known.retry,
        "countdown": known.countdown,
        "rule": known.match.rule,
        "reason": known.match.reason,
    }


def failure_of(facts: dict[str, Any]) -> Failure:
    """Read a failure; fields that are absent or null are not known. Raises ``ValueError`` naming the field."""
    operation = _of(facts, "operation", str) or "clone"
    operation = "copy_back" if operation == "copyback" else operation
    provider = _of(facts, "provider", str) or "none"
    credential = _of(facts, "credential", str) or "none"
    if credential not in {*Credential, *_NO_CREDENTIAL}:
        raise Malformed("credential: none, static or minted")
    return Failure(
        operation=operation,
        stage=_STAGES.get(operation, "create"),
        provider=provider,
        program="git" if provider == "git" else None,
        exit_code=_of(facts, "exit_code", int),
        http_status=_of(facts, "http_status", int),
        credential=Credential.NONE if credential in _NO_CREDENTIAL else Credential(credential),
        credential_age=_of(facts, "credential_age", int, float),
        text=_of(facts, "text", str) or "",
    )


def _of(facts: dict[str, Any], name: str, *types: type) -> Any:
    """The value of a field, ``None`` when it is not there."""
    value = facts.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, types)):
        raise Malformed(f"{name}: not {' or '.join(each.__name__ for each in types)}")
    return value
