# SPDX-License-Identifier: Apache-2.0
"""The scripted operator with the emulated drone, directly and through ROS by a launch file."""

import pytest
from composition import launch
from ports import free_port

from drone_bridge.programs.plan import Leg
from drone_bridge.telemetry import operator as telemetry
from drone_bridge.telemetry.codec import DroneCommand


class Drone:
    """Telemetry for the operator."""

    full_speed, full_climb, full_turn = 2.0, 0.5, 1.0


def test_legs_are_fractions_of_full_scale():
    command = telemetry.command_for(Leg(1.0, forward=1.0, left=-0.5, up=0.25, turn=-0.5), Drone)
    assert command == DroneCommand(thrust=0.5, pitch=0.25, roll=0.125, yaw=-0.25)
    assert telemetry.command_for(Leg(1.0, forward=50.0, up=-9.0), Drone) == DroneCommand(thrust=-1.0, pitch=0.5)


@pytest.mark.exhaustive
@pytest.mark.parametrize("roles", [{}, {"vehicle_role": "connect", "operator_role": "listen"}])
def test_the_launch_file_puts_a_flight_through_ros(domain, roles):
    given = {"relay": True, "emulate": True, "operate": True, "operator_plan": "2s up 0.5", **roles}
    with launch("telemetry_server.launch.xml", **given, operator_port=free_port(), vehicle_port=free_port()) as flight:
        flight.wait_for_line("2s up 0.5: thrust 0.5")
        flight.wait_for_line(r"leaving the drone in hover: \d\d+ documents, [1-9]\d* images", timeout_s=120)
        flight.wait_for_line("commanded from")
