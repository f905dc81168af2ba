# SPDX-License-Identifier: Apache-2.0
"""ClientRequests: which requests to a robot are sent, when, and which answer of the robot is whose. Pure.

A request moves the robot unless it is declared not to. To land, to cut the motors (ENDS_FLIGHT) and to end a motion
ends something: that is always accepted. The first row of ROWS that applies decides.

A request is sent once, and once more at each further call if it is repeated, as datagrams get lost. Its outcome is the
robot's answer within `timeout_s`, or that it was sent. From a robot that is declared to answer each packet, answers are
matched by name or order. From others, an answer without a name decides only if it can be no other packet's: see
`_is_other`. Otherwise the reported flight decides on takeoff and land, and other outcomes are unknown.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace
from typing import Any, NamedTuple

from drone_bridge.robot_class.client_sender import ClientSender
from drone_bridge.robot_class.greeting import ANSWERS_S
from drone_bridge.robot_class.heard_reports import UNPROVEN
from drone_bridge.robot_class.returned import described
from drone_bridge.robot_class.robot import Answer
from drone_bridge.session.session import EMERGENCY_AGE_S, FINAL_REPEATS, LAND, Actions, Note, Outcome, Request
from drone_bridge.wire.counters import Counter

#: Period of the request to land.
LAND_S = 1.0
#: What a drone reports once a request is done, and for how long, s.
FLIES, SHOWN_S = {"takeoff": True, LAND: False}, 2.0
#: Sentences: the outcome of a request without an answer that is certainly its own.
UNANSWERED = "The robot did not answer, or perhaps another packet."
UNKNOWN = "It is unknown whether it executes {}."
STALE = "The request is stale: the bridge was suspended meanwhile. Call again."
UNSENT = "{name} had to wait, and was not sent. Please call again."
#: Number of answers to commands after which a class that does not say so is named, and the counter of these notes.
ANSWERS, UNDECLARED = 20, Counter("undeclared_answers")
#: Event, kinds of requests, situation, what is done, and the answer.
ROWS = (
    ("called", "any", "no link", "refuse", "No robot is connected."),
    ("called", "moves, other", "silence", "refuse", "{peer} is not connected yet, or silent."),
    ("called", "any", "stale", "refuse", STALE),
    ("called", "moves, other", "pending", "refuse", "{name} is already pending."),
    ("called", "moves", "landing", "refuse", "land is pending."),  # else answers may come in another order
    ("called", "moves", "unproven", "refuse", UNPROVEN),
    ("called", "moves", "disobeys", "refuse", "{disobeys}"),
    ("called", "moves, other", "an answer is outstanding", "wait", ""),
    ("called", "ends", "pending", "repeat", "{name} was called again."),
    ("called", "any", "any", "send", ""),
    ("its turn", "moves", "hold", "refuse", UNSENT),
    ("its turn", "any", "stale", "refuse", UNSENT),
    ("its turn", "any", "any", "send", ""),
)


def row_of(event: str, kind: str, found: Collection[str]) -> tuple[str, str]:
    """Return what is done, and the answer, for an event, a kind of request, and the situations that apply."""
    rows = (row for row in ROWS if row[0] == event and (row[1] == "any" or kind in row[1]))
    return next((then, answer) for _, _, situation, then, answer in rows if situation in ("any", *found))


class _Asked(NamedTuple):
    """Request that awaits its answer, or first its turn."""

    request: Request
    until_s: float
    waits: bool
    is_repeated: bool = False


class ClientRequests:
    """Requests to one robot."""

    def __init__(self, sender: ClientSender) -> None:
        """Start without any."""
        self._sender = sender
        #: Requests that await their answer or their turn by name, the longest pending first.
        self.asked: dict[str, _Asked] = {}
        #: Time until which an answer without a name may be another packet's: a repeated step of the greeting, video, a
        #: `stop`, an automatic landing, a request that was repeated or given up.
        self.mixed_until_s = -math.inf
        self._unasked = Answer(""), -math.inf, 0  # newest answer that decided nothing, its time, and number of its like
        self._flight: tuple[bool | None, float] = None, 0.0  # as reported, and since when
        #: Time of the newest request to land that the limits require.
        self.land_s = -math.inf

    @property
    def waiting(self) -> Request | None:
        """The request whose turn is next."""
        return next((each.request for each in self.asked.values() if each.waits), None)

    def on(self, event: str, request: Request, found: set[str], now_s: float, until_s: float, **facts: str) -> Actions:
        """Handle a request by the row that applies. Its Outcome follows now or later.

        `found` are the situations, `until_s` is when it expires, `facts` are for answers. It is sent after the `stop`
        of the one before if it moves the robot.
        """
        name, sender, earlier = request.name, self._sender, self.asked.get(request.name)
        robot = sender.end.robot
        asked, ends = robot.all_requests[name], name in robot.always_accepted
        moves = asked.moves and not ends
        kind = "ends" if ends else "moves" if moves else "other"
        then, answer = row_of(event, kind, found)
        refused = Outcome(request, False, answer.format(name=name, **facts))
        given_up_s = now_s + (asked.timeout_s or EMERGENCY_AGE_S)
        if then != "refuse" and (asked.timeout_s or robot.answered):
            self.asked[name] = _Asked(request, given_up_s, then == "wait", then == "repeat")
        elif event == "its turn":
            del self.asked[name]
        if then in ("refuse", "wait"):
            return [refused] if then == "refuse" else []
        try:
            data = asked.encoded(robot)
        except Exception as error:
            self.asked.pop(name, None)
            return [Outcome(request, False, f"{name} can't be encoded: {described(error)}.")]
        # One that ends something is also sent if a stall begins before it is. A stream that has stalled drops an
        # emergency at its age, and other requests but `land` when the caller gets the outcome.
        decides, until_s = None if asked.timeout_s or robot.answered else request, until_s if ends else given_up_s
        stopped = self.stop(now_s) if moves else []
        sent = sender.send(data, now_s, request, until_s=until_s, outlasts_stalls=ends, request=decides)
        if data in sender.stops:
            sender.stops = []
        elif moves:
            sender.stops = [asked.stop or robot.stop] * (1 if sender.is_stream else FINAL_REPEATS)
        if then != "repeat" or not earlier:
            return [*stopped, *sent]
        return [*sent, replace(refused, request=earlier.request)]

    def stop(self, now_s: float, *, is_busy: bool = False) -> Actions:
        """Send what ends a motion that a request began, if it is due. A repeat waits for answers (`is_busy`)."""
        sender, requests = self._sender, self._sender.end.robot.all_requests.values()
        is_repeat = not sender.is_stream and len(sender.stops) < FINAL_REPEATS
        if not sender.stops or (is_repeat and is_busy):
            return []
        stop = sender.stops.pop()
        if any(each.timeout_s and each.packet == stop for each in requests):
            self.mix(now_s + ANSWERS_S)
        return sender.send(stop, now_s)

    def is_landing(self, now_s: float) -> bool:
        """Return whether an answer to `land` is awaited, or the limits require it."""
        return LAND in self.asked or now_s <= self.land_s + 2 * LAND_S

    def land(self, now_s: float, *, is_busy: bool) -> Actions:
        """Send the request to land, once per LAND_S. A repeat waits for answers (`is_busy`)."""
        request = self._sender.end.robot.all_requests.get(LAND)
        if request is None or now_s < self.land_s + LAND_S * (1 + is_busy):
            return []
        self.land_s = now_s
        self.mix(now_s + request.timeout_s)
        return self._sender.send(request.encoded(self._sender.end.robot), now_s)

    def ask_video(self, now_s: float) -> Actions:
        """Ask for the video, unless answers are awaited."""
        camera = self._sender.end.robot.camera
        if self.asked or camera is None:
            return []
        self.mix(now_s + ANSWERS_S)
        return self._sender.send(camera.ask, now_s)

    def give_up(self, sentence: str, now_s: float, *, is_all: bool = True) -> Actions:
        """Give up the requests that had to be answered by now, or all. A later answer to one is no other's outcome."""
        late = [name for name, asked in self.asked.items() if is_all or now_s > asked.until_s]
        for name in late:
            self.mix(now_s + self._sender.end.robot.all_requests[name].timeout_s)
        return [Outcome(self.asked.pop(name).request, False, f"{sentence} {UNKNOWN.format(name)}") for name in late]

    def mix(self, until_s: float) -> None:
        """Record that another packet may be answered until a time."""
        self.mixed_until_s = max(self.mixed_until_s, until_s)

    def reported(self, is_flying: bool | None, now_s: float) -> Actions:
        """Return the outcome of takeoff or land that the drone shows, if its answers to commands hide that."""
        if is_flying is not self._flight[0]:
            self._flight = is_flying, now_s
        name = next((each for each in self.asked if FLIES.get(each) is is_flying), "")
        is_hidden = math.isfinite(self._unasked[1]) and now_s >= self._flight[1] + SHOWN_S
        if not name or is_flying is None or not is_hidden or self.asked[name].waits:
            return []
        return [
            Outcome(self.asked.pop(name).request, True, f"It {'flies' if is_flying else 'stands'}, by its reports.")
        ]

    def answer(self, answer: Answer, now_s: float) -> Actions:
        """Return the outcome that an answer decides: of the request with its name, or of the only one."""
        if self._is_other(answer, now_s):
            return self._is_undeclared()
        name = answer.name or next(iter(self.asked))
        if (asked := self.asked.pop(name, None)) is None:
            return []
        if asked.is_repeated:
            self.mix(now_s + self._sender.end.robot.all_requests[name].timeout_s)
        sentence = answer.reason or ("ok" if answer.is_success else "The robot refused the request.")
        is_flying = self._flight[0]
        if not answer.is_success and is_flying is not None and FLIES.get(name) is is_flying:
            sentence = f"It {'flies' if is_flying else 'stands'} already, by its reports: {sentence}"
        return [Outcome(asked.request, answer.is_success, sentence)]

    def _is_other(self, answer: Answer, now_s: float) -> bool:
        """Return whether an answer may be another packet's than the only pending request's: then it decides nothing.

        One like the last of these, within ANSWERS_S, is one, too: the robot answers its commands.
        """
        if answer.name:
            return False
        before, at_s, number = self._unasked
        is_like = answer == before and now_s <= at_s + ANSWERS_S
        if not is_like and len(self.asked) == 1 and now_s > self.mixed_until_s:
            return False
        self._unasked = answer, now_s, number + 1 if is_like else 0
        return True

    def _is_undeclared(self) -> Actions:
        """Return a note about a class that does not say that its robot answers commands, and may execute them late."""
        robot = type(self._sender.end.robot)
        if robot.answered is not None or self._unasked[2] < ANSWERS:
            return []
        sentence = f"The robot answers commands, and may execute them late: set {robot.__name__}.answered to True"
        return [Note(UNDECLARED, f"{sentence} if it answers each packet, else to False.", is_ongoing=True)]

    def match(self, meaning: Any, now_s: float) -> Actions:
        """Handle the answer to a packet, of any meaning, of a robot that answers each one."""
        answer = meaning if isinstance(meaning, Answer) else Answer("")
        request, is_doubtful = self._sender.outstanding.answered(now_s, answer.name)
        if not any(each.request is request for each in self.asked.values()):
            return []
        if is_doubtful:
            answer = Answer("", False, f"{UNANSWERED} {UNKNOWN.format(request.name)}")
        return self.answer(replace(answer, name=request.name), now_s)
