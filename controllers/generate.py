#!/usr/bin/env python3
"""Writes what the controller takes from the terms of the Python package: the header terms.hpp, and parameters.

Run it after a change of model/terms; with ``--check`` it writes nothing and exits with 1 if a file is stale.
"""

import sys
from pathlib import Path

from terms_header import controller_parameters, terms_header

CONTROLLERS = Path(__file__).resolve().parent
BEGIN, END = "      # terms: written by generate.py\n", "      # end of the terms\n"


def contents(folder: Path = CONTROLLERS) -> dict[Path, str]:
    """What each generated file should contain."""
    parameters = folder / "src" / "friction_compensation_controller_parameters.yaml"
    before, _, rest = parameters.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    return {
        folder / "include" / "stribeck_controllers" / "terms.hpp": terms_header(),
        parameters: before + BEGIN + controller_parameters() + END + after,
    }


def main(arguments: list[str]) -> int:
    """Write the files, or check them."""
    check, folders = "--check" in arguments, [Path(one) for one in arguments if one != "--check"]
    stale = [
        (path, text)
        for path, text in contents(*folders).items()
        if not path.exists() or path.read_text() != text
    ]
    for path, text in stale:
        if check:
            sys.stderr.write(f"{path} does not follow model/terms: run controllers/generate.py\n")
        else:
            path.write_text(text)
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
