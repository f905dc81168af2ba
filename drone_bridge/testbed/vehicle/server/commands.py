# SPDX-License-Identifier: Apache-2.0
"""CommandPublisher: publishes the vehicle's commands, and repeats the neutral command while it is the last one."""

import math
from typing import Any

from builtin_interfaces.msg import Time
from geometry_msgs.msg import Twist
from rclpy.publisher import Publisher

from drone_bridge.motion.flight_control import RatesAndThrust
from drone_bridge.motion.quaternions import Quaternion
from drone_bridge.msg import CommandRates
from drone_bridge.net.clock import elapsed_s
from drone_bridge.ros.commands.cmd_vel_type import CmdVelPublisher, followers
from drone_bridge.ros.commands.velocity_messages import twist_from_velocity
from drone_bridge.ros.node.protocol_node import ProtocolNode
from drone_bridge.ros.qos import newest
from drone_bridge.ros.servers.neutral_repeater import NeutralRepeater
from drone_bridge.ros.time import time_from_nanoseconds
from drone_bridge.ros.topics.frames import FrameNames
from drone_bridge.testbed import topics as translate
from drone_bridge.testbed import units
from drone_bridge.testbed.codec import AngleUnit
from drone_bridge.testbed.vehicle.device.modelled_flight import LevelVelocity
from drone_bridge.testbed.vehicle.server.parameters import LOCKSTEP
from drone_bridge.testbed.vehicle.session.framed_drone import FramedDrone, RatesAnswer
from drone_bridge.testbed.vehicle.session.frames import SynchronizedFrame
from drone_bridge.testbed.vehicle.session.levelling import Levelling
from drone_bridge.testbed.vehicle.session.output_choice import RATES, VELOCITY, OutputChoice

_LEVELLING_PERIOD_S = 0.02
#: Maximum age of an attitude that is used for levelling.
_ATTITUDE_AGE_S = 0.3


class CommandPublisher:
    """Publisher of rates or velocities, as selected. The neutral command is the safest one that is available."""

    def __init__(self, node: ProtocolNode, drone: FramedDrone, unit: AngleUnit, attitude_topic: str) -> None:
        """Create the publishers that the parameter command_output allows.

        `unit` is the unit of angles on the wire. `attitude_topic` provides the vehicle's attitude.
        """
        get = node.parameters.__getitem__
        self._node, self._drone, self._unit = node, drone, unit
        self._attitude_topic = node.resolve_topic_name(attitude_topic)
        self._frame_id = FrameNames(get("frame_prefix")).base_link
        self._is_lockstep, self._stamps_are_simulated = get("sync") == LOCKSTEP, get("stamp_source") == "wire"
        choice = get("command_output")
        #: Selected topic.
        self.choice = OutputChoice((RATES, VELOCITY) if choice == translate.AUTO else (choice,))
        make: dict[str, Any] = {
            RATES: lambda: node.make_publisher(CommandRates, RATES, newest()),
            VELOCITY: lambda: CmdVelPublisher(node, lambda kind: node.make_publisher(kind, VELOCITY, newest())),
        }
        self._publishers = {topic: make[topic]() for topic in self.choice.allowed}
        self._attitude: tuple[Quaternion, float] | None = None  # the newest one, and its time of arrival
        self._levelling = Levelling()
        self._neutral_frame: SynchronizedFrame | None = None  # which the neutral command answers
        self._repeater = NeutralRepeater(node, tuple(self._publishers.values()), self._present_neutral)
        if RATES in self._publishers:  # in a thread of its own, because a drone is levelled out without a link, too
            node.make_ticker("levelling", _LEVELLING_PERIOD_S, self._level_out)

    def update_output(self, *, is_flying: bool) -> None:
        """Select the topic by its subscribers. For the executor."""
        subscribed = [topic for topic in self.choice.allowed if followers(self._node, topic)]
        self.choice.update(subscribed, is_flying=is_flying)

    def set_attitude(self, orientation: Any) -> None:
        """Store the vehicle's attitude. For the executor."""
        self._attitude = Quaternion(orientation.x, orientation.y, orientation.z, orientation.w), elapsed_s()

    # On the link's thread.

    def publish(self, command: RatesAnswer | LevelVelocity, decided_s: float) -> None:
        """Publish a reply. `decided_s` is the time of the decision, see `ProtocolNode.publish`."""
        if isinstance(command, RatesAnswer):
            rates = units.command_from_motion_parameters(command.motion, self._unit)
            topic, message = RATES, self._rates(rates, time_from_nanoseconds(command.stamp_ns))
        else:
            topic, message = VELOCITY, twist_from_velocity(units.body_velocity(*command))
        # In lockstep the vehicle waits, so no command is stale.
        self._repeater.publish(self._publishers[topic], message, math.inf if self._is_lockstep else decided_s)

    def publish_neutral(self, topic: str) -> None:
        """Publish the neutral command, and start repeating it."""
        self._neutral_frame = self._drone.frame  # frames after this one are answered by an autopilot
        self._repeater.publish_neutral(*(self._neutral(topic) or ()))

    # The neutral command, on any thread.

    @property
    def neutral_meaning(self) -> str:
        """Effect of the neutral command, as a verb phrase."""
        if self.choice.is_velocity:
            return "stop"
        if self._fresh_attitude():
            return "level out"
        return (
            f"keep its attitude with zero rates and hover thrust. It hovers only if it is level, and "
            f"{self._attitude_topic} provides no recent attitude"
        )

    def _present_neutral(self) -> "tuple[Publisher[Any], Any] | None":
        if self._node.hold.is_held:
            self._neutral_frame = self._drone.frame
        return self._neutral(self.choice.wanted)  # which the session may not have switched to, without an autopilot

    def _neutral(self, topic: str) -> "tuple[Publisher[Any], Any] | None":
        """Return the neutral command: zero velocity, else rates that level the drone out, else hover thrust.

        None if the drone's properties, or a simulated stamp, are missing.
        """
        if topic == VELOCITY:
            return self._publishers[topic], Twist()
        if not self._drone.is_known:
            return None
        stamp = self._node.now()
        if self._stamps_are_simulated:
            if self._drone.frame is None:
                return None
            frame = self._neutral_frame or self._drone.frame
            stamp = time_from_nanoseconds(frame.stamp_ns if self._is_lockstep else self._drone.frames.newest_ns)
        attitude, constants = self._fresh_attitude(), self._drone.constants
        if attitude and self._levelling.turns(units.tilt_of(attitude)):
            return self._publishers[topic], self._rates(units.levelling(constants, attitude), stamp)
        return self._publishers[topic], self._rates(units.hover(constants), stamp)

    def _rates(self, command: RatesAndThrust, stamp: Time) -> CommandRates:
        message = translate.rates_from_command(command, stamp)
        message.header.frame_id = self._frame_id
        return message

    def _fresh_attitude(self) -> Quaternion | None:
        """Return the vehicle's attitude if it is recent."""
        attitude = self._attitude
        source_timeout_s = self._node.parameters["source_timeout"]
        if attitude is None or elapsed_s() - attitude[1] > min(source_timeout_s, _ATTITUDE_AGE_S):
            return None
        return attitude[0]

    def _level_out(self) -> None:
        """Repeat the neutral command while the drone is tilted, updated for its current attitude."""
        neutral_s = None if self.choice.wanted == VELOCITY else self._repeater.age_s
        if neutral_s is None and not self._levelling.is_on:
            return
        attitude = self._fresh_attitude()
        if self._levelling.update(neutral_s, units.tilt_of(attitude) if attitude else None):
            self._repeater.repeat()
