"""Documented lines that no test executes as they stand, by the reason; each entry is the beginning of lines."""

NOT_RUN: dict[str, tuple[str, ...]] = {
    "needs hardware, or stays until it is ended; emulated in test/cli/test_record.py, test/examples/test_two_link_recordings.py and test/emulator": (
        *("stribeck emulate --link", "stribeck emulate --servo", "stribeck record config/record.yaml --port"),
        *("stribeck record my_servo.yaml", "stribeck record record.yaml"),
        *(
            "python -m stribeck.nodes.servo",
            "python -m stribeck.nodes.compensation",
            "python -m stribeck.nodes.guard",
        ),
    ),
    "the demo is run by .ci/run and test/cli/test_demo.py": ("stribeck demo", "make demo"),
    "needs the ros2 command; test/launch starts the launch files and calls the services": (
        *(
            "ros2 launch stribeck",
            "ros2 service call",
            "ros2 topic pub",
            "ros2 param set",
            "ros2 bag play",
            "ros2 run stribeck",
        ),
    ),
    "needs a database, a cluster or an account; test/identify/servo/test_study.py, test/cli/test_identify_fleet.py, test/cli/test_wandb.py": (
        *(
            "stribeck identify servo bags/ --law m6 --method cmaes",
            "stribeck identify fleet fleet.yaml --scheduler tcp",
            "stribeck identify servo \u2026",
        ),
    ),
    "belongs to the robot's own software": (
        *(
            "ros2 launch my_robot",
            "ros2 run controller_manager",
            "ros2 run my_robot",
            "ros2 control switch_controllers",
        ),
    ),
    "needs SROS 2; test/nodes/test_security_policy.py reads the policy": (
        "ros2 security",
        "export ROS_SECURITY",
    ),
    "installs or downloads; .ci/try_wheel installs the wheel into an empty environment": (
        *("pip install", "docker ", "pixi ", "rosdep install", "python3 -m venv", "source "),
    ),
    "colcon is not part of the tests' environment; test/launch builds with it where it is": ("colcon build",),
    "minutes to hours; test/documents/test_lines.py compares them with the help of the programs, whose parts test/examples and test/bench test": (
        *("python examples/", "python bench/", "make demo-arm"),
    ),
    "needs recordings of others that are not part of the repository; the commands are tested on them or on simulated machines": (
        *(
            "stribeck identify arm DIR",
            "stribeck identify arm BAG",
            "stribeck identify arm train.csv",
        ),
        *(
            "stribeck identify arm --bayes --machine arm.yaml",
            "stribeck identify arm --bayes tx40",
            "stribeck identify arm --bayes run.csv",
            "stribeck identify arm \u2026",
            "stribeck identify geometry DIR",
        ),
        *(
            "stribeck identify robot rx_run",
            "stribeck export --format mjcf --params out/robot.json",
            "stribeck identify robot FITTED",
            "stribeck identify robot dataset/",
            "stribeck advise recordings/ --model arm.urdf",
        ),
        *(
            "stribeck identify mechanism step_response",
            "stribeck identify mechanism furuta_motor/",
        ),
        *("stribeck design trajectory --machine tx40", "stribeck data describe BAG"),
    ),
}
