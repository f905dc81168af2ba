# SPDX-License-Identifier: Apache-2.0
"""AutopilotSession: what the autopilot answers to a testbed, and when, for testbed_bridge. Pure.

Theory of operation, by the document "Drone Autopilot & Virtual TestBed Wire Protocol" and by what real testbeds do:

| state | what is sent | ends |
|---|---|---|
| WAITING | nothing | CONNECTED, by a testbed |
| CONNECTED, until the constants are whole | nothing | after `silence_timeout`, in which all of them have to come |
| CONNECTED, between two frames | nothing: a testbed may pause | by the next frame, all of it within `silence_timeout` |
| CONNECTED, with a whole frame | in `latest`, the answer at once, by the newest command | |
| the same in `lockstep` | nothing | by the command that bears the frame's stamp, or without one after \
`command_timeout`: then the newest command is the answer. A vehicle that is held is not waited for |
| CLOSED, by `end` | the neutral answer, as below | |

Each answer is owed: a testbed waits for it for ever. So none is dropped, not even after a stall, and what ends a
conversation here, in whatever state, leaves one neutral answer behind, unless the testbed has left: to the frame that
waits, or ahead of time to the next one, as a testbed reads its answer when it has sent that frame.

Nothing on the wire says which floats follow the images, but the turns do: where a first frame may end, a silence of
FRAME_END_SILENCE_S decides that it has.

One testbed is served. It keeps its place for `silence_warning` after its last constants or frame, or
MUTE_KEEPS_PLACE_S when there was none; then the next one that comes takes it.

The codec hands out the very memory of the images: a frame is published, as an action, before the next bytes are read.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from drone_bridge.session.arbiter import Arbiter, Arrival, Rank
from drone_bridge.session.clients import LOST, Client, Clients
from drone_bridge.session.session import Action, Actions, Close, Note, Publish, Send, Session, encode
from drone_bridge.testbed.codec import (
    NEED_DATA,
    AttitudeLayout,
    AutopilotConnection,
    ConnectionClosed,
    Constants,
    MotionParameters,
    SensorFrame,
    SimulationRestarted,
)
from drone_bridge.wire.events import LocalProtocolError, RemoteProtocolError

WAITING, CONNECTED, CLOSED = "waiting for a peer", "connected", "closed"
# Counters.
REJECTED, MISSED = "rejected_input", "missed_lockstep_commands"
#: A testbed that has been silent for so long where its first frame may end is waiting for the answer.
FRAME_END_SILENCE_S = 0.5
#: How long a testbed that has sent nothing whole keeps its place when another one comes.
MUTE_KEEPS_PLACE_S = 2.0


@dataclass(frozen=True, slots=True)
class LayoutFound:
    """The first frame has decided the layout."""

    layout: AttitudeLayout
    constants: Constants


@dataclass(frozen=True, slots=True)
class Restarted:
    """A new simulation has begun, of the same drone."""

    constants: Constants


class Ended:
    """The conversation has ended, and its images are of no use any more."""


class Flight(Protocol):
    """The flight of one conversation. For every frame `see` is called, then `answer`."""

    neutral: MotionParameters
    """What is safe without knowing how the drone moves."""
    problem: str
    """Why velocities can't be flown, if so."""

    def see(self, frame: SensorFrame) -> None:
        """Take what the frame says of the drone."""

    def answer(self, command: Any) -> tuple[MotionParameters, bool]:
        """Return the answer to the frame, and whether the command, if any, was within the wire's range."""


class AutopilotSession(Session):
    """An autopilot's conversation with one testbed at a time."""

    def __init__(
        self,
        arbiter: Arbiter[Any],
        make_connection: Callable[[], AutopilotConnection],
        make_flight: Callable[[Constants], Flight],
        stamp: Callable[[SensorFrame], Any],
        parameter: Callable[[str], Any],
        *,
        is_lockstep: bool,
    ) -> None:
        """Begin.

        Args:
            arbiter: decides what is commanded.
            make_connection: makes the codec's end of a conversation.
            make_flight: makes answers to the frames of a drone.
            stamp: returns the stamp of a frame that has just arrived, with `sec` and `nanosec`. It is that of the
                frame's messages, too: the frame is published before the next one is served.
            parameter: returns the present value of `command_timeout`, `silence_timeout`, `silence_warning` and
                `attitude_layout`.
            is_lockstep: whether each frame waits for the command with its stamp.
        """
        self.state, self.is_open = WAITING, False
        self._arbiter, self._parameter, self._is_lockstep = arbiter, parameter, is_lockstep
        self._make_connection, self._make_flight, self._stamp = make_connection, make_flight, stamp
        silence_timeout_s = float(parameter("silence_timeout"))
        self._clients: Clients[AutopilotConnection] = Clients(
            1,
            first_message_s=silence_timeout_s,
            whole_message_s=silence_timeout_s,
            keeps_place_s=lambda: float(parameter("silence_warning")),
            mute_keeps_place_s=MUTE_KEEPS_PLACE_S,
        )
        self._constants: Constants | None = None  # of this conversation
        self._flight: Flight | None = None  # likewise
        self._is_layout_open = True  # and to be found out
        self._is_in_middle = False  # of a frame, more of which has come since it began
        self._came_s = 0.0  # when the last bytes did
        self._asked: tuple[int, int] | None = None  # the stamp of the frame whose command is awaited
        self._asked_s = 0.0
        self._has_warned_of_unstamped = False

    # What happens.

    def opened(self, now_s: float) -> Actions:
        self.state = WAITING
        return []

    def connected(self, peer: Any, now_s: float) -> Actions:
        refusal, loser, reason = self._clients.admit(peer, now_s)
        if refusal:
            return refusal
        actions = [] if loser is None else self._closed(loser, Note(LOST, f"{loser} {reason}."))
        connection = self._make_connection()
        self._clients.add(peer, connection, now_s)
        self.peer, self.state, self.is_open, self.is_proven = str(peer), CONNECTED, True, False
        self.heard_s, self.since_s = None, now_s
        self._is_layout_open, self._is_in_middle = connection.layout is None, False
        self._set_due()
        return [*actions, Note("connections", f"Connected to {peer}.", is_expected=True)]

    def memory(self, peer: Any) -> Sequence[memoryview]:
        """Return where the next bytes of a testbed belong."""
        return self._clients[peer].handler.get_buffers()

    def filled(self, size: int, peer: Any, now_s: float) -> Actions:
        """Take bytes that were read into `memory`."""
        client = self._clients[peer]
        self._came_s = now_s
        client.handler.buffer_updated(size)
        if self._is_in_middle and client.handler.inside_message:
            return []  # of a frame, whose time is running
        return self._events(client, now_s)

    def receive(self, data: bytes | str, source: Any, now_s: float) -> Actions:
        """Take bytes, by copying them."""
        assert isinstance(data, bytes)
        client = self._clients[source]
        self._came_s = now_s
        client.handler.receive_data(data)
        return self._events(client, now_s)

    def left(self, peer: Any, sentence: str, now_s: float) -> Actions:
        """Take that the testbed says no more, which is its regular end between two frames."""
        client = self._clients[peer]
        client.handler.receive_eof()
        return self._events(client, now_s)

    def disconnected(self, peer: Any, sentence: str, now_s: float) -> Actions:
        return self._ended(Note(LOST, sentence))

    def commanded(self, arrival: Arrival[Any] | None, now_s: float) -> Actions:
        """Take that there is a new command, or none any more: it may be the one that a frame waits for."""
        if self._asked is None or arrival is None:
            is_held = self._asked is not None and self._arbiter.rank(now_s) is Rank.HOLD
            return self._answered_in_lockstep(None, now_s) if is_held else []
        return self._answered_in_lockstep(arrival, now_s) if arrival.stamp == self._asked else []

    def tick(self, now_s: float) -> Actions:
        """Answer a frame whose command does not come, and notice who is silent."""
        actions = list(self.commanded(self._arbiter.newest, now_s))  # what was posted of it may have been dropped
        if self._asked is not None and now_s >= self._asked_s + self._parameter("command_timeout"):
            actions += self._missed(now_s)
        for client in self._clients.all():
            if client.handler.silence_decides:
                if now_s >= self._came_s + FRAME_END_SILENCE_S:
                    client.handler.peer_waits()
                    actions += self._events(client, now_s)
            elif now_s >= client.deadline_s:
                within = f"{client.peer} did not complete a message within {self._parameter('silence_timeout'):g} s."
                actions += self._closed(client.peer, Note(LOST, f"{within} {self._advice(client.handler)}".rstrip()))
        self._set_due()
        return actions

    def resume(self, now_s: float) -> Actions:
        """Listen again before the testbed is judged: the silence was our own."""
        self._clients.resume(now_s)
        self._came_s = now_s
        if self.heard_s is not None:
            self.heard_s = now_s
        self._set_due()
        return self.commanded(self._arbiter.newest, now_s)  # which was dropped, if it was posted meanwhile

    def lost(self, now_s: float) -> Actions:
        """Leave the neutral answer, and begin anew."""
        return [*self._neutral(), *self._ended()]

    def end(self, now_s: float) -> Actions:
        actions = [*self._neutral(), *self._ended()]
        self.state, self.is_over = CLOSED, True
        return actions

    # The conversation.

    def _events(self, client: Client[AutopilotConnection], now_s: float) -> Actions:
        """Go on with what the testbed has sent."""
        connection, actions, has_spoken = client.handler, list[Action](), False
        try:
            while (event := connection.next_event()) is not NEED_DATA:
                has_spoken = True
                if isinstance(event, SensorFrame):
                    actions += self._served(client, event, now_s)
                elif isinstance(event, Constants):
                    self.heard_s = now_s
                    actions += self._announced(event)
                elif isinstance(event, ConnectionClosed):
                    end = Note("", "The testbed ended the conversation.", is_expected=True)
                    return [*actions, *self._ended(end)]
                else:
                    actions += self._restarted(event)
        except RemoteProtocolError as error:
            sentence = f"{error} {self._advice(connection)}".rstrip()
            distrust = f"{sentence} The connection is closed, as its bytes can't be trusted."
            return [*actions, *self._closed(client.peer, Note(REJECTED, distrust))]
        is_inside_message = connection.inside_message
        if has_spoken or is_inside_message:
            self._clients.heard(client, now_s, is_inside_message=is_inside_message, has_spoken=has_spoken)
        self._set_due()
        self._is_in_middle = is_inside_message and not self._is_layout_open and not has_spoken
        return actions

    def _announced(self, constants: Constants) -> Actions:
        """Begin to fly the drone that was announced."""
        self._constants, self._flight = constants, self._make_flight(constants)
        self._arbiter.forget()
        problem = self._flight.problem
        unflown = f"Velocities can't be flown with the announced constants: {problem}."
        return [*([Note("", unflown)] if problem else []), Publish(constants)]

    def _restarted(self, restart: SimulationRestarted) -> Actions:
        """Discard the commands for the simulation before."""
        assert self._constants  # which come first
        self._arbiter.forget()
        sentence = (
            f"The testbed has started a new simulation on the same connection: its time is 0 after "
            f"{restart.time_before:.3f} s."
        )
        return [Note("new_simulations", sentence, is_expected=True), Publish(Restarted(self._constants))]

    def _served(self, client: Client[AutopilotConnection], frame: SensorFrame, now_s: float) -> Actions:
        """Answer a frame and have it published, in the order that keeps the testbed waiting least."""
        flight = self._flight
        assert flight  # as the constants come first
        actions: list[Action] = []
        if self._asked is not None:  # of a testbed that does not wait for its answers
            actions += self._missed(now_s)
        if self._is_layout_open:
            assert client.handler.layout  # which the first frame has decided
            assert self._constants
            self._is_layout_open = False
            actions.append(Publish(LayoutFound(client.handler.layout, self._constants)))
        self.heard_s, self.is_proven = now_s, True
        flight.see(frame)
        stamp = self._stamp(frame)
        if not self._is_lockstep:
            actions += self._answered(client, self._arbiter.decide(now_s).command)
            actions.append(Publish(frame))
        elif self._arbiter.rank(now_s) is Rank.HOLD:
            actions.append(Publish(frame))
            actions += self._answered(client, None)
        else:
            actions.append(Publish(frame))
            self._asked, self._asked_s = (stamp.sec, stamp.nanosec), now_s
        return actions

    def _answered(self, client: Client[AutopilotConnection], command: Any) -> list[Action]:
        """Answer the frame by a command, None for the neutral one."""
        assert self._flight
        motion, was_within = self._flight.answer(command)
        actions: list[Action] = []
        data = encode(client.handler.send, motion, self._flight.neutral, actions)
        if data:
            actions.append(Send(data, client.peer))
        if command is None:
            actions.append(Note("neutral_answers"))
        if not was_within:
            actions.append(Note("clamped_answers"))
        return actions

    def _answered_in_lockstep(self, arrival: Arrival[Any] | None, now_s: float) -> Actions:
        """Answer the frame that waits, by the command to it or else by the newest one."""
        self._asked = None
        (client,) = self._clients.all()
        actions = self._answered(client, self._arbiter.decide(now_s, arrival).command)
        self._set_due()
        return actions

    def _missed(self, now_s: float) -> Actions:
        """Go on without the command to a frame."""
        timeout_s, newest = self._parameter("command_timeout"), self._arbiter.newest
        notes = [Note(MISSED)]
        if newest is not None and newest.stamp is None and not self._has_warned_of_unstamped:
            self._has_warned_of_unstamped = True
            sentence = (
                f"sync is lockstep, and commands on cmd_vel have no stamp that says which frame they answer, so each "
                f"frame waits {timeout_s:g} s (command_timeout) in vain: publish cmd_vel_stamped or cmd_rates with the "
                f"stamp of the frame's images, or set sync to latest."
            )
            notes.append(Note("", sentence))
        return [*self._answered_in_lockstep(None, now_s), *notes]

    def _advice(self, connection: AutopilotConnection) -> str:
        """Return what may be wrong with the layout, as a sentence; it may be empty."""
        if not connection.has_floats:
            return ""
        return f"Perhaps attitude_layout should not be {self._parameter('attitude_layout')}."

    # The end.

    def _neutral(self) -> Actions:
        """Leave the neutral answer behind."""
        for client in self._clients.all():
            if self._flight:
                try:
                    data = client.handler.finish(self._flight.neutral)
                except LocalProtocolError:  # the testbed has left
                    return []
                return [Send(data, client.peer)]
        return []

    def _closed(self, peer: Any, note: Note) -> Actions:
        """End the conversation ourselves."""
        return [*self._neutral(), *self._ended(note), Close(peer)]

    def _ended(self, *notes: Note) -> Actions:
        """Forget the drone."""
        if not self._clients:
            return notes
        for client in self._clients.all():
            self._clients.remove(client.peer)
        self._arbiter.forget()
        self._constants = self._flight = self._asked = None
        self.state, self.is_open = WAITING, False
        self.heard_s = self.since_s = None
        self.due_s = math.inf
        return [*notes, Publish(Ended())]

    def _set_due(self) -> None:
        due_s = math.inf
        for client in self._clients.all():
            decides_s = self._came_s + FRAME_END_SILENCE_S
            due_s = min(due_s, decides_s if client.handler.silence_decides else client.deadline_s)
        if self._asked is not None:
            due_s = min(due_s, self._asked_s + self._parameter("command_timeout"))
        self.due_s = due_s
