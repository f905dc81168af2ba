# SPDX-License-Identifier: Apache-2.0
"""The conversation with pilots, on a socket of its own: a command never waits behind an image.

JSON both ways. To the page: {"op": "token", "token": 17} ten times per second, {"op": "vehicles", "vehicles": [...],
"unanswered": [...]} whenever they change, the latter being those that are gone and have not answered STOP,
{"op": "refused", "reason": "..."}. From it: {"op": "hello", "name": "Anne"}, {"op": "take", "vehicle": "..."},
{"op": "steer", "token": 17, "motion": {"x": 0.5}}, {"op": "release"}. Everybody may {"op": "stop", "vehicle": "..."},
or without a vehicle stop all; who may steer, {"op": "resume", "vehicle": "..."}, or without one resume all. Between two
people there are {"op": "ask", "vehicle": "..."}, {"op": "keep"} and {"op": "hand_over", "to": 2}.
"""

import asyncio
import contextlib
import functools
import itertools
import json
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

from builtin_interfaces.msg import Time
from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode

from drone_bridge.net.clock import elapsed_s
from drone_bridge.tools.web.access import VIEW_ONLY
from drone_bridge.tools.web.front_door import messages_from
from drone_bridge.tools.web.goals import Place
from drone_bridge.tools.web.helm import LEASE_S, NEUTRAL, TOKEN_PERIOD_S, Helm, Motion, RefusedError
from drone_bridge.tools.web.vehicles import AXES, Vehicle
from drone_bridge.wire.json_numbers import whole_number

MAX_PILOTS = 32
MAX_REQUESTS_PER_TOKEN = 20
"""Any more are dropped, but for NEVER_DROPPED, so that nobody floods the vehicle or us."""
NEVER_DROPPED = ("stop", "release")
"""They come once, maybe behind all commands of a second in which the network stood still, and move nothing."""
MAX_NAME = 24
REFUSAL_PERIOD_S = 1.0
"""After which the same refusal is reported again."""
STOP_PERIOD_S = TOKEN_PERIOD_S / 2
"""After which STOP is repeated to a vehicle that has not confirmed it, with the next token."""
STOP_TIMEOUT_S = 1.0
"""After which the page says that it has not stopped yet."""
HELM_TAKEN_S = 1.0
"""In which a vehicle that was held because a helm had ended follows a new one."""

SendCommand = Callable[[str, Motion, Time], None]
"""Publishes a command: on which topic, along AXES from -1 to 1, and when it was given."""
AskToHold = Callable[[str, bool, Callable[[str], None]], None]
"""Has a vehicle held, or follow again; what is wrong, or an empty string, is reported in the event loop."""


@dataclass(eq=False, slots=True)
class Pilot:
    """A page with a stick."""

    number: int
    connection: ServerConnection
    name: str
    may_steer: bool
    vehicle: str = ""
    requests: int = 0
    """Since the last token."""
    refused: str = ""
    """Why the last command was refused, which is reported once per REFUSAL_PERIOD_S."""
    refused_s: float = -math.inf
    is_outdated: bool = False
    """Whether the page has still to learn which vehicles there are."""


@dataclass(slots=True)
class Stop:
    """A vehicle that somebody has stopped, until somebody resumes it."""

    by: str
    vehicle: Vehicle
    """As it was last seen: it may go before it answers."""
    since: float
    """By the clock on the wall."""
    pressed_s: float = -math.inf
    """By the clock of the helm, when it was pressed last."""
    asked_s: float = -math.inf
    is_confirmed: bool = False
    problem: str = "it has not answered yet"

    def press(self, now_s: float) -> None:
        """Have the vehicle called once more, whatever it answered before."""
        self.pressed_s, self.is_confirmed = now_s, False


class Pilots:
    """All pages that are connected. Runs in one event loop."""

    def __init__(self, send_command: SendCommand, ask_to_hold: AskToHold, now: Callable[[], Time]) -> None:
        """Prepare; `now` gives the time of ROS, for stamps."""
        self._send_command = send_command
        self._ask_to_hold = ask_to_hold
        self._now = now
        self._helm = Helm()
        self._pilots: dict[int, Pilot] = {}
        self._has_come = asyncio.Event()  # somebody, since there was nobody
        self._numbers = itertools.count(1)
        self._vehicles: dict[str, Vehicle] = {}
        self._stops: dict[str, Stop] = {}
        self._held: dict[str, float] = {}  # since when, by the clock on the wall
        self._kept: set[str] = set()  # those that were held before their bridge started
        self._ended: dict[str, str] = {}  # whose helm was the last one
        self._goals: dict[str, dict[str, Any]] = {}
        self.set_goal: Callable[[str, Place], None] = lambda topic, place: None
        self.cancel_goal: Callable[[str], None] = lambda topic: None

    def set_vehicles(self, vehicles: Iterable[Vehicle]) -> None:
        """Set the known vehicles; a pilot whose vehicle has gone loses the helm."""
        self._vehicles = {vehicle.topic: vehicle for vehicle in vehicles}
        for pilot in self._pilots.values():
            if pilot.vehicle and pilot.vehicle not in self._vehicles:
                self._helm.remove(pilot.vehicle)
                pilot.vehicle = ""
        self._held = {topic: since for topic, since in self._held.items() if topic in self._vehicles}
        self._announce()

    def set_held(self, topic: str, since_ns: int | None, *, is_kept: bool = False) -> None:
        """Note that a vehicle is held since a time, or no longer; `is_kept`: since before its bridge started."""
        self._kept.discard(topic)
        if since_ns is not None:
            self._held[topic] = since_ns / 1e9
            self._kept |= {topic} if is_kept else set()
        else:
            self._held.pop(topic, None)
            self._ended.pop(topic, None)
            if (stop := self._stops.get(topic)) and stop.is_confirmed:
                del self._stops[topic]  # somebody resumed it by other means
        self._announce()

    async def __call__(self, connection: ServerConnection, may_steer: bool) -> None:
        """Serve a page until it leaves."""
        if len(self._pilots) >= MAX_PILOTS:
            await connection.close(CloseCode.TRY_AGAIN_LATER, f"{MAX_PILOTS} pages are connected already.")
            return
        number = next(self._numbers)
        pilot = Pilot(number, connection, f"Viewer {number}", may_steer)
        self._pilots[pilot.number] = pilot
        self._has_come.set()
        try:
            await connection.send(self._description_for(pilot))
            async for message in messages_from(connection):
                await self._receive(pilot, message)
        finally:
            del self._pilots[pilot.number]
            self._helm.forget(pilot.number)
            self._release(pilot)

    async def watch(self) -> None:
        """Hand out tokens, stop vehicles whose pilot is silent, and those that somebody stopped, forever."""
        tick = 0
        try:
            while True:
                if not self._pilots and not self._stops:
                    self._has_come.clear()
                    await self._has_come.wait()
                # Twice per token, so that no vehicle moves on for long.
                await asyncio.sleep(TOKEN_PERIOD_S / 2)
                now_s = elapsed_s()
                for topic in self._helm.overdue(now_s):
                    self._send_command(topic, NEUTRAL, self._now())
                expired = self._helm.expired(now_s)
                for lease in expired:
                    if pilot := self._pilots.get(lease.pilot):
                        pilot.vehicle = ""
                        reason = f"You have lost the helm: nothing came from you for {LEASE_S:g} s."
                        _send_soon(pilot.connection, json.dumps({"op": "refused", "reason": reason}))
                    self._ended[lease.vehicle] = pilot.name if pilot else ""
                if expired:
                    self._announce()
                tick += 1
                if tick % 2 == 0:
                    self._insist(now_s)
                    for topic in self._helm.silent(now_s):  # somebody is at the helm, and nobody else may steer
                        self._send_command(topic, NEUTRAL, self._now())
                    self._hand_out_token(now_s)
        finally:
            for pilot in self._pilots.values():
                self._release(pilot)

    def _hand_out_token(self, now_s: float) -> None:
        text = json.dumps({"op": "token", "token": self._helm.token(now_s)})
        for pilot in self._pilots.values():
            pilot.requests = 0
            self._describe(pilot)
            if not _is_busy(pilot.connection):  # else it would be old when it arrives
                _send_soon(pilot.connection, text)

    async def _receive(self, pilot: Pilot, message: str | bytes) -> None:
        pilot.requests += 1
        try:
            request = json.loads(message)
            if not isinstance(request, dict):
                raise ValueError
        except (ValueError, RecursionError):
            await self._refuse(pilot, "This is not a request.")
            return
        try:
            if pilot.requests > MAX_REQUESTS_PER_TOKEN and request.get("op") not in NEVER_DROPPED:
                if request.get("op") == "steer":  # the next token brings another one
                    return
                raise RefusedError("Too many requests came from here at once: repeat this one.")
            if request.get("op") in ("goal", "cancel_goal"):
                self._follow_goal(pilot, self._known(request.get("vehicle")), request)
            else:
                self._follow(pilot, request)
        except RefusedError as error:
            await self._refuse(pilot, str(error))

    def _follow(self, pilot: Pilot, request: dict[str, Any]) -> None:
        operation, topic, now_s = request.get("op"), request.get("vehicle"), elapsed_s()
        if operation == "steer":
            self._steer(pilot, request)
        elif operation == "stop":
            self._stop(pilot, [self._known(topic)] if topic is not None else list(self._vehicles))
        elif operation == "release":
            self._release(pilot)
        elif operation == "hello":
            self._greet(pilot, request.get("name"))
        elif operation not in ("take", "ask", "keep", "hand_over", "resume"):
            raise RefusedError("This is not a request.")
        elif not pilot.may_steer:
            raise RefusedError(VIEW_ONLY)
        elif operation == "resume":
            self._resume_meant(pilot, topic)
        elif operation == "take":
            self._take(pilot, self._known(topic))
        elif operation == "ask":
            self._helm.ask(pilot.number, self._known(topic), now_s)
            self._announce()
        elif operation == "keep":
            for number in self._helm.keep(pilot.number, pilot.vehicle, now_s):
                self._notify(number, f"{pilot.name} keeps the helm.")
            self._announce()
        else:
            self._hand_over(pilot, request.get("to"))

    def _follow_goal(self, pilot: Pilot, topic: str, request: dict[str, Any]) -> None:
        if not pilot.may_steer:
            raise RefusedError(VIEW_ONLY)
        if request["op"] == "cancel_goal":
            self.cancel_goal(topic)
            return
        try:
            place = Place.of(request)
        except ValueError as error:
            raise RefusedError(str(error)) from None
        if self._helm.pilot_of(topic) is not None:
            raise RefusedError("Somebody is at the helm: goals are accepted once it is released.")
        wanted = {"frame": place.frame, "x": place.x, "y": place.y, "z": place.z, "by": pilot.name}
        self._goals[topic] = {**wanted, "state": "asked", "text": "Requested."}
        self._announce()
        self.set_goal(topic, place)

    def set_goal_state(self, topic: str, state: dict[str, Any]) -> None:
        """Note what has become of a vehicle's goal."""
        self._goals[topic] = {**self._goals.get(topic, {}), "distance": None, "left_s": None, **state}
        self._announce()

    def _known(self, topic: object) -> str:
        if not isinstance(topic, str) or topic not in self._vehicles:
            raise RefusedError("There is no such vehicle.")
        return topic

    def _greet(self, pilot: Pilot, name: object) -> None:
        if isinstance(name, str) and (name := "".join(filter(str.isprintable, name[: 4 * MAX_NAME])).strip()):
            pilot.name = name[:MAX_NAME]
            self._announce()

    def _take(self, pilot: Pilot, topic: str) -> None:
        before = self._helm.pilot_of(topic)
        self._helm.take(pilot.number, topic, elapsed_s())
        if before is not None and before != pilot.number:
            self._notify(before, f"{pilot.name} has taken the helm, as you did not answer.")
            self._pilots[before].vehicle = ""
        self._begin(pilot, topic)

    def _hand_over(self, pilot: Pilot, to: object) -> None:
        number = whole_number(to)
        other = None if number is None else self._pilots.get(number)
        if other is None:
            raise RefusedError("The page that requested the helm is gone.")
        topic = pilot.vehicle
        self._helm.hand_over(pilot.number, topic, other.number, elapsed_s())
        pilot.vehicle = ""
        self._begin(other, topic)

    def _begin(self, pilot: Pilot, topic: str) -> None:
        pilot.vehicle, pilot.refused = topic, ""
        self._ended.pop(topic, None)
        self._send_command(topic, NEUTRAL, self._now())  # its next pilot expects it to stop
        self._announce()

    def _notify(self, number: int, reason: str) -> None:
        if pilot := self._pilots.get(number):
            _send_soon(pilot.connection, json.dumps({"op": "refused", "reason": reason}))

    # STOP. Neutral on the helm's topic is there at once, and locks all others out until that helm counts as ended, and
    # so the vehicle is held; the service makes it last. It is called after each neutral, as that is a helm, whose end
    # would else hold the vehicle once more after it was resumed.

    def _stop(self, pilot: Pilot, topics: list[str]) -> None:
        if not topics:
            raise RefusedError("There is no vehicle here that could be stopped.")
        for topic in topics:
            self._helm.halt(topic)
            self._stops.setdefault(topic, Stop(pilot.name, self._vehicles[topic], time.time())).press(elapsed_s())
        self._insist(elapsed_s())
        self._announce()

    def _insist(self, now_s: float) -> None:
        """Repeat what stops the vehicles that are not held yet, or never can be."""
        is_late = False
        for topic, stop in self._stops.items():
            vehicle = self._vehicles.get(topic)
            if vehicle is None or stop.is_confirmed or now_s - stop.asked_s < STOP_PERIOD_S:
                continue
            stop.vehicle, stop.asked_s = vehicle, now_s
            self._send_command(topic, NEUTRAL, self._now())
            if vehicle.holds:
                self._ask_to_hold(topic, True, functools.partial(self._confirm, topic, stop))
                is_late |= now_s - stop.pressed_s > STOP_TIMEOUT_S
        if is_late:
            self._announce()  # which has not stopped, and why

    def _confirm(self, topic: str, stop: Stop, problem: str) -> None:
        # What was called before STOP was pressed again is no answer to that: neutral has been sent since.
        before = stop.problem, stop.is_confirmed
        stop.problem, stop.is_confirmed = problem, not problem and stop.asked_s >= stop.pressed_s
        if self._stops.get(topic) is stop and (stop.problem, stop.is_confirmed) != before:
            self._announce()

    def _resume_meant(self, pilot: Pilot, topic: object) -> None:
        """Resume the vehicle that a request means; without one all that are stopped or held."""
        if topic is None:
            meant = sorted({*self._stops, *self._held})
        else:
            meant = [topic if isinstance(topic, str) and topic in self._stops else self._known(topic)]
        for each in meant:
            self._resume(pilot, each)

    def _resume(self, pilot: Pilot, topic: str) -> None:
        self._helm.halt(topic)
        stop = self._stops.pop(topic, None)

        def answer(problem: str) -> None:
            if problem:
                self._notify(pilot.number, f"It is still held: {problem}.")
                if stop:
                    self._stops.setdefault(topic, stop)
            self._announce()

        if topic in self._vehicles and self._vehicles[topic].holds:
            self._ask_to_hold(topic, False, answer)
        self._announce()

    def _is_held(self, topic: str) -> bool:
        """Return whether a stick moves nothing: one that was held as a helm had ended follows a new one soon."""
        since_taken_s = elapsed_s() - self._helm.taken_s(topic)
        return topic in self._stops or (topic in self._held and since_taken_s > HELM_TAKEN_S)

    def _steer(self, pilot: Pilot, request: dict[str, Any]) -> None:
        # Before its age is looked at: should this process be stopped in between, the vehicle refuses what is old then.
        stamp = self._now()
        token, motion = whole_number(request.get("token")), request.get("motion")
        if token is None or not isinstance(motion, dict):
            raise RefusedError("A command has a token and a motion.")
        try:
            held = self._is_held(pilot.vehicle)
            command = self._helm.steer(pilot.number, pilot.vehicle, token, motion, elapsed_s(), is_held=held)
        except RefusedError:
            if pilot.vehicle:  # nobody else may steer it, though this moves nothing
                self._send_command(pilot.vehicle, NEUTRAL, stamp)
            raise
        pilot.refused = ""
        self._send_command(pilot.vehicle, command, stamp)

    def _release(self, pilot: Pilot) -> None:
        ended = self._helm.release(pilot.number)
        for topic in ended:
            self._send_command(topic, NEUTRAL, self._now())
            self._ended[topic] = pilot.name
            if stop := self._stops.get(topic):
                stop.press(elapsed_s())  # as the service has to come after this neutral
        pilot.vehicle = ""
        if ended:
            self._insist(elapsed_s())
            self._announce()

    async def _refuse(self, pilot: Pilot, reason: str) -> None:
        kind, now_s = reason.partition(":")[0], elapsed_s()
        if pilot.refused != kind or now_s - pilot.refused_s >= REFUSAL_PERIOD_S:
            pilot.refused, pilot.refused_s = kind, now_s
            await pilot.connection.send(json.dumps({"op": "refused", "reason": reason}))

    def _announce(self) -> None:
        for pilot in self._pilots.values():
            pilot.is_outdated = True
            self._describe(pilot)

    def _describe(self, pilot: Pilot) -> None:
        """Tell a page, as soon as it takes anything, which vehicles there are and by whom they are steered."""
        if pilot.is_outdated and not _is_busy(pilot.connection):
            pilot.is_outdated = False
            _send_soon(pilot.connection, self._description_for(pilot))

    def _description_for(self, pilot: Pilot) -> str:
        vehicles = [
            {
                "topic": vehicle.topic,
                "name": vehicle.name,
                "node": vehicle.node,
                "model": vehicle.model,
                "has_north": vehicle.has_north,
                "axes": [axis for axis in AXES if axis in vehicle.axes],
                "pilot": self._whose(vehicle.topic, pilot),
                "pilot_name": self._name_of(self._helm.pilot_of(vehicle.topic)),
                "asked": self._asked(vehicle.topic, pilot),
                "holds": vehicle.holds,
                "held": self._hold_of(vehicle, pilot),
                "commanders": vehicle.commanders,
                "emergencies": {service: asdict(each) for service, each in vehicle.emergencies.items()},
                "takes_goals": bool(vehicle.goal),
                "goal": self._goals.get(vehicle.topic),
            }
            for vehicle in sorted(self._vehicles.values(), key=lambda each: each.topic)
        ]
        unanswered = [
            {"topic": topic, "name": stop.vehicle.name}
            for topic, stop in self._stops.items()
            if topic not in self._vehicles and stop.vehicle.holds and not stop.is_confirmed
        ]
        description = {"may_steer": pilot.may_steer, "you": pilot.name, "vehicles": vehicles, "unanswered": unanswered}
        return json.dumps({"op": "vehicles", **description})

    def _asked(self, topic: str, pilot: Pilot) -> list[dict[str, Any]]:
        """Return who asks for the helm of a vehicle, and when each may take it."""
        return [
            {"number": number, "name": self._name_of(number), "is_you": number == pilot.number, "left_s": left_s}
            for number, left_s in self._helm.asked(topic, elapsed_s()).items()
        ]

    def _hold_of(self, vehicle: Vehicle, pilot: Pilot) -> dict[str, Any] | None:
        """Return since when and why a vehicle is held or stopped, for a page, and what is wrong with that."""
        stop, since = self._stops.get(vehicle.topic), self._held.get(vehicle.topic)
        if stop is None and since is None:
            return None
        problem = ""
        if stop and vehicle.holds and not stop.is_confirmed and elapsed_s() - stop.pressed_s > STOP_TIMEOUT_S:
            problem = stop.problem
        if stop:
            why = f"{'you' if stop.by == pilot.name else stop.by} pressed STOP"
        elif (name := self._ended.get(vehicle.topic)) is not None:
            why = f"{'you' if name == pilot.name else name or 'the pilot'} left the helm"
        elif vehicle.topic in self._kept:
            why = "from before this launch"
        else:
            why = ""
        is_sure = since is not None or (stop is not None and (stop.is_confirmed or not vehicle.holds))
        # A bridge that was started again says that it is held since then.
        since = min(each for each in (since, stop.since if stop else None) if each is not None)
        return {"since": since, "why": why, "is_sure": is_sure, "problem": problem}

    def _name_of(self, number: int | None) -> str:
        pilot = self._pilots.get(number) if number is not None else None
        return pilot.name if pilot else ""

    def _whose(self, topic: str, pilot: Pilot) -> str | None:
        number = self._helm.pilot_of(topic)
        return None if number is None else "you" if number == pilot.number else "other"


def _is_busy(connection: ServerConnection) -> bool:
    """Return whether what was sent before still waits for the page."""
    return connection.transport.get_write_buffer_size() > 0


def _send_soon(connection: ServerConnection, text: str) -> None:
    task = asyncio.ensure_future(_send(connection, text))
    _sending.add(task)  # or it could be garbage-collected
    task.add_done_callback(_sending.discard)


async def _send(connection: ServerConnection, text: str) -> None:
    with contextlib.suppress(ConnectionClosed):
        await connection.send(text)


_sending: set[asyncio.Task[None]] = set()
