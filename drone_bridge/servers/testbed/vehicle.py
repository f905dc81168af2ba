# SPDX-License-Identifier: Apache-2.0
"""A drone in ROS as the testbed's side of a conversation knows it: senses and properties in, commands out."""

import math
from array import array
from collections.abc import Callable
from dataclasses import replace

from builtin_interfaces.msg import Time
from sensor_msgs.msg import Image

from drone_bridge.msg import DroneProperties
from drone_bridge.protocols.errors import LocalProtocolError
from drone_bridge.protocols.testbed import (
    AngleUnit,
    AttitudeLayout,
    Constants,
    ImageBytes,
    MotionParameters,
    SensorFrame,
    TestbedConnection,
)
from drone_bridge.servers.testbed.senses import Sensed, Senses
from drone_bridge.translate import testbed as translate
from drone_bridge.translate.images import rgb8_image, rgb8_pixels, set_data
from drone_bridge.translate.testbed import Command
from drone_bridge.vehicle_side.testbed.modelled_flight import LevelVelocity, ModelledFlight


class RosDrone:
    """Implements `vehicle_side.testbed.conversation.Vehicle`, for the link's thread; `learn` is for the executor."""

    def __init__(
        self,
        senses: Senses,
        unit: AngleUnit,
        *,
        stamps_are_simulated: bool,
        now_s: Callable[[], float],
        longest_s: Callable[[], float],
        command: Callable[[Command, Time], None],
        follow: Callable[[LevelVelocity], None],
        refuse: Callable[[str], None],
    ) -> None:
        """Prepare to fly.

        Args:
            senses: where frames come from.
            unit: of angles on the wire.
            stamps_are_simulated: what the wire calls time is in the stamps; otherwise it counts from the first frame.
            now_s: the clock that `senses` is told times of.
            longest_s: how old what is sensed may be.
            command: gets what the autopilot answers, within the drone's maxima, and the stamp of its frame.
            follow: gets the resulting velocity instead, while there is a `flight`.
            refuse: gets a sentence about what was sensed and can't be sent.
        """
        self._senses = senses
        self._unit = unit
        self._stamps_are_simulated = stamps_are_simulated
        self._now_s = now_s
        self._longest_s = longest_s
        self._command = command
        self._follow = follow
        self._refuse = refuse
        self._constants: Constants | None = None
        self._black = array("B")
        self._begins = True  # the next frame is the first one of a simulation
        self._origin_s = 0.0
        self._sent_s = -math.inf
        #: What was sensed last, to which the next answer belongs.
        self.sensed: Sensed | None = None
        #: Turns answers into velocities, if the vehicle follows those.
        self.flight: ModelledFlight | None = None
        #: How many answers were beyond the drone's maxima.
        self.limited = 0

    @property
    def constants(self) -> Constants:
        """What the drone's properties are on the wire. Raises ValueError before they are known."""
        if self._constants is None:
            raise ValueError("the drone's properties are not known yet.")
        return self._constants

    @property
    def is_known(self) -> bool:
        """Whether there are constants."""
        return self._constants is not None

    def learn(self, properties: DroneProperties) -> None:
        """Take the drone's properties; having them again says that a new simulation begins.

        Raises ValueError for what an autopilot would refuse, and keeps what was known before.
        """
        constants = translate.constants_from_properties(properties, self._unit)
        try:
            TestbedConnection(AttitudeLayout.POSE, self._unit).send(constants)
        except LocalProtocolError as error:
            raise ValueError(str(error)) from error
        self._constants = constants
        self._begins = True

    def nothing_seen(self, stamp: Time) -> Image:
        """Return a black image of the announced size. For the executor."""
        size = self.constants.image_bytes
        if len(self._black) != size:
            self._black = array("B", bytes(size))
        image = rgb8_image(self.constants.width, self.constants.height, "")
        image.header.stamp = stamp
        set_data(image, self._black)
        return image

    def begin(self) -> None:
        """Begin to count time anew, for another autopilot."""
        self._begins = True
        self.flight = None
        self._sent_s = -math.inf

    def sense(self) -> SensorFrame | None:
        """Return what has been sensed since, if all of it has come and the wire can carry it."""
        while sensed := self._senses.take(self._now_s(), self._longest_s()):
            try:
                frame = self._frame(sensed)
            except ValueError as error:
                self._refuse(str(error))
                continue
            self.sensed = sensed
            return frame
        return None

    def fly(self, motion: MotionParameters) -> None:
        """Follow the answer to what was sensed last."""
        assert self.sensed
        limited, was_within = translate.limited(motion, self.constants)
        self.limited += not was_within
        if self.flight:
            self._follow(self.flight.answered(limited))
        else:
            self._command(translate.command_from_motion_parameters(limited, self._unit), self.sensed.stamp)

    def _frame(self, sensed: Sensed) -> SensorFrame:
        constants = self.constants
        for side, image in (("left", sensed.left), ("right", sensed.right)):
            if (image.width, image.height) != (constants.width, constants.height):
                raise ValueError(
                    f"the {side} image has {image.width} x {image.height} pixels, and the drone's properties say "
                    f"{constants.width} x {constants.height}."
                )
        left = _pixels("left", sensed)
        right = left if sensed.right is sensed.left else _pixels("right", sensed)
        frame = translate.sensor_frame(left, right, 0.0, sensed.attitude, self._unit)
        frame = replace(frame, time=self._time_s(sensed.stamp_s))
        return self.flight.told(frame) if self.flight else frame

    def _time_s(self, stamp_s: float) -> float:
        """Return what the wire calls time. It never runs back but to 0, which is a new simulation."""
        if stamp_s < self._sent_s or (self._begins and not self._stamps_are_simulated):
            self._origin_s = stamp_s
        elif self._begins:
            self._origin_s = 0.0
        self._begins = False
        self._sent_s = stamp_s
        return stamp_s - self._origin_s


def _pixels(side: str, sensed: Sensed) -> ImageBytes:
    try:
        return rgb8_pixels(sensed.left if side == "left" else sensed.right)
    except ValueError as error:
        raise ValueError(f"the {side} image {error}") from error
