# SPDX-License-Identifier: Apache-2.0
"""Velocities and shares for drones that are steered by tilt."""

import pytest
from commanded_node import commanded_nodes
from twists import twist

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.tilted_drone import Shares, TiltedDrone
from drone_bridge.msg import CommandAxes
from drone_bridge.ros.commands.tilt_commands import TiltCommands
from drone_bridge.session.arbiter import Rank

DRONE = TiltedDrone(max_tilt=0.3, max_climb=1.0, max_yaw_rate=1.5)


@pytest.fixture
def node(monkeypatch, tmp_path):
    node = commanded_nodes(monkeypatch, tmp_path)()
    node.follow(TiltCommands(node, DRONE))
    return node


def test_a_velocity_and_shares_have_the_signs_of_rep_103(node):
    wanted = BodyVelocity(forward=1.0, left=2.0, up=0.5, turn=0.25)
    sent = node.send("cmd_vel", twist(forward=1.0, left=2.0, up=0.5, left_turn=0.25))
    assert sent == (Rank.COMMAND, wanted)
    sent = node.send("cmd_axes", CommandAxes(thrust=0.1, pitch=0.2, roll=0.3, yaw=0.4))
    assert sent == (Rank.COMMAND, Shares(0.1, 0.2, 0.3, 0.4))
    assert "clamped_commands" not in node.counts


def test_shares_beyond_full_deflection_are_clamped_and_counted(node):
    sent = node.send("cmd_axes", CommandAxes(thrust=-2.0, pitch=1.5, roll=-1.0, yaw=1.0))
    assert sent == (Rank.COMMAND, Shares(-1.0, 1.0, -1.0, 1.0))
    assert node.counts["clamped_commands"] == 1


@pytest.mark.parametrize(("up", "turn", "is_within"), [(1.0, -1.5, True), (-1.1, 0.0, False), (0.0, 1.6, False)])
def test_unreachable_velocities_are_clamped_and_counted(node, up, turn, is_within):
    _, sent = node.send("cmd_vel", twist(forward=9.0, up=up, left_turn=turn))
    assert (sent.forward, sent.up) == (9.0, max(up, -DRONE.max_climb))  # the speed shows in flight
    assert sent.turn == min(turn, DRONE.max_yaw_rate)
    assert node.counts.get("clamped_commands", 0) == (not is_within)


def test_a_centred_stick_is_a_velocity_of_zero(node):
    assert node.send("~/helm") == (Rank.HELM, BodyVelocity())
