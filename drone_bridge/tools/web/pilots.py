# SPDX-License-Identifier: Apache-2.0
"""Pilots: protocol between pages and the server, on a separate socket so that commands never wait behind an image.

JSON in both directions. To the page: {"op": "token", "token": 17} ten times per second, {"op": "vehicles", "vehicles":
[...], "unanswered": [...]} when they change, the latter for vehicles that have disappeared without confirming STOP,
{"op": "stopped", "number": 3}, {"op": "refused", "reason": "..."}. From it: {"op": "hello", "name": "Anne"},
{"op": "take", "vehicle": "..."}, {"op": "steer", "token": 17, "motion": {"x": 0.5}}, {"op": "release"}. Any page may
send {"op": "stop", "vehicles": ["..."], "number": 3}, or without vehicles stop all, including later ones; a page
repeats that on each new connection until it receives that number, or a later one, in "stopped". Pages that may steer
send {"op": "resume", "vehicle": "..."}, or without a vehicle resume all. {"op": "show", "vehicles": ["..."]} names
those that a person sees on the page, none while it is hidden. Requests between two people are {"op": "ask",
"vehicle": "..."}, {"op": "keep"} and {"op": "hand_over", "to": 2}. The reply to {"op": "watch", "recording": "bag_..."}
is {"op": "watching", "recording": "bag_...", "link": "http://..."}. Requests of MOVING may have the newest "token",
too: they are then refused if a stalled connection delivers them late.

`HelmLeases` decides who steers, `StopRequests` what is stopped, and `Announcements` what a page reads.
"""

import asyncio
import contextlib
import json
import math
import time
import traceback
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from itertools import count
from typing import Any

from builtin_interfaces.msg import Time
from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode

from drone_bridge.net.clock import elapsed_s
from drone_bridge.ros.hold.file_writer import FileWriter
from drone_bridge.ros.hold.wish_file import FILE_TIMEOUT_S
from drone_bridge.session.hold_state import HelmPilot
from drone_bridge.tools.web.access import MAX_VIEWERS, VIEW_ONLY
from drone_bridge.tools.web.announcements import Announcements
from drone_bridge.tools.web.goals import Place
from drone_bridge.tools.web.helm import TOKEN_PERIOD_S, HelmRefusedError
from drone_bridge.tools.web.helm_leases import AskElsewhere, HelmLeases, SendCommand
from drone_bridge.tools.web.messages import messages_from
from drone_bridge.tools.web.stop_requests import AskToHold, SendWish, StopRequests, WishWriter
from drone_bridge.tools.web.wishes import Wishes
from drone_bridge.wire.json_numbers import whole_number

MAX_PILOTS = MAX_VIEWERS
"""Maximum number of pages that may steer: each has room for its topics, unless other viewers that may steer take it."""
MAX_STOPPERS = 256
"""Maximum number of other pages, which may only stop."""
MAX_REQUESTS_PER_TOKEN = 20
"""Maximum rate of requests. More are dropped, except NEVER_DROPPED. Of more STOPs, the newest is sent by `watch`."""
NEVER_DROPPED = ("stop", "release")
"""They are sent once, perhaps behind many delayed commands, and do not move the vehicle."""
FOR_ALL = ("steer", "stop", "release", "hello", "show")
"""Requests of all pages. Others are only for pages that may steer; who steers has taken the helm."""
MOVING = ("take", "hand_over", "resume", "goal")
"""Requests after which a vehicle may move or another program loses it. They are refused if they are stale."""
MAX_REQUEST_AGE_S = 1.5
"""Maximum age of the token of such a request, s."""
MAX_NAME = 24
REFUSAL_PERIOD_S = 1.0
"""Minimum time between two reports of the same refusal, s."""
FILE_PERIOD_S = 0.005
"""Period of checking whether the wish file is written, s."""

Play = Callable[[str, Callable[[str, str], None]], None]
"""Plays a recording: its link, or "" and a reason, are reported on the event loop."""


def _ignore(*_: object) -> None:
    """Ignore a request, as a recording has no vehicle."""


@dataclass(eq=False, slots=True)
class PagePilot:
    """Page with a stick."""

    number: int
    connection: ServerConnection
    may_steer: bool
    limit: str = ""
    """Reason why it may only stop; empty if it may do more."""
    requests: int = 0
    """Number of requests since the last token."""
    stops: int = 0
    """Number of those that are a STOP."""
    stop_number: int | None = None
    """Number of the last STOP, until it is acknowledged."""
    refused: str = ""
    """Reason of the last refused request, reported once per REFUSAL_PERIOD_S."""
    refused_s: float = -math.inf
    is_outdated: bool = False
    """Whether the page needs an update of the vehicles."""
    shown: frozenset[str] = frozenset()
    """Vehicles that a person sees there, by topic."""


class Pilots:
    """All connected pages. Runs on one event loop, which also calls the callbacks."""

    def __init__(
        self,
        *,
        send_command: SendCommand = _ignore,
        ask_elsewhere: AskElsewhere = _ignore,
        ask_to_hold: AskToHold = _ignore,
        send_wish: SendWish = _ignore,
        set_goal: Callable[[str, Place], None] = _ignore,
        cancel_goal: Callable[[str], None] = _ignore,
        show: Callable[[frozenset[str]], None] = _ignore,
        play: Play = _ignore,
        now: Callable[[], Time] = Time,
        on_fault: Callable[[str], None] = _ignore,
        writer: WishWriter | None = None,
    ) -> None:
        """Prepare.

        Args:
            send_command: see `SendCommand`.
            ask_elsewhere: see `AskElsewhere`.
            ask_to_hold: see `AskToHold`; answered on the event loop.
            send_wish: see `SendWish`.
            set_goal: sends a vehicle to a place, by the topic of its commands.
            cancel_goal: ends its goal.
            show: gets the vehicles that any page shows.
            play: see `Play`.
            now: returns the ROS time for stamps.
            on_fault: gets the traceback of an internal error.
            writer: writer of the wish file; None for no file.
        """
        self._set_goal, self._show_topics, self._play = set_goal, show, play
        self._now, self._on_fault = now, on_fault
        self._writer = writer or FileWriter(lambda _: "", lambda _: None)
        wishes = Wishes()
        self._helms = helms = HelmLeases(wishes, send_command, ask_elsewhere, self._notify, self.announce)
        self.stops = StopRequests(helms, wishes, ask_to_hold, send_wish, self._writer)
        self.announcements = Announcements(self._helms, self.stops)
        self._followed: dict[str, Callable[[PagePilot, dict[str, Any]], None]] = {
            "steer": self._steer,
            "stop": self._stop,
            "release": lambda page, _: helms.release(page.number, elapsed_s()),
            "hello": self._set_name,
            "show": self._show,
            "take": lambda page, asked: helms.take(page.number, self._free(asked), elapsed_s()),
            "ask": self._ask,
            "keep": lambda page, _: helms.keep(page.number, elapsed_s()),
            "hand_over": lambda page, asked: helms.hand_over(page.number, whole_number(asked.get("to")), elapsed_s()),
            "resume": self._resume,
            "goal": self._ask_for_goal,
            "cancel_goal": lambda _, asked: cancel_goal(self._known(asked)),
            "watch": self._watch,
        }
        self._pilots: dict[int, PagePilot] = {}
        self._wakeup = asyncio.Event()  # set by the first page, and by changes
        self._numbers = count(1)

    async def __call__(self, connection: ServerConnection, may_steer: bool) -> None:
        """Serve a page until it disconnects."""
        steering = sum(pilot.may_steer for pilot in self._pilots.values())
        limit = ""
        if may_steer and steering >= MAX_PILOTS:
            limit = f"The limit of {MAX_PILOTS} pages that may steer is reached: this page can only stop."
        if (limit or not may_steer) and len(self._pilots) - steering >= MAX_STOPPERS:
            reason = f"The limit of {MAX_STOPPERS} pages that can only stop is reached."
            await connection.close(CloseCode.TRY_AGAIN_LATER, reason)
            return
        number = next(self._numbers)
        pilot = PagePilot(number, connection, may_steer and not limit, limit)
        self._pilots[number], self._helms.names[number] = pilot, f"Viewer {number}"
        self._wakeup.set()
        try:
            await connection.send(self._description_for(pilot))
            async for message in messages_from(connection):
                await self._receive(pilot, message)
        finally:
            del self._pilots[number]
            self._helms.leave(number, elapsed_s())
            self._show_all()

    async def watch(self) -> None:
        """Send tokens, stop vehicles with a silent pilot, and publish wishes, forever."""
        tick = 0
        try:
            while True:
                while not self._pilots and self.stops.is_idle:
                    self._wakeup.clear()
                    await self._wakeup.wait()
                # Twice per token, so that no vehicle moves on for long.
                await asyncio.sleep(TOKEN_PERIOD_S / 2)
                tick += 1
                try:
                    self.tick(elapsed_s(), is_for_token=tick % 2 == 0)
                except Exception:  # after any error, the next tick must still stop vehicles and send tokens
                    self._on_fault(traceback.format_exc())
        finally:
            for number in self._pilots:
                self._helms.release(number, elapsed_s())

    def tick(self, now_s: float, *, is_for_token: bool) -> None:
        """Do the work of `watch`, twice per token."""
        if is_for_token:
            self.stops.tick(now_s, time.time())
        self._helms.tick(now_s)
        if is_for_token:
            text = json.dumps({"op": "token", "token": self._helms.leases.token(now_s)})
            for pilot in self._pilots.values():
                pilot.requests = pilot.stops = 0
                self._describe(pilot)
                if not _is_busy(pilot.connection):  # else it would be stale when it arrives
                    _send_soon(pilot.connection, text)

    async def _receive(self, pilot: PagePilot, message: str | bytes) -> None:
        pilot.requests += 1
        try:
            request = json.loads(message)
            follow = self._followed[request["op"]]
        except (ValueError, TypeError, KeyError, RecursionError):
            await self._refuse(pilot, "The request is malformed.")
            return
        operation = request["op"]
        try:
            if pilot.requests > MAX_REQUESTS_PER_TOKEN and operation not in NEVER_DROPPED:
                if operation == "steer":  # the next token brings another command
                    return
                raise HelmRefusedError("Too many requests at once. Please repeat this one.")
            if pilot.limit and operation not in ("stop", "hello", "show"):
                raise HelmRefusedError(pilot.limit)
            self._check_age(request)
            if not pilot.may_steer and operation not in FOR_ALL:
                raise HelmRefusedError(VIEW_ONLY)
            follow(pilot, request)
        except HelmRefusedError as error:
            await self._refuse(pilot, str(error))

    def _check_age(self, request: dict[str, Any]) -> None:
        """Raise HelmRefusedError for a stale request: another person may have pressed STOP meanwhile."""
        if request["op"] in MOVING and "token" in request:
            token = whole_number(request["token"])
            if token is None or self._helms.leases.age_s(token, elapsed_s()) > MAX_REQUEST_AGE_S:
                raise HelmRefusedError(f"The request arrived over {MAX_REQUEST_AGE_S:g} s late. Please repeat it.")

    def _steer(self, pilot: PagePilot, request: dict[str, Any]) -> None:
        # Before its age is checked: if this process is suspended in between, the vehicle refuses the stale command.
        stamp = self._now()
        now_s, number = elapsed_s(), pilot.number
        token, motion = whole_number(request.get("token")), request.get("motion")
        if token is None or not isinstance(motion, dict):
            raise HelmRefusedError("A command needs a token and a motion.")
        is_held = self.stops.is_held(self._helms.leases.vehicle_of(number), now_s)
        self._helms.steer(number, token, motion, now_s, stamp, is_held=is_held)

    def _resume(self, pilot: PagePilot, request: dict[str, Any]) -> None:
        """Resume the requested vehicle; without one all that are stopped or held, including later ones."""
        topic = request.get("vehicle")
        is_stopped = topic is None or (isinstance(topic, str) and topic in self.stops.wishes)
        self.stops.resume(pilot.number, topic if is_stopped else self._known(request), elapsed_s())

    def _set_name(self, pilot: PagePilot, request: dict[str, Any]) -> None:
        name = request.get("name")
        if isinstance(name, str) and (name := "".join(filter(str.isprintable, name[: 4 * MAX_NAME])).strip()):
            self._helms.names[pilot.number] = name[:MAX_NAME]
            self.announce()

    def _show(self, pilot: PagePilot, request: dict[str, Any]) -> None:
        topics = request.get("vehicles")
        known = [each for each in topics if isinstance(each, str)] if isinstance(topics, list) else []
        pilot.shown = frozenset(known) & self.stops.vehicles.keys()
        self._show_all()

    def _known(self, request: dict[str, Any]) -> str:
        topic = request.get("vehicle")
        if not isinstance(topic, str) or topic not in self.stops.vehicles:
            raise HelmRefusedError("The vehicle does not exist.")
        return topic

    def _free(self, request: dict[str, Any]) -> str:
        topic = self._known(request)
        self.stops.check_free(topic, elapsed_s())
        return topic

    def _ask(self, pilot: PagePilot, request: dict[str, Any]) -> None:
        topic, now_s = self._known(request), elapsed_s()
        self._helms.ask(pilot.number, topic, now_s, self.stops.other_pilot(topic, now_s))

    def asked(self, topic: str, by: HelmPilot) -> None:
        """Handle a request for the helm of a vehicle, perhaps one from here."""
        if by.id != self._helms.id:
            self._helms.asked_elsewhere(topic, by.name, elapsed_s())

    def pilot(self, topic: str) -> HelmPilot:
        """Return the id and name with which a vehicle is commanded from here."""
        return self._helms.pilot(topic)

    def _stop(self, pilot: PagePilot, request: dict[str, Any]) -> None:
        """Want the requested vehicles held, including absent ones; without a list all, including later ones."""
        named = request.get("vehicles", None if request.get("vehicle") is None else [request["vehicle"]])
        if named is not None and not (isinstance(named, list) and all(isinstance(each, str) for each in named)):
            raise HelmRefusedError("The field vehicles is not a list of topics.")
        now_s = elapsed_s()
        has_vehicle = self.stops.stop(self._helms.names[pilot.number], named, now_s, time.time())
        if (number := whole_number(request.get("number"))) is not None:
            is_acknowledging, pilot.stop_number = pilot.stop_number is not None, number
            if not is_acknowledging:
                _run_soon(self._acknowledge(pilot))
        pilot.stops += 1
        if pilot.stops <= MAX_REQUESTS_PER_TOKEN:
            self.stops.resend(now_s)
            self.announce()
        else:
            for each in self._pilots.values():
                each.is_outdated = True
        if named and not has_vehicle:
            raise HelmRefusedError("The vehicle does not exist.")

    async def _acknowledge(self, pilot: PagePilot) -> None:
        """Acknowledge the newest STOP once the wish file is written, but after FILE_TIMEOUT_S at the latest."""
        while pilot.stop_number is not None:
            limit_s = elapsed_s() + FILE_TIMEOUT_S
            while not self._writer.wait(0.0) and elapsed_s() < limit_s:
                await asyncio.sleep(FILE_PERIOD_S)
            number = pilot.stop_number
            await _send(pilot.connection, json.dumps({"op": "stopped", "number": number}))
            if number == pilot.stop_number:
                pilot.stop_number = None

    def _ask_for_goal(self, pilot: PagePilot, request: dict[str, Any]) -> None:
        topic = self._free(request)
        try:
            place = Place.of(request)
        except ValueError as error:
            raise HelmRefusedError(str(error)) from None
        if self._helms.leases.pilot_of(topic) is not None:
            raise HelmRefusedError("The vehicle is steered manually (helm): release it before you set a goal.")
        wanted = {"frame": place.frame, "x": place.x, "y": place.y, "z": place.z}
        state = {"by": self._helms.names[pilot.number], "state": "asked", "text": "Requested."}
        self.announcements.set_goal(topic, {**wanted, **state}, elapsed_s())
        self._set_goal(topic, place)

    def _watch(self, pilot: PagePilot, request: dict[str, Any]) -> None:
        """Play a recording, and send the page its link."""
        recording = request.get("recording")
        if not isinstance(recording, str):
            raise HelmRefusedError("recording must be a name.")

        def answer(link: str, problem: str) -> None:
            if problem:
                self._notify(pilot.number, problem)
            elif pilot.number in self._pilots:
                _send_soon(pilot.connection, json.dumps({"op": "watching", "recording": recording, "link": link}))

        self._play(recording, answer)

    def _show_all(self) -> None:
        self._show_topics(frozenset().union(*(pilot.shown for pilot in self._pilots.values())))

    def _notify(self, number: int, reason: str) -> None:
        if pilot := self._pilots.get(number):
            _send_soon(pilot.connection, json.dumps({"op": "refused", "reason": reason}))

    async def _refuse(self, pilot: PagePilot, reason: str) -> None:
        kind, now_s = reason.partition(":")[0], elapsed_s()
        if pilot.refused != kind or now_s - pilot.refused_s >= REFUSAL_PERIOD_S:
            pilot.refused, pilot.refused_s = kind, now_s
            await pilot.connection.send(json.dumps({"op": "refused", "reason": reason}))

    def announce(self) -> None:
        """Send all pages the vehicles, as soon as each reads again."""
        self._wakeup.set()  # for a wish or a resume: `watch` sleeps without pages, too
        for pilot in self._pilots.values():
            pilot.is_outdated = True
            self._describe(pilot)

    def _describe(self, pilot: PagePilot) -> None:
        """Send a page, once it reads again, the vehicles and their pilots."""
        if pilot.is_outdated and not _is_busy(pilot.connection):
            pilot.is_outdated = False
            _send_soon(pilot.connection, self._description_for(pilot))

    def _description_for(self, pilot: PagePilot) -> str:
        own = {"may_steer": pilot.may_steer, "limit": pilot.limit}
        return json.dumps({"op": "vehicles", **own, **self.announcements.for_page(pilot.number, elapsed_s())})


def _is_busy(connection: ServerConnection) -> bool:
    """Return whether earlier messages still wait for the page."""
    return connection.transport.get_write_buffer_size() > 0


def _send_soon(connection: ServerConnection, text: str) -> None:
    _run_soon(_send(connection, text))


def _run_soon(sending: Coroutine[Any, Any, None]) -> None:
    task = asyncio.ensure_future(sending)
    _sending.add(task)  # keeps the task from being garbage-collected
    task.add_done_callback(_sending.discard)


async def _send(connection: ServerConnection, text: str) -> None:
    with contextlib.suppress(ConnectionClosed):
        await connection.send(text)


_sending: set[asyncio.Task[None]] = set()
