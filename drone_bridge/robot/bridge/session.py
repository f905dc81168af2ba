# SPDX-License-Identifier: Apache-2.0
"""A driver's conversation with a robot: registers, binds, sends keep-alives, drives. No sockets, no clock."""

import math
from typing import Final

from drone_bridge.net.connector import LinkTimeoutError
from drone_bridge.robot.bridge.anomalies import anomalies
from drone_bridge.robot.bridge.bindings import Bindings
from drone_bridge.robot.bridge.desired import DesiredSubsystems
from drone_bridge.robot.bridge.holders import Holders
from drone_bridge.robot.bridge.keep_alives import OLDEST_KEEP_ALIVE_S, SLOW_ROUND_TRIP_S, KeepAlives
from drone_bridge.robot.bridge.listener import Listener
from drone_bridge.robot.codec import (
    BindFailure,
    BindSuccess,
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
from drone_bridge.robot.topics.translation import STOPPED, Speeds

#: Between a stop and its repetition, while no keep-alive after it was answered; from one to the next it grows.
STOP_REPETITION_S: Final = 0.05
_STOP_REPETITION_GROWTH: Final = 1.5
#: How long robotd may be silent at least: whoever gives it up is never let in again, until it is restarted.
ROBOTD_PATIENCE_S: Final = 10.0


class RobotSession:
    """One connection, from registration on. Times are of a monotonic clock, in s.

    Packets to be sent gather in `outbox`. Only what the robot has granted on this connection is ever updated.
    """

    def __init__(
        self,
        desired: DesiredSubsystems,
        holders: Holders,
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
        self._holders = holders
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
        return max(self._link_timeout_s, ROBOTD_PATIENCE_S) if self._holders.is_robotd else self._link_timeout_s

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
            self._holders.note_firmware(packet.type)
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
        stopped = self._holders.note_log(text)
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
