"""The provider of a demo: a double of it, and the settings that lead there."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def hosted(provider: str, home: Path) -> Iterator[dict[str, str]]:
    """Variables for ``provider``; its sandboxes lie in ``home/sandboxes``, as local ones do."""
    if provider == "local":
        yield {}
        return
    key = home / f"{provider}.key"
    key.touch(mode=0o600)
    key.write_text(secrets.token_hex(20))
    sandboxes, api_key = home / "sandboxes", key.read_text()
    if provider == "e2b":
        from worker.demo.hosted.e2b_double import E2BDouble  # noqa: PLC0415 - only for this provider

        with E2BDouble(sandboxes, api_key=api_key) as e2b:
            yield {
                "SANDFERRY_E2B_API_KEY_FILE": str(key),
                "SANDFERRY_E2B_API_URL": e2b.url,
                "SANDFERRY_E2B_SANDBOX_URL": e2b.url,
            }
        return
    from worker.demo.hosted.daytona_double import DaytonaDouble  # noqa: PLC0415 - only for this provider

    with DaytonaDouble(sandboxes, api_key=api_key) as daytona:
        yield {"SANDFERRY_DAYTONA_API_KEY_FILE": str(key), "SANDFERRY_DAYTONA_API_URL": daytona.api_url}
