"""`--payload`: what an arm carries, known or identified, is taken off its links and told to the compensation."""

import json

import numpy as np
import pytest
import yaml

from moving_arms import JOINTS, LINK, ROBOT, recording, save, urdf
from stribeck.cli.main import main
from stribeck.identify.arm.model import load_arm
from stribeck.identify.arm.payload import payload_inertials
from stribeck.live.parameters import CompensationParameters
from stribeck.live.setup import compensated_joints, learning_of
from stribeck.rigid.payload import Payload
from stribeck.rigid.urdf import read_urdf

MASS, AT = 1.5, (0.05, -0.03, 0.06)
"""A body on the tool, with an inertia of its own."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A machine file, the URDF of the bare arm, and a recording with the body on its tool."""
    folder = tmp_path_factory.mktemp("robot")
    path = urdf(folder)
    bare = path.read_text()
    x, y, z = AT
    body = LINK.format(name="body", mass=MASS, com=f"{x} {y} {z}", xx=0.003, yy=0.004, zz=0.003)
    joint = '<joint name="grip" type="fixed"><parent link="tool"/><child link="body"/></joint>'
    path.write_text(bare.replace("</robot>", f"{body}{joint}</robot>"))
    save(recording(load_arm(path, JOINTS), noise=0.1), folder / "carrying.csv")
    path.write_text(bare)
    (folder / "robot.yaml").write_text(ROBOT)
    return folder


def identify(folder, *words):
    fixed = ["--config", str(folder / "robot.yaml"), "--data", str(folder / "carrying.csv"), "--quiet"]
    return main(["identify-arm", *fixed, *words])


def test_a_payload_is_identified(folder, tmp_path, capsys):
    """Mass and centre in the frame of the tool, with standard deviations, on an arm whose URDF is right."""
    words = ["--payload", "identify", "--payload-link", "tool", "--fits", "ols"]
    assert identify(folder, *words, "--json", str(tmp_path / "f.json")) == 0
    found = json.loads((tmp_path / "f.json").read_text())["payload"]
    assert found["link"] == "tool"
    assert found["mass"] == pytest.approx(MASS, rel=0.02)
    estimates = found["estimates"].values()
    assert [one["value"] for one in estimates] == [found["mass"], *found["com"]]
    half = np.array([0.5 * np.ptp(one["interval"]) for one in estimates])
    assert (np.abs(np.array([found["mass"], *found["com"]]) - [MASS, *AT]) < 2.0 * half).all()
    assert max(half) < 0.06  # along the axes of shoulder and elbow the centre is known worst
    assert found["estimates"]["mass"]["status"] == "determined"
    assert "payload at tool (identified" in capsys.readouterr().out


def test_a_known_payload_is_not_part_of_the_links(folder, tmp_path):
    """The new URDF is that of the bare arm; the node of compensation.yaml adds the payload, which can be changed."""
    out = tmp_path / "out"
    text = ",".join(map(str, (MASS, *AT)))
    words = ["--payload", text, "--payload-link", "tool", "--fits", "consistent,full", "--output", str(out)]
    assert identify(folder, *words) == 0
    bare = load_arm(folder / "arm.urdf", JOINTS)
    new = load_arm(out / "little.urdf", JOINTS)
    rng = np.random.default_rng(0)
    states = rng.uniform(-1.0, 1.0, (3, 50, 3))
    torques = [arm.inverse_dynamics(*states) for arm in (bare, new)]
    assert np.abs(torques[1] - torques[0]).max() < 0.05 * np.abs(torques[0]).max()
    path = out / "compensation.yaml"
    content = yaml.safe_load(path.read_text())["/**/compensation"]["ros__parameters"]
    assert content["payload"] == [MASS, *AT]
    assert content["payload_link"] == "tool"
    parameters = CompensationParameters.read(path, "compensation")
    dynamics = learning_of(parameters, compensated_joints(parameters, out), out).dynamics
    payload = Payload(MASS, AT, "tool")
    carrying = new.with_inertials(new.inertials + payload_inertials(new, payload))
    _, bias = dynamics.mass_matrix_and_bias(states[0][0], states[1][0])
    still = carrying.inverse_dynamics(states[0][:1], states[1][:1], np.zeros((1, 3)))[0]
    assert bias == pytest.approx(still, rel=1e-3)  # gravity of 9.81 and of 9.80665 m/s^2


def test_two_models_of_a_payload_agree(folder):
    """Gravity torques with the payload, by Pinocchio for identification and by the URDF reader of the node."""
    path, payload = folder / "arm.urdf", Payload(2.0, (0.1, 0.02, -0.05), "tool")
    arm = load_arm(path, JOINTS)
    arm = arm.with_inertials(arm.inertials + payload_inertials(arm, payload))
    model = read_urdf(path).with_payload(payload).model(JOINTS, gravity=(0.0, 0.0, -9.81))
    position = np.array([0.3, -0.7, 1.1])
    _, bias = model.mass_matrix_and_bias(position, np.zeros(3))
    expected = arm.inverse_dynamics(position[None], np.zeros((1, 3)), np.zeros((1, 3)))[0]
    assert bias == pytest.approx(expected, abs=1e-9)


@pytest.mark.slow
def test_a_payload_that_was_not_there_is_doubted(folder, tmp_path):
    """Ten kilograms said, two and a half there: nothing would remain of the link."""
    words = ["--payload", "10", "--fits", "ols,consistent", "--json", str(tmp_path / "f.json")]
    assert identify(folder, *words) == 0
    found = json.loads((tmp_path / "f.json").read_text())
    assert found["verdict"] != "usable"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--payload", "a kilogram"], "expected MASS,X,Y,Z"),
        (["--payload", "1,2"], "expected MASS,X,Y,Z"),
        (["--payload", "-1"], "must be positive"),
        (["--payload", "nan"], "expected MASS,X,Y,Z"),
        (["--payload", "1", "--payload-link", "hand"], "no moving link 'hand' for a payload; valid: trunk"),
        (["--payload-link", "tool"], "--payload-link needs --payload"),
    ],
)
def test_payloads_that_cannot_be(folder, capsys, words, said):
    """One line that says what is expected."""
    assert identify(folder, "--fits", "ols", *[words[0] + "=" + words[1], *words[2:]]) == 1
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1
