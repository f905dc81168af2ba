# SPDX-License-Identifier: Apache-2.0
"""CommandPackets: numbered packets, with the pilot's command in each. Pure.

Numbers begin with 1, which a drone always accepts: in the first FIRST_PACKETS of a link, as some get lost, and again
after each UNHEARD_S in which navdata shows that nothing is obeyed, as another client may have sent higher ones.
"""

import math
from collections.abc import Callable

from drone_bridge.ardrone import units
from drone_bridge.ardrone.codec import COMMANDS, ClientConnection, Command, Pcmd, Ref
from drone_bridge.session.session import Action, LastWords, Note, Send, next_due
from drone_bridge.session.tilt_pilot import TiltPilot
from drone_bridge.wire.counters import faults, rates
from drone_bridge.wire.events import LocalProtocolError
from drone_bridge.wire.outgoing import UNENCODABLE, fitted

FIRST_PACKETS = 3
#: Time for which the drone shows that it does not obey, until numbers start over, s.
UNHEARD_S = 1.0
# Counters.
(PACKETS,), (RESTARTS,) = rates("packets"), faults("restarted_numbers")


class CommandPackets:
    """Packets to one drone."""

    def __init__(self, pilot: TiltPilot, is_hover_held: Callable[[], bool], do: Callable[[Action], None]) -> None:
        """Start without a link. `do` receives the packets; see ArdroneClientSession for the others."""
        self._pilot, self._is_hover_held, self._do = pilot, is_hover_held, do
        self._connection = ClientConnection()
        #: Time of the next packet.
        self.due_s = self._unheard_since_s = math.inf
        self._first_left = 0
        self._is_moving = False  # by the newest packet

    def start(self, now_s: float) -> None:
        """Begin on a new link."""
        self._first_left, self.due_s = FIRST_PACKETS, now_s

    def restart(self) -> None:
        """Begin with number 1."""
        self._connection.restart()

    def forget(self, now_s: float) -> None:
        """Know nothing of the drone from now on."""
        self._pilot.restart(now_s)
        self._unheard_since_s = math.inf

    def judge(self, now_s: float, *, is_obeyed: bool) -> None:
        """Start over if the drone does not obey."""
        self._unheard_since_s = math.inf if is_obeyed else min(self._unheard_since_s, now_s)
        if now_s - self._unheard_since_s > UNHEARD_S:
            self._unheard_since_s, self._first_left = now_s, FIRST_PACKETS
            self._do(Note(RESTARTS, "The drone does not obey: numbering commands from 1 again.", is_ongoing=True))

    def steering(self, now_s: float, rate: float, *, is_silent: bool) -> Pcmd:
        """Return the steering in the packet that is sent now, in place of the one that was due."""
        if self._first_left:
            self._first_left -= 1
            self._connection.restart()
        self.due_s = next_due(min(self.due_s, now_s), 1 / rate, now_s)
        command = self._pilot.shares(now_s, is_overruled=self._is_hover_held() or is_silent)
        for note in self._pilot.notes:
            self._do(note)
        return units.command(command)

    def send(self, *commands: Command) -> None:
        """Send a packet of commands. Hover takes their place if they can't be encoded."""
        try:
            data = self._connection.send(*map(fitted, commands))
        except LocalProtocolError as error:
            self._do(Note(UNENCODABLE, f"Commands can't be sent: {error} The drone hovers instead."))
            commands = (Pcmd(), *(each for each in commands if isinstance(each, Ref)))
            data = self._connection.send(*commands)
        self._is_moving = any(isinstance(each, Pcmd) and each != Pcmd() for each in commands)
        self._do(Send(data, COMMANDS, if_sent=(PACKETS,)))

    def last_words(self, last: tuple[Command, ...]) -> LastWords | None:
        """Return the last packet, unless the drone hovers and nothing else is to be said."""
        is_needed = self._is_moving or len(last) > 1
        return LastWords((self._connection.peek(*last),), to=COMMANDS) if is_needed else None

    def neutral_sent(self, last: tuple[Command, ...]) -> None:
        """Skip the numbers of the last packet, so that the next one is not late."""
        self._connection.skip(len(last))
        self._is_moving = False
