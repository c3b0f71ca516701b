"""What happened: a YAML file with thousands of open brackets kept PyYAML busy for minutes. It must be refused at once."""

import pytest

from stribeck.errors import ConfigError
from stribeck.io.strict import DEEPEST, parse_yaml


@pytest.mark.parametrize("bracket", ["[", "{"])
def test_deep_nesting_is_refused(tmp_path, bracket):
    """In one line that names the file; as much as is allowed is still read."""
    path = tmp_path / "file.yaml"
    with pytest.raises(ConfigError, match="is nested too deeply"):
        parse_yaml("a: " + 100_000 * bracket, path, ConfigError)
    assert parse_yaml("[" * 50 + "]" * 50, path, ConfigError)
    assert DEEPEST >= 50
