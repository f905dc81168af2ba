# SPDX-License-Identifier: Apache-2.0
"""A driver's conversation with a robot: registers, binds, sends keep-alives, drives. No sockets, no clock."""

import math
from collections.abc import Iterator

from drone_bridge.net.connector import LinkTimeoutError
from drone_bridge.robot.bridge.bindings import Bindings, DesiredSubsystems, Listener, OtherDrivers
from drone_bridge.robot.codec import (
    PROTOCOL_VERSION,
    BindFailure,
    BindSuccess,
    FirmwareInfo,
    FromDriver,
    FromRobot,
    KeepAlive,
    LightUpdate,
    LogMessage,
    QuerySubsystems,
    RegisterDriver,
    SensorInfo,
    SensorUpdate,
    SkidSteerUpdate,
    SubsystemBound,
    SubsystemInfo,
    SubsystemType,
    UnknownPacket,
    UnreadableList,
)
from drone_bridge.robot.topics import STOPPED, Speeds
from drone_bridge.wire.layouts import printable

# Keep-alives, and whether their answers allow driving.


KEEP_ALIVE_PERIOD_S = 0.5
#: robotd puts its motors in safe mode for a keep-alive that is older by its own clock.
OLDEST_KEEP_ALIVE_S = 2.0
SLOW_ROUND_TRIP_S = 1.0
#: robotd reports it at each late keep-alive. It is over after two keep-alives without such a report.
SAFE_MODE_LASTS_S = 3 * KEEP_ALIVE_PERIOD_S
#: An answer that is later than usual by so much shows that the robot has not dealt yet with what it was sent.
BACKLOG_S = 0.3
#: After a keep-alive without an answer, and twice as long after each further one: nothing is piled up on a backlog, and
#: yet a robot that handles one packet per socket read is made to read on.
UNANSWERED_PERIOD_S = 0.8
_MAX_IN_FLIGHT = 100


class KeepAlives:
    """Sends keep-alives, and checks whether they come back, or reach the robot, in time to drive."""

    def __init__(self, now_s: float) -> None:
        self._sent_s = -math.inf  # the newest one
        self._in_flight: dict[int, float] = {}  # when each was sent, by its time in ms
        self._answered_s = now_s  # when the newest one that was answered was sent
        self._fastest_s = math.inf  # of all round trips
        self._safe_mode_s = -math.inf  # when the robot last said that it is in safe mode
        self._resumed_s = -math.inf  # when this program last went on after it stood still

    @property
    def due_s(self) -> float:
        """When the next one is due."""
        if not self._in_flight:
            return self._sent_s + KEEP_ALIVE_PERIOD_S
        return float(self._sent_s + UNANSWERED_PERIOD_S * 2 ** (len(self._in_flight) - 1))

    def make(self, now_s: float, clock_ms: int) -> KeepAlive:
        """Return the next keep-alive. `clock_ms` is the time of day."""
        self._sent_s = now_s
        while len(self._in_flight) >= _MAX_IN_FLIGHT:
            del self._in_flight[next(iter(self._in_flight))]
        self._in_flight[clock_ms] = now_s
        return KeepAlive(clock_ms)

    def answered(self, packet: KeepAlive, now_s: float) -> float | None:
        """Return the round trip, in s, or None if no such keep-alive is pending."""
        sent_s = self._in_flight.pop(packet.time_ms, None)
        if sent_s is None:
            return None
        self._answered_s = max(self._answered_s, sent_s)
        round_trip_s = now_s - max(sent_s, self._resumed_s)
        self._fastest_s = min(self._fastest_s, round_trip_s)
        return round_trip_s

    def resume(self, now_s: float) -> None:
        """Ask at once, and judge from now on: this program stood still, and neither asked nor listened."""
        self._resumed_s, self._sent_s = now_s, -math.inf

    @property
    def are_answered(self) -> bool:
        """Whether none waits for its answer."""
        return not self._in_flight

    def are_answered_since(self, time_s: float) -> bool:
        """Return whether one that was sent at this time or later was answered, and so all that went before it."""
        return self._answered_s >= time_s

    def show_backlog(self, now_s: float) -> bool:
        """Return whether an answer is late, so that whatever is sent now will wait at the robot as well."""
        usual_s = self._fastest_s if math.isfinite(self._fastest_s) else 0.0
        return any(now_s - sent_s > usual_s + BACKLOG_S for sent_s in self._in_flight.values())

    def note_safe_mode(self, now_s: float) -> None:
        """Note that the robot has stopped its motors."""
        self._safe_mode_s = now_s

    def standstill_reason(self, now_s: float) -> str | None:
        """Return why the motors must not be driven now, or None.

        A robot that stops for late keep-alives would start again with the next update.
        """
        if now_s - self._safe_mode_s < SAFE_MODE_LASTS_S:
            return (
                "The robot is in safe mode, as keep-alives are too old by its clock when they arrive: compare the "
                "clocks of both machines, and look at the network's delay."
            )
        if now_s - max(self._answered_s, self._resumed_s) > OLDEST_KEEP_ALIVE_S:
            return f"The robot has answered no keep-alive of the last {OLDEST_KEEP_ALIVE_S:g} s."
        return None


# Anomalies of packets that could be decoded and are still useful.


def anomalies(packet: FromRobot) -> Iterator[tuple[str, str]]:
    """Yield each as the name of a count and a sentence."""
    if isinstance(packet, UnknownPacket):
        size = len(packet.payload)
        yield "unknown packets", f"The robot sent {size} bytes of the unknown type 0x{packet.type:02x}."
    elif getattr(packet, "has_replacements", False):
        yield "malformed strings", f"The robot sent a string that is not UTF-8: {printable(str(packet))}"
    if isinstance(packet, (SubsystemInfo, SensorInfo)) and (packet.opaque or packet.missing):
        what = "subsystem" if isinstance(packet, SubsystemInfo) else "sensor"
        yield (
            "unknown types",
            f"The robot has a {what} of an unknown type; it and {packet.missing} more after it, "
            f"{len(packet.opaque)} bytes, can't be read.",
        )
    if isinstance(packet, FirmwareInfo) and packet.protocol_version != PROTOCOL_VERSION:
        yield (
            "other protocol versions",
            f"The robot speaks version {packet.protocol_version} of the protocol, not {PROTOCOL_VERSION}.",
        )


# The conversation.


#: Between a stop and its repetition, while no keep-alive after it was answered; from one to the next it grows.
STOP_REPETITION_S = 0.05
_STOP_REPETITION_GROWTH = 1.5
#: How long robotd may be silent at least: whoever gives it up is never let in again, until it is restarted.
ROBOTD_PATIENCE_S = 10.0


class RobotSession:
    """One connection, from registration on. Times are of a monotonic clock, in s.

    Packets to be sent gather in `outbox`. Only what the robot has granted on this connection is ever updated.
    """

    def __init__(
        self,
        desired: DesiredSubsystems,
        holders: OtherDrivers,
        link_timeout_s: float,
        listener: Listener,
        now_s: float,
    ) -> None:
        """`holders` also has this driver's name."""
        self.outbox: list[FromDriver] = [RegisterDriver(holders.driver_name), QuerySubsystems()]
        holders.begin()
        self.bindings = Bindings(
            self.outbox,
            desired,
            holders,
            listener,
            answer_timeout_s=link_timeout_s,
            on_granted=self._forget_sent,
            now_s=now_s,
        )
        self._others = holders
        self._link_timeout_s = link_timeout_s
        self._listener = listener
        self._count_and_warn = listener.count_and_warn
        self._keep_alives = KeepAlives(now_s)
        self._started_s = self._heard_s = now_s
        self._sent_speeds: dict[int, Speeds] = {}
        self._sent_lights: dict[int, bool] = {}
        self._unreadable: set[int] = set()  # types of lists
        self._stopped_s: float | None = None  # when a stop was sent of which it is unknown whether the robot has it
        self._repetition_s = STOP_REPETITION_S
        self._repetition_due_s = math.inf

    def standstill_reason(self, now_s: float) -> str | None:
        """Return why the motors must not be driven now, or None."""
        return self._keep_alives.standstill_reason(now_s)

    # Time.

    @property
    def due_s(self) -> float:
        """When `tick` is due."""
        due_s = min(
            self._keep_alives.due_s, self._heard_s + self._patience_s, self.bindings.due_s, self._repetition_due_s
        )
        return due_s if self.bindings.info else min(due_s, self._started_s + self._patience_s)

    @property
    def _patience_s(self) -> float:
        return max(self._link_timeout_s, ROBOTD_PATIENCE_S) if self._others.is_robotd else self._link_timeout_s

    def resume(self, now_s: float) -> None:
        """Go on after this program stood still: it has not listened, so that nobody was silent, and speaks first."""
        self._heard_s = self._started_s = now_s
        self._keep_alives.resume(now_s)
        self.bindings.resume(now_s)

    def tick(self, now_s: float, clock_ms: int) -> None:
        """Do what is due. `clock_ms` is the time of day, for keep-alives. Raises LinkTimeoutError."""
        allowed_s = self._patience_s
        if now_s - self._heard_s >= allowed_s:
            raise LinkTimeoutError(f"The robot has been silent for {allowed_s:g} s.")
        if self.bindings.info is None and now_s - self._started_s >= allowed_s:
            raise LinkTimeoutError(f"The robot has not listed its subsystems within {allowed_s:g} s.")
        if now_s >= self._keep_alives.due_s:
            # Speeds are not repeated with it: a robot that has stopped by itself has its reasons.
            self.outbox.append(self._keep_alives.make(now_s, clock_ms))
        self._confirm_stop(now_s, clock_ms)
        self.bindings.tick(now_s)

    def _confirm_stop(self, now_s: float, clock_ms: int) -> None:
        """Repeat a stop until the robot has answered a keep-alive after it.

        Each repetition also makes a robot that handles one packet per socket read look at one more that it has.
        """
        if self._stopped_s is None:
            return
        if self._keep_alives.are_answered_since(self._stopped_s):
            self._stopped_s, self._repetition_due_s = None, math.inf
            return
        if now_s >= self._repetition_due_s:
            self._repetition_s *= _STOP_REPETITION_GROWTH
            self._repetition_due_s = now_s + self._repetition_s
            self._stop([number for number, speeds in self._sent_speeds.items() if speeds == STOPPED])
        if self._keep_alives.are_answered:  # and so that none piles up, only one of them asks
            self.outbox.append(self._keep_alives.make(now_s, clock_ms))

    # Packets of the robot.

    def handle(self, packet: FromRobot, now_s: float) -> None:
        """Handle a packet."""
        for count, sentence in anomalies(packet):
            self._count_and_warn(count, sentence)
        if isinstance(packet, UnknownPacket):
            return  # which may mean anything, so it is no sign of life
        self._heard_s = now_s
        if isinstance(packet, KeepAlive):
            self._handle_keep_alive(packet, now_s)
        elif isinstance(packet, SubsystemInfo):
            self.bindings.handle_list(packet, now_s)
        elif isinstance(packet, BindSuccess):
            self.bindings.handle_success(packet.id)
        elif isinstance(packet, BindFailure):
            self.bindings.handle_failure(packet.id)
        elif isinstance(packet, SubsystemBound):
            self.bindings.handle_bound(packet, now_s)
        elif isinstance(packet, SensorInfo):
            self._listener.sensors_listed(packet)
        elif isinstance(packet, SensorUpdate):
            self._listener.sensors_read(packet)
        elif isinstance(packet, LogMessage):
            self._handle_log(packet.text, now_s)
        elif isinstance(packet, UnreadableList):
            self._handle_unreadable(packet)
        else:
            self._others.note_firmware(packet.type)
            self._listener.firmware_identified(packet)

    def _handle_keep_alive(self, packet: KeepAlive, now_s: float) -> None:
        round_trip_s = self._keep_alives.answered(packet, now_s)
        if round_trip_s is None:
            self._count_and_warn(
                "unexpected packets", f"The robot answered keep-alive {packet.time_ms}, which was not sent."
            )
            return
        self._listener.round_trip_measured(round_trip_s)
        if round_trip_s >= SLOW_ROUND_TRIP_S:
            sentence = f"A keep-alive took {round_trip_s:.1f} s to the robot and back. Robots stop for one that is over"
            self._count_and_warn("slow keep-alives", f"{sentence} {OLDEST_KEEP_ALIVE_S:g} s old.")

    def _handle_unreadable(self, packet: UnreadableList) -> None:
        """Tell it once: it may come four times a second, and the robot can be driven all the same."""
        if packet.type not in self._unreadable:
            self._unreadable.add(packet.type)
            self._count_and_warn(
                "unreadable lists",
                f"The robot sent a packet of type 0x{packet.type:02x} in an unknown layout: {packet.problem}. It and "
                "others like it are left aside.",
            )

    def _handle_log(self, text: str, now_s: float) -> None:
        stopped = self._others.note_log(text)
        if stopped is not None and stopped in self.bindings.bound_names:
            self._keep_alives.note_safe_mode(now_s)
        self._listener.robot_logged(text)

    # Driving.

    def drive(self, speeds: Speeds, now_s: float) -> Speeds:
        """Send changed speeds to every bound skid steer; return them. They are STOPPED while keep-alives are late."""
        if self.standstill_reason(now_s):
            speeds = STOPPED
        changed = [
            number
            for number in self.bindings.bound_of(SubsystemType.SKID_STEER)
            if self._sent_speeds.get(number) != speeds
        ]
        self._sent_speeds.update(dict.fromkeys(changed, speeds))
        if changed and speeds == STOPPED:
            self._stop(changed)
            self._stopped_s, self._repetition_s = now_s, STOP_REPETITION_S
            self._repetition_due_s = now_s + STOP_REPETITION_S
        elif changed:
            self._stopped_s, self._repetition_due_s = None, math.inf
            self.outbox += [SkidSteerUpdate(number, *speeds) for number in changed]
        return speeds

    def _stop(self, numbers: list[int]) -> None:
        """Send a stop before, and instead of, whatever is queued for these motors."""
        numbers = [number for number in numbers if number in self.bindings.bound]
        self.outbox[:] = [
            *(SkidSteerUpdate(number, *STOPPED) for number in numbers),
            *(p for p in self.outbox if not (isinstance(p, SkidSteerUpdate) and p.id in numbers)),
        ]

    def has_backlog(self, now_s: float) -> bool:
        """Return whether the robot has not dealt yet with what it was sent: changes of speed wait, a stop does not."""
        return self._keep_alives.show_backlog(now_s)

    def light(self, is_on: bool) -> None:
        """Switch every bound light, if its state has changed."""
        for number in self.bindings.bound_of(SubsystemType.LIGHTS):
            if self._sent_lights.get(number) != is_on:
                self._sent_lights[number] = is_on
                self.outbox.append(LightUpdate(number, is_on))

    def _forget_sent(self, number: int) -> None:
        self._sent_speeds.pop(number, None)
        self._sent_lights.pop(number, None)

    # The end.

    def farewell(self) -> list[FromDriver]:
        """Return the last packets, which stop and unbind everything."""
        return self.bindings.release_all()

    def end(self, sentence: str) -> None:
        """Fail pending binds, and remember what the robot may still regard as ours."""
        self.bindings.end(sentence)
