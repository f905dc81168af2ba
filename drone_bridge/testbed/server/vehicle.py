# SPDX-License-Identifier: Apache-2.0
"""The drone in ROS, as a vehicle of the testbed's side: frames and properties in, commands out."""

import math
from array import array
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from builtin_interfaces.msg import Time
from nav_msgs.msg import Odometry
from sensor_msgs.msg import Image

from drone_bridge.msg import DroneProperties
from drone_bridge.ros.images import Rgb8Image, rgb8_pixels
from drone_bridge.ros.time import seconds_of
from drone_bridge.testbed.codec import (
    AngleUnit,
    AttitudeLayout,
    Constants,
    ImageBytes,
    MotionParameters,
    SensorFrame,
    TestbedConnection,
)
from drone_bridge.testbed.device.modelled_flight import LevelVelocity, ModelledFlight
from drone_bridge.testbed.server.synchronizer import FrameSynchronizer, SynchronizedFrame
from drone_bridge.testbed.topics import translation as translate
from drone_bridge.testbed.topics.translation import Command
from drone_bridge.wire.events import LocalProtocolError

_POSES_KEPT = 100


class RosDrone:
    """Implements `vehicle_side.testbed.conversation.Vehicle`, for the link's thread; `learn` is for the executor."""

    def __init__(
        self,
        synchronizer: FrameSynchronizer,
        unit: AngleUnit,
        *,
        stamps_are_simulated: bool,
        now_s: Callable[[], float],
        max_age_s: Callable[[], float],
        command: Callable[[Command, Time], None],
        follow: Callable[[LevelVelocity], None],
        refuse: Callable[[str], None],
    ) -> None:
        """Prepare to fly.

        Args:
            synchronizer: the source of frames.
            unit: of angles on the wire.
            stamps_are_simulated: the time on the wire is that of the stamps; otherwise it counts from the first frame.
            now_s: the clock of the synchronizer.
            max_age_s: of a frame.
            command: gets each answer, limited to the drone's maxima, and the stamp of its frame.
            follow: gets the resulting velocity instead, while there is a `flight`.
            refuse: gets a sentence about a frame that can't be sent.
        """
        self._synchronizer = synchronizer
        self._unit = unit
        self._stamps_are_simulated = stamps_are_simulated
        self._now_s = now_s
        self._max_age_s = max_age_s
        self._command = command
        self._follow = follow
        self._refuse = refuse
        self._constants: Constants | None = None
        self._black = array("B")
        self._is_first = True  # the next frame is the first one of a simulation
        self._origin_s = 0.0
        self._sent_s = -math.inf
        #: The last frame, which the next answer belongs to.
        self.frame: SynchronizedFrame | None = None
        self._poses: deque[tuple[float, SensorFrame]] = deque(maxlen=_POSES_KEPT)  # by the time of their stamps, s
        #: Turns answers into velocities, if the vehicle follows those.
        self.flight: ModelledFlight | None = None
        #: How many answers were beyond the drone's maxima.
        self.limited = 0

    @property
    def constants(self) -> Constants:
        """The drone's properties as on the wire. Raises ValueError before they are known."""
        if self._constants is None:
            raise ValueError("the drone's properties are not known yet.")
        return self._constants

    @property
    def is_known(self) -> bool:
        return self._constants is not None

    def learn(self, properties: DroneProperties) -> None:
        """Set the drone's properties; setting them again starts a new simulation.

        Raises ValueError for what an autopilot would refuse, and keeps the previous ones.
        """
        constants = translate.constants_from_properties(properties, self._unit)
        try:
            TestbedConnection(AttitudeLayout.POSE, self._unit).send(constants)
        except LocalProtocolError as error:
            raise ValueError(str(error)) from error
        self._constants = constants
        self._is_first = True

    def black_image(self, stamp: Time) -> Image:
        """Return a black image of the announced size. For the executor."""
        size = self.constants.image_bytes
        if len(self._black) != size:
            self._black = array("B", bytes(size))
        return Rgb8Image(self.constants.width, self.constants.height, "").filled(self._black, stamp)

    def locate(self, odometry: Odometry) -> None:
        """Note a pose for layouts whose frames need none: a vehicle that follows velocities is steered by it.

        For the executor. Raises ValueError for what is no pose.
        """
        pose = translate.sensor_frame(b"", b"", 0.0, odometry, self._unit)
        self._poses.append((seconds_of(odometry.header.stamp), pose))

    def start_over(self) -> None:
        """Restart time for another autopilot."""
        self._is_first = True
        self.flight = None
        self._sent_s = -math.inf

    def sense(self) -> SensorFrame | None:
        """Return the next frame that the wire can carry, if there is one."""
        while synchronized := self._synchronizer.take(self._now_s(), self._max_age_s()):
            try:
                frame = self._frame(synchronized)
            except ValueError as error:
                self._refuse(str(error))
                continue
            self.frame = synchronized
            return frame
        return None

    def fly(self, motion: MotionParameters) -> None:
        """Follow the answer to the last frame."""
        assert self.frame
        limited, was_within = translate.limited(motion, self.constants)
        self.limited += not was_within
        if self.flight:
            self._follow(self.flight.follow(limited))
        else:
            self._command(translate.command_from_motion_parameters(limited, self._unit), self.frame.stamp)

    def _frame(self, synchronized: SynchronizedFrame) -> SensorFrame:
        constants = self.constants
        for side, image in (("left", synchronized.left), ("right", synchronized.right)):
            if (image.width, image.height) != (constants.width, constants.height):
                raise ValueError(
                    f"the {side} image has {image.width} x {image.height} pixels, and the drone's properties say "
                    f"{constants.width} x {constants.height}."
                )
        left = _pixels("left", synchronized)
        right = left if synchronized.right is synchronized.left else _pixels("right", synchronized)
        frame = self._pose_at(synchronized.stamp_s) if self.flight else None
        if frame is None:
            frame = translate.sensor_frame(left, right, 0.0, synchronized.attitude, self._unit)
        frame = replace(frame, left=left, right=right, time=self._time_s(synchronized.stamp_s))
        return self.flight.observe(frame) if self.flight else frame

    def _pose_at(self, stamp_s: float) -> SensorFrame | None:
        """Return the pose that is nearest in time, without images, unless it is too old."""
        away_s, pose = min(
            ((abs(time_s - stamp_s), pose) for time_s, pose in tuple(self._poses)),
            key=lambda it: it[0],
            default=(math.inf, None),
        )
        return pose if away_s <= self._max_age_s() else None

    def _time_s(self, stamp_s: float) -> float:
        """Return the time on the wire, which never runs back except to 0, for a new simulation."""
        if stamp_s < self._sent_s or (self._is_first and not self._stamps_are_simulated):
            self._origin_s = stamp_s
        elif self._is_first:
            self._origin_s = 0.0
        self._is_first = False
        self._sent_s = stamp_s
        return stamp_s - self._origin_s


def _pixels(side: str, synchronized: SynchronizedFrame) -> ImageBytes:
    try:
        return rgb8_pixels(synchronized.left if side == "left" else synchronized.right)
    except ValueError as error:
        raise ValueError(f"the {side} image {error}") from error
