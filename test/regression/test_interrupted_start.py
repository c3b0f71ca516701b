"""Ctrl-C while a verb was still importing ended with a traceback, and exit code 1 or that of the signal."""

import pytest

from stribeck.cli import main as entry


@pytest.mark.parametrize("argv", [["fit", "--logdir", "x"], ["identify-arm", "--config", "x", "--data", "y"]])
def test_an_interrupt_during_the_imports_of_a_verb_is_said(argv, monkeypatch, capsys):
    """One line, and exit code 130."""

    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("stribeck.cli.parser.parse", interrupted)
    assert entry.main(argv) == entry.INTERRUPTED
    assert capsys.readouterr().err == "stribeck: interrupted\n"
