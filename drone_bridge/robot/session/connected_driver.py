# SPDX-License-Identifier: Apache-2.0
"""ConnectedDriver: a driver's packets on one connection, from registration on. No sockets, no clock."""

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from drone_bridge.parameter_fields import parameter
from drone_bridge.robot import codec
from drone_bridge.robot.codec import STOPPED, Speeds
from drone_bridge.robot.session.bindings import ROBOTD, Bindings
from drone_bridge.robot.session.desired import DesiredSubsystems
from drone_bridge.robot.session.keep_alives import KeepAlives
from drone_bridge.session.node_parameters import NodeParameters
from drone_bridge.session.session import Action, Note, Publish
from drone_bridge.wire.counters import FaultCounter, ProblemCounter, RateCounter

# Counters.
UNKNOWN_PACKETS, UNREADABLE = FaultCounter("unknown_packets"), ProblemCounter("unreadable_lists")
UPDATES = RateCounter("updates")
#: Shortest timeout of a robot that is starting, and of robotd, which readmits no driver until it is restarted, s.
PATIENCE_S = 10.0


class KeepAliveRoundTrip(NamedTuple):
    """Round trip of a keep-alive, s."""

    duration_s: float


class SendPacket(Protocol):
    """Function that sends a packet; see `PacketSender.send`."""

    def __call__(self, packet: codec.FromDriver, now_s: float, /, *, is_slow: bool) -> None: ...


class SilentRobotError(Exception):
    """Timeout of a silent robot. The text is a sentence."""


@dataclass(slots=True)
class DriverParameters(NodeParameters):
    """Parameters of the session."""

    max_update_rate: float = parameter(
        50.0, "Maximum speed updates per second. A stop is never delayed.", 1.0, 1000.0, live=True
    )
    link_timeout: float = parameter(
        2.0,
        "Time without an answer to keep-alives after which the connection is reopened, s. At least 10 s for robotd, "
        "and before the robot's first packet.",
        1.0, 60.0,
    )  # fmt: skip


class ConnectedDriver:
    """One connection, from registration on. Times are seconds of a monotonic clock.

    Packets to send are added to `outbox`; events to publish, count or log, to `out`. Only subsystems that the robot has
    granted on this connection are updated.
    """

    def __init__(
        self,
        driver_name: str,
        desired: DesiredSubsystems,
        parameters: DriverParameters,
        out: list[Action],
        now_s: float,
    ) -> None:
        """Register. `parameters` may change at any time."""
        self.outbox: list[codec.FromDriver] = [codec.RegisterDriver(driver_name), codec.QuerySubsystems()]
        self._parameters, self._out = parameters, out
        self.bindings = Bindings(driver_name, desired, self.outbox, out, self._begin, now_s=now_s)
        self.keep_alives = KeepAlives(now_s)
        #: As listed by the robot. None before that.
        self.sensors: codec.SensorInfo | None = None
        #: Time of the robot's last packet. None before the first one.
        self.received_s: float | None = None
        #: Speeds that were commanded last.
        self.driven = STOPPED
        self._changed_s = now_s  # time of their last change
        self._change_due_s = math.inf  # time from which a change that came too soon may follow
        self._sent_speeds: dict[int, Speeds] = {}
        #: The robot's motion, as known from its answers: a stop counts once a later keep-alive was answered.
        self.moving = STOPPED
        self._stopped_s: float | None = None  # time of a stop that is not known to be in force

    @property
    def is_driven(self) -> bool:
        """Whether a bound skid steer was last sent other speeds than STOPPED."""
        numbers = self.bindings.bound_of(codec.SubsystemType.SKID_STEER)
        return any(self._sent_speeds.get(number, STOPPED) != STOPPED for number in numbers)

    # Time.

    @property
    def due_s(self) -> float:
        """Time of the next `tick` and `flush`."""
        silent_from_s = self.keep_alives.answered_s + self._patience_s
        return min(self.keep_alives.due_s, silent_from_s, self.bindings.due_s, self._change_due_s)

    @property
    def _patience_s(self) -> float:
        """Timeout of answers. Longer for a robot that may be starting, and for robotd, which readmits nobody."""
        is_patient = self.received_s is None or self.bindings.is_robotd
        return max(self._parameters.link_timeout, PATIENCE_S if is_patient else 0.0)

    def tick(self, now_s: float, clock_ms: int) -> None:
        """Check timeouts. `clock_ms` is the time of day, for keep-alives. Raises SilentRobotError."""
        limit_s = self._patience_s
        if now_s >= self.keep_alives.answered_s + limit_s:
            raise SilentRobotError(f"The robot has not answered keep-alives for {limit_s:g} s (link_timeout).")
        if now_s >= self.keep_alives.due_s:
            # Speeds are not repeated with it: a robot that has stopped by itself must stay stopped.
            self.outbox.append(self.keep_alives.make(now_s, clock_ms))
        self.bindings.tick(now_s)

    def flush(self, send: SendPacket, now_s: float) -> None:
        """Send the packets in `outbox`. A stop is followed by a keep-alive, whose answer acknowledges it."""
        for packet in self.outbox:
            send(packet, now_s, is_slow=isinstance(packet, codec.KeepAlive) and self.keep_alives.are_late(now_s))
            if isinstance(packet, codec.SkidSteerUpdate):
                is_stop = (packet.left, packet.right) == STOPPED
                self._stopped_s = now_s if is_stop else None
                if is_stop:
                    self.keep_alives.due_s = now_s
        self.outbox.clear()
        if self._stopped_s is None and not self.bindings.bound_of(codec.SubsystemType.SKID_STEER):
            self.moving = STOPPED  # other drivers may move it

    def was_stopped(self, now_s: float) -> None:
        """Record that a stop was sent while this process was stalled."""
        self._sent_speeds.clear()  # updates from before may follow the stop, so that it is sent again
        self.driven, self._changed_s, self._stopped_s = STOPPED, now_s, now_s

    # Packets of the robot.

    def handle(self, packet: codec.FromRobot, now_s: float) -> None:
        """Update the lists and bindings by a packet, and publish it."""
        self.received_s = now_s
        if isinstance(packet, codec.KeepAlive):
            self._handle_keep_alive(packet, now_s)
        elif isinstance(packet, codec.SubsystemInfo):
            self.bindings.handle_list(packet)
        elif isinstance(packet, codec.BindSuccess):
            self.bindings.handle_success(packet.id)
        elif isinstance(packet, codec.BindFailure):
            self.bindings.handle_failure(packet.id)
        elif isinstance(packet, codec.SubsystemBound):
            self.bindings.handle_bound(packet)
        elif isinstance(packet, codec.UnknownPacket):
            sentence = f"The robot sent {len(packet.payload)} bytes of unknown type 0x{packet.type:02x}."
            self._out.append(Note(UNKNOWN_PACKETS, sentence))
        elif isinstance(packet, codec.UnreadableList):
            sentence = f"A packet of type 0x{packet.type:02x} is ignored: {packet.problem}."
            self._out.append(Note(UNREADABLE, sentence, is_ongoing=True))
        elif not isinstance(packet, codec.SensorUpdate) or self.sensors:  # robots may send readings before the list
            if isinstance(packet, codec.SensorInfo):
                self.sensors = packet
            elif isinstance(packet, codec.LogMessage):
                self.keep_alives.note_log(packet.text, self.bindings.bound_names, now_s)
            elif isinstance(packet, codec.FirmwareInfo):
                self.bindings.is_robotd = packet.type == ROBOTD
            self._out.append(Publish(packet))

    def _handle_keep_alive(self, packet: codec.KeepAlive, now_s: float) -> None:
        if (sent_s := self.keep_alives.answered(packet)) is None:
            return
        if self._stopped_s is not None and sent_s >= self._stopped_s:
            self._stopped_s, self.moving = None, STOPPED
        self._out.append(Publish(KeepAliveRoundTrip(now_s - sent_s)))

    # Driving.

    def drive(self, speeds: Speeds, now_s: float) -> None:
        """Send changed speeds to every bound skid steer, at `max_update_rate`, and a stop at once.

        While keep-alives are too late to drive, the speeds are STOPPED.
        """
        self._change_due_s = math.inf
        if self.keep_alives.standstill_reason(now_s):
            speeds = STOPPED
        may_change_s = self._changed_s + 1 / self._parameters.max_update_rate
        if speeds not in (STOPPED, self.driven) and now_s < may_change_s:
            speeds, self._change_due_s = self.driven, may_change_s
        if speeds != self.driven:
            self.driven, self._changed_s = speeds, now_s
            self._out.append(Note(UPDATES))
        numbers = self.bindings.bound_of(codec.SubsystemType.SKID_STEER)
        changed = [number for number in numbers if self._sent_speeds.get(number) != speeds]
        self._sent_speeds.update(dict.fromkeys(changed, speeds))
        self.outbox += [codec.SkidSteerUpdate(number, *speeds) for number in changed]
        if numbers and speeds != STOPPED:
            self.moving = speeds

    def switch_lights(self, is_on: bool) -> int:
        """Switch all bound lights. Return their number."""
        lights = self.bindings.bound_of(codec.SubsystemType.LIGHTS)
        self.outbox += [codec.LightUpdate(number, is_on) for number in lights]
        return len(lights)

    def _begin(self, number: int) -> None:
        """Stop newly granted motors before anything else, since another driver may have left them running."""
        if number in self.bindings.bound_of(codec.SubsystemType.SKID_STEER):
            self._sent_speeds[number] = STOPPED
            self.outbox.append(codec.SkidSteerUpdate(number, *STOPPED))
