# SPDX-License-Identifier: Apache-2.0
"""RobotSession: a robot's packets to its drivers, and the commands that it accepts, for robot_server. Pure.

Theory of operation, from the specification and the behaviour of real drivers:

Up to MAX_DRIVERS are connected at once. Each queries the lists, binds subsystems, updates them, and sends keep-alives.
`device.control` decides about binds, in each dialect. Drivers send only changes, so speeds are repeated here, and a
stop is repeated a few times.

| a driver | action | ends |
|---|---|---|
| connects | nothing is sent before its query | by its first packet; closed after FIRST_MESSAGE_S without one |
| is active | packets are answered, updates applied at once | HALTED, after `command_timeout` of silence, or after a \
stall of this process |
| is halted | its motors are stopped; it keeps its subsystems | by its next update |
| disconnects: it closes, sends malformed data, is silent for `driver_timeout`, or loses its place | its motors are \
stopped, and its subsystems are free | |

The robot may be behind a bridge. While it is not connected there, or after another robot has replaced it, drivers are
disconnected and discovery is not answered. While it is silent, keep-alives are not answered, so that drivers detect it
as they would at the robot itself.

A discovery request is a datagram with its socket's address. The reply is the robot's name.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from drone_bridge.parameter_fields import parameter
from drone_bridge.robot import codec
from drone_bridge.robot.codec import Speeds
from drone_bridge.robot.vehicle.device.control import MAX_DRIVERS
from drone_bridge.robot.vehicle.device.dialects import SERVED, RobotDialect
from drone_bridge.robot.vehicle.device.drivers import Instant
from drone_bridge.robot.vehicle.device.served_driver import ServedDriver
from drone_bridge.robot.vehicle.device.vehicle import DrivenSubsystem
from drone_bridge.robot.vehicle.session.drive_commands import DriveCommands
from drone_bridge.robot.vehicle.session.listing import Listing
from drone_bridge.robot.vehicle.session.sensor_values import SensorValues
from drone_bridge.session.clients import Clients
from drone_bridge.session.node_parameters import ServerParameters
from drone_bridge.session.session import (
    AFTER_STALLS,
    CONNECTIONS,
    REJECTED,
    Action,
    Actions,
    Close,
    Note,
    Publish,
    Send,
    Session,
)
from drone_bridge.wire.addresses import peer_name
from drone_bridge.wire.counters import RateCounter, problems
from drone_bridge.wire.events import DisconnectPeerError, ProtocolError
from drone_bridge.wire.outgoing import UNENCODABLE

WAITING, LISTENING, CLOSED = "waiting for a peer", "listening", "closed"
ROBOT_GONE = "the robot behind this server is not available"
OTHER_ROBOT = "the subsystems or sensors of the robot behind this server have changed"
CLOSED_BY_US = "the connection was closed here"
#: Timeout of a driver's first packet, even with `driver_timeout: 0`, since drivers send keep-alives at once.
FIRST_MESSAGE_S = 10.0
#: Maximum delay in detecting a driver that has been silent for `driver_timeout`, which may change.
WATCH_PERIOD_S = 0.25
#: Delay of halting a driver after its timeout.
_AFTER_S = 1e-3
# Counters.
SILENT_DRIVERS, DROPPED_DRIVERS, REFUSED_UPDATES = problems("silent_drivers", "dropped_drivers", "refused_updates")
READINGS = RateCounter("readings")


@dataclass(slots=True)
class RobotParameters(ServerParameters):
    """Parameters of the session."""

    driver_timeout: float = parameter(
        2.0, "Silence after which a driver that holds subsystems is dropped, s. 0: never.", 0.0, 3600.0, live=True
    )
    source_timeout: float = parameter(
        5.0, "Age at which a sensor's last value is stale and no longer listed, s.", 0.05, 3600.0, live=True
    )
    sensor_period: float = parameter(
        2.0, "Minimum time between packets of readings, s, each with the newest values.", 0.0, 60.0, live=True
    )


class RobotSession(Session):
    """Session of a robot with all of its drivers."""

    def __init__(
        self,
        name: str,
        parameters: RobotParameters,
        wall_ms: Callable[[], int],
        listing: Listing | None,
        dialect: RobotDialect = RobotDialect.DOCUMENT,
        *,
        is_silent: bool = False,
    ) -> None:
        """Start without drivers.

        Args:
            name: of the robot, for discovery.
            parameters: those of the node, which may change at any time.
            wall_ms: returns the time of day, ms since 1970.
            listing: the robot's parts; None while it is not connected.
            dialect: towards its drivers, of SERVED.
            is_silent: whether the robot is silent.
        """
        self.state = WAITING
        #: The drivers and their subsystems, for people.
        self.holdings = ""
        self._name, self._parameters, self._wall_ms = name.encode(), parameters, wall_ms
        self._out: list[Action] = []
        self._now = Instant(-math.inf, 0)
        self._commands = DriveCommands(lambda speeds: self._out.append(Publish(speeds)))
        self._values = SensorValues()
        self._listing = listing or Listing()
        self._control = SERVED[dialect](self, self._report, lambda: self._out.append(Note(REFUSED_UPDATES)))
        self._clients: Clients[ServedDriver] = Clients(MAX_DRIVERS, first_message_s=FIRST_MESSAGE_S)
        self._has_robot, self._is_silent = listing is not None, is_silent
        self._watch_s = -math.inf  # time of the next check for silent drivers

    def opened(self, now_s: float) -> Actions:
        self.state = LISTENING
        return self._done(now_s)

    # Drivers.

    def connected(self, peer: Any, now_s: float) -> Actions:
        """Accept a driver, if necessary in place of a silent one."""
        self._begin(now_s)
        if not self._has_robot:
            self._report(f"{peer} is disconnected: {ROBOT_GONE}")
            return [*self._done(now_s), Close(peer)]
        refusal, loser, reason = self._clients.admit(peer, now_s)
        if refusal:
            return [*self._done(now_s), *refusal]
        if loser is not None:
            self._leave(loser, f"it {reason}")
        served = ServedDriver(
            self._control,
            peer,
            lambda data: self._out.append(Send(data, peer)),
            lambda: self._now,
            is_suppressed=lambda packet: self._is_silent and isinstance(packet, codec.KeepAlive),
            unencodable=lambda sentence: self._out.append(Note(UNENCODABLE, sentence)),
        )
        if not self._clients:
            self.since_s, self.received_s = now_s, None
        self._clients.add(peer, served, now_s)
        self._out.append(Note(CONNECTIONS, f"Connected to {peer}.", is_expected=True))
        return self._done(now_s)

    def receive(self, data: bytes | str, source: Any, now_s: float) -> Actions:
        """Execute the packets in a driver's data, or answer a discovery request."""
        assert isinstance(data, bytes)
        if isinstance(source, tuple):
            return self._answer_discovery(source, now_s)
        if source not in self._clients:
            return []
        self._begin(now_s)
        client = self._clients[source]
        served, has_sent_message = client.handler, False
        try:
            served.receive_data(data)
            while served.handle_next():
                has_sent_message = True
        except ProtocolError as error:
            self._reject(served, error)
            self._leave(source, str(error))
        except DisconnectPeerError as error:
            self._leave(source, str(error))
        if has_sent_message:
            self.received_s = now_s
        self._clients.data_received(
            client, now_s, is_inside_message=served.inside_message, has_sent_message=has_sent_message
        )
        return self._done(now_s)

    def disconnected(self, peer: Any, sentence: str, now_s: float) -> Actions:
        """Stop the motors of a disconnected driver. Its last packet may be incomplete."""
        self._begin(now_s)
        if peer in self._clients:
            served = self._clients[peer].handler
            try:
                served.receive_eof()
            except ProtocolError as error:
                self._reject(served, error)
            self._leave(peer, sentence.rstrip("."))
        return self._done(now_s)

    def tick(self, now_s: float) -> Actions:
        """Repeat speeds, send readings, and stop the motors of silent drivers."""
        if now_s < self.due_s:
            return []
        self._begin(now_s)
        self._halt_silent()
        self._drop_silent()
        self._commands.tick(now_s)
        self._send_readings()
        return self._done(now_s)

    def resume(self, now_s: float) -> Actions:
        """Stop all motors until their drivers' next updates."""
        super().resume(now_s)
        self._begin(now_s)
        for driver in self._control.halt_all(self._now):
            sentence = f"This process was stalled: the motors of {driver} are stopped until its next update."
            self._out.append(Note(AFTER_STALLS, sentence))
        for driver in self._control.drivers:  # restarts their timeouts
            driver.last_received_s = now_s
        self._clients.resume(now_s)
        return self._done(now_s)

    def lost(self, now_s: float) -> Actions:
        """Stop, and disconnect all drivers, after a fault."""
        self._begin(now_s)
        self._close_all(CLOSED_BY_US)
        self.state = WAITING
        return self._done(now_s)

    def end(self, now_s: float) -> Actions:
        """Stop the robot. Done when the stop was published often enough."""
        self._begin(now_s)
        self.state = CLOSED
        self._close_all(CLOSED_BY_US)
        return self._done(now_s)

    # The robot.

    def follow(self, listing: Listing | None, now_s: float, *, is_silent: bool = False) -> Actions:
        """Update the robot's parts, None if it is not connected, and whether it is silent."""
        self._begin(now_s)
        had_robot, self._has_robot, self._is_silent = self._has_robot, listing is not None, is_silent
        before = self._listing
        if listing is None:
            if had_robot:
                self._close_all(ROBOT_GONE)
        elif listing != before:
            if listing.identity != before.identity:
                self._close_all(OTHER_ROBOT)
            self._listing = listing
            for number in self._control.holders:
                if not listing.subsystems[number].is_available:
                    self._control.revoke(number, self._now)
        return self._done(now_s)

    def take(self, values: Mapping[int, int | None], now_s: float) -> Actions:
        """Send new values of sensors by number. None: no longer known."""
        self._begin(now_s)
        for sensor, value in values.items():
            self._values.put(sensor, value, now_s)
        return self._done(now_s)

    # Helpers.

    def _begin(self, now_s: float) -> None:
        self._now = Instant(now_s, self._wall_ms())

    def _done(self, now_s: float) -> Actions:
        """Return the gathered actions."""
        drivers = self._control.drivers
        self.peer, self.is_open = ", ".join(str(driver.peer) for driver in drivers), bool(drivers)
        if not drivers:
            self.since_s = self.received_s = None
        held: dict[Any, list[str]] = {driver: [] for driver in drivers}
        for number, holder in self._control.holders.items():
            held[holder].append(self.subsystems[number].name)
        self.holdings = "; ".join(f"{driver}: {', '.join(names) or 'nothing'}" for driver, names in held.items())
        self._set_due()
        self.is_over = self.state == CLOSED and self._commands.due_s == math.inf
        actions = list(self._out)
        self._out.clear()
        return actions

    def _set_due(self) -> None:
        silent_s = self._control.silent_at_s(self._parameters.command_timeout) + _AFTER_S
        self.due_s = min(self._commands.due_s, self._values.due_s(self._parameters.sensor_period), silent_s)
        if self._control.drivers:
            self.due_s = min(self.due_s, self._watch_s)

    def _leave(self, peer: Any, reason: str) -> None:
        """Stop a driver's motors, and disconnect it unless it has closed the connection."""
        if client := self._clients.remove(peer):
            client.handler.leave(reason)
            self._out.append(Close(peer))

    def _close_all(self, reason: str) -> None:
        for client in self._clients.all():
            self._leave(client.peer, reason)

    def _reject(self, served: ServedDriver, error: ProtocolError) -> None:
        sentence = f"{served.driver}: {error} The connection is closed: its data can't be trusted."
        self._out.append(Note(REJECTED, sentence))

    def _halt_silent(self) -> None:
        allowed_s = self._parameters.command_timeout
        for driver in self._control.halt_silent(self._now, allowed_s):
            sentence = f"{driver} has been silent for {allowed_s:g} s (command_timeout): its motors are stopped."
            self._out.append(Note(SILENT_DRIVERS, sentence))

    def _drop_silent(self) -> None:
        """Drop drivers that are silent for too long, or too slow with a packet."""
        now_s = self._now.steady_s
        if now_s >= self._watch_s:
            self._watch_s = now_s + WATCH_PERIOD_S
            dropped_s = self._parameters.driver_timeout
            for driver in self._control.silent_drivers(self._now, dropped_s) if dropped_s else ():
                sentence = f"{driver} was dropped: it has been silent for {dropped_s:g} s (driver_timeout)."
                self._out.append(Note(DROPPED_DRIVERS, sentence))
                self._leave(driver.peer, f"silent for {dropped_s:g} s")
        for client, lateness in self._clients.overdue(now_s):
            self._leave(client.peer, f"it {lateness}")

    def _send_readings(self) -> None:
        now_s = self._now.steady_s
        if now_s < self._values.due_s(self._parameters.sensor_period):
            return
        readings = [each for each in self._values.take(now_s) if each.sensor < len(self._listing.sensors)]
        self._out += [Note(READINGS)] * len(readings)
        self._control.send_readings(readings)

    def _answer_discovery(self, source: Any, now_s: float) -> Actions:
        """Answer a discovery request, unless the robot is not connected."""
        if not self._has_robot:
            return []
        sentence = f"Discovery request of {peer_name(source)} answered with the name {self._name.decode()}."
        return [Send(self._name, source), Note("", sentence, is_expected=True)]

    def _report(self, sentence: str) -> None:
        self._out.append(Note("", sentence, is_expected=True))

    # RobotVehicle, as used by RobotControl: commands are published, and sensor values are the newest received ones.

    @property
    def subsystems(self) -> Sequence[DrivenSubsystem]:
        return self._listing.subsystems

    def drive(self, left: int, right: int) -> None:
        """Publish a command. All skid steers share one topic, as in robot_bridge."""
        self._commands.drive(Speeds(left, right), self._now.steady_s)

    def stop(self) -> None:
        """Publish a stop if the robot moves."""
        self._commands.stop(self._now.steady_s)

    def light(self, number: int, is_on: bool) -> None:
        self._out.append(Publish(codec.LightUpdate(number, is_on)))

    def sensors(self) -> list[codec.Sensor]:
        """Return all sensors. Stale values are None."""
        allowed_s = self._parameters.source_timeout
        return [
            replace(sensor, value=self._values.current(number, self._now.steady_s, allowed_s))
            for number, sensor in enumerate(self._listing.sensors)
        ]
