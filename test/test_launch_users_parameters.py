# SPDX-License-Identifier: Apache-2.0
"""A user's parameter file for a launch file, as the node has it in the end."""

import pytest
from composition import launch

OF_USER = {"host": "127.0.0.77", "command_timeout": 0.75, "wheel_separation": 0.25}


@pytest.mark.parametrize("key", ["/**", "/**/robot_bridge", "/r1/robot_bridge"])
def test_parameters_of_the_user_win_however_they_name_the_node(ros, tmp_path, key):
    file = tmp_path / "mine.yaml"
    lines = [f"    {name}: {value}" for name, value in OF_USER.items()]
    file.write_text("\n".join([f"{key}:", "  ros__parameters:", *lines]))
    with launch("robot.launch.xml", params_file=file, robot_host="127.0.0.9", wheel_separation=0.7, namespace="r1"):
        values = ros.parameters("/r1/robot_bridge")
    assert OF_USER.items() <= values.items()
