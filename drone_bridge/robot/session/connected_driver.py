# SPDX-License-Identifier: Apache-2.0
"""ConnectedDriver: a driver's packets on one connection, from registration on. No sockets, no clock."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from drone_bridge.parameter_fields import parameter
from drone_bridge.robot import codec
from drone_bridge.robot.codec import STOPPED, Speeds
from drone_bridge.robot.session.bindings import UNEXPECTED, Bindings
from drone_bridge.robot.session.desired import DesiredSubsystems
from drone_bridge.robot.session.keep_alives import (
    KEEP_ALIVE_PERIOD_S,
    OLDEST_KEEP_ALIVE_S,
    SLOW_ROUND_TRIP_S,
    KeepAlives,
)
from drone_bridge.robot.session.other_drivers import OtherDrivers
from drone_bridge.session.node_parameters import NodeParameters
from drone_bridge.session.session import Action, Note, Publish
from drone_bridge.wire.counters import RateCounter, faults, problems

# Counters.
UNKNOWN_PACKETS, UNKNOWN_TYPES = faults("unknown_packets", "unknown_types")
SLOW, UNREADABLE = problems("slow_keep_alives", "unreadable_lists")
UPDATES = RateCounter("updates")
#: Pause between the bytes of a slow keep-alive.
BYTE_PERIOD_S = 0.01
#: Timeout of a stop's acknowledgement, after which it is unknown whether the robot still moves.
STOP_ANSWER_S = 0.3
#: The same for the first stop of a connection, whose robot may be starting, s.
FIRST_STOP_ANSWER_S = 1.0
#: Minimum timeout of a silent robotd, which never readmits a driver that has disconnected, until it is restarted.
ROBOTD_PATIENCE_S = 10.0
#: Timeout of the first answer of any robot.
FIRST_ANSWER_S = 10.0


class KeepAliveRoundTrip(NamedTuple):
    """Round trip of a keep-alive, s."""

    duration_s: float


#: Function that sends a packet, or a part of one and gets the rest of it.
SendPart = Callable[[bytes, bytes], None]


class SilentRobotError(Exception):
    """Timeout of a silent robot. The text is a sentence."""


@dataclass(slots=True)
class DriverParameters(NodeParameters):
    """Parameters of the session."""

    max_update_rate: float = parameter(
        50.0, "Maximum speed updates per second. A stop is never delayed.", 1.0, 1000.0, live=True
    )
    link_timeout: float = parameter(
        2.0, "Silence after which the connection is reopened, s. Before the first answer: at least 10 s.", 0.6, 60.0
    )


class ConnectedDriver:
    """One connection, from registration on. Times are seconds of a monotonic clock.

    Packets to send are added to `outbox`; events to publish, count or log, to `out`. Only subsystems that the robot has
    granted on this connection are updated.

    A stop is known to be in force when a keep-alive sent after it was answered. Until then, and while an answer is
    late, keep-alives are slow: they are sent byte by byte. The LEGO NXT adapters handle one packet per socket read.
    Packets that have accumulated there, because the adapter stalled or two packets arrived at once, would stay forever,
    and delay every stop. Each single byte is a read in which such an adapter handles one more of its accumulated
    packets.
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
        self._parameters = parameters
        self._out = out
        self._others = OtherDrivers(driver_name)
        self._link_timeout_s = parameters.link_timeout
        self.bindings = Bindings(
            self.outbox,
            out,
            desired,
            self._others,
            answer_timeout_s=self._link_timeout_s,
            on_granted=self._begin,
            now_s=now_s,
        )
        #: As listed by the robot. None before that.
        self.sensors: codec.SensorInfo | None = None
        self._keep_alives = KeepAlives(now_s)
        self._started_s = now_s
        #: Time of the robot's last packet. None before the first one.
        self.received_s: float | None = None
        self._sent_speeds: dict[int, Speeds] = {}
        self._light: bool | None = None  # as last switched on this connection
        self._unreadable: set[int] = set()  # types of unreadable lists
        #: Speeds that were commanded last and not withheld.
        self.driven = STOPPED
        self._changed_s = now_s  # time of their last change
        self._change_due_s = math.inf  # time from which a change that came too soon may follow
        self._withheld_since_s: float | None = None  # since the first change that was withheld for late answers
        #: The robot's motion, as known from its answers: a stop counts once it is known to be in force.
        self.moving = STOPPED
        self._stopped_s: float | None = None  # time of a stop that is not known to be in force
        self._stop_answer_s = FIRST_STOP_ANSWER_S
        self._slow: codec.KeepAlive | None = None  # keep-alive being sent slowly
        #: Its remaining bytes, which precede all other packets.
        self.unsent = b""
        self._has_begun = False  # whether some of its bytes were sent
        self._byte_due_s = now_s

        #: By type of packets that are not published.
        self._handlers: dict[type[Any], Callable[[Any, float], None]] = {
            codec.KeepAlive: self._handle_keep_alive,
            codec.SubsystemInfo: self.bindings.handle_list,
            codec.BindSuccess: lambda packet, _: self.bindings.handle_success(packet.id),
            codec.BindFailure: lambda packet, _: self.bindings.handle_failure(packet.id),
            codec.SubsystemBound: self.bindings.handle_bound,
            codec.UnreadableList: self._handle_unreadable,
        }

    def standstill_reason(self, now_s: float) -> str | None:
        """Return the reason why the motors must not be driven now, or None."""
        return self._keep_alives.standstill_reason(now_s)

    def may_move(self, now_s: float) -> bool:
        """Return whether the acknowledgement of a stop is overdue, so that the robot may still move."""
        limit_s = self._keep_alives.typical_s + self._stop_answer_s
        return self._stopped_s is not None and now_s - self._stopped_s > limit_s

    def is_unlisted(self, now_s: float) -> bool:
        """Return whether queries for the subsystems were unanswered for longer than the timeout of a silent robot."""
        return self.bindings.info is None and now_s - self._started_s > self._link_timeout_s

    @property
    def rest(self) -> bytes:
        """Rest of a keep-alive that was sent in part."""
        return self.unsent if self._has_begun else b""

    @property
    def is_driven(self) -> bool:
        """Whether a bound skid steer was last sent other speeds than STOPPED."""
        numbers = self.bindings.bound_of(codec.SubsystemType.SKID_STEER)
        return any(self._sent_speeds.get(number, STOPPED) != STOPPED for number in numbers)

    # Time.

    @property
    def due_s(self) -> float:
        """Time of the next `tick` and `flush`."""
        due_s = min(self._keep_alive_due_s, self._silent_from_s, self.bindings.due_s, self._change_due_s)
        if self.unsent:
            due_s = min(due_s, self._byte_due_s)
        return due_s

    @property
    def _silent_from_s(self) -> float:
        """Time at which the robot will have been silent for too long."""
        return (self._started_s if self.received_s is None else self.received_s) + self._patience_s

    @property
    def _patience_s(self) -> float:
        if self.received_s is None:
            return max(self._link_timeout_s, FIRST_ANSWER_S)
        return max(self._link_timeout_s, ROBOTD_PATIENCE_S) if self._others.is_robotd else self._link_timeout_s

    @property
    def _keep_alive_due_s(self) -> float:
        """Time of the next keep-alive: without a pause after a stop, until the stop is known to be in force."""
        if self.unsent:
            return math.inf
        return self._keep_alives.begun_s + (KEEP_ALIVE_PERIOD_S if self._stopped_s is None else BYTE_PERIOD_S)

    def resume(self, now_s: float) -> None:
        """Continue after a stall of this process: restart the timeout of the robot, and send first."""
        self._started_s = now_s
        self.received_s = None if self.received_s is None else now_s
        self._keep_alives.resume(now_s)
        self.bindings.resume(now_s)

    def tick(self, now_s: float, clock_ms: int) -> None:
        """Check timeouts. `clock_ms` is the time of day, for keep-alives. Raises SilentRobotError."""
        if now_s >= self._silent_from_s:
            kept = "has not answered yet" if self.received_s is None else "has been silent"
            raise SilentRobotError(
                f"The robot {kept} for {self._patience_s:g} s. If it is that slow, increase the parameter "
                f"link_timeout ({self._link_timeout_s:g} s)."
            )
        if now_s >= self._keep_alive_due_s:
            # Speeds are not repeated with it: a robot that has stopped by itself must stay stopped.
            self.outbox.append(self._keep_alives.make(now_s, clock_ms))
        self.bindings.tick(now_s)

    def flush(self, encode: Callable[[codec.FromDriver], bytes], send: SendPart, now_s: float) -> None:
        """Send the packets in `outbox`, and due bytes of a slow keep-alive.

        `send` gets whole packets, or a single byte and the rest of a keep-alive.
        """
        packets = tuple(self.outbox)
        self.outbox.clear()
        is_behind = self._is_behind(now_s)
        if not is_behind:
            self._complete(send, now_s)
        for packet in packets:
            self._complete(send, now_s)
            if isinstance(packet, codec.KeepAlive) and is_behind:
                self._slow, self.unsent, self._has_begun = packet, encode(packet), False
                continue
            send(encode(packet), b"")
            if isinstance(packet, codec.KeepAlive):
                self._keep_alives.note_sent(packet, now_s)
            elif isinstance(packet, codec.SkidSteerUpdate):
                self._stopped_s = now_s if (packet.left, packet.right) == STOPPED else None
        if self.unsent and now_s >= self._byte_due_s:
            self._send_byte(send, now_s)
            self._byte_due_s = now_s + BYTE_PERIOD_S
        if self._stopped_s is None and not self.bindings.bound_of(codec.SubsystemType.SKID_STEER):
            self.moving = STOPPED  # other drivers may move it

    def _is_behind(self, now_s: float) -> bool:
        """Return whether keep-alives must be slow. The first one after a stop is not, if it is sent at once."""
        is_unanswered = self._stopped_s is not None and now_s >= self._stopped_s + BYTE_PERIOD_S
        return is_unanswered or self._keep_alives.are_late(now_s)

    def _complete(self, send: SendPart, now_s: float) -> None:
        while self.unsent:
            self._send_byte(send, now_s)

    def _send_byte(self, send: SendPart, now_s: float) -> None:
        byte, self.unsent, self._has_begun = self.unsent[:1], self.unsent[1:], True
        send(byte, self.unsent)
        if self._slow and not self.unsent:
            self._keep_alives.note_sent(self._slow, now_s)

    def was_stopped(self, now_s: float) -> None:
        """Record that the rest of a slow keep-alive and a stop were sent while this process was stalled."""
        if self._slow and self.rest:
            self.unsent = b""
            self._keep_alives.note_sent(self._slow, now_s)
        self._sent_speeds.clear()  # updates from before may follow the stop, so that it is sent again
        self.driven, self._changed_s, self._stopped_s = STOPPED, now_s, now_s

    # Packets of the robot.

    def handle(self, packet: codec.FromRobot, now_s: float) -> None:
        """Update the lists and bindings by a packet, and publish it."""
        if isinstance(packet, codec.UnknownPacket):  # which may mean anything, so it is no sign of life
            sentence = f"The robot sent {len(packet.payload)} bytes of unknown type 0x{packet.type:02x}."
            self._out.append(Note(UNKNOWN_PACKETS, sentence))
            return
        self.received_s = now_s
        if isinstance(packet, codec.SubsystemInfo | codec.SensorInfo) and (packet.opaque or packet.missing):
            what = "subsystem" if isinstance(packet, codec.SubsystemInfo) else "sensor"
            sentence = (
                f"The robot lists a {what} of an unknown type. It and {packet.missing} more after it "
                f"({len(packet.opaque)} bytes) are ignored."
            )
            self._out.append(Note(UNKNOWN_TYPES, sentence))
        if handle := self._handlers.get(type(packet)):
            handle(packet, now_s)
        elif not isinstance(packet, codec.SensorUpdate) or self.sensors:  # robots may send readings before the list
            if isinstance(packet, codec.SensorInfo):
                self.sensors = packet
            elif isinstance(packet, codec.LogMessage):
                self._handle_log(packet.text, now_s)
            elif isinstance(packet, codec.FirmwareInfo):
                self._others.note_firmware(packet.type)
            self._out.append(Publish(packet))

    def _handle_keep_alive(self, packet: codec.KeepAlive, now_s: float) -> None:
        round_trip_s = self._keep_alives.answered(packet, now_s)
        if self._stopped_s is not None and self._keep_alives.are_answered_since(self._stopped_s):
            self._stopped_s, self.moving, self._stop_answer_s = None, STOPPED, STOP_ANSWER_S
        if round_trip_s is None:
            sentence = f"The robot answered keep-alive {packet.time_ms}, which was not sent."
            self._out.append(Note(UNEXPECTED, sentence))
            return
        self._out.append(Publish(KeepAliveRoundTrip(round_trip_s)))
        if round_trip_s >= SLOW_ROUND_TRIP_S:
            sentence = f"The round trip of a keep-alive took {round_trip_s:.1f} s. Robots stop if one is older than"
            self._out.append(Note(SLOW, f"{sentence} {OLDEST_KEEP_ALIVE_S:g} s."))

    def _handle_unreadable(self, packet: codec.UnreadableList, _: float) -> None:
        """Report an unreadable list once: it may come four times a second, and driving does not need it."""
        if packet.type not in self._unreadable:
            self._unreadable.add(packet.type)
            sentence = (
                f"The robot sent a packet of type 0x{packet.type:02x} in an unknown layout: {packet.problem}. Such "
                "packets are ignored."
            )
            self._out.append(Note(UNREADABLE, sentence))

    def _handle_log(self, text: str, now_s: float) -> None:
        stopped = self._others.note_log(text)
        if stopped is not None and stopped in self.bindings.bound_names:
            self._keep_alives.note_safe_mode(now_s)

    # Driving.

    def drive(self, speeds: Speeds, now_s: float) -> None:
        """Send changed speeds to every bound skid steer.

        While keep-alives are too late to drive, the speeds are STOPPED. A stop overtakes queued packets. Other changes
        are limited by `max_update_rate`. Unless they only slow the motors down, they are also withheld while earlier
        packets are unacknowledged. Once changes have been withheld for `command_timeout`, the robot is stopped.
        """
        self._change_due_s = math.inf
        is_late = self._keep_alives.are_late(now_s)
        if not is_late:
            self._withheld_since_s = None
        if self.standstill_reason(now_s):
            speeds = STOPPED
        elif speeds not in (STOPPED, self.driven):
            may_change_s = self._changed_s + 1 / self._parameters.max_update_rate
            if is_late and not _only_slows(self.driven, speeds):
                speeds = self._withheld(now_s)
            elif now_s < may_change_s:
                speeds, self._change_due_s = self.driven, may_change_s
        if speeds != self.driven:
            self.driven, self._changed_s = speeds, now_s
            self._out.append(Note(UPDATES))
        numbers = self.bindings.bound_of(codec.SubsystemType.SKID_STEER)
        changed = [number for number in numbers if self._sent_speeds.get(number) != speeds]
        self._sent_speeds.update(dict.fromkeys(changed, speeds))
        updates = [codec.SkidSteerUpdate(number, *speeds) for number in changed]
        self.outbox[:] = [*updates, *self.outbox] if speeds == STOPPED else [*self.outbox, *updates]
        if numbers and speeds != STOPPED:
            self.moving = speeds

    def _withheld(self, now_s: float) -> Speeds:
        """Return the speeds in place of a withheld change: a stop after `command_timeout`."""
        if self._withheld_since_s is None:
            self._withheld_since_s = now_s
        stop_s = self._withheld_since_s + self._parameters.command_timeout
        if now_s >= stop_s:
            return STOPPED
        self._change_due_s = stop_s
        return self.driven

    def switch_lights(self, is_on: bool) -> int:
        """Switch all bound lights if that is a change, and those bound later. Return the number of bound lights."""
        lights = self.bindings.bound_of(codec.SubsystemType.LIGHTS)
        if lights and is_on != self._light:
            self._light = is_on
            self.outbox += [codec.LightUpdate(number, is_on) for number in lights]
        return len(lights)

    def _begin(self, number: int) -> None:
        """Stop newly granted motors before anything else, since another driver may have left them running."""
        if number in self.bindings.bound_of(codec.SubsystemType.SKID_STEER):
            self._sent_speeds[number] = STOPPED
            self.outbox.append(codec.SkidSteerUpdate(number, *STOPPED))
        elif self._light is not None and number in self.bindings.bound_of(codec.SubsystemType.LIGHTS):
            self.outbox.append(codec.LightUpdate(number, self._light))


def _only_slows(before: Speeds, speeds: Speeds) -> bool:
    """Return whether no motor turns faster than before, or in reverse."""
    return all(0 <= new <= old or old <= new <= 0 for old, new in zip(before, speeds, strict=True))
