# SPDX-License-Identifier: Apache-2.0
"""TestbedDroneSession: sends frames to an autopilot and follows its replies, for testbed_server. Pure.

Theory of operation, by the document "Drone Autopilot & Virtual TestBed Wire Protocol" (the codec enforces that frame
and reply take turns):

| state | sends | ends |
|---|---|---|
| WAITING | nothing | when an autopilot connects |
| CONNECTED, until properties, images and attitudes arrive | nothing | by the constants, which are sent once |
| CONNECTED, while no reply is due | the next frame, as soon as there is one | after `source_timeout` without one |
| CONNECTED, while a reply is due | nothing: simulated time is frozen | by the reply, without a timeout |
| CLOSED, by `end` | nothing | |

One autopilot is served at a time. It keeps its place for `silence_warning` after it was last heard, or for
MUTE_KEEPS_PLACE_S if it has never sent anything. After that, the next connection replaces it. We also close the
connection when the drone's properties change, because a testbed announces them once, and after a protocol violation.

The vehicle gets the command of each reply, or the velocity that results from it. It gets the neutral command

- `command_timeout` after the last command or, in lockstep, after the last unanswered frame: there the vehicle waits for
the command to its frame;
- when the autopilot disconnects, and on the previous topic when the command topic changes;
- never twice in a row.

An autopilot may send a reply ahead of its frame. It is followed once the frame has been read, as far as we can see:
once the operating system has sent all of it. A reply that took longer than `command_timeout` is late and is ignored.
So are replies right after a stall of this process, but not in lockstep, where no time passes for the vehicle.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from drone_bridge.session.clients import LOST, Clients
from drone_bridge.session.node_parameters import ServerParameters
from drone_bridge.session.session import (
    AFTER_STALLS,
    CONNECTIONS,
    MAY_HAVE_WAITED,
    REJECTED,
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
from drone_bridge.testbed.vehicle.device.modelled_flight import ModelledFlight
from drone_bridge.testbed.vehicle.session.framed_drone import FramedDrone
from drone_bridge.testbed.vehicle.session.frames import ATTITUDE_TIMEOUT_S, LEFT
from drone_bridge.testbed.vehicle.session.output_choice import OutputChoice
from drone_bridge.wire.counters import RateCounter, problems
from drone_bridge.wire.events import LocalProtocolError, RemoteProtocolError

WAITING, CONNECTED, CLOSED = "waiting for a peer", "connected", "closed"
# Counters.
FRAMES = RateCounter("frames")
(REFUSED_FRAMES,) = problems("refused_frames")
LATE_ANSWERS, NEUTRAL_COMMANDS = problems("late_answers", "neutral_commands")
#: Time for which an autopilot that has sent nothing keeps its place when another one connects.
MUTE_KEEPS_PLACE_S = 2.0
#: Period of checks for images that wait for an attitude, and for changed parameters.
LOOK_PERIOD_S = ATTITUDE_TIMEOUT_S / 2
_CHANGED = "Closed the connection: the drone's properties changed, and a testbed announces them once."
_LATE = "Ignored a reply that took longer than command_timeout."
_TILT = (
    "The vehicle follows velocities, so the autopilot gets the tilt of a modelled drone, while the images show the "
    "vehicle's tilt. An autopilot that steers by images needs a vehicle that subscribes to cmd_rates (command_output)."
)


@dataclass(frozen=True, slots=True)
class NeutralCommand:
    """Neutral command for this topic."""

    topic: str


@dataclass(frozen=True, slots=True)
class OutputSwitched:
    """Commands are published on this topic from now on."""

    topic: str


@dataclass(frozen=True, slots=True)
class ServerSetup:
    """Configuration of a server."""

    layout: AttitudeLayout
    angle_unit: AngleUnit
    has_negative_gravity: bool
    """Gravity is announced with a negative sign, as by some testbeds."""
    max_speed: float
    """Maximum horizontal speed while velocities are published, m/s."""
    is_lockstep: bool
    topics: Mapping[str, str]
    """Names of the required topics, for logs, by `left`, `right` and `attitude`. Without cameras, only the last."""

    @property
    def has_cameras(self) -> bool:
        return LEFT in self.topics


class TestbedDroneSession(Session):
    """Drone's conversation with one autopilot at a time."""

    __test__ = False  # not a test, although pytest collects names that begin with Test

    def __init__(
        self,
        drone: FramedDrone,
        output: OutputChoice,
        setup: ServerSetup,
        parameters: ServerParameters,
        *,
        neutral_meaning: Callable[[], str],
        missing_properties: Callable[[], str],
        has_unsent: Callable[[Any], bool],
    ) -> None:
        """Start in the state WAITING.

        Args:
            drone: provides frames and follows replies.
            output: topic of commands.
            setup: configuration.
            parameters: those of the node, which may change at any time.
            neutral_meaning: returns the effect of the neutral command, such as "stop".
            missing_properties: returns a sentence about the sources of the drone's properties.
            has_unsent: returns whether the link still has unsent bytes for a peer.
        """
        self.state = WAITING
        self.is_open = False
        #: Whether calling `step` has any effect now.
        self.has_link = False
        #: Data that an autopilot waits for, as a sentence; empty if there is none.
        self.waits_for = ""
        self._drone, self._output, self._setup, self._parameters = drone, output, setup, parameters
        self._neutral_meaning, self._missing_properties = neutral_meaning, missing_properties
        self._has_unsent = has_unsent
        self._clients: Clients[TestbedConnection] = Clients(
            1,
            first_message_s=math.inf,
            whole_message_s=math.inf,
            keeps_place_s=lambda: parameters.silence_warning,
            mute_keeps_place_s=MUTE_KEEPS_PLACE_S,
        )
        self._announced: Constants | None = None  # to the autopilot
        self._commanded_s: float | None = None  # time of the last command; None after a neutral one
        self._sent_s = 0.0  # time of the last frame
        self._awaits_command = False  # neither a command nor the neutral one was sent since the last frame
        self._idle_since_s = 0.0  # time of the autopilot's last reply, or of the drone's last frame

    # Events.

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
        self.received_s, self.since_s = None, now_s
        note = Note(CONNECTIONS, f"Connected to {peer}.", is_expected=True)
        return [*actions, note, *self.step(now_s)]

    def receive(self, data: bytes | str, source: Any, now_s: float) -> Actions:
        """Decode bytes of the autopilot, and follow its replies."""
        assert isinstance(data, bytes)
        client = self._clients[source]
        client.handler.receive_data(data)
        self._clients.data_received(client, now_s, is_inside_message=False, has_sent_message=True)
        return self.step(now_s)

    def left(self, peer: Any, sentence: str, now_s: float) -> Actions:
        """End the autopilot's stream, which is regular unless it is inside a reply."""
        self._clients[peer].handler.receive_eof()
        return self.step(now_s)

    def disconnected(self, peer: Any, sentence: str, now_s: float) -> Actions:
        return self._ended(Note(LOST, sentence))

    def tick(self, now_s: float) -> Actions:
        """Stop the vehicle if its command is late, and check for changes."""
        return [*self._check_timeout(now_s), *self.step(now_s)]

    def resume(self, now_s: float) -> Actions:
        """Restart the timeouts of both sides, because the silence was our own."""
        self._idle_since_s = now_s
        self._clients.resume(now_s)
        self.due_s = min(self.due_s, now_s)
        return super().resume(now_s)

    def lost(self, now_s: float) -> Actions:
        self.has_link = False
        return self._ended()

    def end(self, now_s: float) -> Actions:
        self.has_link, self.is_over = False, True
        actions = self._ended()
        self.state = CLOSED
        return actions

    # The conversation.

    def step(self, now_s: float) -> Actions:
        """Continue the conversation as far as possible now."""
        self._drone.frames.process()
        actions: list[Action] = []
        was_sent = False
        for client in self._clients.all():
            peer, connection = client.peer, client.handler
            if self._has_unsent(peer):  # the frame is unread, so there can't be a reply
                continue
            actions += self._answers(peer, connection, now_s)
            if peer not in self._clients:
                continue
            if self._announced is not None and self._announced != self._drone.constants:
                actions += self._closed(peer, Note(LOST, _CHANGED))
            elif not connection.awaits_reply:
                self.received_s = now_s  # no reply is due
                actions += self._next(peer, connection, now_s)
                was_sent = connection.awaits_reply
        self._set_due(now_s)
        if was_sent:
            self.due_s = now_s  # the reply may have arrived already
        return actions

    def _answers(self, peer: Any, connection: TestbedConnection, now_s: float) -> Actions:
        """Follow the autopilot's replies. End the conversation at the end of the stream or after an error."""
        actions: list[Action] = []
        while True:
            if self._drone.flight and self._commanded_s is None:  # the vehicle was commanded to stop
                self._drone.flight.reset()
            try:
                event = connection.next_event()
            except RemoteProtocolError as error:
                distrust = f"{error} Closed the connection: its bytes can't be trusted."
                return [*actions, *self._closed(peer, Note(REJECTED, distrust))]
            if event is NEED_DATA:
                return actions
            if not isinstance(event, MotionParameters):
                return [*actions, *self._ended(Note("", "The autopilot disconnected.", is_expected=True))]
            self.is_proven = True
            self._idle_since_s = now_s
            actions += self._followed(event, now_s)

    def _next(self, peer: Any, connection: TestbedConnection, now_s: float) -> Actions:
        """Send the next message: the constants, then frames as they become available."""
        drone = self._drone
        actions = self._output_chosen()
        timeout_s = self._parameters.source_timeout
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
            return [*actions, *self._check_sources(peer, now_s, timeout_s)]
        self._awaits_command, self._sent_s, self._idle_since_s = True, now_s, now_s
        # All of it, or the autopilot would wait forever for the rest. It moves nothing.
        return [*actions, *(Send(piece, peer) for piece in pieces), Note(FRAMES)]

    def _check_sources(self, peer: Any, now_s: float, timeout_s: float) -> Actions:
        """End the conversation if the drone has sent nothing for too long."""
        if now_s - self._idle_since_s <= timeout_s:
            return []
        missing = self._missing_topics(self._drone.frames.missing(now_s, timeout_s), now_s, timeout_s)
        silence = f"No frame was available for {timeout_s:g} s (source_timeout){missing}"
        return self._closed(peer, Note(LOST, f"{silence}. Closed the connection, as testbeds do."))

    def _wait(self, missing: list[str], now_s: float, timeout_s: float) -> None:
        """Record which data is missing for the constants, after a delay."""
        if now_s - self._idle_since_s >= timeout_s:
            properties = "" if self._drone.is_known else f" {self._missing_properties()}"
            topics = self._missing_topics(missing, now_s, timeout_s)
            self.waits_for = f"The autopilot waits for its first frame{topics}.{properties}"

    def _missing_topics(self, missing: list[str], now_s: float, timeout_s: float) -> str:
        """Return the end of the sentence that names the missing topics, or an empty string."""
        names = [self._setup.topics[kind] for kind in missing if kind in self._setup.topics]
        if not names:
            mismatch = self._drone.frames.mismatch(now_s, timeout_s)
            return f", and {mismatch}" if mismatch else ""
        return f", and nothing is received on {' and '.join(names)}"

    def _closed(self, peer: Any, note: Note) -> Actions:
        """Close the conversation from our side."""
        return [*self._ended(note), Close(peer)]

    def _ended(self, *notes: Note) -> Actions:
        """Send the neutral command to the vehicle, because no autopilot steers it."""
        for client in self._clients.all():
            self._clients.remove(client.peer)
        self.state, self.is_open, self.waits_for = WAITING, False, ""
        self.received_s = self.since_s = None
        self.due_s = math.inf
        return [*self._released(), *notes]

    def _set_due(self, now_s: float) -> None:
        if self._clients:
            self.due_s = min(now_s + LOOK_PERIOD_S, self._neutral_due_s())

    # Commands.

    def _followed(self, motion: MotionParameters, now_s: float) -> Actions:
        """Make the vehicle follow a reply, unless it is stale."""
        if now_s - self._sent_s > self._parameters.command_timeout:
            return [Note(LATE_ANSWERS, _LATE)]
        command, was_within = self._drone.follow(motion)
        limited = [] if was_within else [Note("limited_commands")]
        if not self._setup.is_lockstep and now_s < self.settled_s:
            return [*limited, Note(AFTER_STALLS, MAY_HAVE_WAITED)]
        if self._setup.is_lockstep and not self._awaits_command:  # the frame has got the neutral command instead
            return [*limited, Note(LATE_ANSWERS, _LATE)]
        self._commanded_s, self._awaits_command = now_s, False
        return [*limited, Publish(command), Note("commands")]

    def _neutral_due_s(self) -> float:
        """Return the time of the next neutral command; infinity if the last command was neutral.

        In lockstep the timeout starts with each frame, because the vehicle waits for its command.
        """
        since_s = self._commanded_s
        if since_s is not None and self._setup.is_lockstep:
            since_s = self._sent_s if self._awaits_command else None
        return math.inf if since_s is None else since_s + self._parameters.command_timeout

    def _check_timeout(self, now_s: float) -> Actions:
        """Send the neutral command if the next command is late."""
        timeout_s = self._parameters.command_timeout
        if now_s < self._neutral_due_s():
            return []
        # An autopilot can reply only to frames that it has received, and its replies are read only while this process
        # runs.
        if now_s < self.settled_s:
            reason = f"The server was stalled (machine overloaded?) and sent no command for {timeout_s:g} s"
        elif any(client.handler.awaits_reply for client in self._clients.all()):
            reason = f"The autopilot has not replied to a frame for {timeout_s:g} s"
        else:
            reason = f"The drone has sent no new frame for {timeout_s:g} s, so the autopilot can't reply"
        sentence = f"{reason} (command_timeout). Commanded the drone to {self._neutral_meaning()}."
        return [*self._released(), Note(NEUTRAL_COMMANDS, sentence)]

    def _released(self) -> Actions:
        was_commanded, self._commanded_s, self._awaits_command = self._commanded_s is not None, None, False
        return [Publish(NeutralCommand(self._output.chosen))] if was_commanded else []

    def _output_chosen(self) -> list[Action]:
        """Switch to the topic that has subscribers, after a neutral command on the previous one."""
        if self._output.chosen == self._output.wanted:
            return []
        released = self._released()
        self._output.chosen, self._drone.flight = self._output.wanted, None
        return [*released, Publish(OutputSwitched(self._output.chosen))]

    def _modelled_flight(self) -> Actions:
        """Start a modelled flight, as the vehicle follows velocities."""
        setup = self._setup
        self._drone.flight = ModelledFlight(self._drone.constants, setup.angle_unit, setup.layout, setup.max_speed)
        return [Note("", _TILT)] if setup.has_cameras else []


def _refused_frame(sentence: str) -> Note:
    return Note(REFUSED_FRAMES, f"A frame was not sent: {sentence}")
