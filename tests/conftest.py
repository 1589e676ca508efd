"""What all tests share."""

pytest_plugins = ["tests.rig.valkey_fixture", "tests.rig.docker_fixture"]
