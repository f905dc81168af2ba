# SPDX-License-Identifier: Apache-2.0
"""DriverSession: a driver's packets to a robot across all of its connections, for robot_bridge. Pure.

| state | sent | ends |
|---|---|---|
| WAITING | nothing | CONNECTED, on a connection |
| CONNECTED | registration, a query, binds of the desired subsystems; again each second while one is missing | |
| | a stop after a grant; changes of speed, at `max_update_rate`; a stop, at once | |
| | a keep-alive every 0.1 s, and after a stop, which counts once that one is answered; byte by byte, while none of \
the last 0.5 s is answered | |
| | only a stop, while no keep-alive of the last second is answered, or the robot reports safe mode | |
| | a stop, and unbinds, if the robot can be reached | WAITING, when the robot disconnects, sends undecodable data, \
or has answered no keep-alive for `link_timeout` (robotd: at least 10 s) |
| CLOSED, by `end` | a stop, and unbinds | |

The arbiter decides the velocity. Desired subsystems are kept across connections; commands, lights and requests are not.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, NoReturn

from drone_bridge.robot import codec
from drone_bridge.robot.codec import STOPPED
from drone_bridge.robot.session.bindings import NOT_LISTED
from drone_bridge.robot.session.commanded_motion import CommandedMotion
from drone_bridge.robot.session.connected_driver import ConnectedDriver, DriverParameters, SilentRobotError
from drone_bridge.robot.session.desired import DesiredSubsystems
from drone_bridge.robot.session.packet_sender import PacketSender
from drone_bridge.robot.units import SkidSteer
from drone_bridge.session.arbiter import CommandSource
from drone_bridge.session.clients import LOST
from drone_bridge.session.feedback import Feedback
from drone_bridge.session.session import (
    CONNECTIONS,
    MAY_HAVE_WAITED,
    REJECTED,
    Action,
    Actions,
    Close,
    LastWords,
    Note,
    Outcome,
    Publish,
    Request,
    Session,
    sends_first,
)
from drone_bridge.wire.counters import RateCounter
from drone_bridge.wire.events import RemoteProtocolError

WAITING, CONNECTED, CLOSED = "waiting for a peer", "connected", "closed"
NOT_CONNECTED = "No robot is connected."
#: Delay of a stop after the timeout of a command.
_AFTER_S = 1e-3
PACKETS = RateCounter("packets")
#: Names of conditions.
OBSTRUCTION, STANDSTILL = "obstruction", "standstill"


# Published events besides packets of the robot.


@dataclass(frozen=True, slots=True)
class Lists:
    """The robot's lists, None before it has sent them: sensors, and subsystems with their drivers.

    `bound` has the numbers of the subsystems that are bound here.
    """

    sensors: codec.SensorInfo | None = None
    subsystems: codec.SubsystemInfo | None = None
    bound: frozenset[int] = frozenset()


class Problem(NamedTuple):
    """Condition that begins, or, without a sentence, ends."""

    name: str
    sentence: str | None
    is_error: bool = False


class DriverSession(Session):
    """Session of a driver with one robot, across its connections."""

    def __init__(
        self,
        driver_name: str,
        desired: DesiredSubsystems,
        arbiter: CommandSource[NoReturn],
        parameters: DriverParameters,
        wall_ms: Callable[[], int],
        *,
        skid_steer: SkidSteer,
        feedback: Feedback | None = None,
    ) -> None:
        """Start without a connection.

        Args:
            driver_name: as shown to the robot and its other drivers.
            desired: the subsystems to bind.
            arbiter: decides the velocity.
            parameters: those of the node, which may change at any time.
            wall_ms: returns the time of day, ms since 1970.
            skid_steer: geometry of the robot, for its speeds and its odometry.
            feedback: receives the odometry; None if it is not wanted.
        """
        self.state = WAITING
        #: Reason, for people, why no command can move the robot now, or None.
        self.undrivable: str | None = None
        self._out: list[Action] = []
        self._make_driver = partial(ConnectedDriver, driver_name, desired, parameters, self._out)
        self._parameters, self._arbiter, self._wall_ms = parameters, arbiter, wall_ms
        self._skid_steer, self._feedback, self._odometry = skid_steer, feedback, CommandedMotion(skid_steer)
        self._driver: ConnectedDriver | None = None
        self._sender = PacketSender(None, self._out)
        self._lists = Lists()  # as last published
        self._problems: dict[str, Problem] = {}

    # The link.

    def connected(self, peer: Any, now_s: float) -> Actions:
        """Register, and query the lists."""
        self.state, self.peer, self.is_open, self.is_proven = CONNECTED, str(peer), True, False
        self.since_s = now_s
        self._arbiter.forget()
        self._sender = PacketSender(peer, self._out)
        self._driver, self._lists = self._make_driver(now_s), Lists()
        self._odometry.begin(now_s)
        self._out.append(Note(CONNECTIONS, f"Connected to {peer}.", is_expected=True))
        return self._turn(now_s)

    def receive(self, data: bytes | str, source: Any, now_s: float) -> Actions:
        """Decode a chunk of the robot's data, and publish its packets."""
        assert isinstance(data, bytes)
        if not (driver := self._driver):
            return []
        self._sender.connection.receive_data(data)
        try:
            while (packet := self._sender.connection.next_event()) is not codec.NEED_DATA:
                assert not isinstance(packet, codec.ConnectionClosed)
                self._out.append(Note(PACKETS))
                driver.handle(packet, now_s)
        except RemoteProtocolError as error:
            return self._refused(error, now_s)
        return self._turn(now_s)

    def disconnected(self, peer: Any, sentence: str, now_s: float) -> Actions:
        """End the session with a robot whose connection was lost or closed."""
        if not self._driver:
            return []
        try:
            self._sender.connection.receive_eof()
            self._sender.connection.next_event()
        except RemoteProtocolError as error:
            return self._refused(error, now_s, is_gone=True)
        sentence = self._driver.bindings.closing_sentence or sentence
        self._out.append(Note(LOST, sentence))
        return self._ended(sentence, now_s, is_gone=True)

    def tick(self, now_s: float) -> Actions:
        """Check timeouts, and send due packets."""
        return self._turn(now_s) if now_s >= self.due_s else []

    def resume(self, now_s: float) -> Actions:
        """Send and receive before judging the robot: this process was stalled."""
        if not self._driver:
            return []
        self._driver.keep_alives.resume(now_s)
        return self._turn(now_s)

    def lost(self, now_s: float) -> Actions:
        """Send neutral and unbind after a fault. A connection that has ended is skipped."""
        return self._ended("The connection to the robot has ended.", now_s) if self._driver else []

    def end(self, now_s: float) -> Actions:
        """Stop the robot, and unbind all subsystems."""
        actions = self._ended("This driver is shutting down.", now_s) if self._driver else []
        self.state, self.is_over = CLOSED, True
        return actions

    def last_words(self) -> LastWords | None:
        """Stop the robot. At the end, unbind all subsystems, too: robotd keeps the motors of a driver that has left."""
        if not (driver := self._driver) or not driver.is_driven:
            return None
        stops, unbinds = map(self._sender.pieces, driver.bindings.releases())
        return LastWords(stops, unbinds, self._sender.peer)

    def neutral_sent(self, now_s: float) -> Actions:
        """Record that the robot was stopped at this time, after the rest of a slow packet."""
        if self._driver:
            self._sender.was_completed()
            self._driver.was_stopped(now_s)
            self._odometry.move(STOPPED, now_s)
        return []

    # Requests.

    def commanded(self, now_s: float) -> Actions:
        """Send due packets after a new command or its timeout."""
        return self._turn(now_s)

    def bind(self, request: Request, number: int, now_s: float) -> Actions:
        """Bind a subsystem, and rebind it after a loss."""
        if driver := self._connection_for(request, now_s):
            driver.bindings.bind(request, number)
        return self._turn(now_s)

    def unbind(self, request: Request, number: int, now_s: float) -> Actions:
        """Stop and unbind a subsystem, and remove it from the desired ones."""
        if driver := self._connection_for(request, now_s):
            driver.bindings.unbind(request, number)
        return self._turn(now_s)

    def switch_light(self, request: Request, is_on: bool, now_s: float) -> Actions:
        """Switch all bound lights."""
        if driver := self._connection_for(request, now_s):
            lights = driver.switch_lights(is_on)
            sentence = f"{'On' if is_on else 'Off'}: {lights} of the robot's lights."
            self._out.append(Outcome(request, lights > 0, sentence if lights else "No light is bound."))
        return self._turn(now_s)

    def _connection_for(self, request: Request, now_s: float) -> ConnectedDriver | None:
        """Return the connection for a request. Refuse the request if there is none, or if it is stale."""
        if self._driver and now_s <= self.expires_at(request):
            return self._driver
        refusal = f"{MAY_HAVE_WAITED} Please call again." if self._driver else NOT_CONNECTED
        self._out.append(Outcome(request, False, refusal))
        return None

    # A turn of the session.

    def _turn(self, now_s: float) -> Actions:
        """Check timeouts, and return the gathered actions."""
        if driver := self._driver:
            try:
                driver.tick(now_s, self._wall_ms())
            except SilentRobotError as silence:
                self._out.append(Note(LOST, str(silence)))
                return self._ended(str(silence), now_s)
            decision = self._arbiter.decide(now_s)
            driver.drive(self._skid_steer.speeds(decision.command) if decision.command else STOPPED, now_s)
            driver.flush(self._sender.send, now_s)
            self._sender.tick(now_s)
            self.received_s = driver.received_s
            self.is_proven = self.is_proven or driver.bindings.is_settled
            self._update_problems(driver, now_s)
            self._publish_lists(driver)
            if (measured := self._odometry.move(driver.moving, now_s)) and self._feedback:
                self._feedback.measured(measured, now_s)
                self._out.append(Publish(measured))
            self.due_s = min(driver.due_s, self._sender.due_s, self._odometry.due_s)
            if decision.command is not None and decision.arrived_s is not None:
                self.due_s = min(self.due_s, decision.arrived_s + self._parameters.command_timeout + _AFTER_S)
        return self._done()

    def _done(self) -> Actions:
        """Return the gathered actions, packets first: a publisher may be slow."""
        actions = sends_first(self._out)
        self._out.clear()
        return actions

    def _refused(self, error: RemoteProtocolError, now_s: float, *, is_gone: bool = False) -> Actions:
        sentence = f"{error} The connection is closed: its data can't be trusted."
        self._out.append(Note(REJECTED, sentence))
        return self._ended(sentence, now_s, is_gone=is_gone)

    def _ended(self, reason: str, now_s: float, *, is_gone: bool = False) -> Actions:
        """Send the last packets if there is a connection, and answer all pending requests."""
        driver = self._driver
        assert driver
        self._odometry.end(now_s)
        packets = driver.bindings.end(reason)
        if not is_gone:
            self._sender.complete()
            for packet in packets:
                self._sender.send(packet, now_s)
            self._out.append(Close(self._sender.peer))
        self._publish_lists(driver)
        for name in tuple(self._problems):
            self._note(name, None)
        self._driver, self.undrivable = None, None
        self.state, self.is_open, self.received_s, self.since_s = WAITING, False, None, None
        self.due_s = math.inf
        return self._done()

    # Reports for people.

    def _update_problems(self, driver: ConnectedDriver, now_s: float) -> None:
        obstruction = driver.bindings.obstruction
        is_bound = bool(driver.bindings.bound_of(codec.SubsystemType.SKID_STEER))
        standstill = driver.keep_alives.standstill_reason(now_s) if is_bound else None
        self._note(OBSTRUCTION, *(obstruction or (None,)))
        self._note(STANDSTILL, standstill)
        if is_bound:
            self.undrivable = standstill
        else:
            nothing = "No skid steer is bound." if driver.bindings.info else NOT_LISTED
            self.undrivable = obstruction.sentence if obstruction else nothing

    def _note(self, name: str, sentence: str | None, is_error: bool = False) -> None:
        """Publish a condition when it begins, changes or ends."""
        problem = Problem(name, sentence, is_error)
        if problem != self._problems.get(name, Problem(name, None)):
            self._problems[name] = problem
            self._out.append(Publish(problem))

    def _publish_lists(self, driver: ConnectedDriver) -> None:
        """Publish changed lists."""
        bindings, sensors = driver.bindings, driver.sensors
        if sensors is None and bindings.info:  # none, or in an unknown layout: the robot can be driven all the same
            sensors = codec.SensorInfo(())
        lists = Lists(sensors, bindings.info, frozenset(bindings.bound))
        if lists != self._lists:
            self._lists = lists
            self._out.append(Publish(lists))
