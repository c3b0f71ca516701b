"""Errors that a user can cause.

Every message is one line and states what was found, what is valid, and what to do.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any


class StribeckError(Exception):
    """Base of all errors that the command line reports in one line, with exit code 1."""

    def __str__(self) -> str:
        """The message in one line, even if a name from a file contains line breaks."""
        return " ".join(super().__str__().splitlines())


class RecordingError(StribeckError):
    """A recording (bag or JSON) is missing, damaged, or contains impossible values."""


class TooShortError(RecordingError):
    """A run is too short to be evaluated."""


class AbortedRunError(RecordingError):
    """A recording holds only runs whose timing was disturbed."""


class ParameterFileError(StribeckError):
    """A parameter file does not conform to the format."""


class ConfigError(StribeckError):
    """A configuration file, an option or a combination of options is invalid."""


class UsageError(ConfigError):
    """A command line has an unknown command or option, lacks one, or gives it a value that is not valid."""


class StudyError(StribeckError):
    """A study database cannot be used as requested."""


class ServoError(StribeckError):
    """A servo or its bus does not answer, behaves unexpectedly, or reports an error."""


class NodeStateError(StribeckError):
    """A node cannot perform a request in its current state."""


class OutputError(StribeckError):
    """A result cannot be written to the requested location."""


class MissingDependencyError(StribeckError):
    """An optional library is needed for the request."""


@contextmanager
def located(
    where: object, caught: type[Exception] = StribeckError, raised: type[StribeckError] | None = None
) -> Iterator[None]:
    """Put a place, such as file and key, before the messages of errors.

    :param raised: what is raised in place of ``caught``, by default an error of the same type.
    """
    try:
        yield
    except caught as error:
        kind: Any = raised or type(error)
        raise kind(f"{where}: {error}") from None


def check_valid(names: str | Iterable[str], valid: Iterable[str], what: str) -> None:
    """Refuse names that are not among the valid ones.

    :param what: begins the message, for example ``unknown friction law``.
    :raises ConfigError: which lists them and the valid ones.
    """
    valid = list(valid)
    unknown = [name for name in ((names,) if isinstance(names, str) else names) if name not in valid]
    if unknown:
        raise ConfigError(f"{what} {', '.join(map(repr, unknown))}; valid: {', '.join(valid)}")
