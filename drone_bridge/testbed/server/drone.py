# SPDX-License-Identifier: Apache-2.0
"""The drone in ROS, as a vehicle of the testbed's side: its images with the attitude nearest in time; its commands."""

import math
import threading
from array import array
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from builtin_interfaces.msg import Time
from nav_msgs.msg import Odometry
from sensor_msgs.msg import Image, Imu

from drone_bridge.msg import DroneProperties
from drone_bridge.ros.images import Rgb8Image, rgb8_pixels
from drone_bridge.ros.time import NANOSECONDS, nanoseconds_of, seconds_of, time_from_nanoseconds
from drone_bridge.testbed import topics as translate
from drone_bridge.testbed.codec import (
    AngleUnit,
    AttitudeLayout,
    Constants,
    ImageBytes,
    MotionParameters,
    SensorFrame,
    TestbedConnection,
)
from drone_bridge.testbed.device import LevelVelocity, ModelledFlight
from drone_bridge.testbed.topics import SIDES, Command
from drone_bridge.wire.events import LocalProtocolError

#: How long a pair waits for an attitude that is at least as new, before an older one is used.
ATTITUDE_TIMEOUT_S = 0.1
#: Attitudes that are buffered, and images per side that wait for the other side.
_ATTITUDES_KEPT = 200
_UNPAIRED_KEPT = 8


@dataclass(frozen=True, slots=True)
class SynchronizedFrame:
    """A pair of images, with the attitude or pose nearest to them in time once that is known."""

    stamp_ns: int  # of the images
    left: Image
    right: Image
    completed_s: float  # when the pair was complete, by time.monotonic
    attitude: Imu | Odometry | None = None

    @property
    def stamp(self) -> Time:
        return time_from_nanoseconds(self.stamp_ns)


class FrameSynchronizer:
    """Takes messages from the executor, and gives frames to the link's thread. Times are passed in.

    Frames that nobody takes are dropped and counted: all but the newest, or with `keeps_order` the oldest of more than
    `depth`. When stamps run back a new simulation has begun, and all earlier messages are discarded.
    """

    def __init__(
        self,
        depth: int,
        *,
        keeps_order: bool,
        is_mono: bool,
        on_input: Callable[[], None],
        tolerance_s: float = 0.0,
    ) -> None:
        """Prepare to take messages.

        Args:
            depth: how many pairs are buffered.
            keeps_order: whether `take` returns pairs in order, or the newest first.
            is_mono: whether the left image is used for both sides.
            on_input: called when there may be a frame to take, though not when ATTITUDE_TIMEOUT_S has passed.
            tolerance_s: how far the stamps of a pair may be apart, of cameras none of whose stamps have matched.
        """
        self._lock = threading.Lock()
        self._keeps_order = keeps_order
        self._is_mono = is_mono
        self._on_input = on_input
        self._tolerance_ns = round(tolerance_s * 1e9)
        self._unpaired: dict[str, dict[int, Image]] = {side: {} for side in SIDES}
        self._pairs: deque[SynchronizedFrame] = deque(maxlen=depth)
        self._attitudes: deque[tuple[int, Imu | Odometry]] = deque(maxlen=_ATTITUDES_KEPT)
        self._newest_ns = 0
        self._paired_s = -math.inf  # when the last pair was complete
        self._received_s: dict[str, float] = {}  # when each kind of message was last received
        #: Pairs that nobody took, and images without their other side.
        self.dropped = 0
        self.unmatched = 0

    def add_image(self, side: str, image: Image, now_s: float) -> None:
        stamp_ns = nanoseconds_of(image.header.stamp)
        with self._lock:
            self._received_s[side] = now_s
            if self._is_mono:
                self._complete(SynchronizedFrame(stamp_ns, image, image, now_s))
            else:
                others = self._unpaired["right" if side == "left" else "left"]
                other_ns = self._match(others, stamp_ns)
                if other_ns is None:
                    self._keep_unpaired(self._unpaired[side], stamp_ns, image)
                    return
                other = others.pop(other_ns)
                if side == "right":
                    stamp_ns, image, other = other_ns, other, image
                self._complete(SynchronizedFrame(stamp_ns, image, other, now_s))
            is_complete = bool(self._attitudes) and self._attitudes[-1][0] >= stamp_ns
        if is_complete:  # else the attitude will complete it
            self._on_input()

    def add_attitude(self, attitude: Imu | Odometry, now_s: float) -> None:
        stamp_ns = nanoseconds_of(attitude.header.stamp)
        with self._lock:
            self._received_s["attitude"] = now_s
            if self._attitudes and stamp_ns < self._attitudes[-1][0]:
                self._attitudes.clear()
            self._attitudes.append((stamp_ns, attitude))
            has_waiting = bool(self._pairs)
        if has_waiting:
            self._on_input()

    def take(self, now_s: float, max_age_s: float) -> SynchronizedFrame | None:
        """Return the newest frame, or the next in order, that is at most `max_age_s` old."""
        with self._lock:
            while self._pairs and now_s - self._pairs[0].completed_s > max_age_s:
                self._pairs.popleft()
                self.dropped += 1
            candidates = list(self._pairs) if self._keeps_order else list(reversed(self._pairs))
            for pair in candidates:
                attitude = self._attitude_for(pair, now_s, max_age_s)
                if attitude is not None:
                    break
                if self._keeps_order:
                    return None
            else:
                return None
            while self._pairs.popleft() is not pair:
                self.dropped += 1
        return replace(pair, attitude=attitude)

    @property
    def newest_stamp(self) -> Time:
        """The stamp of the newest pair, taken or not."""
        return time_from_nanoseconds(self._newest_ns)

    def missing(self, now_s: float, max_age_s: float) -> str:
        """Return the kinds of messages that were not received within the last `max_age_s`, as text."""
        with self._lock:
            received_s = dict(self._received_s)
        kinds = (*SIDES[: 1 if self._is_mono else 2], "attitude")
        return " and ".join(kind for kind in kinds if now_s - received_s.get(kind, -math.inf) > max_age_s)

    def mismatch(self, now_s: float, max_age_s: float) -> str:
        """Return why the stamps of the messages within the last `max_age_s` make no frame, if so."""
        with self._lock:
            if now_s - self._paired_s > max_age_s:
                allowed = f"stamps within {self._tolerance_ns / 1e9:g} s" if self._tolerance_ns else "the same stamp"
                return f"no two images of left and right have {allowed} (image_tolerance)"
            if self._pairs:
                return f"the stamps of the images are more than {max_age_s:g} s away from those of the attitude"
        return ""

    def _complete(self, pair: SynchronizedFrame) -> None:
        if pair.stamp_ns < self._newest_ns:
            self.dropped += len(self._pairs)
            self._pairs.clear()
            if self._attitudes and self._attitudes[-1][0] > pair.stamp_ns:  # else their stamps have run back already
                self._attitudes.clear()
        self._newest_ns = pair.stamp_ns
        self._paired_s = pair.completed_s
        self.dropped += len(self._pairs) == self._pairs.maxlen
        self._pairs.append(pair)

    def _match(self, others: dict[int, Image], stamp_ns: int) -> int | None:
        """Return the stamp of the image of the other side that makes a pair, if there is one.

        Cameras that are triggered together have one stamp: from the first such pair on, nothing else is one.
        """
        if stamp_ns in others:
            self._tolerance_ns = 0
            return stamp_ns
        nearest_ns = min(others, key=lambda other_ns: abs(other_ns - stamp_ns), default=None)
        return None if nearest_ns is None or abs(nearest_ns - stamp_ns) > self._tolerance_ns else nearest_ns

    def _keep_unpaired(self, unpaired: dict[int, Image], stamp_ns: int, image: Image) -> None:
        unpaired[stamp_ns] = image
        while len(unpaired) > _UNPAIRED_KEPT:
            del unpaired[next(iter(unpaired))]
            self.unmatched += 1

    def _attitude_for(self, pair: SynchronizedFrame, now_s: float, max_age_s: float) -> Imu | Odometry | None:
        """Return the attitude nearest to a pair, once no later one can be nearer or the wait has timed out."""
        if not self._attitudes:
            return None
        newest_ns, newest = self._attitudes[-1]
        if newest_ns == pair.stamp_ns:
            return newest
        is_passed = newest_ns >= pair.stamp_ns
        if not is_passed and now_s - pair.completed_s < ATTITUDE_TIMEOUT_S:
            return None
        away_ns, attitude = min(
            ((abs(stamp_ns - pair.stamp_ns), attitude) for stamp_ns, attitude in self._attitudes), key=lambda it: it[0]
        )
        return attitude if away_ns <= max_age_s * NANOSECONDS else None


_POSES_KEPT = 100


class RosDrone:
    """Implements `device.TestbedDrone`, for the link's thread; `learn` is for the executor."""

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
        pose = translate.sensed(odometry, self._unit)
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
        assert synchronized.attitude
        stamp_s = seconds_of(synchronized.stamp)
        left = _pixels("left", synchronized)
        right = left if synchronized.right is synchronized.left else _pixels("right", synchronized)
        frame = self._pose_at(stamp_s) if self.flight else None
        if frame is None:
            frame = translate.sensed(synchronized.attitude, self._unit)
        frame = replace(frame, left=left, right=right, time=self._time_s(stamp_s))
        frame = replace(frame, roll=frame.roll or 0.0, yaw=frame.yaw or 0.0)  # the wire has no way to say unknown
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
