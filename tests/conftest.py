"""What all tests share."""

pytest_plugins = ["tests.rig.valkey_fixture", "tests.rig.docker_fixture", "tests.rig.longest_first"]
