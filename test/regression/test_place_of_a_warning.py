"""A warning of the API named a line of api/arm.py: a program's author could not see which of his calls it was about."""

import warnings

from stribeck.api.recordings import StribeckWarning, warn


def test_a_warning_names_the_line_of_the_caller():
    """The first place outside the package, at whatever depth the API warns."""
    names = {"warn": warn}
    package = warn.__code__.co_filename
    for code in ("def a():\n    warn('x')", "def b():\n    a()", "def c():\n    b()"):
        exec(compile(code, package, "exec"), names)  # noqa: S102 - functions as if of the package
    for call in ("a", "b", "c"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", StribeckWarning)
            names[call]()
        assert [one.filename for one in caught] == [__file__]
