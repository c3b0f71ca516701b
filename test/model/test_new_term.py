"""A new term is one file and one line of the table, with its import: everything that uses friction then knows it."""

import os
import shutil
import subprocess
import sys

import pytest

from helpers import REPOSITORY

TERM = '''"""A new term."""

from stribeck.model.terms.term import FrictionParameter, RobotSearch, Term, Units


def _formula(x, xp, factor):
    return {formula}


NEW = Term(
    "{name}",
    "the {name} effect",
    "{kind}",
    (
        FrictionParameter(
            "friction_{name}", "K_n", Units("{unit}", "{unit}"), ({lower}, {upper}), sign="{sign}",
            robot=RobotSearch({robot}),
        ),
    ),
    _formula,
)
'''

SLANT = {
    "name": "slant", "kind": "dry", "formula": "factor * x.position", "unit": "N m/rad",
    "lower": -0.1, "upper": 0.1, "sign": "any", "robot": "0.0, -5.0, 5.0, 0.1",
}  # fmt: skip
SIXTH = {
    "name": "sixth", "kind": "viscous", "formula": "factor * x.speed**6", "unit": "N m s^6/rad^6",
    "lower": 0.0, "upper": 1e-4, "sign": "nonnegative", "robot": "1e-4, 0.0, 0.1, 5e-4",
}  # fmt: skip
"""Friction that rises with the position, and one that rises with the sixth power of the velocity."""

TRUE = {
    "slant": {"live": 0.02, "exported": 0.03, "servo": 0.03, "arm": 0.6, "robot": 0.15},
    "sixth": {"live": 1e-4, "exported": 2e-5, "servo": 2e-5, "arm": 0.01, "robot": 5e-4},
}
"""Value of the parameter where it is used or found."""


@pytest.fixture(scope="module", params=[SLANT, SIXTH], ids=["position", "sixth-power"])
def copy(request, tmp_path_factory):
    """A copy of the repository with a new term, for which the controllers' code was generated; and its name."""
    folder, name = tmp_path_factory.mktemp("copy"), request.param["name"]
    kept = shutil.ignore_patterns("__pycache__", ".*")
    for part in ("src", "config", "controllers", "test/support", "test/controllers", "examples/two_links"):
        shutil.copytree(REPOSITORY / part, folder / part, ignore=kept)
    shutil.copy(REPOSITORY / "package.xml", folder)
    terms = folder / "src" / "stribeck" / "model" / "terms"
    (terms / f"{name}.py").write_text(TERM.format(**request.param))
    table = (terms / "__init__.py").read_text()
    for line, new in (
        (
            "from stribeck.model.terms.viscous import VISCOUS\n",
            f"from stribeck.model.terms.{name} import NEW\n",
        ),
        ("        VISCOUS,\n", "        NEW,\n"),
    ):
        assert table.count(line) == 1
        table = table.replace(line, line + new)
    (terms / "__init__.py").write_text(table)
    run(folder, folder / "controllers" / "generate.py")
    return folder, name


def run(folder, *words):
    """Run a Python program of the copy."""
    paths = [folder / part for part in ("src", "test/support", "examples/two_links")]
    given = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "JAX_PLATFORMS": "cpu"}
    given.pop("STRIBECK_BINDING", None)
    done = subprocess.run([sys.executable, *map(str, words)], env=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]


def use(copy, part, tmp_path):
    """Run one part of the child in the copy; it imports arms."""
    pytest.importorskip("pinocchio", reason="Pinocchio is not installed: pip install '.[arm]'")
    folder, name = copy
    child = folder / "test" / "support" / "new_term_child.py"
    run(folder, child, part, tmp_path, name, f"friction_{name}", TRUE[name][part])


@pytest.mark.slow
def test_the_term_is_cancelled_in_python_and_in_cpp(copy, tmp_path):
    """By the same torque; the generated header has it."""
    if shutil.which(os.environ.get("CXX", "g++")) is None:
        pytest.skip("no C++ compiler here: apt install g++")
    use(copy, "live", tmp_path)


@pytest.mark.slow
def test_the_term_is_exported(copy, tmp_path):
    """As C, ONNX and table; MuJoCo's model names it as lost."""
    pytest.importorskip("onnx", reason="ONNX is not installed: pip install '.[export]'")
    use(copy, "exported", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("part", ["servo", "arm", "robot"])
def test_the_term_is_identified(copy, tmp_path, part):
    """With an interval, by `fit` (and `report` shows it), `identify-arm` and `identify-robot`."""
    if part == "robot":
        pytest.importorskip("mujoco", reason="MuJoCo is not installed: pip install '.[mujoco]'")
    use(copy, part, tmp_path)
