# SPDX-License-Identifier: Apache-2.0
"""rover_controller: drives a pattern or to goals by odometry. It can publish the resulting odometry itself.

While the pattern is stationary and there is no goal, it publishes no commands, so that other nodes can steer.
"""

import math
import time
from typing import Any

from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.parameter import Parameter

from drone_bridge.controllers.command_timer import CommandTimer
from drone_bridge.controllers.commands import VelocityCommands
from drone_bridge.controllers.goals.guides import GoalParameters
from drone_bridge.controllers.goals.server import GoalServer
from drone_bridge.controllers.goals.session import STOPPING_S
from drone_bridge.controllers.rover_patterns import PATTERNS, Pattern, PatternLimits, PoseEstimate
from drone_bridge.controllers.vehicle_pose import VehiclePose
from drone_bridge.motion.body_velocity import STILL
from drone_bridge.motion.planar_pose import PlanarPose
from drone_bridge.ros.node.parameters import DeclaredParameters, ParameterDeclaration, declarations, read
from drone_bridge.ros.node.program import run
from drone_bridge.ros.publishers import try_publish
from drone_bridge.ros.topics.frames import FrameNames
from drone_bridge.ros.topics.wheel_odometry import wheel_odometry

STANDING = "stationary"
PARAMETERS = (
    ParameterDeclaration("pattern", STANDING, "Driving pattern.", choices=tuple(PATTERNS), live=True),
    ParameterDeclaration("speed", 0.5, "Maximum speed, m/s.", range=(0.0, 10.0), live=True),
    ParameterDeclaration("amplitude", 2.0, "Size of the pattern, m.", range=(0.1, 100.0), live=True),
    ParameterDeclaration("max_turn_rate", 1.5, "Maximum turn rate, rad/s.", range=(0.05, 20.0), live=True),
    ParameterDeclaration("seed", 0, "Seed of random patterns.", range=(0, 2**31 - 1)),
    ParameterDeclaration("publish_odometry", False, "Publish the position relative to the start on ~/odom."),
    ParameterDeclaration("frame_prefix", "", "Prefix of the frames in ~/odom, for instance rover1/."),
    *declarations(GoalParameters, "goals"),
)


class RoverController(Node):
    """Node that commands at a steady rate while it follows a pattern or goal, and then zero, also on shutdown."""

    def __init__(self, **options: Any) -> None:
        super().__init__("rover_controller", **options)
        self._declared = DeclaredParameters(self, PARAMETERS)
        self._estimate = PoseEstimate()
        self._velocity = STILL
        self._commanded_s = time.monotonic()
        self._limits, self._name = PatternLimits(0.0, 0.0, 0.0), ""
        self._pattern: Pattern | None = None
        self._was_following = False
        self._commands = VelocityCommands(self)
        goals = read(GoalParameters, self._declared, "goals")
        self._goals = GoalServer(self, goals, flies=False, on_odometry=self._measure, on_goal=self._wake)
        self._followed_s = -math.inf  # when a pattern or goal was last followed, by time.monotonic
        self._frame_names = FrameNames(self._declared["frame_prefix"])
        publishes_odometry = self._declared["publish_odometry"]
        self._odometry_publisher = self.create_publisher(Odometry, "~/odom", 10) if publishes_odometry else None

    def start(self) -> bool:
        self._timer = CommandTimer(self, self._command)
        self._declared.freeze_because("when the node starts, and it is running: restart it with the new value")
        return True

    def _wake(self) -> None:
        self._timer.set_idle(False)

    def leave(self) -> None:
        self._commands.leave()

    def destroy_node(self) -> None:
        self._goals.destroy()
        super().destroy_node()  # type: ignore[no-untyped-call, unused-ignore] # Jazzy

    def _measure(self, measured: VehiclePose) -> None:
        x, y, _ = measured.position.tolist()
        self._estimate.measured(PlanarPose(x, y, measured.yaw), time.monotonic())

    def _command(self) -> None:
        now_s = time.monotonic()
        self._estimate.commanded(now_s - self._commanded_s, self._velocity, now_s)
        self._commanded_s = now_s
        if step := self._goals.step():
            if self._declared["pattern"] != STANDING:  # the rover stays at its goal until another pattern is set
                self.set_parameters([Parameter("pattern", value=STANDING)])
            self._velocity = step.velocity
        else:
            self._velocity = self._chosen_pattern()(self._estimate.pose, now_s)
        self._log_what_is_followed(self._estimate.follows_odometry(now_s))
        # A controller that publishes odometry is the only driver of its rover.
        if not self._goals.session.is_idle or self._declared["pattern"] != STANDING or self._odometry_publisher:
            self._followed_s = now_s
        is_idle = now_s - self._followed_s > STOPPING_S
        self._timer.set_idle(is_idle)
        if is_idle:
            return
        self._commands.publish(self._velocity)
        if self._odometry_publisher:
            stamp = self.get_clock().now().to_msg()
            message = wheel_odometry(self._estimate.pose, self._velocity, stamp, self._frame_names)
            try_publish(self._odometry_publisher, message)

    def _chosen_pattern(self) -> Pattern:
        """Return the selected pattern, recreated if its parameters have changed."""
        get = self._declared.__getitem__
        limits, name = PatternLimits(get("speed"), get("amplitude"), get("max_turn_rate")), get("pattern")
        if self._pattern is None or (limits, name) != (self._limits, self._name):
            self._limits, self._name = limits, name
            self._pattern = PATTERNS[name](limits, get("seed"))
            self.get_logger().info(f"Pattern {name}: {limits.speed:g} m/s, {limits.amplitude:g} m.")
        return self._pattern

    def _log_what_is_followed(self, is_following: bool) -> None:
        if is_following != self._was_following:
            self._was_following = is_following
            self.get_logger().info("Following the odometry." if is_following else "No odometry: using dead reckoning.")


def main() -> int:
    """Run the node."""
    return run(RoverController)
