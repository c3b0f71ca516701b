"""What happened: a YAML file with thousands of open brackets kept PyYAML busy for minutes, and a list that contains itself
ended in a RecursionError. Both must be refused at once."""

import pytest

from stribeck.errors import ConfigError
from stribeck.strict import DEEPEST, parse_yaml


@pytest.mark.parametrize("bracket", ["[", "{"])
def test_deep_nesting_is_refused(tmp_path, bracket):
    """In one line that names the file; as much as is allowed is still read."""
    path = tmp_path / "file.yaml"
    with pytest.raises(ConfigError, match="is nested too deeply"):
        parse_yaml("a: " + 100_000 * bracket, path, ConfigError)
    assert parse_yaml("[" * 50 + "]" * 50, path, ConfigError)
    assert DEEPEST >= 50


def test_aliases_that_never_end_are_refused(tmp_path):
    """A list or mapping within itself, and ten to the ninth values in ten lines; usual aliases are read."""
    path = tmp_path / "file.yaml"
    for text in ("a: &a [1, *a]", "a: &a {b: {c: *a}}"):
        with pytest.raises(ConfigError, match="an alias contains itself"):
            parse_yaml(text, path, ConfigError)
    levels = ["l0: &l0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    levels += [f"l{k}: &l{k} [{', '.join(10 * [f'*l{k - 1}'])}]" for k in range(1, 9)]
    with pytest.raises(ConfigError, match="expand to more than 1e"):
        parse_yaml("\n".join(levels), path, ConfigError)
    assert parse_yaml("a: &a {b: [1]}\nc: *a\nd: {<<: *a, e: 2}", path, ConfigError)["d"] == {
        "b": [1],
        "e": 2,
    }
