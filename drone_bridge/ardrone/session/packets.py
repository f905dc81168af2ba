# SPDX-License-Identifier: Apache-2.0
"""CommandPackets: numbered packets, with the pilot's command in each. Pure.

A drone ignores numbers below the highest one of any client, but always accepts 1. So what must get through begins with
number 1, see `ClientConnection.send`, and is sent twice, as one may be lost:

| packet | |
|---|---|
| with another REF than the last one | a take-off, a landing, a press of the emergency bit, its release |
| with which hovering begins, or a hold begins or ends | |
| the first one on a link, after an unsent one, and after last words | |
| the last ones | |
| while the drone's watchdog is set | nobody's commands count, so that nobody is fought |

Otherwise no other client is fought: it may be a safety pilot's.
"""

import math
from collections.abc import Callable

from drone_bridge.ardrone import units
from drone_bridge.ardrone.codec import COMMANDS, ClientConnection, Command, Pcmd, Ref, WatchdogReset
from drone_bridge.session.session import Action, LastWords, Note, Send, next_due
from drone_bridge.session.tilt_pilot import TiltPilot
from drone_bridge.wire.counters import rates
from drone_bridge.wire.events import LocalProtocolError
from drone_bridge.wire.outgoing import UNENCODABLE, fitted

#: Copies of a packet that must get through.
COPIES = 2
# Counters.
(PACKETS,) = rates("packets")


class CommandPackets:
    """Packets to one drone."""

    def __init__(self, pilot: TiltPilot, is_hover_held: Callable[[], bool], do: Callable[[Action], None]) -> None:
        """Start without a link. `do` receives the packets; see ArdroneClientSession for the others."""
        self._pilot, self._is_hover_held, self._do = pilot, is_hover_held, do
        self._connection = ClientConnection()
        #: Time of the next packet.
        self.due_s = math.inf
        #: Whether the next packet must get through.
        self.is_urgent = False
        self._is_stopped = False  # whether hover, or a hold, was in force in the newest packet
        self._is_moving = False  # by the newest packet
        self._ref: Ref | None = None  # the last one since something was known of the drone

    def forget(self, now_s: float) -> None:
        """Know nothing of the drone from now on."""
        self._pilot.restart(now_s)
        self._ref = None

    def steering(self, now_s: float, rate: float, *, is_silent: bool) -> Pcmd:
        """Return the steering in the packet that is sent now, in place of the one that was due."""
        self.due_s = next_due(min(self.due_s, now_s), 1 / rate, now_s)
        is_stopped = self._is_hover_held() or self._pilot.arbiter.is_held(now_s)
        self.is_urgent |= is_stopped is not self._is_stopped
        self._is_stopped = is_stopped
        command = self._pilot.shares(now_s, is_overruled=self._is_hover_held() or is_silent)
        for note in self._pilot.notes:
            self._do(note)
        return units.command(command)

    def send(self, *commands: Command) -> None:
        """Send a packet of commands. Hover takes their place if they can't be encoded."""
        commands = tuple(map(fitted, commands))
        was_moving, was = self._is_moving, self._ref
        self._is_moving = any(isinstance(each, Pcmd) and each != Pcmd() for each in commands)
        self._ref = next((each for each in commands if isinstance(each, Ref)), was)
        self.is_urgent |= (was_moving and not self._is_moving) or self._ref != was
        steering = [each for each in commands if isinstance(each, WatchdogReset | Pcmd | Ref)]  # settings once
        copies = [steering] * (COPIES - 1) if self.is_urgent else []
        try:
            sent = [self._connection.send(*each, is_urgent=self.is_urgent) for each in (*copies, commands)]
        except LocalProtocolError as error:
            self._do(Note(UNENCODABLE, f"Commands can't be sent: {error} The drone hovers instead."))
            kept = [each for each in commands if isinstance(each, Ref)]
            sent = [self._connection.send(Pcmd(), *kept, is_urgent=True)] * COPIES
            self._is_moving = False
        for data in sent[:-1]:
            self._do(Send(data, COMMANDS))
        self._do(Send(sent[-1], COMMANDS, if_sent=(PACKETS,)))
        self.is_urgent = False

    def last_words(self, last: tuple[Command, ...]) -> LastWords | None:
        """Return the last packet, unless the drone hovers and nothing else is to be said."""
        is_needed = self._is_moving or len(last) > 1
        return LastWords((self._connection.peek(*last, is_urgent=True),) * COPIES, to=COMMANDS) if is_needed else None

    def neutral_sent(self) -> None:
        """Record that the last packet was sent, with numbers that the next ones have again."""
        self._is_moving, self.is_urgent = False, True
