# SPDX-License-Identifier: Apache-2.0
"""LandOnPadBehaviour: ROS side of the behaviour `land_on_pad`: measurements in, velocities out."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import PointStamped, TwistStamped, TwistWithCovarianceStamped
from rclpy.node import Node
from sensor_msgs.msg import CameraInfo, Imu
from sensor_msgs.msg import Image as ImageMessage
from std_msgs.msg import Bool
from std_srvs.srv import Trigger

from drone_bridge.controllers.behaviour import Behaviour
from drone_bridge.controllers.camera_messages import read_pinhole
from drone_bridge.controllers.commands import VelocityCommands
from drone_bridge.controllers.land_on_pad.images import (
    CAMERA_INFO,
    IMAGE,
    IMU,
    LANDING_PAD,
    attitude,
    axes,
    pad_message,
    sighting_in,
)
from drone_bridge.controllers.land_on_pad.pilot import LandOnPad, PadDecision, PadSighting, StampedMeasurements
from drone_bridge.controllers.messages import ErrorLog
from drone_bridge.controllers.stamped_sets import StampedSets
from drone_bridge.controllers.state_publisher import WAITING, StatePublisher
from drone_bridge.motion.matrices import NOT_COMPUTABLE, Vector
from drone_bridge.msg import LandingPad
from drone_bridge.ros.hold.hold_services import CommandRefusals
from drone_bridge.ros.node.parameters import DeclaredParameters, ParameterDeclaration, declarations, read
from drone_bridge.ros.qos import latched
from drone_bridge.ros.steady_timer import steady_timer
from drone_bridge.ros.subscriptions import subscribe
from drone_bridge.ros.time import seconds_of
from drone_bridge.vision.marker_detector import MarkerDetector
from drone_bridge.vision.markers import MarkerParameters

VELOCITY, HEIGHT = "velocity", "height"
#: Published by web_bridge: whether its page is open in a browser.
VIEWED = "web_bridge/viewed"
#: Subscribed topics and their types.
TYPES: dict[str, type] = {
    IMU: Imu,
    VELOCITY: TwistWithCovarianceStamped,
    HEIGHT: PointStamped,
    LANDING_PAD: LandingPad,
    IMAGE: ImageMessage,
    CAMERA_INFO: CameraInfo,
}

LEAST_CONFIDENCE = 0.1  # sightings of lower confidence are ignored
# Standard deviation of landing_pad at a confidence of 1.
PAD_DEVIATION = 0.02  # m
PAD_DEVIATION_PER_METRE = 0.015


def read_measured(messages: Mapping[str, Any], landed: bool) -> StampedMeasurements:
    """Parse messages of one stamp, by topic; landing_pad is optional.

    The frames of velocity and landing_pad determine whether their axes tilt with the drone. Raises ValueError with a
    sentence for invalid messages.
    """
    imu = messages[IMU]
    rotation = attitude(imu)
    linear = messages[VELOCITY].twist.twist.linear
    height = messages[HEIGHT].point.z
    _check_finite(VELOCITY, linear.x, linear.y, linear.z)
    _check_finite(HEIGHT, height)
    stamp = seconds_of(messages[IMU].header.stamp)
    pad = messages.get(LANDING_PAD)
    sighting = None
    if pad is not None and pad.detected:
        _check_finite(LANDING_PAD, pad.offset_x, pad.offset_y, pad.distance, pad.confidence)
        if pad.confidence >= LEAST_CONFIDENCE:
            offset = axes(imu, LANDING_PAD, pad.header.frame_id) @ np.array([pad.offset_x, pad.offset_y, -pad.distance])
            deviation = (PAD_DEVIATION + PAD_DEVIATION_PER_METRE * abs(pad.distance)) / min(pad.confidence, 1.0)
            sighting = PadSighting(stamp, offset, deviation, deviation)
    turned = axes(imu, VELOCITY, messages[VELOCITY].header.frame_id)
    velocity: Vector = turned @ np.array([linear.x, linear.y, linear.z])
    return StampedMeasurements(stamp, rotation, velocity, float(height), sighting, landed)


def _check_finite(topic: str, *values: float) -> None:
    if not all(map(math.isfinite, values)):
        raise ValueError(f"{topic} has {', '.join(f'{value:g}' for value in values)}, but numbers must be finite.")


NAME = "land_on_pad"
PARAMETERS = (
    ParameterDeclaration(
        f"{NAME}.use_camera", False, "Find the pad in camera/image_raw by its markers, instead of by landing_pad."
    ),
    ParameterDeclaration(f"{NAME}.on_request", False, "Begin when ~/land_on_pad is called, and not at once."),
    ParameterDeclaration(
        f"{NAME}.when_viewed",
        False,
        "With on_request: begin once when the page web_bridge is viewed, unless a person has stopped or landed the "
        "drone before. For emulated drones only.",
    ),
    *declarations(MarkerParameters, NAME),
)
#: Time without measurements after which the drone is commanded to hover.
TIMEOUT_S = 0.3
# A command later than the next measurement is stale.
_QUEUE = 1


class LandOnPadBehaviour(Behaviour):
    """Passes measurements to LandOnPad as they arrive, and publishes its decisions."""

    def __init__(self, node: Node, parameters: DeclaredParameters) -> None:
        self._node = node
        self._detector = MarkerDetector(read(MarkerParameters, parameters, NAME))
        self._land = None if parameters[f"{NAME}.on_request"] else LandOnPad()
        # True until the landing has begun, or a person has stopped or landed the drone.
        self._begins_when_viewed = self._land is None and parameters[f"{NAME}.when_viewed"]
        self._errors = ErrorLog(node)
        self._landed: bool | None = None  # None: not reported yet
        self._sighting: PadSighting | None = None
        self._measured_s = -math.inf  # when the last complete set of one stamp was received
        self._commands = VelocityCommands(node)
        self._state_publisher = StatePublisher(node, NAME)
        self._state_publisher.stamp = Time()
        use_camera = parameters[f"{NAME}.use_camera"]
        needed = (IMU, VELOCITY, HEIGHT) if use_camera else (IMU, VELOCITY, HEIGHT, LANDING_PAD)
        self._measurements = StampedSets(needed, self._on_measured)
        sets = [self._measurements]
        if use_camera:
            self._pad_publisher = node.create_publisher(LandingPad, "~/landing_pad", 10)
            sets.append(StampedSets((IMAGE, CAMERA_INFO, IMU), self._on_image))
        topics = needed + ((IMAGE, CAMERA_INFO) if use_camera else ())
        for topic in topics:
            self._subscribe(topic, [each for each in sets if topic in each.topics])
        subscribe(node, Bool, "landed", self._on_landed, latched())
        if self._begins_when_viewed:
            subscribe(node, Bool, "held", self._on_held, latched())
            subscribe(node, Bool, VIEWED, self._on_viewed, latched())
        self._refusals = CommandRefusals(node, TwistStamped, "cmd_vel_stamped")
        steady_timer(node, TIMEOUT_S, self._watch)
        steady_timer(node, 1.0, self._refusals.changes)
        node.create_service(Trigger, f"~/{NAME}", self._on_request)

    def leave(self) -> None:
        """Stop commanding, with a final zero velocity."""
        self._commands.leave()

    def _subscribe(self, topic: str, sets: list[StampedSets]) -> None:
        def receive(message: Any) -> None:
            for each in sets:
                each.add(topic, message)

        subscribe(self._node, TYPES[topic], topic, receive, _QUEUE)

    def _on_request(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        if refusal := self._refusals.refusal():
            response.message = refusal
            return response
        self._begin()
        response.success, response.message = True, "Climbing, to look for the pad and land on it."
        return response

    def _begin(self) -> None:
        self._begins_when_viewed = False
        self._land = LandOnPad(climbs_first=True)

    def _on_viewed(self, message: Bool) -> None:
        if message.data and self._begins_when_viewed:
            self._begin()

    def _on_held(self, message: Bool) -> None:
        if message.data:
            self._begins_when_viewed = False

    def _on_landed(self, message: Bool) -> None:
        if message.data and self._landed is False:
            self._begins_when_viewed = False
        self._landed = message.data

    def _on_image(self, messages: dict[str, Any]) -> None:
        imu = messages[IMU]
        try:
            pinhole = read_pinhole(messages[CAMERA_INFO], CAMERA_INFO)
            sighting = sighting_in(self._detector, messages[IMAGE], pinhole, imu)
        except NOT_COMPUTABLE as error:
            self._errors.log(f"An image can't be used: {error}")
            return
        self._sighting = sighting or self._sighting
        self._pad_publisher.publish(pad_message(sighting, attitude(imu), imu.header.frame_id, imu.header.stamp))

    def _on_measured(self, messages: dict[str, Any]) -> None:
        """Decide by a complete set of measurements, and publish the command."""
        self._measured_s = time.monotonic()
        header = messages[IMU].header
        if self._land is None:
            self._state_publisher.stamp = header.stamp
            viewer = " or a viewer" if self._begins_when_viewed else ""
            self._state_publisher.publish(WAITING, f"for a call of {NAME}{viewer}")
            return
        try:
            measured = read_measured(messages, bool(self._landed))
            if self._sighting:
                measured, self._sighting = replace(measured, sighting=self._sighting), None
            decision = self._decide(self._land, measured)
        except ValueError as error:
            self._errors.log(f"A measurement can't be used: {error}")
            return
        self._state_publisher.frame_id, self._state_publisher.stamp = header.frame_id, header.stamp
        self._commands.publish(decision.command, lands=decision.is_final)
        self._state_publisher.publish(decision.state.value, decision.reason, decision.distance)

    def _decide(self, land: LandOnPad, measured: StampedMeasurements) -> PadDecision:
        """Return the decision. Resets the behaviour and raises ValueError if it can't be computed."""
        try:
            decision = land.update(measured)
            if all(map(math.isfinite, (*decision.command.linear, decision.command.turn))):
                return decision
            problem = "numbers are not finite"
        except NOT_COMPUTABLE as error:
            problem = str(error)
        self._land = LandOnPad()  # a fault would persist in the estimates
        raise ValueError(f"no command can be computed: {problem}.")

    def _watch(self) -> None:
        """Command zero velocity if measurements have timed out."""
        if time.monotonic() - self._measured_s <= TIMEOUT_S:
            return
        if self._land and self._measured_s > -math.inf:
            self._commands.publish()
        self._state_publisher.publish(WAITING, self._measurements.waits_for(TIMEOUT_S))


start = LandOnPadBehaviour
