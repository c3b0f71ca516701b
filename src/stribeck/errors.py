"""The errors a user can cause.

Every message is one line and says what was found, what is valid, and what to do.
"""


class StribeckError(Exception):
    """Base of all errors that the command line reports in one line, with exit code 1."""

    def __str__(self) -> str:
        """The message in one line, also where a name found in a file has line breaks."""
        return " ".join(super().__str__().splitlines())


class RecordingError(StribeckError):
    """A recording (bag or JSON) is missing, damaged, or says something impossible."""


class TooShortError(RecordingError):
    """A run is too short to tell anything."""


class ParameterFileError(StribeckError):
    """A parameter file is not what the format allows."""


class ConfigError(StribeckError):
    """A configuration file, an option or a combination of options is not valid."""


class StudyError(StribeckError):
    """A study database cannot be used as asked."""


class ServoError(StribeckError):
    """A servo or its bus does not answer, is not what was expected, or reports an error."""


class NodeStateError(StribeckError):
    """A node cannot do what was asked in its present state."""


class OutputError(StribeckError):
    """A result cannot be written where it was asked for."""


class MissingDependencyError(StribeckError):
    """An optional library is needed for what was asked."""
