# SPDX-License-Identifier: Apache-2.0
"""FramedDrone: a ROS drone as the testbed's drone: its frames, and its commands. Pure.

It sets the time on the wire, poses for layouts without them, and velocities for vehicles that need these. The session
decides when to send a frame.
"""

import math
from array import array
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from drone_bridge.testbed.codec import Constants, ImageBytes, MotionParameters, SensorFrame, within_maxima
from drone_bridge.testbed.vehicle.device.modelled_flight import LevelVelocity, ModelledFlight
from drone_bridge.testbed.vehicle.session.frames import LEFT, NANOSECONDS, RIGHT, FrameSynchronizer, SynchronizedFrame

#: Image of a drone without cameras.
BLACK = "black"
_POSES_KEPT = 100


@dataclass(frozen=True, slots=True)
class RatesAnswer:
    """Reply within the drone's maxima, and the stamp of the frame that it answers."""

    motion: MotionParameters
    stamp_ns: int


class FramedDrone:
    """Frames of a ROS drone, and commands from replies. Single-threaded except `set_constants` and `locate`."""

    def __init__(
        self,
        frames: FrameSynchronizer,
        *,
        read_attitude: Callable[[Any], SensorFrame],
        read_pixels: Callable[[Any, Constants], ImageBytes],
        stamps_are_simulated: bool,
    ) -> None:
        """Prepare to fly.

        Args:
            frames: source of frames.
            read_attitude: reads an attitude or pose as a frame without images; raises ValueError.
            read_pixels: returns an image's pixels as on the wire; raises a ValueError such as ImageError.
            stamps_are_simulated: send the stamps as the time on the wire, instead of counting from the first frame.
        """
        self.frames = frames
        self._read_attitude, self._read_pixels = read_attitude, read_pixels
        self._stamps_are_simulated = stamps_are_simulated
        self._constants: Constants | None = None
        self._black = array("B")
        self._is_first = True  # the next frame is the first one of a simulation
        self._origin_s = 0.0
        self._sent_s = -math.inf
        #: The last frame, which the next reply answers.
        self.frame: SynchronizedFrame | None = None
        self._poses: deque[tuple[float, SensorFrame]] = deque(maxlen=_POSES_KEPT)  # by stamp, s
        #: Converts replies to velocities, for vehicles that need these.
        self.flight: ModelledFlight | None = None

    @property
    def constants(self) -> Constants:
        """Drone's properties as on the wire. Raises ValueError before they are known."""
        if self._constants is None:
            raise ValueError("the drone's properties are not known yet.")
        return self._constants

    @property
    def is_known(self) -> bool:
        return self._constants is not None

    def set_constants(self, constants: Constants) -> None:
        """Set the drone's properties. Setting them again starts a new simulation. Thread-safe."""
        self._constants = constants
        self._is_first = True

    def locate(self, stamp_s: float, pose: SensorFrame) -> None:
        """Store a pose for layouts without one. Thread-safe.

        It steers a vehicle that follows velocities.
        """
        self._poses.append((stamp_s, pose))

    def start_over(self) -> None:
        """Restart time for another autopilot."""
        self._is_first = True
        self.flight = None
        self._sent_s = -math.inf

    def next_frame(self, now_s: float, max_age_s: float) -> tuple[SensorFrame | None, list[str]]:
        """Return the next frame that the wire can carry, or None, and the reasons why others were refused."""
        refused: list[str] = []
        while synchronized := self.frames.take(now_s, max_age_s):
            try:
                frame = self._frame(synchronized, max_age_s)
            except ValueError as error:
                refused.append(str(error))
            else:
                self.frame = synchronized
                return frame, refused
        return None, refused

    def follow(self, motion: MotionParameters) -> tuple[RatesAnswer | LevelVelocity, bool]:
        """Return the command of the reply to the last frame, and whether it was within the drone's maxima."""
        assert self.frame
        limited, was_within = within_maxima(motion, self.constants)
        command = self.flight.follow(limited) if self.flight else RatesAnswer(limited, self.frame.stamp_ns)
        return command, was_within

    def _frame(self, synchronized: SynchronizedFrame, max_age_s: float) -> SensorFrame:
        constants, stamp_s = self.constants, synchronized.stamp_ns / NANOSECONDS
        left = self._pixels(LEFT, synchronized.left, constants)
        is_one = synchronized.right is synchronized.left
        right = left if is_one else self._pixels(RIGHT, synchronized.right, constants)
        frame = self._pose_at(stamp_s, max_age_s) if self.flight else None
        if frame is None:
            frame = self._read_attitude(synchronized.attitude)
        frame = replace(frame, left=left, right=right, time=self._time_s(stamp_s))
        frame = replace(frame, roll=frame.roll or 0.0, yaw=frame.yaw or 0.0)  # the wire can't represent unknown
        return self.flight.observe(frame) if self.flight else frame

    def _pixels(self, side: str, image: Any, constants: Constants) -> ImageBytes:
        if image is BLACK:
            if len(self._black) != constants.image_bytes:
                self._black = array("B", bytes(constants.image_bytes))
            return self._black
        try:
            return self._read_pixels(image, constants)
        except ValueError as error:
            raise ValueError(f"the {side} image {error}") from error

    def _pose_at(self, stamp_s: float, max_age_s: float) -> SensorFrame | None:
        """Return the pose that is nearest in time, without images, unless it is stale."""
        away_s, pose = min(
            ((abs(time_s - stamp_s), pose) for time_s, pose in tuple(self._poses)),
            key=lambda it: it[0],
            default=(math.inf, None),
        )
        return pose if away_s <= max_age_s else None

    def _time_s(self, stamp_s: float) -> float:
        """Return the time on the wire, which never decreases except to 0, for a new simulation."""
        if stamp_s < self._sent_s or (self._is_first and not self._stamps_are_simulated):
            self._origin_s = stamp_s
        elif self._is_first:
            self._origin_s = 0.0
        self._is_first = False
        self._sent_s = stamp_s
        return stamp_s - self._origin_s
