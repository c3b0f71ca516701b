"""Verdicts: the gravest reason counts."""

from stribeck.model.verdict import Reason, Verdict


def test_the_gravest_reason_is_the_verdict():
    """Without any the result is usable."""
    doubt, ban = Reason("a", "doubtful", "first"), Reason("b", "unusable", "second")
    assert Verdict().use == "usable"
    assert Verdict((doubt,)).use == "doubtful"
    assert Verdict((ban, doubt)).use == "unusable"
    assert Verdict((doubt,)).to_json() == {
        "verdict": "doubtful",
        "reasons": [{"key": "a", "use": "doubtful", "text": "first"}],
    }
    assert Verdict((ban, doubt)).lines()[0] == "verdict: unusable"


def test_a_robot_of_which_one_joint_is_unusable_is_doubtful():
    """The other joints may be used; without any other the robot is unusable. What concerns all concerns each joint."""
    ban, doubt = Reason("b", "unusable", "second", joint="knee"), Reason("a", "doubtful", "first")
    assert Verdict((ban,), ("hip", "knee")).use == "doubtful"
    assert Verdict((ban,), ("knee",)).use == "unusable"
    assert Verdict((ban,)).use == "unusable"
    verdict = Verdict((ban, doubt), ("hip", "knee"))
    assert (verdict.of("hip").use, verdict.of("knee").use) == ("doubtful", "unusable")
    assert not verdict.of("knee").reasons[0].joint
    found = verdict.to_json(["run"])
    assert found["verdicts"] == {
        "joints": {"hip": "doubtful", "knee": "unusable"},
        "files": {"run": "doubtful"},
    }
    assert found["reasons"][0] == {"key": "b", "use": "unusable", "text": "second", "joint": "knee"}
    of_file = Verdict((Reason("a", "doubtful", "first", file="run"),))
    assert (of_file.of_file("run").use, of_file.of_file("other").use) == ("doubtful", "usable")
