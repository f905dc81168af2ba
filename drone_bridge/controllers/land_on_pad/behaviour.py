# SPDX-License-Identifier: Apache-2.0
"""The behaviour `land_on_pad` with its topics: measurements in, shares of tilt, thrust and turn rate out."""

import math
import time
from dataclasses import replace
from typing import Any, Final

from rclpy.clock import Clock, ClockType  # type: ignore[attr-defined] # where humble has it, too
from rclpy.node import Node
from std_msgs.msg import Bool

from drone_bridge.controllers.land_on_pad.data import Decision, Measured, PadSighting
from drone_bridge.controllers.land_on_pad.frame import (
    CAMERA_INFO,
    HEIGHT,
    IMAGE,
    IMU,
    LANDING_PAD,
    TYPES,
    VELOCITY,
    pad_message,
    read_measured,
    read_sighting,
)
from drone_bridge.controllers.land_on_pad.parameters import LandParameters
from drone_bridge.controllers.land_on_pad.pilot import LandOnPad
from drone_bridge.controllers.stamped_sets import StampedSets
from drone_bridge.controllers.state_publisher import StatePublisher
from drone_bridge.controllers.velocity_commands import VelocityCommands
from drone_bridge.motion.matrices import NOT_COMPUTABLE
from drone_bridge.msg import LandingPad
from drone_bridge.ros.compatible_subscription import subscribe
from drone_bridge.ros.diagnostics import LogLimiter
from drone_bridge.ros.parameters import DeclaredParameters, ParameterDeclaration, declarations, read
from drone_bridge.ros.topics import latched
from drone_bridge.vision.marker_detector import MarkerDetector
from drone_bridge.vision.markers import MarkerParameters

NAME: Final = "land_on_pad"
PARAMETERS: Final = (
    ParameterDeclaration(
        f"{NAME}.use_camera", False, "Find the pad in camera/image_raw by its markers, instead of by landing_pad."
    ),
    ParameterDeclaration(
        f"{NAME}.is_levelled",
        True,
        "Deprecated and ignored: the frame_id decides. Set is_levelled of telemetry_bridge.",
    ),
    ParameterDeclaration(
        f"{NAME}.telemetry_timeout",
        0.3,
        "Seconds without measurements after which the drone is commanded to hover.",
        range=(0.05, 60.0),
    ),
    *declarations(LandParameters, NAME),
    *declarations(MarkerParameters, NAME),
)
WAITING: Final = "waiting"
# A command that is later than the next measurement is worthless.
_QUEUE: Final = 1


class LandOnPadBehaviour:
    """Feeds measurements to LandOnPad as they arrive, and publishes its decisions."""

    def __init__(self, node: Node, parameters: DeclaredParameters) -> None:
        """Raises ValueError with a sentence for inconsistent parameters."""
        self._node = node
        self._land_parameters = read(LandParameters, NAME, parameters)
        self._detector = MarkerDetector(read(MarkerParameters, NAME, parameters))
        if not parameters[f"{NAME}.is_levelled"]:
            node.get_logger().warning(
                f"{NAME}.is_levelled is deprecated and ignored: set is_levelled of telemetry_bridge instead."
            )
        self._timeout_s = parameters[f"{NAME}.telemetry_timeout"]
        self._land = LandOnPad(self._land_parameters)
        self._log_limiter = LogLimiter()
        self._landed = False
        self._sighting: PadSighting | None = None
        self._heard_s: dict[str, float] = {}  # when each topic was last heard, steady clock
        self._measured_s = -math.inf  # when all of them were, with one stamp
        self._commands = VelocityCommands(node)
        self._state_publisher = StatePublisher(node, NAME)
        use_camera = parameters[f"{NAME}.use_camera"]
        self._needed = (IMU, VELOCITY, HEIGHT) if use_camera else (IMU, VELOCITY, HEIGHT, LANDING_PAD)
        sets = [StampedSets(self._needed, self._on_measured)]
        if use_camera:
            self._pad_publisher = node.create_publisher(LandingPad, "~/landing_pad", 10)
            sets.append(StampedSets((IMAGE, CAMERA_INFO, IMU), self._on_image))
        topics = self._needed + ((IMAGE, CAMERA_INFO) if use_camera else ())
        for topic in topics:
            self._subscribe(topic, [each for each in sets if topic in each.topics])
        subscribe(node, Bool, "landed", self._on_landed, latched())
        # A steady clock: a paused simulation must not keep the drone flying on its last command.
        clock = Clock(clock_type=ClockType.STEADY_TIME)
        node.create_timer(self._timeout_s, self._watch, clock=clock)

    def leave(self) -> None:
        """Make the drone hover."""
        self._commands.leave()

    def _subscribe(self, topic: str, sets: list[StampedSets]) -> None:
        def receive(message: Any) -> None:
            self._heard_s[topic] = time.monotonic()
            for each in sets:
                each.add(topic, message)

        subscribe(self._node, TYPES[topic], topic, receive, _QUEUE)

    def _on_landed(self, message: Bool) -> None:
        self._landed = message.data

    def _on_image(self, messages: dict[str, Any]) -> None:
        try:
            sighting = read_sighting(messages, self._detector)
        except NOT_COMPUTABLE as error:
            self._log_error(f"An image can't be used: {error}")
            return
        self._sighting = sighting or self._sighting
        self._pad_publisher.publish(pad_message(sighting, messages[IMU]))

    def _on_measured(self, messages: dict[str, Any]) -> None:
        """Answer the measurements of one moment."""
        self._measured_s = time.monotonic()
        try:
            measured = read_measured(messages, self._landed)
            if self._sighting:
                measured, self._sighting = replace(measured, sighting=self._sighting), None
            decision = self._decide(measured)
        except ValueError as error:
            self._log_error(f"A measurement can't be used: {error}")
            return
        command = decision.command
        self._commands.publish((command.forward, command.left, command.up), (0.0, 0.0, command.turn))
        stamp = messages[IMU].header.stamp
        self._state_publisher.publish(decision.state.value, decision.reason, decision.distance, stamp)

    def _decide(self, measured: Measured) -> Decision:
        """Return the answer. Raises ValueError if there is none, and then starts over."""
        try:
            decision = self._land.update(measured)
            if decision.command.is_finite:
                return decision
            problem = "numbers are not finite"
        except NOT_COMPUTABLE as error:
            problem = str(error)
        self._land = LandOnPad(self._land_parameters)  # a fault would persist in the estimates
        raise ValueError(f"no command can be computed: {problem}.")

    def _watch(self) -> None:
        """Make the drone hover when there are no more measurements."""
        now_s = time.monotonic()
        if now_s - self._measured_s <= self._timeout_s:
            return
        missing = [topic for topic in self._needed if now_s - self._heard_s.get(topic, -math.inf) > self._timeout_s]
        if self._measured_s > -math.inf:
            self._commands.publish((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
        self._state_publisher.publish(WAITING, f"for {', '.join(missing) or 'messages of one stamp'}")

    def _log_error(self, sentence: str) -> None:
        if line := self._log_limiter.admit(sentence):
            self._node.get_logger().error(line)


start: Final = LandOnPadBehaviour
