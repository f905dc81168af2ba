# SPDX-License-Identifier: Apache-2.0
"""TelemetryReports: decodes the documents that a controller receives, and passes the drone's motion on. Pure."""

from typing import Any

from drone_bridge.motion.dead_reckoning import DeadReckoning
from drone_bridge.session.continuous_pose import ContinuousPose, continued
from drone_bridge.session.feedback import Feedback
from drone_bridge.session.session import Actions, Publish
from drone_bridge.session.tilt_pilot import TiltPilot
from drone_bridge.telemetry.codec import (
    DRONE_TOPIC,
    ROVER_TOPIC,
    ControllerConnection,
    DroneTelemetry,
    LateTelemetry,
    RoverTelemetry,
    Sender,
)
from drone_bridge.telemetry.units import Units
from drone_bridge.wire.events import NEED_DATA

#: Senders of the documents on topics.
_SENDERS: dict[Any, Sender] = {DRONE_TOPIC: "drone", ROVER_TOPIC: "rover"}


class TelemetryReports:
    """Documents of one drone, and of others. Timestamps are the sender's own."""

    def __init__(self, pilot: TiltPilot, feedback: Feedback, units: Units, pose: ContinuousPose | None) -> None:
        """Start without a drone. Arguments are those of the session."""
        self._pilot, self._feedback, self._units = pilot, feedback, units
        self._pose, self._reckoning = pose, DeadReckoning()
        self._of_drone, self._of_others = ControllerConnection(), ControllerConnection()

    def decode(
        self, data: bytes | str, source: Any, *, is_drones: bool
    ) -> DroneTelemetry | RoverTelemetry | LateTelemetry:
        """Decode a document of the drone, or of another sender. Raises RemoteProtocolError."""
        connection = self._of_drone if is_drones else self._of_others
        connection.receive_data(data, _SENDERS.get(source))
        event = connection.next_event()
        assert event is not NEED_DATA
        return event

    def restart_drone(self) -> None:
        """Accept any timestamp of the drone: it may restart."""
        self._of_drone = ControllerConnection()

    def replace_drone(self) -> None:
        """Make the sender of the last document the drone."""
        self._of_drone, self._of_others = self._of_others, ControllerConnection()

    def greeted(self) -> None:
        """Expect a pose that may begin again: the drone was just connected."""
        if self._pose:
            self._pose.greeted()

    def measured(self, telemetry: DroneTelemetry, now_s: float) -> Actions:
        """Pass telemetry of the drone to pilot and limits. Return what publishes the pose that follows from it."""
        measured, actions = continued(self._pose, self._units.measurement(telemetry), now_s)
        self._feedback.measured(measured, now_s)
        if not self._pose:
            return actions
        reckoned = self._reckoning.update(measured, now_s, is_doubted=self._pilot.is_position_doubted)
        return [*actions, Publish(reckoned)]
