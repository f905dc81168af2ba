# SPDX-License-Identifier: Apache-2.0
"""DroneSettings: writes settings one by one until the drone acknowledges them, and reads them back. Pure.

| the drone acknowledges | sends | ends |
|---|---|---|
| a command of before | CLEAR | the bit is cleared |
| nothing | the next setting, each REPEAT_S | the bit is set: CLEAR, then the next one |
| nothing, with no setting to write now | CONNECT_S after a new connection to the control port, the request for all \
settings; again after READ_S | they come over that connection |
"""

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from drone_bridge.ardrone import codec
from drone_bridge.ardrone.codec.configuration import FIRMWARE
from drone_bridge.motion.tilted_drone import TiltedDrone
from drone_bridge.session.session import Action, Note, Send
from drone_bridge.wire.counters import problems
from drone_bridge.wire.events import RemoteProtocolError

REPEAT_S = 0.5
READ_S = 1.0
#: Time for a connection to the control port.
CONNECT_S = 0.2
MOST_TRIES = 10
MOST_READS = 5
#: Part by which a number that is read back may differ.
TOLERANCE = 0.01
#: Largest plausible values of the maxima. Beyond them, or without being positive, they are not used.
PLAUSIBLE = {"control:euler_angle_max": 0.6, "control:control_vz_max": 5000.0, "control:control_yaw": 10.0}
CLEAR = codec.Control(codec.ControlMode.CLEAR_ACKNOWLEDGEMENT)
READ = codec.Control(codec.ControlMode.GET_CONFIGURATION)
(REFUSED_SETTINGS,) = problems("refused_settings")


@dataclass(frozen=True, slots=True)
class WantedSetting:
    """Setting to write."""

    config: codec.Config
    is_required: bool = False
    """Whether there is no navdata without it: it is repeated for ever."""
    needs_ground: bool = False
    """Whether it is written on the ground only, as it moves limits of the flight."""


class DroneSettings:
    """Settings of one drone. Times are seconds of the session's clock."""

    def __init__(
        self,
        wanted: Callable[[], Sequence[WantedSetting]],
        use: Callable[["DroneSettings"], None],
        do: Callable[[Action], None],
    ) -> None:
        """Start without an answer. See ArdroneClientSession for the arguments; `do` receives actions."""
        self._wanted, self._use, self._do = wanted, use, do
        #: Settings as the drone has answered, by `section:key`; empty until then.
        self.answered: Mapping[str, str] = {}
        #: Keys that were written, or given up. Thread-safe to ask.
        self.settled: set[str] = set()
        self._wishes: deque[WantedSetting] = deque()
        self._current: WantedSetting | None = None
        self._due_at, self._tries = -math.inf, 0
        self._reads_left = 0
        self._reader = codec.ConfigurationReader()
        self._is_connected = False  # for the next request for all settings

    def start(self) -> None:
        """Write the wanted settings, and read all of them then."""
        self._wishes, self._current, self._reads_left = deque(self._wanted()), None, MOST_READS
        self.settled, self._is_connected = set(), False
        self._due_at = -math.inf

    def add(self, wish: WantedSetting) -> None:
        """Write one more setting, in place of an earlier one of the same key."""
        self._wishes = deque(each for each in self._wishes if each.config.key != wish.config.key)
        self._wishes.append(wish)
        self.settled.discard(wish.config.key)

    @property
    def is_idle(self) -> bool:
        """Whether all settings are written or given up."""
        return not self._wishes and self._current is None

    def commands(self, navdata: codec.Navdata, now_s: float) -> tuple[codec.Command, ...]:
        """Return what to send with the next commands."""
        if navdata.has(codec.State.COMMAND_ACKNOWLEDGED):
            if self._current:
                if self._current.needs_ground:  # settings may have been read before it was written
                    self._reads_left = MOST_READS
                self._settle()
                self._current, self._tries, self._due_at = None, 0, -math.inf
            return (CLEAR,)
        if now_s < self._due_at:
            return ()
        if self._current and self._tries >= MOST_TRIES and not self._current.is_required:
            self._warn(f"The drone does not acknowledge {self._current.config.key}: it is given up.")
            self._settle()
            self._current, self._tries = None, 0
        if self._current is None:
            self._current = self._next(navdata.is_airborne)
        if self._current:
            self._tries, self._due_at = self._tries + 1, now_s + REPEAT_S
            return (self._current.config,)
        if not self._reads_left:
            return ()
        if not self._is_connected:  # each request has its own: one to a drone that was off stays open without an error
            self._is_connected, self._due_at = True, now_s + CONNECT_S
            self.connect(codec.CONNECT)
            return ()
        self._is_connected, self._reads_left, self._due_at = False, self._reads_left - 1, now_s + READ_S
        if not self._reads_left:
            self._warn("The drone's settings can't be read back: those of its last user may be in force.")
        return (READ,)

    def receive(self, data: bytes) -> None:
        """Compare the drone's answer with the wanted settings. Raises RemoteProtocolError, and disconnects then."""
        try:
            settings = self._reader.receive(data)
        except RemoteProtocolError:
            self.connect(codec.DISCONNECT)
            raise
        if not settings:
            return  # incomplete, or a list of ids
        self.connect(codec.DISCONNECT)
        self.answered, self._reads_left = settings, 0
        for key, value in {
            wish.config.key: wish.config.value for wish in self._wanted()
        }.items():  # the last one of each
            if (given := settings.get(key)) is None or not _is_same(value, given):
                self._warn(f"The drone has {key} = {given}, not {value}: its value is used.")
        for key in PLAUSIBLE:
            if key in settings and self.number(key) is None:
                self._warn(f"The drone has {key} = {settings[key]}, which can't be right: it is not used.")
        self._use(self)

    @property
    def is_version_1(self) -> bool:
        """Whether the drone has answered a firmware of an AR.Drone 1."""
        return self.answered.get(FIRMWARE, "").startswith("1.")

    def number(self, key: str) -> float | None:
        """Return a number that the drone has answered, None without a valid and plausible one."""
        try:
            value = float(self.answered.get(key, "nan"))
        except ValueError:
            return None
        return value if 0.0 < value <= PLAUSIBLE.get(key, math.inf) and math.isfinite(value) else None

    def maxima(self, drone: TiltedDrone) -> TiltedDrone:
        """Return the drone with the maxima that it has answered."""
        tilt, climb, yaw = map(
            self.number, ("control:euler_angle_max", "control:control_vz_max", "control:control_yaw")
        )
        return replace(
            drone,
            max_tilt=tilt or drone.max_tilt,
            max_climb=climb / 1000 if climb else drone.max_climb,
            max_yaw_rate=yaw or drone.max_yaw_rate,
        )

    def connect(self, data: bytes) -> None:
        """Make a new connection to the control port by CONNECT, or end it by DISCONNECT."""
        self._reader = codec.ConfigurationReader()
        self._do(Send(data, codec.CONTROL))

    def _warn(self, sentence: str) -> None:
        self._do(Note(REFUSED_SETTINGS, sentence))

    def _settle(self) -> None:
        if self._current:
            self.settled.add(self._current.config.key)

    def _next(self, is_airborne: bool) -> WantedSetting | None:
        for wish in self._wishes:
            if not (wish.needs_ground and is_airborne):
                self._wishes.remove(wish)
                return wish
        return None


def _is_same(one: str, other: str) -> bool:
    try:
        return math.isclose(float(one), float(other), rel_tol=TOLERANCE)
    except ValueError:
        return one.casefold() == other.casefold()
