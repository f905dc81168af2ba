# SPDX-License-Identifier: Apache-2.0
"""GuiSession: state machine of a GUI, whose controllers' packets a ROS drone follows. Pure.

Theory of operation, by the document "Network control protocol" and by the real GUI:

There is no handshake: each sender of packets controls the drone, and the packet with the higher number wins, see
`device.Gui`. The GUI does not acknowledge packets and has no timeout, so the last state would stay in force forever.
Here it is in force for `command_timeout`. Meanwhile it is repeated at `rate`, and so is hover, for a service that
starts later.

| state | axes | holds hover (see `session.hover`) | ends |
|---|---|---|---|
| WAITING, also after the link was lost | nothing is published | no | by a packet |
| SERVING, a state in force | of the last packet | while pressed, and on hold | after \
`command_timeout` |
| SERVING, silent | zero, once | while ours is the last command to the vehicle | by a packet, after GONE_S as WAITING |
| CLOSED, by `end` | zero | no | |

- A press is an edge between two packets, from any senders, and causes one call, which is never repeated, with any
result. take_off lands a flying drone, see `session.flying`. On hold, only landing and emergency are called.
- reset has two effects, and programs press it in their first packet to restart communication. It calls reset while the
drone is known to be on the ground, and otherwise emergency, as in the document. The first press within START_S of a
sender's start is then withheld: a start is a sender that is not among the last MAX_CONTROLLERS, or numbers that restart
from 1 after `command_timeout`.
- Right after a stall of this process only a packet that stops the drone is followed, because it may be stale. Presses
are lost.
- Navdata is sent to the GUI's own machine and to its controllers' hosts: each block of a bridge unchanged, or else data
from the vehicle's topics, at most NAVDATA_RATE times per second.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from drone_bridge.dronegui.codec import FIRST_SEQ, ControlPacket, Controls, Demo, FlightState, Navdata, VisionDetect
from drone_bridge.dronegui.vehicle.device import MAX_CONTROLLERS, Gui, GuiDialect
from drone_bridge.dronegui.vehicle.session.flying import FlyingState
from drone_bridge.dronegui.vehicle.session.hover import HOVER, HeldHover
from drone_bridge.parameter_fields import parameter
from drone_bridge.session import clients
from drone_bridge.session.node_parameters import NodeParameters
from drone_bridge.session.operator_command import OperatorCommand
from drone_bridge.session.session import (
    AFTER_STALLS,
    CONNECTIONS,
    EMERGENCY,
    ENDS_FLIGHT,
    LAND,
    MAY_HAVE_WAITED,
    REJECTED,
    Action,
    Actions,
    Answer,
    Call,
    Note,
    Publish,
    Send,
    Session,
    encode,
    next_due,
)
from drone_bridge.wire.addresses import AllowedPeers, peer_name
from drone_bridge.wire.counters import problems, rates
from drone_bridge.wire.events import RemoteProtocolError

WAITING, SERVING, CLOSED = "waiting for a peer", "serving", "closed"
#: Presses.
TAKE_OFF, RESET = "takeoff", "reset"
#: Time for which a sender counts as just started, s.
START_S = 1.0
#: Silence after which an operator has left: over UDP, it can't say so.
GONE_S = 60.0
#: No motion, without the button hover.
LEVEL = Controls(hover=False)
# Counters.
LATE, REFUSED = problems("late_packets", "refused_presses")
UNANSWERED, UNSENT, REJECTED_MESSAGES = problems("unanswered_presses", "unsent_navdata", "rejected_messages")
PACKETS, NAVDATA, DETECTIONS = rates("packets", "navdata", "detections")


@dataclass(slots=True)
class GuiParameters(NodeParameters):
    """Parameters of the session."""

    rate: float = parameter(
        20.0,
        "Minimum rate of cmd_vel for a command in force, Hz. Packets are sent at once.",
        1.0,
        200.0,
        live=True,
    )


class GuiSession(Session):
    """GUI's conversation with its controllers."""

    def __init__(
        self,
        parameters: GuiParameters,
        allowed_peers: AllowedPeers,
        gui: tuple[GuiDialect, str],
        flying: FlyingState,
        *,
        is_held: Callable[[], bool],
        is_neutral_last: Callable[[], bool],
    ) -> None:
        """Start without an operator.

        Args:
            parameters: those of the node, which may change at any time.
            allowed_peers: permitted controllers.
            gui: differences from the document, and our own host, in the address family of navdata.
            flying: state of flight, which outlives a session.
            is_held: returns whether the vehicle is on hold.
            is_neutral_last: returns whether the vehicle's last command from any source is neutral.
        """
        self.state = WAITING
        self._parameters, self._allowed = parameters, allowed_peers
        self._is_held, self._is_neutral_last = is_held, is_neutral_last
        self._flying = flying
        self._gui = Gui(self, *gui)
        self._command = OperatorCommand(LEVEL, lambda: parameters.command_timeout, parameters.rate)
        self._hover = HeldHover()
        self._hover_check_s = math.inf  # time of the next check of hover
        self._now_s, self._sender = -math.inf, ""  # time and sender of the packet that is being read
        self._presses_reset = False  # whether that packet presses reset
        self._seq = float(FIRST_SEQ)  # of the last packet
        self._started_s: dict[str, float] = {}  # start times of the last senders by name, the newest at the end
        self._withheld_of = ""  # host whose reset was withheld last, until its next press
        self._effects: list[Action] = []  # of the current packet

    # Operators.

    def receive(self, data: bytes | str, source: Any, now_s: float) -> Actions:
        """Follow a packet of the controller."""
        name = peer_name(source)
        if not self._allowed.allows(source[0]):
            return [Note(clients.REFUSED, f"{name} was refused: it is not in allowed_peers.")]
        assert isinstance(data, bytes)
        if now_s < self.settled_s and not self._gui.is_stop(data):
            return [Note(AFTER_STALLS, MAY_HAVE_WAITED)]
        is_new = name != self.peer or not self._command.is_in_force
        self._now_s, self._sender, self._effects, self._presses_reset = now_s, name, [], False
        try:
            event = self._gui.receive(data, source, now_s)
        except RemoteProtocolError as error:
            return [Note(REJECTED, f"A packet from {name} was refused: {error}")]
        if not isinstance(event, ControlPacket):
            sentence = f"Ignored a late packet from {name}: {event.seq:g} after {event.newest_seq:g}."
            return [Note(LATE, f"{sentence} A restarted sender must begin with seq 1.", is_ongoing=True)]
        self._note_start(name, event.seq, is_new, now_s)
        if self._presses_reset:
            self._press_reset(source[0], now_s)
        begun: list[Action] = [] if self.is_open else [Note(CONNECTIONS)]
        if is_new:
            begun.append(Note("", f"Controlled by {name}.", is_expected=True))
        self.state, self.peer, self.is_open = SERVING, name, True
        self.received_s = now_s
        self._hover_check_s = now_s + 1 / self._parameters.rate
        self._set_due()
        return [Note(PACKETS), *begun, *self._effects]

    def tick(self, now_s: float) -> Actions:
        """Repeat the state in force, or end it; hold or release hover."""
        if now_s < self.due_s:
            return []
        was_in_force, self._command.rate = self._command.is_in_force, self._parameters.rate
        actions = list(self._command.tick(self.peer, now_s))
        if now_s >= self._hover_check_s:
            self._hover_check_s = next_due(self._hover_check_s, 1 / self._parameters.rate, now_s)
        if self._command.is_in_force:
            is_wanted = self._gui.controls.hover or self._is_held()
        else:
            # Zero would only level the drone for a while, so that it drifts, even if it was left hovering. If the last
            # command is another program's, that program flies the drone.
            is_wanted = was_in_force or self._is_neutral_last()
        actions += self._hover.want(is_wanted, now_s)
        if self.silent_s(now_s) > GONE_S:
            self.state, self.is_open = WAITING, False
        self._set_due()
        return actions

    def resume(self, now_s: float) -> Actions:
        """Ignore packets that move the drone until pending ones are read, and end a stale state."""
        super().resume(now_s)
        actions = self._command.resume(self.peer, now_s)
        self._set_due()
        return actions

    def lost(self, now_s: float) -> Actions:
        """End the state in force, because the operator is unreachable."""
        self.state, self.is_open = WAITING, False
        self._hover_check_s = math.inf
        actions = self._left(now_s)
        self._set_due()
        return actions

    def end(self, now_s: float) -> Actions:
        self.state, self.is_open, self.is_over, self.due_s = CLOSED, False, True, math.inf
        return self._left(now_s)

    # Services of the drone.

    def answered(self, name: str, tag: Any, answer: Answer, now_s: float) -> Actions:
        """Record the result of a call. A failed hover may be called again."""
        if name == HOVER:
            self._hover.answered(tag, answer, now_s)
        if answer.is_success:
            if name == HOVER:
                return []
            self._flying.done(name)
            return [Note("", f"{name}: {answer.sentence}", is_expected=True)]
        if answer.was_called and not answer.has_come:
            return [Note(UNANSWERED, f"{name} was pressed, but {answer.sentence}.")]
        if name == HOVER and not answer.was_called:
            return []  # a vehicle may lack it
        return [Note(REFUSED, f"{name} was refused: {answer.sentence}")]

    def forget_hover(self, now_s: float) -> Actions:
        """Record that no node offers hover."""
        self._hover.forget()
        return []

    # Navdata.

    def forward(self, block: Navdata, datagram: bytes, now_s: float) -> Actions:
        """Forward a bridge's block unchanged."""
        if isinstance(block, Demo) and block.flight_state is not None:  # 0 is a state, too
            self._flying.shown(block.flight_state.is_airborne)
        return self._sent(block, datagram, now_s)

    def send_navdata(self, make: Callable[[FlightState | None], Demo | None], now_s: float) -> Actions:
        """Send data from the vehicle's topics if a block is due; `make` takes the drone's state."""
        if not self._gui.navdata_is_due(now_s):
            return []
        block = make(self._flying.state(self._gui.controls.hover))
        return [] if block is None else self._encoded(block, now_s)

    def send_detections(self, block: VisionDetect, now_s: float) -> Actions:
        """Send the detections of the vehicle's vision."""
        return self._encoded(block, now_s)

    def controllers(self, now_s: float) -> tuple[Any, ...]:
        """Return the addresses of the controllers' hosts, see `Gui.controllers`. Thread-safe."""
        return self._gui.controllers(now_s)

    def _encoded(self, block: Navdata, now_s: float) -> Actions:
        notes: list[Action] = []
        datagram = encode(self._gui.navdata, block, None, notes)
        return [*notes, *(self._sent(block, datagram, now_s) if datagram else [])]

    def _sent(self, block: Navdata, datagram: bytes, now_s: float) -> Actions:
        kinds = {Demo: NAVDATA, VisionDetect: DETECTIONS}
        counted = (kinds.get(type(block), "other_navdata"),)
        sent = [Send(datagram, each, UNSENT, counted) for each in self._gui.receivers(now_s)]
        return [*sent, *([Publish(block)] if isinstance(block, Demo) else [])]

    # Implementation of GuiDrone.

    @property
    def is_flying(self) -> bool:
        return bool(self._flying.is_flying)

    def take_off(self) -> None:
        self._press(TAKE_OFF)

    def land(self) -> None:
        self._press(LAND)

    def reset(self) -> None:
        self._presses_reset = True  # its effect depends on the packet's number

    def steer(self, controls: Controls) -> None:
        self._effects += self._hover.want(controls.hover or self._is_held(), self._now_s)
        axes = LEVEL if controls.hover else replace(controls, take_off=False, reset=False)
        self._effects += self._command.command(axes, self._now_s)

    def _note_start(self, name: str, seq: float, is_new: bool, now_s: float) -> None:
        """Record the start of a packet's sender. A controller that goes on may number what must get through 1."""
        begins_again = is_new and seq == FIRST_SEQ < self._seq
        if begins_again:
            self._withheld_of = ""
        self._seq = seq
        started_s = self._started_s.pop(name, now_s)
        self._started_s[name] = now_s if begins_again else started_s
        if len(self._started_s) > MAX_CONTROLLERS:
            del self._started_s[next(iter(self._started_s))]

    def _press_reset(self, host: str, now_s: float) -> None:
        """Call reset on the ground and emergency otherwise, unless the press may only be a program's first packet."""
        if self._flying.is_flying is False:
            self._press(RESET)
        elif now_s < self._started_s[self._sender] + START_S and self._withheld_of != host:
            self._withheld_of = host
            where = "flies" if self._flying.is_flying else "may fly"
            sentence = (
                f"Withheld the reset of {self._sender}: the drone {where}, its motors would stop, and this sender has "
                f"just started. To cut the motors, press it again."
            )
            self._effects.append(Note(REFUSED, sentence))
        else:
            self._withheld_of = ""
            self._press(EMERGENCY)

    def _press(self, name: str) -> None:
        if name not in ENDS_FLIGHT and self._is_held():
            sentence = f"{name} was pressed, but is refused while the vehicle is on hold."
            self._effects.append(Note(REFUSED, sentence))
            return
        self._flying.pressed(name)
        self._effects += [Note("", f"{self._sender} presses {name}.", is_expected=True), Call(name, None)]

    def _left(self, now_s: float) -> Actions:
        """Command zero, then release hover: a bridge follows the commands after that."""
        return [*self._command.end(), *self._hover.want(False, now_s)]

    def _set_due(self) -> None:
        self.due_s = min(self._command.due_s, self._hover_check_s)
