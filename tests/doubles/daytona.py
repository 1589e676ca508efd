"""The Daytona double with faults by rule."""

from tests.doubles.hosted_faults import Faulty
from worker.demo.hosted.daytona_double import DaytonaDouble

API_KEY = "dtn_" + "0a1b2c3d" * 8


class FaultyDaytona(Faulty, DaytonaDouble):
    """See :class:`Faulty`."""
