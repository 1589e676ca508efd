"""Live tests are told which provider; they are no part of `make test`."""


def pytest_addoption(parser):
    parser.addoption("--provider", choices=["e2b", "daytona"], required=True)
