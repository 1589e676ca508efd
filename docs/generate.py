"""Writes what is generated in docs; with --check says whether it is up to date.

Schemas of requests (docs/schemas/*.json), the settings (docs/settings.md), the failure rules
(docs/failures.md) and the run events (docs/events.md) come from the code, so they are never out of date.
"""

import json
import sys
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from tasks.clone.request import CloneRequest
from tasks.copy_back.request import CopyBackRequest
from tasks.dispatch.request import DispatchRequest
from tasks.lifecycle.request import ExtendRequest, ReleaseRequest
from worker.failures.classify import ALL_RULES
from worker.failures.model import Category
from worker.settings import Settings
from worker.stores.catalogue import ALWAYS, EVENTS, FIELDS
from worker.tools.manifest import Manifest

DOCS = Path(__file__).resolve().parent
REQUESTS: dict[str, type[BaseModel]] = {
    "sandbox.clone": CloneRequest,
    "workspace.copy_back": CopyBackRequest,
    "tool.dispatch": DispatchRequest,
    "sandbox.extend": ExtendRequest,
    "sandbox.release": ReleaseRequest,
}


def generated() -> dict[Path, str]:
    """Every generated file and its text."""
    models = REQUESTS | {"tool.manifest": Manifest}
    files = {DOCS / "schemas" / f"{name}.json": _schema(model) for name, model in models.items()}
    return files | {DOCS / "settings.md": _settings(), DOCS / "failures.md": _failures(), DOCS / "events.md": _events()}


def _schema(model: type[BaseModel]) -> str:
    schema: dict[str, Any] = {"$schema": "https://json-schema.org/draft/2020-12/schema", **model.model_json_schema()}
    return json.dumps(schema, indent=2) + "\n"


def _settings() -> str:
    rows = [
        "# Settings",
        "",
        "Environment variables; times are seconds. Generated from `worker/settings.py` by `make docs`.",
        "",
        "| variable | default | what it is |",
        "|---|---|---|",
    ]
    for name, field in Settings.model_fields.items():
        value = field.get_default(call_default_factory=True)
        default = "" if value is None else f"`{_plain(value)}`"
        rows.append(f"| `SANDFERRY_{name.upper()}` | {default} | {field.description or ''} |")
    return "\n".join(rows) + "\n"


def _plain(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value)) or "(none)"
    if isinstance(value, dict):
        return ",".join(f"{key}={place}" for key, place in value.items()) or "(none)"
    return str(value)


def _failures() -> str:
    rows = [
        "# Failures",
        "",
        "What the classifier knows, in the order in which it is asked. Written by `make docs`.",
        "",
        "Categories: " + ", ".join(f"`{category}`" for category in Category) + ".",
        "",
        "| rule | category | reason |",
        "|---|---|---|",
    ]
    rows += [f"| {rule.name} | {rule.category} | {rule.reason} |" for rule in ALL_RULES]
    return "\n".join(rows) + "\n"


def _events() -> str:
    rows = [
        "# Run events",
        "",
        "What `sandferry runs show RUN` prints and a backend can tail: entries of the Redis stream",
        "`<key prefix>:events:<run id>` with the fields `time` (epoch seconds), `name` and `data` (a JSON object).",
        "Written by `make docs` from `worker/stores/catalogue.py`; nothing else can be in an event.",
        "",
        f"Every event that a job emits has {' and '.join(f'`{name}`' for name in ALWAYS)}.",
        "",
        "| event | what it says | data |",
        "|---|---|---|",
    ]
    rows += [f"| `{kind.name}` | {kind.says} | {', '.join(kind.fields)} |" for kind in EVENTS]
    rows += ["", "| field | type and meaning |", "|---|---|"]
    used = {name for kind in EVENTS for name in kind.fields} | set(ALWAYS)
    rows += [f"| `{name}` | {meaning} |" for name, meaning in FIELDS.items() if name in used]
    return "\n".join(rows) + "\n"


def main() -> int:
    """Write, or compare."""
    check = "--check" in sys.argv[1:]
    stale = [path for path, text in generated().items() if not path.is_file() or path.read_text() != text]
    for path in stale:
        if check:
            sys.stderr.write(f"{path.name} is out of date: run `make docs`\n")
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(generated()[path])
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
