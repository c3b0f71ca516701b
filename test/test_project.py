"""The project holds together: one version, a base installation that needs no fit, valid package data."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest

import stribeck
from helpers import REPOSITORY

BASE_MODULES = ["stribeck"] + [
    ".".join(path.relative_to(REPOSITORY / "src").with_suffix("").parts)
    for layer in ("model", "rigid", "files", "recordings", "survey")
    for path in sorted((REPOSITORY / "src" / "stribeck" / layer).rglob("[a-z]*.py"))
]
ACTUATORS = len(list((REPOSITORY / "config" / "actuators").glob("*.yaml")))
LONGEST_MODULE, LONGEST_FUNCTION = 450, 60
EXTRA_MODULES = ["jax", "jaxlib", "optuna", "cmaes", "matplotlib", "scipy", "tqdm", "sqlalchemy"]


def without_extras(code):
    """Run code in a fresh interpreter in which the extras cannot be imported."""
    blocked = f"import sys\nfor name in {EXTRA_MODULES!r}: sys.modules[name] = None\n"
    return subprocess.run(
        [sys.executable, "-c", blocked + code], capture_output=True, text=True, cwd=REPOSITORY
    )


def test_versions_agree():
    """package.xml, the package and what pip reads are one version."""
    root = ElementTree.parse(REPOSITORY / "package.xml").getroot()
    assert root.findtext("version") == stribeck.__version__
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    assert project["project"]["version"] == stribeck.__version__
    changelog = (REPOSITORY / "CHANGELOG.md").read_text()
    assert re.search(rf"^## \[?{re.escape(stribeck.__version__)}", changelog, re.MULTILINE)


def test_package_xml_is_what_colcon_needs():
    """Format 3, ament_python, a maintainer with a real domain, a licence that is there."""
    root = ElementTree.parse(REPOSITORY / "package.xml").getroot()
    assert root.attrib["format"] == "3"
    assert root.findtext("name") == "stribeck"
    assert root.findtext("export/build_type") == "ament_python"
    assert re.fullmatch(r"[^@]+@[^@]+\.[a-z]+", root.find("maintainer").attrib["email"])
    assert root.findtext("license") == "Apache-2.0"
    assert "Apache License" in (REPOSITORY / "LICENSE").read_text()


def test_base_installation_imports():
    """What recordings and parameter files are read with needs neither JAX nor Optuna nor matplotlib."""
    done = without_extras("".join(f"import {module}\n" for module in BASE_MODULES))
    assert done.returncode == 0, done.stderr


def test_modules_and_functions_are_short_and_class_names_unique():
    """At most 450 lines in a module and 60 in a function; one name is one class, over all layers but the API,
    whose names are for users and may repeat those of what they wrap."""
    places: dict[str, list[str]] = {}
    for path in sorted((REPOSITORY / "src" / "stribeck").rglob("*.py")):
        text = path.read_text()
        assert text.count("\n") <= LONGEST_MODULE, path
        public = path.parent.name == "api"
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno - node.lineno < LONGEST_FUNCTION, f"{path}: {node.name}"
            elif isinstance(node, ast.ClassDef) and not node.name.startswith("_") and not public:
                places.setdefault(node.name, []).append(str(path))
    assert len(places) > 300
    assert not {name: found for name, found in places.items() if len(found) > 1}


def test_verbs_that_need_an_extra_say_so():
    """Without the fit extra, fit ends with one line that says what to install; import still works."""
    done = without_extras("from stribeck.cli.main import main; sys.exit(main(['fit', '--logdir', 'x']))")
    assert done.returncode == 1
    assert "pip install 'stribeck[fit]'" in done.stderr
    assert "Traceback" not in done.stderr
    done = without_extras("from stribeck.cli.main import main; sys.exit(main(['excite', '--urdf', 'x']))")
    assert "pip install 'stribeck[arm]'" in done.stderr, "all that it needs, at once"
    done = without_extras(
        "from stribeck.cli.main import main; sys.exit(main(['import', 'x.json', '--output', 'y']))"
    )
    assert done.returncode == 1
    assert "no such file" in done.stderr


@pytest.mark.slow
def test_a_plain_installation_has_what_a_robot_needs(tmp_path):
    """pip install . into a fresh environment: core, io, servo files and bags, without JAX."""
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    source = tmp_path / "source"
    subprocess.run(["git", "clone", "-q", REPOSITORY, source], check=True)
    subprocess.run([python, "-m", "pip", "install", "-q", source], check=True)
    code = (
        "import stribeck.model, stribeck.files.drives as p, sys\n"
        "from pathlib import Path\n"
        "from stribeck.files.actuators import actuator_names, load_actuator\n"
        "from stribeck.files.folders import shared_directory\n"
        "from stribeck.recordings.sources import read_recordings\n"
        f"assert len([load_actuator(n) for n in actuator_names()]) == {ACTUATORS}\n"
        "assert len(read_recordings(shared_directory('bags') / 'xl330_simulated')) == 36\n"
        "assert not {'jax', 'optuna', 'matplotlib'} & set(sys.modules)\n"
    )
    subprocess.run([python, "-c", code], check=True, cwd=tmp_path)
    listed = subprocess.run([python, "-m", "pip", "list"], capture_output=True, text=True, check=True).stdout
    assert not re.search(r"^(jax|optuna|matplotlib|scipy)\b", listed, re.MULTILINE)
    script = Path(tmp_path / "venv" / "bin" / "stribeck")
    assert subprocess.run([script, "fit", "--logdir", "x"], capture_output=True).returncode == 1
