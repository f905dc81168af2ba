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

STOP is a state: `Wishes` stores wanted holds until a person resumes them, and `watch` publishes each wish every
STOP_PERIOD_S until its nodes report it. A bridge that restarts reads it earlier, from a file (`wish_file`) that is
written before "stopped" is sent. Other vehicles, without such reports, get neutral and calls of ~/hold.
"""

import asyncio
import contextlib
import functools
import itertools
import json
import math
import time
import traceback
import uuid
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from builtin_interfaces.msg import Time
from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode

from drone_bridge.msg import HoldStatus
from drone_bridge.net.clock import elapsed_s
from drone_bridge.ros.hold.file_keeper import FileKeeper
from drone_bridge.ros.hold.wish_file import FILE_TIMEOUT_S, FiledWish
from drone_bridge.session.hold_state import HELM_ENDS_AFTER_S, NOT_REQUESTED
from drone_bridge.tools.web.access import MAX_VIEWERS, VIEW_ONLY
from drone_bridge.tools.web.goals import Place
from drone_bridge.tools.web.helm import LEASE_S, NEUTRAL, TOKEN_PERIOD_S, Helm, HelmRefusedError, Motion
from drone_bridge.tools.web.landings import PadPlace
from drone_bridge.tools.web.messages import messages_from
from drone_bridge.tools.web.vehicles import AXES, COMMAND_TOPIC, SteeredVehicle
from drone_bridge.tools.web.wishes import Report, Wish, Wishes
from drone_bridge.wire.json_numbers import whole_number

MAX_PILOTS = MAX_VIEWERS
"""Maximum number of pages that may steer: each has room for its topics, unless other viewers that may steer take it."""
MAX_STOPPERS = 256
"""Maximum number of other pages, which may only stop."""
MAX_WANTED, MAX_NAME_OF_ROS = 64, 255
"""Maximum number of unknown vehicles with a wanted hold, and maximum length of a topic's name."""
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
STOP_PERIOD_S = TOKEN_PERIOD_S / 2
"""Period of repeating a wish to a node that has not reported it, s."""
STOP_TIMEOUT_S = 1.0
"""Time after which the page shows that a vehicle has not stopped, s."""
HELM_ENDS_WITHIN_S = HELM_ENDS_AFTER_S + 0.5
"""Maximum time that the last command from here is in force, even at a slow bridge, s."""
FILE_PERIOD_S = 0.005
"""Period of checking whether the wish file is written, s."""
HELM_TAKEN_S = 1.0
"""Time in which a vehicle that was held after a helm ended follows a new one, s."""

SendCommand = Callable[[str, Motion, Time], None]
"""Publishes a command: topic, motion along AXES from -1 to 1, and time."""
AskToHold = Callable[[str, bool, Callable[[str], None]], None]
"""Holds or releases a vehicle. A problem, or an empty string, is reported on the event loop."""
SendWish = Callable[[str, str, str], None]
"""Publishes the wish to hold the vehicle of a node: its full name, the id of the wish or "", and the reason."""

Play = Callable[[str, Callable[[str, str], None]], None]
"""Plays a recording: its link, or "" and a reason, are reported from any thread."""


@dataclass(eq=False, slots=True)
class PagePilot:
    """Page with a stick."""

    number: int
    connection: ServerConnection
    name: str
    may_steer: bool
    vehicle: str = ""
    requests: int = 0
    """Number of requests since the last token."""
    stops: int = 0
    """Number of those that are a STOP."""
    stop_number: int | None = None
    """Number of the last STOP, until it is acknowledged."""
    refused: str = ""
    """Reason of the last refused command, reported once per REFUSAL_PERIOD_S."""
    refused_s: float = -math.inf
    is_outdated: bool = False
    """Whether the page needs an update of the vehicles."""
    shown: frozenset[str] = frozenset()
    """Vehicles that a person sees there, by topic."""
    limit: str = ""
    """Reason why it may only stop; empty if it may do more."""


class Pilots:
    """All connected pages. Runs on one event loop."""

    def __init__(
        self,
        send_command: SendCommand,
        ask_to_hold: AskToHold,
        send_wish: SendWish,
        now: Callable[[], Time],
        on_fault: Callable[[str], None],
        *,
        keeper: FileKeeper[Sequence[FiledWish]] | None = None,
    ) -> None:
        """Prepare.

        Args:
            send_command: see `SendCommand`.
            ask_to_hold: see `AskToHold`.
            send_wish: see `SendWish`.
            now: returns the ROS time for stamps.
            on_fault: gets the traceback of an internal error.
            keeper: writer of the wish file; None for no file.
        """
        self._send_command, self._ask_to_hold, self._send_wish = send_command, ask_to_hold, send_wish
        self._keeper = keeper or FileKeeper(lambda _: "", lambda _: None)
        self._filed: list[FiledWish] = []  # newest content of the wish file
        self._now, self._on_fault = now, on_fault
        self._helm = Helm()
        self._pilots: dict[int, PagePilot] = {}
        self._wakeup = asyncio.Event()  # set by the first page or wish
        self._numbers = itertools.count(1)
        self._vehicles: dict[str, SteeredVehicle] = {}
        self._wishes = Wishes()
        self._seen: set[str] = set()  # vehicles that are or were present
        self._wanted: dict[str, SteeredVehicle] = {}  # last seen state: a vehicle may disappear before it responds
        self._wishes_sent_at = -math.inf
        self._statuses: dict[str, HoldStatus] = {}  # by node
        self._commanded_s: dict[str, float] = {}  # time of the last command from here, by vehicle
        self._held: dict[str, float] = {}  # start time, by the wall clock
        self._kept: set[str] = set()  # those that were held before their bridge started
        self._ended: dict[str, str] = {}  # name of the last pilot, by vehicle
        self._goals: dict[str, dict[str, Any]] = {}
        self._below: dict[str, PadPlace | None] = {}  # by vehicle that has landed
        self._goals_changed_s: dict[str, float] = {}  # time of the last change of each
        self._max_speed_m_s: float | None = None
        self._followed: dict[str, Callable[[PagePilot, dict[str, Any]], None]] = {
            "steer": self._steer,
            "stop": self._stop,
            "release": self._release,
            "hello": self._set_name,
            "show": self._show,
            "take": self._take,
            "ask": self._ask,
            "keep": self._keep,
            "hand_over": self._hand_over,
            "resume": self._resume_meant,
            "goal": self._set_goal,
            "cancel_goal": self._cancel_goal,
            "watch": self._watch,
        }
        self.set_goal: Callable[[str, Place], None] = lambda topic, place: None
        self.cancel_goal: Callable[[str], None] = lambda topic: None
        self.show: Callable[[frozenset[str]], None] = lambda topics: None  # gets the vehicles that any page shows
        self.play: Play = lambda recording, answer: answer("", "Recordings are not available.")

    def set_vehicles(self, vehicles: Iterable[SteeredVehicle]) -> None:
        """Set the known vehicles. A pilot whose vehicle disappeared loses the helm."""
        self._vehicles = {vehicle.topic: vehicle for vehicle in vehicles}
        self._seen |= self._vehicles.keys()
        for pilot in self._pilots.values():
            if pilot.vehicle and pilot.vehicle not in self._vehicles:
                self._helm.remove(pilot.vehicle)
                pilot.vehicle = ""
        self._held = {topic: since for topic, since in self._held.items() if topic in self._vehicles}
        self._commanded_s = {topic: at_s for topic, at_s in self._commanded_s.items() if topic in self._vehicles}
        for topic, vehicle in self._vehicles.items():
            self._wishes.vehicle_appeared(topic, _nodes_of(vehicle))
            if topic in self._wishes:
                self._wanted[topic] = vehicle
                self._wakeup.set()  # for a wish for all: `watch` sleeps without pages and wishes
        self._file_wishes()
        self._resend_wishes(elapsed_s())
        self._announce()

    def set_max_speed(self, speed_m_s: float) -> None:
        """Report the speed at full deflection of a stick to all pages, m/s."""
        if speed_m_s != self._max_speed_m_s:
            self._max_speed_m_s = speed_m_s
            self._announce()

    def set_below(self, topic: str, place: PadPlace | None) -> None:
        """Record the pad that a vehicle stands on."""
        if place != self._below.get(topic):
            self._below[topic] = place
            self._announce()

    def set_held(self, topic: str, since_ns: int | None, *, is_kept: bool = False) -> None:
        """Record the hold of a vehicle without reports; `is_kept`: it is older than the bridge."""
        if since_ns is None:
            self._wishes.released(topic)
            self._file_wishes()
        self._note_held(topic, None if since_ns is None else since_ns / 1e9, is_kept=is_kept)

    def set_status(self, node: str, status: HoldStatus) -> None:
        """Update the wishes by the report of a node, and announce changes."""
        before, reached = dict(self._wishes.all()), self._reached()
        is_new, self._statuses[node] = status != self._statuses.get(node), status
        report = Report(status.run, status.wish, status.releases_before_wish, status.releases)
        self._wishes.reported(node, report, elapsed_s())
        if not is_new and self._reached() == reached:
            return  # a sign of life, every second
        for topic in before.keys() - self._wishes.all().keys():
            self._end_wish(before[topic])  # a person has resumed it elsewhere
        self._file_wishes()
        for topic, vehicle in self._vehicles.items():
            if node in vehicle.reporters:
                held = [each for name in vehicle.reporters if (each := self._statuses.get(name)) and each.held]
                since_s = min((each.since.sec + each.since.nanosec / 1e9 for each in held), default=None)
                self._note_held(topic, since_s, is_kept=any(each.is_inherited for each in held))

    def _reached(self) -> dict[str, bool]:
        return {topic: wish.is_reached for topic, wish in self._wishes.all().items()}

    def _note_held(self, topic: str, since_s: float | None, *, is_kept: bool) -> None:
        self._kept.discard(topic)
        if since_s is not None:
            self._held[topic] = since_s
            self._kept |= {topic} if is_kept else set()
        else:
            self._held.pop(topic, None)
            self._ended.pop(topic, None)
        self._announce()

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
        pilot = PagePilot(number, connection, f"Viewer {number}", may_steer and not limit, limit=limit)
        self._pilots[pilot.number] = pilot
        self._wakeup.set()
        try:
            await connection.send(self._description_for(pilot))
            async for message in messages_from(connection):
                await self._receive(pilot, message)
        finally:
            del self._pilots[pilot.number]
            self._helm.forget(pilot.number)
            self._release(pilot)
            self._show_all()

    async def watch(self) -> None:
        """Send tokens, stop vehicles with a silent pilot, and publish wishes, forever."""
        tick = 0
        try:
            while True:
                if not self._pilots and not self._wishes.all():
                    self._wakeup.clear()
                    await self._wakeup.wait()
                # Twice per token, so that no vehicle moves on for long.
                await asyncio.sleep(TOKEN_PERIOD_S / 2)
                tick += 1
                try:
                    self._tick(elapsed_s(), is_for_token=tick % 2 == 0)
                except Exception:  # after any error, the next tick must still stop vehicles and send tokens
                    self._on_fault(traceback.format_exc())
        finally:
            for pilot in self._pilots.values():
                self._release(pilot)

    def _tick(self, now_s: float, *, is_for_token: bool) -> None:
        for topic in self._helm.overdue(now_s):
            self._command(topic, NEUTRAL)
        expired = self._helm.expired(now_s)
        for lease in expired:
            if pilot := self._pilots.get(lease.pilot):
                pilot.vehicle = ""
                reason = f"You have lost the helm: no command was received from you for {LEASE_S:g} s."
                _send_soon(pilot.connection, json.dumps({"op": "refused", "reason": reason}))
            self._ended[lease.vehicle] = pilot.name if pilot else ""
        if expired:
            self._announce()
        if is_for_token:
            if now_s - self._wishes_sent_at >= STOP_PERIOD_S:
                self._resend_wishes(now_s)
            for topic in self._helm.silent(now_s):  # they have a pilot, so no other may steer
                self._command(topic, NEUTRAL)
            self._hand_out_token(now_s)

    def _hand_out_token(self, now_s: float) -> None:
        text = json.dumps({"op": "token", "token": self._helm.token(now_s)})
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
        if request.get("op") in MOVING and "token" in request:
            token = whole_number(request["token"])
            if token is None or self._helm.age_s(token, elapsed_s()) > MAX_REQUEST_AGE_S:
                raise HelmRefusedError(
                    f"The request arrived more than {MAX_REQUEST_AGE_S:g} s late, and was ignored. Please repeat it."
                )

    def _watch(self, pilot: PagePilot, request: dict[str, Any]) -> None:
        """Play a recording, and send the page its link."""
        recording = request.get("recording")
        if not isinstance(recording, str):
            raise HelmRefusedError("recording must be a name.")
        loop = asyncio.get_running_loop()

        def send(link: str, problem: str) -> None:
            if problem:
                self._notify(pilot.number, problem)
            elif pilot.number in self._pilots:
                _send_soon(pilot.connection, json.dumps({"op": "watching", "recording": recording, "link": link}))

        def answer(link: str, problem: str) -> None:
            with contextlib.suppress(RuntimeError):  # the event loop has ended
                loop.call_soon_threadsafe(send, link, problem)

        self.play(recording, answer)

    def _cancel_goal(self, pilot: PagePilot, request: dict[str, Any]) -> None:
        self.cancel_goal(self._known(request))

    def _set_goal(self, pilot: PagePilot, request: dict[str, Any]) -> None:
        topic = self._known(request)
        try:
            place = Place.of(request)
        except ValueError as error:
            raise HelmRefusedError(str(error)) from None
        if self._helm.pilot_of(topic) is not None:
            raise HelmRefusedError(
                "The vehicle is steered manually (helm). Goals are accepted once the helm is released."
            )
        wanted = {"frame": place.frame, "x": place.x, "y": place.y, "z": place.z, "by": pilot.name}
        self._goals[topic] = {**wanted, "state": "asked", "text": "Requested."}
        self._goals_changed_s[topic] = elapsed_s()
        self._announce()
        self.set_goal(topic, place)

    def set_goal_state(self, topic: str, state: dict[str, Any]) -> None:
        """Record the state of a vehicle's goal."""
        self._goals[topic] = {**self._goals.get(topic, {}), "distance": None, "left_s": None, **state}
        self._goals_changed_s[topic] = elapsed_s()
        self._announce()

    def _known(self, request: dict[str, Any]) -> str:
        topic = request.get("vehicle")
        if not isinstance(topic, str) or topic not in self._vehicles:
            raise HelmRefusedError("The vehicle does not exist.")
        return topic

    def _set_name(self, pilot: PagePilot, request: dict[str, Any]) -> None:
        name = request.get("name")
        if isinstance(name, str) and (name := "".join(filter(str.isprintable, name[: 4 * MAX_NAME])).strip()):
            pilot.name = name[:MAX_NAME]
            self._announce()

    def _take(self, pilot: PagePilot, request: dict[str, Any]) -> None:
        topic = self._known(request)
        before = self._helm.pilot_of(topic)
        self._helm.take(pilot.number, topic, elapsed_s())
        if before is not None and before != pilot.number:
            self._notify(before, f"{pilot.name} has taken the helm, because you did not answer.")
            self._pilots[before].vehicle = ""
        self._begin(pilot, topic)

    def _ask(self, pilot: PagePilot, request: dict[str, Any]) -> None:
        self._helm.request(pilot.number, self._known(request), elapsed_s())
        self._announce()

    def _keep(self, pilot: PagePilot, request: dict[str, Any]) -> None:
        for number in self._helm.keep(pilot.number, pilot.vehicle, elapsed_s()):
            self._notify(number, f"{pilot.name} keeps the helm.")
        self._announce()

    def _hand_over(self, pilot: PagePilot, request: dict[str, Any]) -> None:
        number = whole_number(request.get("to"))
        other = None if number is None else self._pilots.get(number)
        if other is None:
            raise HelmRefusedError("The page that requested the helm has disconnected.")
        topic = pilot.vehicle
        self._helm.hand_over(pilot.number, topic, other.number, elapsed_s())
        pilot.vehicle = ""
        self._begin(other, topic)

    def _begin(self, pilot: PagePilot, topic: str) -> None:
        pilot.vehicle, pilot.refused = topic, ""
        self._ended.pop(topic, None)
        self._command(topic, NEUTRAL)  # its next pilot expects it to stop
        self._announce()

    def _notify(self, number: int, reason: str) -> None:
        if pilot := self._pilots.get(number):
            _send_soon(pilot.connection, json.dumps({"op": "refused", "reason": reason}))

    def _show(self, pilot: PagePilot, request: dict[str, Any]) -> None:
        topics = request.get("vehicles")
        known = [each for each in topics if isinstance(each, str)] if isinstance(topics, list) else []
        pilot.shown = frozenset(known) & self._vehicles.keys()
        self._show_all()

    def _show_all(self) -> None:
        self.show(frozenset().union(*(pilot.shown for pilot in self._pilots.values())))

    # STOP.

    def _stop(self, pilot: PagePilot, request: dict[str, Any]) -> None:
        """Want the requested vehicles held, including absent ones; without a list all, including later ones."""
        named = request.get("vehicles", None if request.get("vehicle") is None else [request["vehicle"]])
        if named is not None and not (isinstance(named, list) and all(isinstance(each, str) for each in named)):
            raise HelmRefusedError("The field vehicles is not a list of topics.")
        now_s = elapsed_s()
        if named is None:
            self._wishes.want_all(self._wish_of(pilot, now_s))
        topics = list(self._vehicles) if named is None else list(dict.fromkeys(named))
        for topic in topics:
            if not self._may_be_vehicle(topic):
                continue
            self._helm.halt(topic)
            if topic in self._vehicles:
                self._wanted[topic] = self._vehicles[topic]
            nodes = _nodes_of(self._wanted[topic]) if topic in self._wanted else ()
            self._wishes.want(topic, nodes, self._wish_of(pilot, now_s))
        self._wakeup.set()
        self._file_wishes()
        if (number := whole_number(request.get("number"))) is not None:
            is_acknowledging, pilot.stop_number = pilot.stop_number is not None, number
            if not is_acknowledging:
                _run_soon(self._acknowledge(pilot))
        pilot.stops += 1
        if pilot.stops <= MAX_REQUESTS_PER_TOKEN:
            self._resend_wishes(now_s)
            self._announce()
        else:
            for each in self._pilots.values():
                each.is_outdated = True
        if not any(map(self._may_be_vehicle, topics)) and named:
            raise HelmRefusedError("The vehicle does not exist.")

    def _file_wishes(self) -> None:
        """Write the wish file, if the wishes have changed."""
        if (filed := self._wishes.filed()) != self._filed:
            self._filed = filed
            self._keeper.keep(filed)

    async def _acknowledge(self, pilot: PagePilot) -> None:
        """Acknowledge the newest STOP once the wish file is written, but after FILE_TIMEOUT_S at the latest."""
        while pilot.stop_number is not None:
            limit_s = elapsed_s() + FILE_TIMEOUT_S
            while not self._keeper.wait(0.0) and elapsed_s() < limit_s:
                await asyncio.sleep(FILE_PERIOD_S)
            number = pilot.stop_number
            await _send(pilot.connection, json.dumps({"op": "stopped", "number": number}))
            if number == pilot.stop_number:
                pilot.stop_number = None

    def show_problem(self) -> None:
        """Show a problem of the wish file, or its end, on all pages."""
        self._announce()

    def _may_be_vehicle(self, topic: str) -> bool:
        """Return whether a topic is that of a known or possible vehicle, as this server may have just started."""
        has_room = len(self._wishes.all()) < MAX_WANTED and len(topic) <= MAX_NAME_OF_ROS
        may_come = topic.startswith("/") and topic.endswith(f"/{COMMAND_TOPIC}") and has_room
        return topic in self._seen or topic in self._wishes or may_come

    @staticmethod
    def _wish_of(pilot: PagePilot, now_s: float) -> Wish:
        return Wish(uuid.uuid4().hex, pilot.name, time.time(), now_s)

    def _resend_wishes(self, now_s: float) -> None:
        """Publish wishes that are not reached, and stop vehicles that can't report a hold."""
        self._wishes_sent_at, is_late = now_s, False
        for topic, wish in self._wishes.all().items():
            vehicle = self._vehicles.get(topic)
            if wish.is_reached or vehicle is None:
                continue
            if vehicle.reporters:
                for node in wish.nodes - wish.reached:
                    self._send_wish(node, wish.id, wish.reason)
            else:
                self._command(topic, NEUTRAL)
                if vehicle.holds:
                    self._ask_to_hold(topic, True, functools.partial(self._confirm, topic, wish))
            is_late |= bool(vehicle.holds) and now_s - wish.pressed_s > STOP_TIMEOUT_S
        if is_late:
            self._announce()  # which vehicles have not stopped, and why

    def _confirm(self, topic: str, wish: Wish, problem: str) -> None:
        before = wish.problem, wish.is_reached
        self._wishes.confirm(topic, wish, problem)
        if (wish.problem, wish.is_reached) != before:
            self._announce()

    def _end_wish(self, wish: Wish) -> None:
        for node in wish.nodes:
            self._send_wish(node, "", "")

    def _resume_meant(self, pilot: PagePilot, request: dict[str, Any]) -> None:
        """Resume the requested vehicle; without one all that are stopped or held, including later ones."""
        topic = request.get("vehicle")
        if topic is None:
            self._wishes.end_all()
            meant = sorted({*self._wishes.all(), *self._held})
        else:
            meant = [topic if isinstance(topic, str) and topic in self._wishes else self._known(request)]
        for each in meant:
            self._resume(pilot, each)
        self._file_wishes()

    def _resume(self, pilot: PagePilot, topic: str) -> None:
        self._helm.halt(topic)
        wish = self._wishes.end(topic)
        self._wanted.pop(topic, None)
        if wish:
            self._end_wish(wish)

        meant = self._holds(topic)

        def answer(problem: str) -> None:
            if problem:
                self._notify(pilot.number, f"The vehicle is still on hold: {problem.rstrip('.')}.")
            self._announce()

        def release() -> None:
            begun = [self._statuses[name] for name, _ in self._holds(topic).items() - meant.items()]
            others = [each.reason for each in begun if not (wish and each.wish == wish.id)]
            if newer := [reason for reason in others if reason not in NOT_REQUESTED]:
                answer(newer[0])
            elif topic not in self._wishes and topic in self._vehicles and self._vehicles[topic].holds:
                self._ask_to_hold(topic, False, answer)

        helm_ends_s = self._commanded_s.get(topic, -math.inf) + HELM_ENDS_WITHIN_S
        wait_s = helm_ends_s - elapsed_s() if self._helm.pilot_of(topic) is None else 0.0
        if wait_s > 0.0:  # a helm that has just ended would be noticed after the release, and hold the vehicle again
            asyncio.get_running_loop().call_later(wait_s, release)
        else:
            release()
        self._announce()

    def _holds(self, topic: str) -> dict[str, tuple[object, ...]]:
        """Return what identifies each reported hold of a vehicle, by node, to tell a newer one."""
        vehicle = self._vehicles.get(topic)
        statuses = {name: self._statuses.get(name) for name in (vehicle.reporters if vehicle else ())}
        return {
            name: (each.run, each.since.sec, each.since.nanosec, each.reason, each.wish, each.releases)
            for name, each in statuses.items()
            if each and each.held
        }

    def _command(self, topic: str, motion: Motion, stamp: Time | None = None) -> None:
        self._commanded_s[topic] = elapsed_s()
        self._send_command(topic, motion, stamp or self._now())

    def _is_held(self, topic: str) -> bool:
        """Return whether sticks are disabled. A vehicle that was held after a helm ended follows a new one soon."""
        since_taken_s = elapsed_s() - self._helm.taken_s(topic)
        return topic in self._wishes or (topic in self._held and since_taken_s > HELM_TAKEN_S)

    def _steer(self, pilot: PagePilot, request: dict[str, Any]) -> None:
        # Before its age is checked: if this process is suspended in between, the vehicle refuses the stale command.
        stamp = self._now()
        token, motion = whole_number(request.get("token")), request.get("motion")
        if token is None or not isinstance(motion, dict):
            raise HelmRefusedError("A command needs a token and a motion.")
        try:
            held = self._is_held(pilot.vehicle)
            command = self._helm.steer(pilot.number, pilot.vehicle, token, motion, elapsed_s(), is_held=held)
        except HelmRefusedError:
            if pilot.vehicle:  # no other pilot may steer it, though this does not move it
                self._command(pilot.vehicle, NEUTRAL, stamp)
            raise
        pilot.refused = ""
        self._command(pilot.vehicle, command, stamp)

    def _release(self, pilot: PagePilot, request: dict[str, Any] | None = None) -> None:
        ended = self._helm.release(pilot.number)
        for topic in ended:
            if topic not in self._wishes:  # already on hold, and neutral on its helm would start a new hold
                self._command(topic, NEUTRAL)
            self._ended[topic] = pilot.name
        pilot.vehicle = ""
        if ended:
            self._announce()

    async def _refuse(self, pilot: PagePilot, reason: str) -> None:
        kind, now_s = reason.partition(":")[0], elapsed_s()
        if pilot.refused != kind or now_s - pilot.refused_s >= REFUSAL_PERIOD_S:
            pilot.refused, pilot.refused_s = kind, now_s
            await pilot.connection.send(json.dumps({"op": "refused", "reason": reason}))

    def _announce(self) -> None:
        for pilot in self._pilots.values():
            pilot.is_outdated = True
            self._describe(pilot)

    def _describe(self, pilot: PagePilot) -> None:
        """Send a page, once it reads again, the vehicles and their pilots."""
        if pilot.is_outdated and not _is_busy(pilot.connection):
            pilot.is_outdated = False
            _send_soon(pilot.connection, self._description_for(pilot))

    def _description_for(self, pilot: PagePilot) -> str:
        vehicles = [
            {
                "topic": vehicle.topic,
                "name": vehicle.name,
                "node": vehicle.node,
                "model": vehicle.model,
                "title": vehicle.title,
                "has_north": vehicle.has_north,
                "axes": [axis for axis in AXES if axis in vehicle.axes],
                "pilot": self._whose(vehicle.topic, pilot),
                "pilot_name": self._name_of(self._helm.pilot_of(vehicle.topic)),
                "asked": self._asked(vehicle.topic, pilot),
                "holds": vehicle.holds,
                "held": self._hold_of(vehicle, pilot),
                "commanders": vehicle.commanders,
                "emergencies": {service: asdict(each) for service, each in vehicle.emergencies.items()},
                "buttons": vehicle.buttons,
                "runs": {name: each.run for name in vehicle.reporters if (each := self._statuses.get(name))},
                "takes_goals": bool(vehicle.goal),
                "below": place._asdict() if (place := self._below.get(vehicle.topic)) else None,
                "goal": self._goal_of(vehicle.topic),
            }
            for vehicle in sorted(self._vehicles.values(), key=lambda each: each.topic)
        ]
        unanswered = [
            {"topic": topic, "name": vehicle.name if vehicle else topic.rpartition("/")[0].strip("/") or topic}
            for topic, wish in self._wishes.all().items()
            if topic not in self._vehicles
            and not wish.is_reached
            and ((vehicle := self._wanted.get(topic)) is None or vehicle.holds)
        ]
        by = self._wishes.all_by
        problem = f"; {self._keeper.problem}" if self._keeper.problem else ""
        description = {
            "may_steer": pilot.may_steer,
            "you": pilot.name,
            "limit": pilot.limit,
            "max_speed": self._max_speed_m_s,
            "all_stopped": None if by is None else f"{'you' if by == pilot.name else by} pressed STOP all{problem}",
            "vehicles": vehicles,
            "unanswered": unanswered,
        }
        return json.dumps({"op": "vehicles", **description})

    def _asked(self, topic: str, pilot: PagePilot) -> list[dict[str, Any]]:
        """Return the requests for the helm of a vehicle, and when each pilot may take it."""
        return [
            {"number": number, "name": self._name_of(number), "is_you": number == pilot.number, "left_s": left_s}
            for number, left_s in self._helm.asked(topic, elapsed_s()).items()
        ]

    def _goal_of(self, topic: str) -> dict[str, Any] | None:
        """Return the state of a vehicle's goal, with its age, s; None without a goal."""
        goal = self._goals.get(topic)
        return goal and {**goal, "age_s": elapsed_s() - self._goals_changed_s[topic]}

    def _hold_of(self, vehicle: SteeredVehicle, pilot: PagePilot) -> dict[str, Any] | None:
        """Return for a page since when and why a vehicle is held or stopped, and any problem."""
        wish, since = self._wishes.get(vehicle.topic), self._held.get(vehicle.topic)
        if wish is None and since is None:
            return None
        statuses = [each for name in vehicle.reporters if (each := self._statuses.get(name))]
        problem = ""
        if wish and vehicle.holds and not wish.is_reached and elapsed_s() - wish.pressed_s > STOP_TIMEOUT_S:
            problem = wish.problem or "no confirmation yet"
        if wish:
            why = f"{'you' if wish.by == pilot.name else wish.by} pressed STOP"
        elif (name := self._ended.get(vehicle.topic)) is not None:
            why = f"{'you' if name == pilot.name else name or 'the pilot'} left the helm"
        elif vehicle.topic in self._kept:
            why = "from before this launch"
        else:
            why = next((each.reason for each in statuses if each.held), "")
        is_sure = since is not None or (wish is not None and (wish.is_reached or not vehicle.holds))
        # A restarted bridge reports that it is held since its start.
        since = min(each for each in (since, wish.since_s if wish else None) if each is not None)
        unkept = next((each.problem for each in statuses if each.held and each.problem), "")
        unkept = unkept or (self._keeper.problem if wish else "")
        return {"since": since, "why": why, "is_sure": is_sure, "problem": problem, "unkept": unkept}

    def _name_of(self, number: int | None) -> str:
        pilot = self._pilots.get(number) if number is not None else None
        return pilot.name if pilot else ""

    def _whose(self, topic: str, pilot: PagePilot) -> str | None:
        number = self._helm.pilot_of(topic)
        return None if number is None else "you" if number == pilot.number else "other"


def _nodes_of(vehicle: SteeredVehicle) -> tuple[str, ...]:
    """Return the receivers of a wish: nodes that report it, or else services."""
    return vehicle.reporters or vehicle.holds


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
