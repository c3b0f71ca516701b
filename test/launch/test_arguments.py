"""Arguments of the shipped launch files, read from their sources: where there is no `launch`, too."""

import ast

import pytest

from helpers import REPOSITORY
from stribeck.nodes.launching import EARLIER_ARGUMENTS

FILES = sorted((REPOSITORY / "launch").glob("*.launch.py"))
EVERYWHERE = {"namespace", "autostart", "use_sim_time"}


def declared(path):
    """Names that a launch file declares: first words of `DeclareLaunchArgument`, and keys of tables of arguments."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "DeclareLaunchArgument":
            found |= {word.value for word in node.args if isinstance(word, ast.Constant)}
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in ("ARGUMENTS", "USUAL"):
            found |= {key.value for key in node.value.keys}
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_all_have_the_same_words(path):
    """Namespace, start and clock in each; none has a word that others refuse as an earlier one."""
    names = declared(path)
    assert names >= EVERYWHERE
    assert not names & EARLIER_ARGUMENTS.keys()
