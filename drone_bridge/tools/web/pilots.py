# SPDX-License-Identifier: Apache-2.0
"""The conversation with pilots, on a socket of its own: a command never waits behind an image.

JSON both ways. To the page: {"op": "token", "token": 17} ten times per second, {"op": "vehicles", "vehicles": [...]}
whenever they change, {"op": "refused", "reason": "..."}. From it: {"op": "take", "vehicle": "..."},
{"op": "steer", "token": 17, "motion": {"x": 0.5}}, {"op": "release"}.
"""

import asyncio
import contextlib
import itertools
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from builtin_interfaces.msg import Time
from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode

from drone_bridge.ros.stall_watch import elapsed_s
from drone_bridge.tools.web.front_door import make_room, messages_from
from drone_bridge.tools.web.helm import LEASE_S, NEUTRAL, TOKEN_PERIOD_S, Helm, Motion, RefusedError
from drone_bridge.tools.web.vehicles import AXES, Vehicle

MAX_PILOTS = 32
MAX_COMMANDS_PER_TOKEN = 20
"""Any more are dropped, so that nobody floods the vehicle."""

SendCommand = Callable[[str, Motion, Time], None]
"""Publishes a command: on which topic, along AXES from -1 to 1, and when it was given."""


@dataclass(eq=False, slots=True)
class Pilot:
    """A page with a stick."""

    number: int
    connection: ServerConnection
    vehicle: str = ""
    commands: int = 0
    """Since the last token."""
    refused: str = ""
    """Why the last command was refused, which is reported once."""
    is_outdated: bool = False
    """Whether the page has still to be told which vehicles there are."""


class Pilots:
    """All pages that are connected. Runs in one event loop."""

    def __init__(self, send_command: SendCommand, now: Callable[[], Time], *, may_steer: bool) -> None:
        """Prepare; `now` gives the time of ROS, for stamps."""
        self._send_command = send_command
        self._now = now
        self._may_steer = may_steer
        self._helm = Helm()
        self._pilots: dict[int, Pilot] = {}
        self._numbers = itertools.count(1)
        self._vehicles: dict[str, Vehicle] = {}

    def set_vehicles(self, vehicles: Iterable[Vehicle]) -> None:
        """Set the known vehicles; a pilot whose vehicle has gone loses the helm."""
        self._vehicles = {vehicle.topic: vehicle for vehicle in vehicles}
        for pilot in self._pilots.values():
            if pilot.vehicle and pilot.vehicle not in self._vehicles:
                self._helm.remove(pilot.vehicle)
                pilot.vehicle = ""
        self._announce()

    async def __call__(self, connection: ServerConnection) -> None:
        """Serve a page until it leaves."""
        idle = [pilot.connection for pilot in self._pilots.values() if not pilot.vehicle]
        if len(self._pilots) >= MAX_PILOTS and not await make_room(idle):
            await connection.close(CloseCode.TRY_AGAIN_LATER, f"{MAX_PILOTS} pages are connected already.")
            return
        pilot = Pilot(next(self._numbers), connection)
        self._pilots[pilot.number] = pilot
        try:
            await connection.send(self._description_for(pilot))
            async for message in messages_from(connection):
                await self._receive(pilot, message)
        finally:
            del self._pilots[pilot.number]
            self._release(pilot)

    async def watch(self) -> None:
        """Hand out tokens and stop vehicles whose pilot is silent, forever."""
        tick = 0
        try:
            while True:
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
                if expired:
                    self._announce()
                tick += 1
                if tick % 2 == 0:
                    for topic in self._helm.silent(now_s):  # somebody is at the helm, and nobody else may steer
                        self._send_command(topic, NEUTRAL, self._now())
                    self._hand_out_token(now_s)
        finally:
            for pilot in self._pilots.values():
                self._release(pilot)

    def _hand_out_token(self, now_s: float) -> None:
        text = json.dumps({"op": "token", "token": self._helm.token(now_s)})
        for pilot in self._pilots.values():
            pilot.commands = 0
            self._describe(pilot)
            if not _is_busy(pilot.connection):  # else it would be old when it arrives
                _send_soon(pilot.connection, text)

    async def _receive(self, pilot: Pilot, message: str | bytes) -> None:
        try:
            request = json.loads(message)
            if not isinstance(request, dict):
                raise ValueError
        except (ValueError, RecursionError):
            await self._refuse(pilot, "This is not a request.")
            return
        try:
            self._follow(pilot, request)
        except RefusedError as error:
            await self._refuse(pilot, str(error))

    def _follow(self, pilot: Pilot, request: dict[str, Any]) -> None:
        operation = request.get("op")
        if operation == "steer":
            self._steer(pilot, request)
        elif operation == "take":
            self._take(pilot, request.get("vehicle"))
        elif operation == "release":
            self._release(pilot)
        else:
            raise RefusedError("This is not a request.")

    def _take(self, pilot: Pilot, topic: object) -> None:
        if not self._may_steer:
            raise RefusedError("This link is view-only. Steering can be allowed at start with steer:=true.")
        if not isinstance(topic, str) or topic not in self._vehicles:
            raise RefusedError("There is no such vehicle.")
        self._helm.take(pilot.number, topic, elapsed_s())
        pilot.vehicle, pilot.refused = topic, ""
        self._send_command(topic, NEUTRAL, self._now())  # whoever takes it expects it to stop
        self._announce()

    def _steer(self, pilot: Pilot, request: dict[str, Any]) -> None:
        # Before its age is looked at: should this process be stopped in between, the vehicle refuses what is old then.
        stamp = self._now()
        pilot.commands += 1
        if pilot.commands > MAX_COMMANDS_PER_TOKEN:
            return
        token, motion = request.get("token"), request.get("motion")
        if not isinstance(token, int) or not isinstance(motion, dict):
            raise RefusedError("A command has a token and a motion.")
        command = self._helm.steer(pilot.number, pilot.vehicle, token, motion, elapsed_s())
        pilot.refused = ""
        self._send_command(pilot.vehicle, command, stamp)

    def _release(self, pilot: Pilot) -> None:
        ended = self._helm.release(pilot.number)
        for topic in ended:
            self._send_command(topic, NEUTRAL, self._now())
        pilot.vehicle = ""
        if ended:
            self._announce()

    async def _refuse(self, pilot: Pilot, reason: str) -> None:
        kind = reason.partition(":")[0].rstrip("0123456789.")
        if pilot.refused != kind:
            pilot.refused = kind
            await pilot.connection.send(json.dumps({"op": "refused", "reason": reason}))

    def _announce(self) -> None:
        for pilot in self._pilots.values():
            pilot.is_outdated = True
            self._describe(pilot)

    def _describe(self, pilot: Pilot) -> None:
        """Tell a page, as soon as it takes anything, which vehicles there are and who steers them."""
        if pilot.is_outdated and not _is_busy(pilot.connection):
            pilot.is_outdated = False
            _send_soon(pilot.connection, self._description_for(pilot))

    def _description_for(self, pilot: Pilot) -> str:
        vehicles = [
            {
                "topic": vehicle.topic,
                "name": vehicle.name,
                "node": vehicle.node,
                "axes": [axis for axis in AXES if axis in vehicle.axes],
                "pilot": self._whose(vehicle.topic, pilot),
                "holds": vehicle.holds,
            }
            for vehicle in sorted(self._vehicles.values(), key=lambda each: each.topic)
        ]
        return json.dumps({"op": "vehicles", "may_steer": self._may_steer, "vehicles": vehicles})

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
