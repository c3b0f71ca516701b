"""A trajectory file that holds a number ended `stribeck record` with a traceback.

What must happen: one line that names the file and says what is expected.
"""

import pytest

from stribeck.errors import ConfigError
from stribeck.session.config import _trajectory


@pytest.mark.parametrize("text", ["5\n", "- speeds\n", "speeds\n", ""])
def test_what_is_no_mapping_is_refused_in_one_line(tmp_path, text):
    """Numbers, lists, words and nothing."""
    path = tmp_path / "motion.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"motion\.yaml: expected named values") as caught:
        _trajectory(str(path))
    assert "\n" not in str(caught.value)
