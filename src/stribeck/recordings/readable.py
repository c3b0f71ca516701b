"""Reading of recordings of which some may be unusable: those are named and left out, the others count."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from stribeck.errors import RecordingError

Run = TypeVar("Run")


def read_usable(
    paths: Sequence[Path], read: Callable[[Sequence[Path]], list[Run]], note: Callable[[str], None]
) -> list[Run]:
    """The runs of recordings; if one of several cannot be used, it is left out with a line.

    :param read: reads files, folders and bags together, since a run may be in several files.
    :param note: receives the line.
    :raises RecordingError: if none can be used.
    """
    try:
        return read(paths)
    except RecordingError:
        if len(paths) == 1:
            raise
    found: list[Run] = []
    refused: list[str] = []
    for path in paths:
        try:
            found += read([path])
        except RecordingError as error:
            refused.append(str(error))
    if not found:
        raise RecordingError("; ".join(refused))
    for text in refused:
        note(f"{text}; it is not used")
    return found
