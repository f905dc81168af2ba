# SPDX-License-Identifier: Apache-2.0
"""seek_target flies a drone that holds velocities, with a camera of its own: all through topics."""

import sys

from processes import Process, when_listening

from drone_bridge.msg import ControllerState

#: As a webcam has it: with it, what is 0.65 m away shows no outline.
CAMERA = ("--hfov", 73, "--vfov", 58, "--width", 160, "--height", 120)


def test_it_finds_its_target_and_holds_where_the_outline_is_seen(ros, start_child):
    world = ("--layout", "pose", "--realtime", "--seed", 3)
    testbed = start_child(sys.executable, "-m", "drone_bridge.testbed.emulator", "--port", 0, *world, *CAMERA)
    states = ros.subscribe(ControllerState, "drone_controller/state", 100)
    flown = {"commands": "velocities", "max_speed": 1.5, "search_yaw_rate": 1.0}
    parameters = {f"seek_target.{name}": value for name, value in flown.items()}
    with (
        Process.node("testbed_bridge", port=when_listening(testbed).port),
        Process.node("drone_controller", behaviour="seek_target", **parameters),
    ):
        states.wait(lambda state: state.state == "holding")
        states.clear()
        held = [states.wait() for _ in range(100)]
    assert {state.state for state in held} == {"holding"}
    assert all("target in sight" in state.reason for state in held)
    assert min(state.distance for state in held) > 0.85
    assert max(state.distance for state in held) < 1.09
