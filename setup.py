"""What pyproject.toml cannot say: files that ROS expects under share/stribeck and lib/stribeck, and the lowest Python."""

from pathlib import Path

from setuptools import Distribution, setup

PYTHON = ">=3.11"

SHARED = ("bags", "config", "examples", "launch")


def data_files() -> list[tuple[str, list[str]]]:
    """The ament index marker, package.xml, what `ros2 run` runs, and every file below the shared folders."""
    files = [
        ("share/ament_index/resource_index/packages", ["resource/stribeck"]),
        ("share/stribeck", ["package.xml"]),
        ("lib/stribeck", below("scripts")),
    ]
    for root in SHARED:
        folders = sorted({str(Path(name).parent) for name in below(root)})
        files += [
            (
                f"share/stribeck/{folder}",
                [name for name in below(folder) if Path(name).parent == Path(folder)],
            )
            for folder in folders
        ]
    return files


def below(folder: str) -> list[str]:
    """All files below a folder, less what Python leaves behind."""
    found = (path for path in sorted(Path(folder).rglob("*")) if path.is_file())
    return [str(path) for path in found if "__pycache__" not in path.parts]


class Package(Distribution):
    """States the lowest Python when a command runs.

    colcon reads the configuration without a command, as Python literals, and a version specifier is none.
    """

    def run_commands(self) -> None:
        self.metadata.python_requires = PYTHON
        super().run_commands()


setup(distclass=Package, data_files=data_files())
