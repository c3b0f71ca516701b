"""A small arm to design trajectories for: a shoulder, an elbow and a slide, with bodies that can touch."""

import json
from pathlib import Path
from typing import Any

URDF = """<robot name="small">
  <link name="base"><collision><origin xyz="0 0 0.1"/><geometry><cylinder radius="0.05" length="0.1"/></geometry></collision></link>
  <link name="upper">
    <inertial><origin xyz="0.1 0.02 0"/><mass value="2"/><inertia ixx="0.01" ixy="0.001" ixz="0" iyy="0.02" iyz="0" izz="0.02"/></inertial>
    <collision><origin xyz="0.15 0 0" rpy="0 1.5707963 0"/><geometry><cylinder radius="0.03" length="0.24"/></geometry></collision>
  </link>
  <link name="lower">
    <inertial><origin xyz="0.1 0 0.01"/><mass value="1"/><inertia ixx="0.004" ixy="0" ixz="0.0005" iyy="0.006" iyz="0" izz="0.006"/></inertial>
    <collision><origin xyz="0.12 0 0"/><geometry><box size="0.2 0.05 0.05"/></geometry></collision>
  </link>
  <link name="slider">
    <inertial><origin xyz="0 0.01 0"/><mass value="0.5"/><inertia ixx="0.001" ixy="0" ixz="0" iyy="0.001" iyz="0" izz="0.001"/></inertial>
    <collision><geometry><sphere radius="0.03"/></geometry></collision>
  </link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><origin xyz="0 0 0.4"/><axis xyz="0 1 0"/>
    <limit effort="30" velocity="3" lower="-2.5" upper="2.5"/></joint>
  <joint name="elbow" type="revolute"><parent link="upper"/><child link="lower"/><origin xyz="0.3 0 0" rpy="0.3 0 0"/><axis xyz="0 1 0"/>
    <limit effort="15" velocity="4" lower="-2.6" upper="2.6"/></joint>
  <joint name="slide" type="prismatic"><parent link="lower"/><child link="slider"/><origin xyz="0.25 0 0"/><axis xyz="1 0 0"/>
    <limit effort="20" velocity="1" lower="0" upper="0.1"/></joint>
</robot>
"""

JOINTS = ["shoulder", "elbow", "slide"]
LIMITS = {"acceleration": [20, 20, 5]}


def small_robot(folder: Path, **changes: Any) -> Path:
    """The YAML of the small arm, its URDF beside it."""
    (folder / "small.urdf").write_text(URDF)
    content = {
        "schema": 1,
        "name": "small",
        "urdf": "small.urdf",
        "joints": JOINTS,
        "limits": LIMITS,
        "excitation": {"floor": 0.0},
        **changes,
    }
    path = folder / "small.yaml"
    path.write_text(json.dumps({key: value for key, value in content.items() if value is not None}))
    return path
