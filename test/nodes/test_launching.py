"""What launch files say when a step fails: the reason of the node or command, without launch itself."""

from types import SimpleNamespace

import pytest

from stribeck.errors import ConfigError
from stribeck.nodes.launching import FailureReport, parameters_of

RUNNING = SimpleNamespace(is_shutdown=False)


def ended(code, pid=7):
    """The end of a process."""
    return SimpleNamespace(returncode=code, pid=pid, process_name="identification-2")


@pytest.mark.parametrize(
    ("logged", "reason"),
    [
        (
            b"[ERROR] [1.0] [identification]: identification failed: no runs\n",
            "identification failed: no runs",
        ),
        (b"stribeck: candidates.txt: no such file\n", "candidates.txt: no such file"),
        (b"cannot start: no such parameter\n", "cannot start: no such parameter"),
    ],
)
def test_the_last_step_and_those_before_it_end_the_launch_with_the_reason(logged, reason):
    """Of a node, of a command, and of a node that did not start; what follows is not started."""
    failure = FailureReport(stays=True)
    failure._note(SimpleNamespace(pid=7, text=b"stribeck: warning: something else\n" + logged))
    started = []
    for handler in (failure.last, failure.then(lambda: started.append(1))):
        with pytest.raises(RuntimeError, match=f"identification-2 has failed with exit code 1: {reason}"):
            handler(ended(1), RUNNING)
    assert not started


def test_what_follows_starts_when_a_step_has_done_its_work():
    """Its actions are those of the launch; while the launch ends nothing more is started."""
    failure = FailureReport(stays=True)
    assert failure.then(lambda: ["next"])(ended(0), RUNNING) == ["next"]
    assert failure.then(lambda: ["next"])(ended(0), SimpleNamespace(is_shutdown=True)) is None
    assert failure.then(lambda: ["next"])(ended(1), SimpleNamespace(is_shutdown=True)) is None


def test_a_parameter_file_of_several_steps_goes_to_those_that_it_names(tmp_path):
    """A misspelt name counts, so that its node refuses it; what is no parameter file ends the launch."""
    path = tmp_path / "parameters.yaml"
    context = SimpleNamespace(launch_configurations={"params_file": str(path)})
    path.write_text("/**/excitation:\n  ros__parameters: {commander: forward}\n")
    assert parameters_of(context, "shipped", step="excitation") == ["shipped", str(path)]
    assert parameters_of(context, "shipped", step="identification") == ["shipped"]
    assert parameters_of(context, "shipped") == ["shipped", str(path)]
    path.write_text("/**:\n  ros__parameters: {use_sim_time: true}\n")
    assert parameters_of(context, step="identification") == [str(path)]
    path.write_text("/identifcation:\n  ros__parameters: {watch: bags}\n")
    assert parameters_of(context, step="identification") == [str(path)]
    path.write_text("excitation: 3\n")
    with pytest.raises(ConfigError, match="excitation"):
        parameters_of(context, step="excitation")
    with pytest.raises(RuntimeError, match="no such file"):
        parameters_of(
            SimpleNamespace(launch_configurations={"params_file": "nowhere.yaml"}), step="excitation"
        )
