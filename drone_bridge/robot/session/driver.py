# SPDX-License-Identifier: Apache-2.0
"""DriverSession: a driver's packets to a robot across all of its connections, for robot_bridge. Pure.

Theory of operation, from the specification and the behaviour of real robots:

| state | sent | ends |
|---|---|---|
| WAITING | nothing | CONNECTED, on a connection |
| CONNECTED | registration, a query, binds of desired subsystems, then updates when speeds change, and keep-alives: \
see ConnectedDriver | WAITING, when the robot disconnects, is silent for `link_timeout`, sends no first answer for \
FIRST_ANSWER_S, or sends undecodable data |
| CLOSED, by `end` | a stop, and unbinds | |

The arbiter decides the velocity. At most `max_update_rate` changes of speed are sent per second, but a stop is sent
at once. While answers to keep-alives are late, changes that only slow the motors down are sent, and other changes are
withheld. After `command_timeout`, a stop is sent in their place. In safe mode, only a stop is sent. Desired subsystems
are kept across connections. Commands, lights and requests are not. A request to bind is answered by the robot's
response, or by the end of the connection.

A connection has proved useful once the robot has answered all binds. Otherwise, reconnecting backs off.

The robot's motion is known from its answers: a stop counts once it is known to be in force.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, NoReturn

from drone_bridge.motion.planar_pose import PlanarPose
from drone_bridge.robot import codec
from drone_bridge.robot.codec import STOPPED
from drone_bridge.robot.session.bindings import NOT_LISTED
from drone_bridge.robot.session.connected_driver import ConnectedDriver, DriverParameters, SilentRobotError
from drone_bridge.robot.session.desired import DesiredSubsystems
from drone_bridge.robot.units import SkidSteer, measurement
from drone_bridge.session.arbiter import CommandSource, Decision
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
    Send,
    Session,
    encode,
    next_due,
    sends_first,
)
from drone_bridge.wire.counters import RateCounter
from drone_bridge.wire.events import RemoteProtocolError

WAITING, CONNECTED, CLOSED = "waiting for a peer", "connected", "closed"
LIST_PERIOD_S = 0.1  # minimum time between published lists
ODOMETRY_RATE = 20.0  # messages per second
MAY_MOVE = "The robot has not acknowledged the stop: it may still be moving."
NOT_CONNECTED = "No robot is connected."
#: Delay of a stop after the timeout of a command.
_AFTER_S = 1e-3
#: Names of conditions.
PACKETS = RateCounter("packets")
OBSTRUCTION, STANDSTILL, UNANSWERED_STOP, UNLISTED = "obstruction", "standstill", "unanswered_stop", "unlisted"


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
        self._driver_name, self._desired, self._arbiter = driver_name, desired, arbiter
        self._skid_steer, self._parameters, self._wall_ms = skid_steer, parameters, wall_ms
        self._feedback = feedback
        self._peer: Any = None
        self._driver: ConnectedDriver | None = None
        self._connection = codec.DriverConnection()
        self._out: list[Action] = []
        self._lists = Lists()  # as last published
        self._lists_due_s = self._odometry_due_s = math.inf
        self._pose, self._moving, self._moved_s = PlanarPose(), STOPPED, 0.0  # the speeds since this time
        self._problems: dict[str, Problem] = {}
        self._has_said_words = False  # in the stall that has just ended

    # The link.

    def connected(self, peer: Any, now_s: float) -> Actions:
        """Register, and query the lists."""
        self._peer = peer
        self.state, self.peer, self.is_open, self.is_proven = CONNECTED, str(peer), True, False
        self.since_s = now_s
        self._arbiter.forget()
        self._connection = codec.DriverConnection()
        self._driver = ConnectedDriver(self._driver_name, self._desired, self._parameters, self._out, now_s)
        self._lists, self._lists_due_s = Lists(), math.inf
        self._odometry_due_s, self._moving, self._moved_s = now_s + 1 / ODOMETRY_RATE, STOPPED, now_s
        self._out.append(Note(CONNECTIONS, f"Connected to {peer}.", is_expected=True))
        return self._turn(now_s)

    def receive(self, data: bytes | str, source: Any, now_s: float) -> Actions:
        """Decode a chunk of the robot's data, and publish its packets."""
        assert isinstance(data, bytes)
        if not (driver := self._driver):
            return []
        self._connection.receive_data(data)
        try:
            while (packet := self._connection.next_event()) is not codec.NEED_DATA:
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
            self._connection.receive_eof()
            self._connection.next_event()
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
        self._has_said_words = False
        if not self._driver:
            return []
        self._driver.resume(now_s)
        return self._turn(now_s)

    def lost(self, now_s: float) -> Actions:
        """Send neutral and unbind after a fault. A connection that has ended is skipped."""
        if not self._driver:
            return []
        return self._ended("The connection to the robot has ended.", now_s)

    def end(self, now_s: float) -> Actions:
        """Stop the robot, and unbind all subsystems."""
        actions = self._ended("This driver is shutting down.", now_s) if self._driver else []
        self.state, self.is_over = CLOSED, True
        return actions

    def last_words(self) -> LastWords | None:
        """Stop the robot. At the end, unbind all subsystems, too: robotd keeps the motors of a driver that has left."""
        if not (driver := self._driver) or not driver.is_driven:
            return None
        stops, unbinds = (codec.in_pieces(map(self._connection.send, each)) for each in driver.bindings.releases())
        return LastWords(tuple(stops), tuple(unbinds), self._peer)

    def neutral_sent(self, now_s: float) -> Actions:
        """Record that the robot was stopped, after the rest of a slow keep-alive."""
        if self._driver:
            self._driver.was_stopped(now_s)
        self._has_said_words = True
        return []

    def outdated(self, action: Send) -> Send:
        """Drop a byte of a slow keep-alive that was completed before last words."""
        return replace(action, data=b"", rest=b"") if self._has_said_words and len(action.data) == 1 else action

    # Requests.

    def commanded(self, now_s: float) -> Actions:
        """Send due packets after a new command or its timeout."""
        return self._turn(now_s)

    def bind(self, request: Request, number: int, now_s: float) -> Actions:
        """Bind a subsystem, and rebind it after a loss."""
        if driver := self._connection_for(request, now_s):
            driver.bindings.bind(request, number, now_s)
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
            driver.flush(self._encoded, self._send, now_s)
            self.received_s = driver.received_s
            self.is_proven = self.is_proven or driver.bindings.is_settled
            self._update_problems(driver, now_s)
            self._publish_lists(driver, now_s)
            is_due = now_s >= self._odometry_due_s
            if is_due or driver.moving != self._moving:
                self._move(now_s, is_published=is_due and not driver.may_move(now_s))
                self._moving = driver.moving
            if is_due:
                self._odometry_due_s = next_due(self._odometry_due_s, 1 / ODOMETRY_RATE, now_s)
            self._set_due(driver, decision)
        return self._done()

    def _move(self, now_s: float, *, is_published: bool = False) -> None:
        """Integrate the speeds since the last call. Odometry is only published while the robot's motion is known."""
        velocity = self._skid_steer.velocity(self._moving)
        self._pose = self._pose.moved(now_s - self._moved_s, velocity.forward, velocity.turn)
        self._moved_s = now_s
        if is_published and self._feedback:
            measured = measurement(self._pose, velocity)
            self._feedback.measured(measured, now_s)
            self._out.append(Publish(measured))

    def _set_due(self, driver: ConnectedDriver, decision: Decision[NoReturn]) -> None:
        self.due_s = min(driver.due_s, self._odometry_due_s, self._lists_due_s)
        if decision.command is not None and decision.arrived_s is not None:
            ends_s = decision.arrived_s + self._parameters.command_timeout + _AFTER_S
            self.due_s = min(self.due_s, ends_s)

    def _done(self) -> Actions:
        """Return the gathered actions, packets first.

        A stop by another process while a publisher is slow would precede them, perhaps inside a slow keep-alive.
        """
        actions = sends_first(self._out)
        self._out.clear()
        return actions

    def _send(self, data: bytes, rest: bytes = b"") -> None:
        """Send a packet in pieces, or a single byte before the rest of its packet."""
        for piece in codec.in_pieces([data]):
            data = data[len(piece) :]
            self._out.append(Send(piece, self._peer, "unsent_packets", rest=data or rest))

    def _encoded(self, packet: codec.FromDriver) -> bytes:
        """Return the bytes of a packet. An unencodable packet falls back to zero speeds, or to nothing."""
        neutral = replace(packet, left=0, right=0) if isinstance(packet, codec.SkidSteerUpdate) else None
        return encode(self._connection.send, packet, neutral, self._out) or b""

    def _refused(self, error: RemoteProtocolError, now_s: float, *, is_gone: bool = False) -> Actions:
        sentence = f"{error} The connection is closed: its data can't be trusted."
        self._out.append(Note(REJECTED, sentence))
        return self._ended(sentence, now_s, is_gone=is_gone)

    def _ended(self, reason: str, now_s: float, *, is_gone: bool = False) -> Actions:
        """Send the last packets if there is a connection, and answer all pending requests."""
        driver = self._driver
        assert driver
        self._move(now_s)
        packets = driver.bindings.release_all()
        if not is_gone:
            for data in (driver.rest, *map(self._encoded, packets)):
                self._send(data)
            self._out.append(Close(self._peer))
        driver.bindings.end(reason)
        self._out.append(Publish(self._listed(driver)))
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
        standstill = driver.standstill_reason(now_s) if is_bound else None
        is_listed = driver.bindings.info is not None
        self._note(UNLISTED, NOT_LISTED if driver.is_unlisted(now_s) else None)
        self._note(OBSTRUCTION, *(obstruction or (None,)))
        self._note(STANDSTILL, standstill)
        self._note(UNANSWERED_STOP, MAY_MOVE if driver.may_move(now_s) else None)
        if is_bound:
            self.undrivable = standstill
        else:
            nothing = "No skid steer is bound." if is_listed else NOT_LISTED
            self.undrivable = obstruction.sentence if obstruction else nothing

    def _note(self, name: str, sentence: str | None, is_error: bool = False) -> None:
        """Publish a condition when it begins, changes or ends."""
        problem = Problem(name, sentence, is_error)
        if problem != self._problems.get(name, Problem(name, None)):
            self._problems[name] = problem
            self._out.append(Publish(problem))

    def _publish_lists(self, driver: ConnectedDriver, now_s: float) -> None:
        """Publish changed lists after a short delay, so that related changes are published together."""
        lists = self._listed(driver)
        if lists == self._lists:
            self._lists_due_s = math.inf
            return
        self._lists_due_s = min(self._lists_due_s, now_s + LIST_PERIOD_S)
        if now_s >= self._lists_due_s:
            self._lists, self._lists_due_s = lists, math.inf
            self._out.append(Publish(lists))

    def _listed(self, driver: ConnectedDriver) -> Lists:
        bindings, sensors = driver.bindings, driver.sensors
        if sensors is None and bindings.info:  # none, or in an unknown layout: the robot can be driven all the same
            sensors = codec.SensorInfo(())
        return Lists(sensors, bindings.info, frozenset(bindings.bound))
