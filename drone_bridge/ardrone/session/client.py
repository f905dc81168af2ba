# SPDX-License-Identifier: Apache-2.0
"""ArdroneClientSession: the session of a client with one AR.Drone. Pure.

| state | begins | sends |
|---|---|---|
| WAITING | at the start, and when the link is lost | hover, when it is lost |
| ASKING | when the link opens, and after `navdata_timeout` without navdata | hover and WatchdogReset at `rate`, the \
wake-up each WAKE_S |
| CONNECTED | with navdata | the pilot's command at `rate`, one setting or its acknowledgement, WatchdogReset while \
the drone asks for it |
| CLOSED | at the end | hover FINAL_REPEATS times; the level stays, a pressed emergency bit is released |

Nothing that the drone receives is acknowledged but settings, so what it reports decides: see `requests` for the level,
`emergency` for the bit that cuts the motors, `packets` for the numbers, `navdata_watch`, and `settings`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from drone_bridge.ardrone import codec
from drone_bridge.ardrone.codec.navdata import read_navdata
from drone_bridge.ardrone.session.navdata_watch import LATE, WAKE_S, Known, NavdataWatch, place_of
from drone_bridge.ardrone.session.packets import CommandPackets
from drone_bridge.ardrone.session.requests import ArdroneClientParameters, DroneRequests, stale_reason
from drone_bridge.ardrone.session.settings import DroneSettings, WantedSetting
from drone_bridge.motion.measurement import Measurement
from drone_bridge.session.continuous_pose import ContinuousPose
from drone_bridge.session.feedback import Feedback
from drone_bridge.session.session import (
    CONNECTIONS,
    FINAL_GAP_S,
    FINAL_REPEATS,
    REJECTED,
    Action,
    Actions,
    Landing,
    LastWords,
    Note,
    Publish,
    Request,
    Send,
    Session,
)
from drone_bridge.session.tilt_pilot import TiltPilot
from drone_bridge.wire.counters import faults, problems, rates
from drone_bridge.wire.events import RemoteProtocolError

WAITING, ASKING, CONNECTED, CLOSED = "waiting for a peer", "asking for navdata", "connected", "closed"
# Counters.
(REPORTS,), (UNHEARD,), (SILENCES,) = rates("navdata"), problems("undelivered_packets"), faults("lost_navdata")


class MeasuredNavdata(NamedTuple):
    """Navdata, and its measurement."""

    navdata: codec.Navdata
    measured: Measurement


class ArdroneClientSession(Session):
    """Client's conversation with one drone."""

    def __init__(
        self,
        drone: str,
        pilot: TiltPilot,
        feedback: Feedback,
        *,
        parameters: ArdroneClientParameters,
        wishes: Callable[[], Sequence[WantedSetting]],
        is_hover_held: Callable[[], bool] = lambda: False,
        use_settings: Callable[[DroneSettings], None] = lambda settings: None,
        pose: ContinuousPose | None = None,
    ) -> None:
        """Start without a link.

        Args:
            drone: name of the drone for logs.
            pilot: decides how the drone is steered.
            feedback: receives the drone's measurements.
            parameters: those of the node, which may change at any time.
            wishes: returns the settings to write, the required one first.
            is_hover_held: returns whether the drone hovers and ignores commands.
            use_settings: gets the settings that the drone has answered.
            pose: the drone's pose in `odom`; None for a client without one.
        """
        self.state, self.peer, self.is_proven = WAITING, drone, False
        self._parameters, self._effects, self._final_left = parameters, list[Action](), 0
        self.settings = DroneSettings(wishes, use_settings, self._effects.append)
        self.watch = NavdataWatch(drone, feedback, pose)
        self.requests = DroneRequests(pilot.arbiter, parameters, self._effects.append, self._restart)
        self._packets = CommandPackets(pilot, is_hover_held, self._effects.append)

    # The link.

    def opened(self, now_s: float) -> Actions:
        self.state, self.is_open, self.is_proven = ASKING, True, False
        self.since_s = self.watch.due_s = now_s
        self.received_s = None
        self._forget(now_s)
        self._restart()
        self._packets.due_s = now_s
        self._effects.append(Note(CONNECTIONS, f"Asking {self.peer} for navdata.", is_expected=True))
        return self.tick(now_s)

    def tick(self, now_s: float) -> Actions:
        if self._final_left:
            return self._final(now_s) if now_s >= self.due_s else []
        silence_s = self.silent_s(now_s)
        if self.state == CONNECTED and silence_s > self._parameters.navdata_timeout:
            self.state = ASKING
            self._forget(now_s)
            self._effects.append(Note(SILENCES, f"{self.peer} has sent no navdata for {silence_s:.1f} s."))
        if now_s >= self._packets.due_s:
            self._send_packet(now_s)
        if now_s >= self.watch.due_s:
            self.watch.due_s = now_s + WAKE_S
            if self.received_s is None or silence_s > WAKE_S:  # a drone sends to the client that has asked last
                self._effects.append(Send(codec.WAKE_UP, codec.NAVDATA))
        return self._taken(now_s)

    def resume(self, now_s: float) -> Actions:
        """After a stall nothing is known: hover, and no REF until the drone has reported."""
        super().resume(now_s)
        self.requests.stalled(now_s)
        self._forget(now_s)
        if self.is_open:
            self._send_packet(now_s)
            self._effects.append(Send(codec.WAKE_UP, codec.NAVDATA))  # the drone may have dropped this client
            self.settings.connect(codec.DISCONNECT)  # a part of what it has sent may have been dropped
        return self._taken(now_s)

    def unsent(self, action: Send, sentence: str, now_s: float) -> Actions:
        """Let the next packet get through."""
        self._packets.is_urgent |= action.to == codec.COMMANDS
        return super().unsent(action, sentence, now_s)

    def refused(self, sentence: str, now_s: float) -> Actions:
        return [Note(UNHEARD, f"{sentence} Still asking for navdata.", is_ongoing=True, is_usual_at_start=True)]

    def lost(self, now_s: float) -> Actions:
        self._close(WAITING)
        self._forget(now_s)
        self._packets.is_urgent = True
        self._packets.send(codec.Pcmd())
        self.requests.refuse("The link was lost before the drone has shown it.")
        return self._taken(now_s)

    def end(self, now_s: float) -> Actions:
        self._close(CLOSED)
        self._final_left = FINAL_REPEATS
        self.requests.refuse("The link was closed before the drone has shown it.")
        actions = self._final(now_s)
        hovers_on = self._known(now_s).has_reported and self.requests.level
        sentence = f"{self.peer} hovers on. A new start of the bridge adopts it, and then land lands it."
        return [*actions, Note("", sentence)] if hovers_on else actions

    def _final(self, now_s: float) -> Actions:
        self._packets.is_urgent = True
        self._packets.send(*self._last_commands)
        self._final_left -= 1
        self.is_over = not self._final_left
        self._packets.due_s = math.inf if self.is_over else now_s + FINAL_GAP_S
        return self._taken(now_s)

    def _close(self, state: str) -> None:
        self.state, self.is_open = state, False
        self._packets.due_s = self.watch.due_s = math.inf

    def _forget(self, now_s: float) -> None:
        """Nothing is known of the drone from now on, until it reports."""
        for part in (self.requests, self._packets, self.watch):
            part.forget(now_s)

    def _restart(self) -> None:
        """Begin settings again, with a packet that gets through."""
        self._packets.is_urgent = True
        self.settings.start()

    # Packets.

    def _send_packet(self, now_s: float) -> None:
        navdata = self.watch.navdata if self.state == CONNECTED else None
        self._packets.is_urgent |= navdata is not None and navdata.has(codec.State.WATCHDOG)
        steering = self._packets.steering(now_s, self._parameters.rate, is_silent=navdata is None)
        self.watch.steered(steering.gaz > 0.0, self.settings.number("control:altitude_max"))
        watchdog = (codec.WatchdogReset(),) if navdata is None or navdata.has(codec.State.WATCHDOG) else ()
        settings = self.settings.commands(navdata, now_s) if navdata else ()
        self._packets.send(*watchdog, steering, *self.requests.commands(now_s), *settings)

    def last_words(self) -> LastWords | None:
        """Return hover. The level stays as the drone has it, but a button is released."""
        return self._packets.last_words(self._last_commands)

    def neutral_sent(self, now_s: float) -> Actions:
        self._packets.neutral_sent()
        return []

    @property
    def _last_commands(self) -> tuple[codec.Command, ...]:
        return (codec.Pcmd(), codec.Ref()) if self.requests.emergency.is_down else (codec.Pcmd(),)

    # What the drone reports.

    def receive(self, data: bytes | str, source: Any, now_s: float) -> Actions:
        assert isinstance(data, bytes)
        try:
            if source == codec.CONTROL:
                self.settings.receive(data)
                return self._taken(now_s)
            navdata = read_navdata(data)
        except RemoteProtocolError as error:
            what = f"Settings of {self.peer} were" if source == codec.CONTROL else f"Navdata of {self.peer} was"
            self._effects.append(Note(REJECTED, f"{what} refused: {error}"))
            return self._taken(now_s)
        before = self.watch.navdata if self.state == CONNECTED else None
        if (place := place_of(navdata, before)) == LATE:
            self.watch.count_late()
            return [Note(LATE)]
        self._effects += [Note(each) for each in (REPORTS, place) if each]
        is_news = before is None or navdata.state != before.state
        self.watch.navdata, self.received_s, self.is_proven = navdata, now_s, True
        if not self.watch.is_due(navdata, before, now_s) and not is_news:
            self._effects.append(Publish(navdata))
            return self._drained()
        if self.state == ASKING:
            self.state = CONNECTED
            self.watch.connected(now_s)
            self._effects.append(Note("", f"Connected to {self.peer}: it sends navdata.", is_expected=True))
        if navdata.has(codec.State.BOOTSTRAP) and (before is None or navdata.sequence <= before.sequence):
            self.settings.start()
        self.requests.reported(navdata, self._known(now_s), now_s)
        measured, others = self.watch.measure(navdata, now_s)
        self._effects += [*others, Publish(MeasuredNavdata(navdata, measured))]
        return self._taken(now_s)

    # For other threads, and for people.

    def ask(self, request: Request, now_s: float) -> Actions:
        """Start a request of a waiting caller; its name is one of TAKE_OFF, LAND, EMERGENCY, RESET, FLAT_TRIM."""
        refusal = "" if self.is_open else "There is no link to the drone."
        if now_s > self.expires_at(request):
            refusal = stale_reason(request, now_s)
        if self.requests.ask(request, self._known(now_s), now_s, refusal):
            self._send_packet(now_s)
        return self._taken(now_s)

    def add_setting(self, wish: WantedSetting, now_s: float) -> Actions:
        """Write one more setting."""
        self.settings.add(wish)
        return self._taken(now_s)

    def undeliverable(self, now_s: float) -> str | None:
        """Return why no command reaches the drone, as a sentence, or None. Thread-safe."""
        return None if self.state == CONNECTED else f"{self.peer} sends no navdata."

    def landing(self, now_s: float) -> Landing:
        navdata = self.watch.navdata
        if self.state == CONNECTED and navdata and not navdata.is_airborne:
            return Landing.GROUNDED
        return super().landing(now_s)

    @property
    def problems(self) -> tuple[str, str, str, str]:
        """See NavdataWatch. Thread-safe, as the others."""
        return self.watch.problems

    @property
    def is_emergency(self) -> bool:
        """Whether the last navdata shows an emergency."""
        return bool((navdata := self.watch.navdata) and navdata.has(codec.State.EMERGENCY))

    def _known(self, now_s: float) -> Known:
        """Return what is known of the drone now."""
        is_connected, received_s = self.state == CONNECTED, self.received_s
        age_s = math.inf if received_s is None else now_s - received_s
        has_reported = received_s is not None and received_s > self.fresh_since_s
        return Known(self.watch.navdata, age_s, is_connected, has_reported, self.watch.set_up_problem(now_s))

    def _taken(self, now_s: float) -> Actions:
        known = self._known(now_s)
        self.requests.end_overdue(known, now_s)
        self.watch.report(known, is_asking=self.state == ASKING, is_version_1=self.settings.is_version_1)
        self.due_s = min(self._packets.due_s, self.watch.due_s)
        return self._drained()

    def _drained(self) -> Actions:
        actions = [*self._effects]
        self._effects.clear()
        return actions
