"""Files that take long begin first, so that at the end no worker of pytest-xdist waits for one that began last.

With ``--dist loadfile`` and ``--no-loadscope-reorder`` files are handed out in the order of the collection.
"""

import pytest

LONGEST = (
    "tests/chaos/",
    "tests/integration/service/test_canary.py",
    "tests/integration/jobs/test_copy_back_random.py",
    "tests/integration/demo/",
    "tests/integration/jobs/",
    "tests/integration/retrying/",
    "tests/integration/sandboxes/",
    "tests/integration/service/",
    "tests/integration/",
)
"""Beginnings of paths, the longest-running first (minutes down to seconds; ``pytest --durations``)."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort by file; within a file and among equals the order stays."""
    items.sort(key=_rank)


def _rank(item: pytest.Item) -> int:
    return next((rank for rank, start in enumerate(LONGEST) if item.nodeid.startswith(start)), len(LONGEST))
