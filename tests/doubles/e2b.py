"""The E2B double with faults by rule."""

from tests.doubles.hosted_faults import Faulty
from worker.demo.hosted.e2b_double import E2BDouble

API_KEY = "e2b_" + "0a1b2c3d" * 5


class FaultyE2B(Faulty, E2BDouble):
    """See :class:`Faulty`."""
