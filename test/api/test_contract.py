"""The stable interface: names, signatures, and what a robot without extras can use."""

import inspect
import json
import subprocess
import sys
import warnings
from functools import partial

import pytest

import stribeck as sb
from api_made import file_of_joints
from helpers import REPOSITORY

SIGNATURES = REPOSITORY / "test" / "api" / "signatures.json"

LIGHT = (
    "import sys, stribeck as sb\n"
    "heavy = ('jax', 'scipy', 'matplotlib', 'pandas', 'tqdm', 'optuna', 'mujoco', 'rclpy')\n"
)


def public(kind):
    """Signatures of the public methods and properties of a class."""
    found = {}
    for name, member in sorted(vars(kind).items()):
        if name.startswith("_") and name != "__init__":
            continue
        if isinstance(member, property) or not callable(member):
            found[name] = "property"
        else:
            found[name] = str(inspect.signature(member))
    return found


def contract():
    """Every exported name with its signature, or those of its methods."""
    found = {}
    for name in sb.__all__:
        thing = getattr(sb, name)
        if inspect.isclass(thing):
            found[name] = public(thing)
        elif callable(thing):
            found[name] = str(inspect.signature(thing))
    return found


def test_the_interface_is_what_was_promised():
    """Names, arguments, defaults and annotations are those of signatures.json; whoever changes them changes the promise."""
    now = contract()
    promised = json.loads(SIGNATURES.read_text())
    assert sorted(now) == sorted(promised)
    for name, signature in promised.items():
        assert now[name] == signature, name


def test_every_name_is_documented_and_typed():
    """Exported functions and public methods have docstrings; the stub names what the package exports."""
    stub = (REPOSITORY / "src" / "stribeck" / "__init__.pyi").read_text()
    for name in sb.__all__:
        assert name == "__version__" or f"import {name} as {name}" in stub
        thing = getattr(sb, name)
        if not callable(thing):
            continue
        assert inspect.getdoc(thing), name
        for member in public(thing) if inspect.isclass(thing) else ():
            assert (
                member == "__init__" or inspect.getdoc(getattr(thing, member)) or member in thing.__doc__
            ), member
    assert set(sb.__all__) <= set(dir(sb))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'identify_everything'"):
        _ = sb.identify_everything


def in_fresh_interpreter(code):
    return subprocess.run(
        [sys.executable, "-c", LIGHT + code], capture_output=True, text=True, cwd=REPOSITORY
    )


@pytest.mark.ci
def test_import_brings_nothing_heavy_and_a_robot_needs_nothing_heavy(tmp_path):
    """The import loads no library, nor do reading a fit and compensating."""
    path = file_of_joints(tmp_path / "p.json")
    code = (
        "assert not [name for name in (*heavy, 'numpy', 'yaml') if name in sys.modules]\n"
        f"fit = sb.read({str(path)!r})\n"
        "repr(fit), fit._repr_html_(), fit.friction([1.0], 0.1, 0.0)\n"
        f"comp = sb.Compensator({str(path)!r})\n"
        "comp.torque([0.0], [0.1], t=0.0)\n"
        "assert not [name for name in heavy if name in sys.modules]\n"
    )
    done = in_fresh_interpreter(code)
    assert done.returncode == 0, done.stderr


def test_a_missing_library_is_one_line_that_says_what_to_install():
    code = (
        "sys.modules['jax'] = None\ntry: sb.identify_servo\nexcept sb.StribeckError as error: print(error)\n"
    )
    assert "pip install 'stribeck[fit]'" in in_fresh_interpreter(code).stdout


@pytest.mark.ci
@pytest.mark.parametrize("trials", [8_000, pytest.param(None, marks=pytest.mark.slow)])
def test_the_lines_of_the_documentation_run_as_they_stand(tmp_path, monkeypatch, trials):
    """Every Python block of docs/api.md, one after another, on the bags of the repository; one law with a small search, and as it is."""
    text = (REPOSITORY / "docs" / "api.md").read_text()
    if trials is not None:
        assert text.count('law="auto")  #') == 1
        text = text.replace('law="auto")  #', 'law="m4")  #')
    blocks = [part.partition("```")[0] for part in text.split("```python\n")[1:]]
    assert len(blocks) == 2
    (tmp_path / "bags").symlink_to(REPOSITORY / "bags")
    monkeypatch.chdir(tmp_path)
    if trials is not None:
        monkeypatch.setattr(sb, "identify_servo", partial(sb.identify_servo, trials=trials))
    names = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sb.StribeckWarning)
        for block in blocks:
            exec(compile(block, "docs/api.md", "exec"), names)  # noqa: S102 - our own documentation
    fit, sets, prediction = names["fit"], names["sets"], names["prediction"]
    assert fit.verdict.use == "usable"
    assert prediction.error < 0.02
    assert 0.6 < prediction.coverage <= 1.0
    assert set(sets) == set(fit.parameters)
    assert names["friction"] > 0.0
    assert names["torque"].shape == (1,)
