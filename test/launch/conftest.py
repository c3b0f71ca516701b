"""One installation for all tests of launch files."""

import pytest


@pytest.fixture(scope="session")
def environment(tmp_path_factory):
    """The environment of a fresh installation by pip. The ros2 command's daemon is stopped at the end."""
    from launching import environment_of, pip_installed, run

    found = environment_of(pip_installed(tmp_path_factory.mktemp("installed")))
    yield found
    run(found, "ros2", "daemon", "stop")
