"""What pyproject.toml cannot say: the files that ROS expects under share/stribeck."""

from pathlib import Path

from setuptools import setup

SHARED = ("config", "bags")


def data_files() -> list[tuple[str, list[str]]]:
    """The ament index marker, package.xml, and every file below the shared folders."""
    files = [
        ("share/ament_index/resource_index/packages", ["resource/stribeck"]),
        ("share/stribeck", ["package.xml"]),
    ]
    for root in SHARED:
        folders = sorted({path.parent for path in Path(root).rglob("*") if path.is_file()})
        for folder in folders:
            names = [str(path) for path in sorted(folder.iterdir()) if path.is_file()]
            files.append((f"share/stribeck/{folder}", names))
    return files


setup(data_files=data_files())
