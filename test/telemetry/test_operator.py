# SPDX-License-Identifier: Apache-2.0
"""The scripted operator with the emulated drone, through ROS by a launch file."""

import pytest
from composition import launch
from ports import free_port


@pytest.mark.exhaustive
@pytest.mark.parametrize("roles", [{}, {"vehicle_role": "connect", "operator_role": "listen"}])
def test_the_launch_file_puts_a_flight_through_ros(domain, roles):
    given = {"relay": True, "emulate": True, "operate": True, "operator_plan": "2s up 0.5", **roles}
    with launch("telemetry_server.launch.xml", **given, operator_port=free_port(), vehicle_port=free_port()) as flight:
        flight.wait_for_line("2s up 0.5: ")
        flight.wait_for_line(r"ended: .*height [1-9].*, flying", timeout_s=120)
        flight.wait_for_line("commanded from")
