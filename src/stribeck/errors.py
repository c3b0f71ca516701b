"""Errors that a user can cause.

Every message is one line and states what was found, what is valid, and what to do.
"""


class StribeckError(Exception):
    """Base of all errors that the command line reports in one line, with exit code 1."""

    def __str__(self) -> str:
        """The message in one line, even if a name from a file contains line breaks."""
        return " ".join(super().__str__().splitlines())


class RecordingError(StribeckError):
    """A recording (bag or JSON) is missing, damaged, or contains impossible values."""


class TooShortError(RecordingError):
    """A run is too short to be evaluated."""


class ParameterFileError(StribeckError):
    """A parameter file does not conform to the format."""


class ConfigError(StribeckError):
    """A configuration file, an option or a combination of options is invalid."""


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
