from tests.integration.jobs.conftest import local_service

__all__ = ["local_service"]
