"""The bounds of an import, and the failures it ends in."""

from dataclasses import dataclass
from typing import Literal

from worker.failures.model import Category, Failure, OperationFailed

OPERATION = "copy_back"
MEBIBYTE = 1024 * 1024
GIBIBYTE = 1024 * MEBIBYTE


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one part of a capture may cost this worker. Sizes are bytes.

    The small side of a bundle says nothing about the other: 2 GiB of zeros travel in 2 MB, and 841 bytes hold
    10^8 paths (facts A5). So both sides are bounded, and every git runs under the three process limits.
    """

    bundle: int = GIBIBYTE
    """Size of the bundle as it travels."""
    inflated: int = 2 * GIBIBYTE
    """All objects together, unpacked and undeltified."""
    largest: int = 512 * MEBIBYTE
    """One object: git holds it in memory when it is a delta."""
    objects: int = 2_000_000
    paths: int = 1_000_000
    """Files of one tree, subtrees counted as often as they occur."""
    depth: int = 256
    """Directories of a path; the walk goes one call deeper for each."""
    patch: int = 256 * MEBIBYTE
    """Size of ``diff.patch``; a longer one is left out and said to be."""
    links: Literal["refuse", "report"] = "refuse"
    """What to do with symbolic links that lead out of the tree."""
    cpu: int = 600
    """Seconds of CPU time of one git (RLIMIT_CPU)."""
    address_space: int = 4 * GIBIBYTE
    """RLIMIT_AS of one git; packs are mapped, so more than the memory it uses."""
    file_size: int = 4 * GIBIBYTE
    """RLIMIT_FSIZE of one git."""


def corrupt(stage: str, reason: str) -> OperationFailed:
    """What arrived is damaged, or is not what it says it is."""
    return _failed(stage, Category.CORRUPT_DATA, reason)


def refused(stage: str, reason: str) -> OperationFailed:
    """What arrived is whole, and we do not want it."""
    return _failed(stage, Category.POLICY_DENIED, reason)


def _failed(stage: str, category: Category, reason: str) -> OperationFailed:
    return OperationFailed(Failure(operation=OPERATION, stage=stage, category=category, reason=reason))
