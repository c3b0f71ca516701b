"""What is installed: the lowest Python where pip reads it and colcon does not stumble, and files that the program needs anywhere."""

import ast
import re
import subprocess
import sys

import pytest
import yaml

import stribeck
from helpers import REPOSITORY
from launching import copied_source

pytest.importorskip("setuptools", reason="a build needs setuptools")

AS_COLCON = """
import sys
from distutils.core import run_setup
import setuptools
dist = run_setup("setup.py", script_args=("--dry-run",), stop_after="config")
skip = ("cmdclass", "distclass", "ext_modules", "metadata")
found = {k: v for k, v in dist.__dict__.items() if not k.startswith("_") and not callable(v) and k not in skip}
found = {k: v for k, v in found.items() if k not in dist.display_option_names}
found["metadata"] = {
    k: v for k, v in dist.metadata.__dict__.items() if k not in ("license_files", "provides_extras")
}
sys.stdout.write("\\n" + repr(found))
"""
"""How colcon's Python packages are identified: the configuration as text, which is read as literals."""


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A copy of the sources, in which builders may leave what they like."""
    return copied_source(tmp_path_factory.mktemp("packages") / "source")


def said(source, *words):
    """What Python says in the folder of the sources."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *words], cwd=source, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_pip_reads_the_lowest_python(source, tmp_path):
    """In the metadata, the version of the Makefile."""
    said(source, "setup.py", "-q", "egg_info", "--egg-base", str(tmp_path))
    (written,) = tmp_path.glob("*.egg-info/PKG-INFO")
    (lowest,) = re.findall(r"^Requires-Python: >=(3)\.(\d+)$", written.read_text(), re.MULTILINE)
    assert f"({', '.join(lowest)})" in (REPOSITORY / "Makefile").read_text()


def test_colcon_reads_the_configuration(source):
    """As literals, the name and the data files among it."""
    found = ast.literal_eval(said(source, "-c", AS_COLCON).splitlines()[-1])
    assert found["metadata"]["name"] == "stribeck"
    folders = {folder for folder, _ in found["data_files"]}
    assert {"share/stribeck/config/actuators", "share/stribeck/launch", "lib/stribeck"} <= folders
    assert "nodes/loopback.xml" in found["package_data"]["stribeck"]


def test_citation_and_workflow_are_of_this_version():
    """CITATION.cff has the version; the public host runs .ci/run."""
    citation = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text())
    assert citation["version"] == stribeck.__version__
    workflow = yaml.safe_load((REPOSITORY / ".github" / "workflows" / "ci.yml").read_text())
    lines = [step.get("run", "") for job in workflow["jobs"].values() for step in job["steps"]]
    for line in lines:
        for program in re.findall(r"\.ci/\w+", line):
            assert (REPOSITORY / program).is_file(), program
    assert ".ci/run" in lines
