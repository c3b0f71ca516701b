"""A robot of three joints, for torques and forces at its tool."""


def arm_of_three(tmp_path):
    """A URDF of three joints that reach a point in space."""
    links = '<robot name="arm"><link name="l0"/>'
    for k, axis in enumerate(("0 0 1", "0 1 0", "0 1 0"), 1):
        links += f"""<link name="l{k}"><inertial><origin xyz="0 0 0.1"/><mass value="0.3"/><inertia ixx="1e-3" iyy="1e-3" izz="1e-3"
            ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="j{k}" type="continuous"><parent link="l{k - 1}"/><child link="l{k}"/>
            <origin xyz="0 0 {0.0 if k == 1 else 0.2}"/><axis xyz="{axis}"/></joint>"""
    path = tmp_path / "arm.urdf"
    path.write_text(links + "</robot>")
    return path
