# SPDX-License-Identifier: Apache-2.0
"""Commands as controls: physical meaning of each sign."""

from types import SimpleNamespace

from drone_bridge.dronegui import units
from drone_bridge.dronegui.codec import Controls
from drone_bridge.dronegui.vehicle.server import DroneGuiServer
from drone_bridge.motion.body_velocity import STILL, BodyVelocity
from drone_bridge.motion.tilt_control import Shares
from drone_bridge.ros.commands.command_axes import FullScale, velocity_from_shares


def test_velocities_for_other_drones_have_the_signs_of_ros():
    forward_left_up_turn = Controls(hover=False, pitch=-0.5, roll=-0.25, gas=0.125, yaw=-1.0)
    shares = units.shares(forward_left_up_turn)
    assert velocity_from_shares(shares, FullScale(8.0, 4.0, 2.0, 1.0)) == BodyVelocity(2.0, 0.5, 1.0, turn=1.0)
    assert velocity_from_shares(Shares(), FullScale()) == STILL


def test_the_server_scales_each_axis_by_the_parameter_of_its_own_name():
    published, scales = [], {"roll": 2.0, "pitch": 4.0, "yaw": 8.0, "gas": 16.0}
    server = SimpleNamespace(
        parameters={f"full_scale.{axis}": scale for axis, scale in scales.items()},
        _velocities=SimpleNamespace(publish=lambda velocity, *_: published.append(velocity)),
        decided_s=0.0,
    )
    DroneGuiServer.publish_event(server, Controls(hover=False, roll=-1.0, pitch=-1.0, yaw=-1.0, gas=1.0))
    assert published == [BodyVelocity(4.0, 2.0, 16.0, turn=8.0)]
