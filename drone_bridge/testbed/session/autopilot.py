# SPDX-License-Identifier: Apache-2.0
"""AutopilotSession: state machine that replies to a testbed's frames, for testbed_bridge. Pure.

Theory of operation, by the document "Drone Autopilot & Virtual TestBed Wire Protocol" and by real testbeds:

| state | sends | ends |
|---|---|---|
| WAITING | nothing | when a testbed connects |
| CONNECTED, until the constants are complete | nothing | SILENCE_S after the connection |
| CONNECTED, between two frames | nothing (a pause is allowed) | by the next frame, within SILENCE_S |
| CONNECTED, with a complete frame | in `latest`, immediately the reply, by the newest command | |
| the same in `lockstep` | nothing | by the command with the frame's stamp, after `command_timeout` by the newest \
command. On hold, the reply is immediate |
| CLOSED, by `end` | the neutral reply, see below | |

Each frame needs a reply, because a testbed waits for it without a timeout. So no reply is dropped. If this process
stalls between the decision and sending, the reply is the neutral one. If we end a conversation, in any state, we leave
one neutral reply behind unless the testbed has disconnected: to the pending frame, or ahead of time to the next one,
because a testbed reads its reply after it has sent a frame.

Nothing on the wire names the floats after the images, but the turns do: if a first frame may be complete, a silence of
FRAME_END_SILENCE_S decides that it is.

One testbed is served at a time. It keeps its place for `silence_warning` after its last constants or frame, or for
MUTE_KEEPS_PLACE_S if there was none. After that, the next connection replaces it.

The codec returns the memory of the images itself: a frame is published, as an action, before the next bytes are read.
"""

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from drone_bridge.session.arbiter import Arbiter, Arrival
from drone_bridge.session.clients import LOST, Client, Clients
from drone_bridge.session.feedback import Feedback
from drone_bridge.session.node_parameters import NodeParameters
from drone_bridge.session.session import (
    CONNECTIONS,
    REJECTED,
    Action,
    Actions,
    Close,
    Landing,
    LastWords,
    Note,
    Publish,
    Send,
    Session,
    encode,
)
from drone_bridge.testbed.codec import (
    NEED_DATA,
    AttitudeLayout,
    AutopilotConnection,
    ConnectionClosed,
    Constants,
    SensorFrame,
    SimulationRestarted,
    pack_reply,
)
from drone_bridge.testbed.session.flight import TestbedFlight
from drone_bridge.wire.counters import problems, rates
from drone_bridge.wire.events import LocalProtocolError, RemoteProtocolError

WAITING, CONNECTED, CLOSED = "waiting for a peer", "connected", "closed"
# Counters.
(MISSED,) = problems("missed_lockstep_commands")
FRAMES, IMAGES = rates("frames", "images")
#: Silence after which a first frame that may be complete is complete.
FRAME_END_SILENCE_S = 0.5
#: Time for which a testbed that has sent no complete message keeps its place when another one connects.
MUTE_KEEPS_PLACE_S = 2.0
#: Timeout for the constants, or for a complete frame. The testbed may pause between frames.
SILENCE_S = 5.0


@dataclass(frozen=True, slots=True)
class LayoutFound:
    """The layout was decided by the first frame."""

    layout: AttitudeLayout
    constants: Constants


@dataclass(frozen=True, slots=True)
class SimulationRestart:
    """A new simulation of the same drone has started."""

    constants: Constants


class PendingFrame(NamedTuple):
    """Frame that waits for the command with its stamp."""

    stamp: tuple[int, int]
    since_s: float


class ConversationEnd:
    """The conversation has ended, and its images can be released."""


class AutopilotSession(Session):
    """Autopilot's conversation with one testbed at a time."""

    def __init__(
        self,
        arbiter: Arbiter[Any],
        make_connection: Callable[[], AutopilotConnection],
        make_flight: Callable[[Constants], TestbedFlight],
        stamp: Callable[[SensorFrame], Any],
        parameters: NodeParameters,
        *,
        feedback: Feedback,
        is_lockstep: bool,
        layout: str,
    ) -> None:
        """Start in the state WAITING.

        Args:
            arbiter: selects the command.
            make_connection: creates the codec's end of a conversation.
            make_flight: creates the flight of an announced drone.
            stamp: returns the stamp of a frame that has just arrived, with `sec` and `nanosec`. The frame's messages
                have the same stamp, because the frame is published before the next one is handled.
            parameters: those of the node, which may change at any time.
            feedback: receives the measurements, for the limits and the flight.
            is_lockstep: whether each frame waits for the command with its stamp.
            layout: the parameter attitude_layout, for advice.
        """
        self.state, self.is_open, self._layout = WAITING, False, layout
        self._arbiter, self._parameters, self._is_lockstep = arbiter, parameters, is_lockstep
        self._make_connection, self._make_flight, self._stamp = make_connection, make_flight, stamp
        self._feedback = feedback
        self._clients: Clients[AutopilotConnection] = Clients(
            1,
            first_message_s=SILENCE_S,
            whole_message_s=SILENCE_S,
            keeps_place_s=lambda: parameters.silence_warning,
            mute_keeps_place_s=MUTE_KEEPS_PLACE_S,
        )
        self._constants: Constants | None = None  # of this conversation
        self._flight: TestbedFlight | None = None  # of this conversation, too
        self._is_layout_open = True  # and not yet detected
        self._received_s = 0.0  # time of the last bytes
        self._pending: PendingFrame | None = None  # in lockstep
        self._is_neutral = True  # the last reply

    # Events.

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
        self.received_s, self.since_s = None, now_s
        self._is_layout_open = connection.layout is None
        self._set_due()
        return [*actions, Note(CONNECTIONS, f"Connected to {peer}.", is_expected=True)]

    def memory(self, peer: Any) -> Sequence[memoryview]:
        """Return the memory for the next bytes of a testbed."""
        return self._clients[peer].handler.get_buffers()

    def filled(self, size: int, peer: Any, now_s: float) -> Actions:
        """Decode bytes that were read into `memory`."""
        client = self._clients[peer]
        self._received_s = now_s
        client.handler.buffer_updated(size)
        return self._events(client, now_s)

    def receive(self, data: bytes | str, source: Any, now_s: float) -> Actions:
        """Decode bytes, with a copy."""
        assert isinstance(data, bytes)
        client = self._clients[source]
        self._received_s = now_s
        client.handler.receive_data(data)
        return self._events(client, now_s)

    def left(self, peer: Any, sentence: str, now_s: float) -> Actions:
        """End the testbed's stream, which is regular between two frames."""
        client = self._clients[peer]
        client.handler.receive_eof()
        return self._events(client, now_s)

    def disconnected(self, peer: Any, sentence: str, now_s: float) -> Actions:
        return self._ended(Note(LOST, sentence))

    def landing(self, now_s: float) -> Landing:
        """A command is sent only as the reply to a frame."""
        is_silent = self.is_open and self.silent_s(now_s) > self._parameters.command_timeout
        return Landing.SILENT if is_silent else super().landing(now_s)

    def commanded(self, arrival: Arrival[Any] | None, now_s: float) -> Actions:
        """Answer the frame that waits for a new command, or for its timeout."""
        if self._pending is None:
            return []
        is_due = self._arbiter.is_held(now_s) if arrival is None else arrival.stamp == self._pending.stamp
        return self._answered_in_lockstep(arrival, now_s) if is_due else []

    def tick(self, now_s: float) -> Actions:
        """Reply to a frame whose command is late, and detect silent peers."""
        actions = list(self.commanded(self._arbiter.newest, now_s))  # a posted event may have been dropped
        if self._pending and now_s >= self._pending.since_s + self._parameters.command_timeout:
            actions += self._missed(now_s)
        for client in self._clients.all():
            if client.handler.silence_decides:
                if now_s >= self._received_s + FRAME_END_SILENCE_S:
                    client.handler.peer_waits()
                    actions += self._events(client, now_s)
            elif now_s >= client.deadline_s:
                within = f"{client.peer} did not complete a message within {SILENCE_S:g} s."
                actions += self._closed(client.peer, Note(LOST, f"{within} {self._advice(client.handler)}".rstrip()))
        self._set_due()
        return actions

    def resume(self, now_s: float) -> Actions:
        """Restart the timeouts, because the silence was our own."""
        super().resume(now_s)
        self._clients.resume(now_s)
        self._received_s = now_s
        self._set_due()
        return self.commanded(self._arbiter.newest, now_s)  # a posted event may have been dropped

    def outdated(self, action: Send) -> Send:
        """Replace a reply by the neutral one. The last reply of a conversation is already neutral."""
        neutral = encode(pack_reply, self._flight.neutral, None, []) if self._flight else None
        if not (self._flight and neutral):
            return action
        self._flight.replaced()
        return replace(action, data=neutral)

    def lost(self, now_s: float) -> Actions:
        """Leave the neutral reply behind, and start over."""
        return [*self._neutral(), *self._ended()]

    def end(self, now_s: float) -> Actions:
        actions = [*self._neutral(), *self._ended()]
        self.state, self.is_over = CLOSED, True
        return actions

    def last_words(self) -> LastWords | None:
        """Return the last reply. None is sent during a stall, in which the testbed waits for this process."""
        if self._is_neutral:
            return None
        sent = [action for action in self._neutral() if isinstance(action, Send)]
        return LastWords((), tuple(bytes(action.data) for action in sent), sent[0].to) if sent else None

    # The conversation.

    def _events(self, client: Client[AutopilotConnection], now_s: float) -> Actions:
        """Publish and answer the messages that the testbed has sent."""
        connection, actions, has_sent_message = client.handler, list[Action](), False
        try:
            while (event := connection.next_event()) is not NEED_DATA:
                has_sent_message = True
                if isinstance(event, SensorFrame):
                    actions += self._served(client, event, now_s)
                elif isinstance(event, Constants):
                    self.received_s = now_s
                    actions += self._announced(event)
                elif isinstance(event, ConnectionClosed):
                    end = Note("", "The testbed closed the connection.", is_expected=True)
                    return [*actions, *self._ended(end)]
                else:
                    actions += self._restarted(event)
        except RemoteProtocolError as error:
            sentence = f"{error} {self._advice(connection)}".rstrip()
            distrust = f"{sentence} Closed the connection: its bytes can't be trusted."
            return [*actions, *self._closed(client.peer, Note(REJECTED, distrust))]
        is_inside_message = connection.inside_message
        if has_sent_message or is_inside_message:
            self._clients.data_received(
                client, now_s, is_inside_message=is_inside_message, has_sent_message=has_sent_message
            )
        self._set_due()
        return actions

    def _announced(self, constants: Constants) -> Actions:
        """Start a flight of the announced drone."""
        self._constants, self._flight = constants, self._make_flight(constants)
        self._feedback.pilot = self._flight
        self._arbiter.forget()
        problem = self._flight.problem
        unflown = f"Velocities can't be flown with the announced constants: {problem}."
        return [*([Note("", unflown)] if problem else []), Publish(constants)]

    def _restarted(self, restart: SimulationRestarted) -> Actions:
        """Discard the commands for the previous simulation."""
        assert self._constants  # which come first
        self._arbiter.forget()
        sentence = (
            f"The testbed has started a new simulation on the same connection: its time restarted from 0 after "
            f"{restart.time_before:.3f} s."
        )
        return [Note("new_simulations", sentence, is_expected=True), Publish(SimulationRestart(self._constants))]

    def _served(self, client: Client[AutopilotConnection], frame: SensorFrame, now_s: float) -> Actions:
        """Reply to a frame and publish it, in the order that delays the testbed least."""
        flight = self._flight
        assert flight  # the constants come first
        actions: list[Action] = []
        if self._is_layout_open:
            assert client.handler.layout  # which the first frame has decided
            assert self._constants
            self._is_layout_open = False
            actions.append(Publish(LayoutFound(client.handler.layout, self._constants)))
        self.received_s, self.is_proven = now_s, True
        self._feedback.measured(flight.measurement(frame), now_s)
        stamp = self._stamp(frame)
        if not self._is_lockstep:
            actions += self._answered(client, self._arbiter.decide(now_s).command)
            actions.append(Publish(frame))
        elif self._arbiter.is_held(now_s):
            actions.append(Publish(frame))
            actions += self._answered(client, None)
        else:
            actions.append(Publish(frame))
            self._pending = PendingFrame((stamp.sec, stamp.nanosec), now_s)
        return actions

    def _answered(self, client: Client[AutopilotConnection], command: Any) -> list[Action]:
        """Reply to the frame with a command; None for the neutral one."""
        assert self._flight
        motion, was_within = self._flight.answer(command)
        self._is_neutral = motion == self._flight.neutral
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
        """Reply to the pending frame with its command, or else with the newest one."""
        self._pending = None
        (client,) = self._clients.all()
        actions = self._answered(client, self._arbiter.decide(now_s, arrival).command)
        self._set_due()
        return actions

    def _missed(self, now_s: float) -> Actions:
        """Continue without the command to a frame."""
        timeout_s, newest = self._parameters.command_timeout, self._arbiter.newest
        notes = [Note(MISSED)]
        if newest is not None and newest.stamp is None:
            sentence = (
                "sync is lockstep, but commands on cmd_vel have no stamp to match a frame, so each frame waits until "
                f"the timeout of {timeout_s:g} s (command_timeout). Publish cmd_vel_stamped or cmd_rates with the "
                f"stamp of the frame's images, or set sync to latest."
            )
            notes = [Note(MISSED, sentence, is_ongoing=True)]
        return [*self._answered_in_lockstep(None, now_s), *notes]

    def _advice(self, connection: AutopilotConnection) -> str:
        """Return a hint about a wrong layout, as a sentence; it may be empty."""
        return f"Check the parameter attitude_layout ({self._layout})." if connection.has_floats else ""

    # End of the conversation.

    def _neutral(self) -> Actions:
        """Leave the neutral reply behind, unless the testbed has disconnected."""
        if self._flight:
            (client,) = self._clients.all()
            with contextlib.suppress(LocalProtocolError):
                return [Send(client.handler.finish(self._flight.neutral), client.peer)]
        return []

    def _closed(self, peer: Any, note: Note) -> Actions:
        """Close the conversation from our side."""
        return [*self._neutral(), *self._ended(note), Close(peer)]

    def _ended(self, *notes: Note) -> Actions:
        """Release the drone."""
        if not self._clients:
            return notes
        for client in self._clients.all():
            self._clients.remove(client.peer)
        self._arbiter.forget()
        self._constants = self._flight = self._pending = None
        self.state, self.is_open = WAITING, False
        self.received_s = self.since_s = None
        self.due_s = math.inf
        return [*notes, Publish(ConversationEnd())]

    def _set_due(self) -> None:
        due_s = self._pending.since_s + self._parameters.command_timeout if self._pending else math.inf
        for client in self._clients.all():
            decides_s = self._received_s + FRAME_END_SILENCE_S
            due_s = min(due_s, decides_s if client.handler.silence_decides else client.deadline_s)
        self.due_s = due_s
