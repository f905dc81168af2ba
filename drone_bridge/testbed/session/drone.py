# SPDX-License-Identifier: Apache-2.0
"""DroneSession: what the testbed says to an autopilot, and what of its answers is followed, for testbed_server. Pure.

Theory of operation, by the document "Drone Autopilot & Virtual TestBed Wire Protocol" (that frame and answer take turns
is the codec's; here is when it goes on, and when it ends):

| state | what is sent | ends |
|---|---|---|
| WAITING | nothing | CONNECTED, by an autopilot |
| CONNECTED, until the drone is known and sends images and attitudes | nothing | by the constants, which are sent once |
| CONNECTED, while no answer is due | the next frame, as soon as there is one | after `source_timeout` without one |
| CONNECTED, while an answer is due | nothing: simulated time stands still | by the answer, however long it takes |
| CLOSED, by `end` | nothing | |

One autopilot is served. It keeps its place for `silence_warning` after it was last heard, or MUTE_KEEPS_PLACE_S when it
has never sent anything; then the next one that comes takes it. It is closed by us, too, when the drone's properties
change, as a testbed announces them once, and when it says what no autopilot says.

The vehicle gets the command of each answer, or the velocity that it leads to, and the neutral command

- `command_timeout` after the last command or, in lockstep, after a frame that was not answered since: there the vehicle
  waits for the command to its frame, and the neutral one is that;
- when the autopilot is gone, and when the topic of the commands changes, on the topic that is left;
- never twice in a row.

An autopilot may send an answer ahead of its frame. That is followed once the frame has been read, as far as it shows:
once the system has taken all of it. An answer that took longer than `command_timeout` is late, and followed by nothing.
So are those right after this process stood still, except in lockstep, where no time passes for the vehicle.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from drone_bridge.session.clients import LOST, Clients
from drone_bridge.session.session import (
    AFTER_STALLS,
    MAY_HAVE_WAITED,
    SETTLING_S,
    Action,
    Actions,
    Close,
    Note,
    Publish,
    Send,
    Session,
)
from drone_bridge.testbed.codec import (
    NEED_DATA,
    AngleUnit,
    AttitudeLayout,
    Constants,
    MotionParameters,
    TestbedConnection,
)
from drone_bridge.testbed.device.modelled_flight import FlightLimits, ModelledFlight
from drone_bridge.testbed.session.framed_drone import FramedDrone
from drone_bridge.testbed.session.frames import ATTITUDE_TIMEOUT_S, LEFT
from drone_bridge.testbed.session.output import OutputChoice
from drone_bridge.wire.events import LocalProtocolError, RemoteProtocolError

WAITING, CONNECTED, CLOSED = "waiting for a peer", "connected", "closed"
# Counters.
REJECTED, REFUSED_FRAMES, LATE_ANSWERS, NEUTRAL_COMMANDS = (
    "rejected_input",
    "refused_frames",
    "late_answers",
    "neutral_commands",
)
#: How long an autopilot that has sent nothing at all keeps its place when another one comes.
MUTE_KEEPS_PLACE_S = 2.0
#: How often is looked at what changes by itself: images that wait for an attitude, and live parameters.
LOOK_PERIOD_S = ATTITUDE_TIMEOUT_S / 2
_CHANGED = "The drone's properties have changed, and a testbed announces them once: reconnecting."
_LATE = "An answer took longer than command_timeout and was not followed."
_TILT = (
    "The vehicle follows velocities, so the autopilot gets the tilt of a modelled drone, while the images show what "
    "the vehicle sees: an autopilot that steers by the images needs a vehicle that takes cmd_rates (command_output)."
)


@dataclass(frozen=True, slots=True)
class Neutral:
    """The command that holds the vehicle best, on this topic."""

    topic: str


@dataclass(frozen=True, slots=True)
class Chosen:
    """Commands are published on this topic from now on."""

    topic: str


@dataclass(frozen=True, slots=True)
class Setup:
    """What a server is configured to."""

    layout: AttitudeLayout
    angle_unit: AngleUnit
    has_negative_gravity: bool
    """As announced by some testbeds."""
    flight_limits: FlightLimits
    is_lockstep: bool
    topics: Mapping[str, str]
    """The names of the topics that it needs, for logs, by `left`, `right` and `attitude`; without cameras the last."""

    @property
    def has_cameras(self) -> bool:
        return LEFT in self.topics


class DroneSession(Session):
    """A drone's conversation with one autopilot at a time."""

    def __init__(
        self,
        drone: FramedDrone,
        output: OutputChoice,
        setup: Setup,
        parameter: Callable[[str], Any],
        *,
        neutral_meaning: Callable[[], str],
        missing_properties: Callable[[], str],
        has_unsent: Callable[[Any], bool],
    ) -> None:
        """Begin.

        Args:
            drone: sends frames and follows answers.
            output: the topic of commands.
            setup: what is configured.
            parameter: returns the present value of `command_timeout`, `source_timeout` and `silence_warning`.
            neutral_meaning: returns what the neutral command orders now, as in "stop".
            missing_properties: returns a sentence about where the drone's properties could come from.
            has_unsent: returns whether the link has not got rid of all that a peer was sent.
        """
        self.state = WAITING
        self.is_open = False
        #: Whether `look` is of any use now.
        self.has_link = False
        #: What an autopilot waits for, as a sentence; empty if for nothing.
        self.waits_for = ""
        self._drone, self._output, self._setup, self._parameter = drone, output, setup, parameter
        self._neutral_meaning, self._missing_properties = neutral_meaning, missing_properties
        self._has_unsent = has_unsent
        self._clients: Clients[TestbedConnection] = Clients(
            1,
            first_message_s=math.inf,
            whole_message_s=math.inf,
            keeps_place_s=lambda: float(parameter("silence_warning")),
            mute_keeps_place_s=MUTE_KEEPS_PLACE_S,
        )
        self._announced: Constants | None = None  # to the autopilot
        self._has_told_of_tilt = False  # that is not in the images
        self._commanded_s: float | None = None  # when the last command was followed; None after the neutral one
        self._sent_s = 0.0  # when the last frame was sent
        self._awaits_command = False  # since then the vehicle has had neither a command nor the neutral one
        self._idle_since_s = 0.0  # since the autopilot's last answer, or the drone's last frame
        self._resumed_s = self._settled_s = -math.inf

    # What happens.

    def opened(self, now_s: float) -> Actions:
        self.has_link, self.state = True, WAITING
        return []

    def connected(self, peer: Any, now_s: float) -> Actions:
        refusal, loser, reason = self._clients.admit(peer, now_s)
        if refusal:
            return refusal
        actions = [] if loser is None else self._closed(loser, Note(LOST, f"{loser} {reason}."))
        self._clients.add(peer, TestbedConnection(self._setup.layout, self._setup.angle_unit), now_s)
        self._drone.start_over()
        self._announced, self._idle_since_s = None, now_s
        self.peer, self.state, self.is_open, self.is_proven = str(peer), CONNECTED, True, False
        self.heard_s, self.since_s = None, now_s
        note = Note("connections", f"Connected to {peer}.", is_expected=True)
        return [*actions, note, *self.look(now_s)]

    def receive(self, data: bytes | str, source: Any, now_s: float) -> Actions:
        """Take bytes of the autopilot's."""
        assert isinstance(data, bytes)
        client = self._clients[source]
        client.handler.receive_data(data)
        self._clients.heard(client, now_s, is_inside_message=False, has_spoken=True)
        return self.look(now_s)

    def left(self, peer: Any, sentence: str, now_s: float) -> Actions:
        """Take that the autopilot says no more, which is its regular end unless it is inside an answer."""
        self._clients[peer].handler.receive_eof()
        return self.look(now_s)

    def disconnected(self, peer: Any, sentence: str, now_s: float) -> Actions:
        return self._ended(Note(LOST, sentence))

    def tick(self, now_s: float) -> Actions:
        """Stop the vehicle when its command is late, and look what has changed by itself."""
        return [*self._watched(now_s), *self.look(now_s)]

    def resume(self, now_s: float) -> Actions:
        """Listen to both sides again before they are judged: the silence was our own."""
        self._resumed_s, self._settled_s = now_s, now_s + SETTLING_S
        self._idle_since_s = now_s
        self._clients.resume(now_s)
        if self.heard_s is not None:
            self.heard_s = now_s
        self.due_s = min(self.due_s, now_s)
        return []

    def lost(self, now_s: float) -> Actions:
        self.has_link = False
        return self._ended()

    def end(self, now_s: float) -> Actions:
        self.has_link, self.is_over = False, True
        actions = self._ended()
        self.state = CLOSED
        return actions

    # The conversation.

    def look(self, now_s: float) -> Actions:
        """Go on with the conversation as far as that is possible now."""
        self._drone.frames.look()
        actions: list[Action] = []
        was_sent = False
        for client in self._clients.all():
            peer, connection = client.peer, client.handler
            if self._has_unsent(peer):  # a frame that it has not read: it has nothing to answer
                continue
            actions += self._answers(peer, connection, now_s)
            if peer not in self._clients:
                continue
            if self._announced is not None and self._announced != self._drone.constants:
                actions += self._closed(peer, Note(LOST, _CHANGED))
            elif not connection.awaits_reply:
                self.heard_s = now_s  # no answer is due
                actions += self._next(peer, connection, now_s)
                was_sent = connection.awaits_reply
        self._set_due(now_s)
        if was_sent:
            self.due_s = now_s  # as the answer may be here already
        return actions

    def _answers(self, peer: Any, connection: TestbedConnection, now_s: float) -> Actions:
        """Follow what the autopilot has sent; end its conversation when that was all, or no answer."""
        actions: list[Action] = []
        while True:
            if self._drone.flight and self._commanded_s is None:  # the vehicle was commanded to stop
                self._drone.flight.reset()
            try:
                event = connection.next_event()
            except RemoteProtocolError as error:
                distrust = f"{error} The connection is closed, as its bytes can't be trusted."
                return [*actions, *self._closed(peer, Note(REJECTED, distrust))]
            if event is NEED_DATA:
                return actions
            if not isinstance(event, MotionParameters):
                return [*actions, *self._ended(Note("", "The autopilot has left.", is_expected=True))]
            self.is_proven = True
            self._idle_since_s = now_s
            actions += self._followed(event, now_s)

    def _next(self, peer: Any, connection: TestbedConnection, now_s: float) -> Actions:
        """Send what comes next: the constants, then the next frame if there is one."""
        drone = self._drone
        actions = self._output_chosen()
        timeout_s = self._parameter("source_timeout")
        if self._announced is None:
            missing = drone.frames.missing(now_s, timeout_s)
            if missing or not drone.is_known:
                self._wait(missing, now_s, timeout_s)
                return actions
            self._announced = constants = drone.constants
            self._idle_since_s, self.waits_for = now_s, ""
            if self._setup.has_negative_gravity:
                constants = replace(constants, gravity=-abs(constants.gravity))
            actions.append(Send(connection.send(constants), peer))
        if self._output.is_velocity and drone.flight is None:
            actions += self._modelled_flight()
        frame, refused = drone.next_frame(now_s, timeout_s)
        actions += map(_refused_frame, refused)
        pieces: list[memoryview] = []
        if frame:
            try:
                pieces = connection.send_in_pieces(frame)
            except LocalProtocolError as error:
                actions.append(_refused_frame(str(error)))
        if not pieces:
            return [*actions, *self._sources_watched(peer, now_s, timeout_s)]
        self._awaits_command, self._sent_s, self._idle_since_s = True, now_s, now_s
        # All of it, or the autopilot would wait for the rest for ever; and it moves nothing.
        return [*actions, *(Send(piece, peer) for piece in pieces), Note("frames")]

    def _sources_watched(self, peer: Any, now_s: float, timeout_s: float) -> Actions:
        """End the conversation if the drone has sent nothing for too long."""
        if now_s - self._idle_since_s <= timeout_s:
            return []
        missing = self._missing_topics(self._drone.frames.missing(now_s, timeout_s), now_s, timeout_s)
        silence = f"Nothing to send was received for {timeout_s:g} s (source_timeout){missing}"
        return self._closed(peer, Note(LOST, f"{silence}: the connection is closed, as testbeds do."))

    def _wait(self, missing: list[str], now_s: float, timeout_s: float) -> None:
        """Note what is missing for the constants, once that takes long."""
        if now_s - self._idle_since_s >= timeout_s:
            properties = "" if self._drone.is_known else f" {self._missing_properties()}"
            topics = self._missing_topics(missing, now_s, timeout_s)
            self.waits_for = f"The autopilot waits for its first frame{topics}.{properties}"

    def _missing_topics(self, missing: list[str], now_s: float, timeout_s: float) -> str:
        """Return which topics are missing, as a clause, or an empty string."""
        names = [self._setup.topics[kind] for kind in missing if kind in self._setup.topics]
        if not names:
            mismatch = self._drone.frames.mismatch(now_s, timeout_s)
            return f", and {mismatch}" if mismatch else ""
        return f", and nothing is received on {' and '.join(names)}"

    def _closed(self, peer: Any, note: Note) -> Actions:
        """End the conversation ourselves."""
        return [*self._ended(note), Close(peer)]

    def _ended(self, *notes: Note) -> Actions:
        """Leave the vehicle with the neutral command, as nobody steers it any more."""
        for client in self._clients.all():
            self._clients.remove(client.peer)
        self.state, self.is_open, self.waits_for = WAITING, False, ""
        self.heard_s = self.since_s = None
        self.due_s = math.inf
        return [*self._released(), *notes]

    def _set_due(self, now_s: float) -> None:
        if self._clients:
            self.due_s = min(now_s + LOOK_PERIOD_S, self._neutral_due_s())

    # Commands.

    def _followed(self, motion: MotionParameters, now_s: float) -> Actions:
        """Have the vehicle follow an answer, unless that is too old."""
        if now_s - self._sent_s > self._parameter("command_timeout"):
            return [Note(LATE_ANSWERS, _LATE)]
        command, was_within = self._drone.follow(motion)
        limited = [] if was_within else [Note("limited_commands")]
        if not self._setup.is_lockstep and now_s < self._settled_s:
            return [*limited, Note(AFTER_STALLS, MAY_HAVE_WAITED)]
        if self._setup.is_lockstep and not self._awaits_command:  # the vehicle's frame has had the neutral one instead
            return [*limited, Note(LATE_ANSWERS, _LATE)]
        self._commanded_s, self._awaits_command = now_s, False
        return [*limited, Publish(command), Note("commands")]

    def _neutral_due_s(self) -> float:
        """Return when the vehicle is to have the neutral command: infinity unless it has another one.

        In lockstep the time runs from each frame, whose command the vehicle waits for.
        """
        since_s = self._commanded_s
        if since_s is not None and self._setup.is_lockstep:
            since_s = self._sent_s if self._awaits_command else None
        timeout_s: float = self._parameter("command_timeout")
        return math.inf if since_s is None else since_s + timeout_s

    def _watched(self, now_s: float) -> Actions:
        """Give the neutral command when the next one is late."""
        timeout_s = self._parameter("command_timeout")
        if now_s < self._neutral_due_s():
            return []
        # An autopilot can answer only what it was sent, and what it sends is read only while this process runs.
        if now_s - self._resumed_s < timeout_s:
            reason = f"This process stood still, so that no command went out for {timeout_s:g} s"
        elif any(client.handler.awaits_reply for client in self._clients.all()):
            reason = f"The autopilot has answered no frame for {timeout_s:g} s"
        else:
            reason = f"The drone has sent nothing new for {timeout_s:g} s, so that the autopilot has nothing to answer"
        sentence = f"{reason} (command_timeout): the drone was commanded to {self._neutral_meaning()}."
        return [*self._released(), Note(NEUTRAL_COMMANDS, sentence)]

    def _released(self) -> Actions:
        was_commanded, self._commanded_s, self._awaits_command = self._commanded_s is not None, None, False
        return [Publish(Neutral(self._output.chosen))] if was_commanded else []

    def _output_chosen(self) -> list[Action]:
        """Switch to the topic that has subscribers; the one that is left gets the neutral command."""
        if self._output.chosen == self._output.wanted:
            return []
        released = self._released()
        self._output.chosen, self._drone.flight = self._output.wanted, None
        return [*released, Publish(Chosen(self._output.chosen))]

    def _modelled_flight(self) -> Actions:
        """Start a modelled flight, as the vehicle follows velocities."""
        setup = self._setup
        self._drone.flight = ModelledFlight(self._drone.constants, setup.angle_unit, setup.layout, setup.flight_limits)
        if self._has_told_of_tilt or not self._setup.has_cameras:
            return []
        self._has_told_of_tilt = True
        return [Note("", _TILT)]


def _refused_frame(sentence: str) -> Note:
    return Note(REFUSED_FRAMES, f"A frame was not sent: {sentence}")
