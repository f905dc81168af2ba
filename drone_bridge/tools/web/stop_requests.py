# SPDX-License-Identifier: Apache-2.0
"""StopRequests: STOP and Resume for all vehicles. No socket, no clock.

STOP is a state: `Wishes` stores wanted holds until a person resumes them, and `resend` publishes each wish until its
nodes report it. A bridge that restarts reads it earlier, from a file (`wish_file`). Other vehicles, without such
reports, get neutral and calls of ~/hold.
"""

import functools
import math
import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from drone_bridge.msg import HoldStatus
from drone_bridge.ros.hold.file_writer import FileWriter
from drone_bridge.ros.hold.wish_file import FiledWish
from drone_bridge.session.hold_state import ANONYMOUS, HELM_REFUSED, NOT_REQUESTED
from drone_bridge.tools.web.helm import NEUTRAL, HelmRefusedError
from drone_bridge.tools.web.helm_leases import CONFIRMED_WITHIN_S, HelmLeases
from drone_bridge.tools.web.vehicles import COMMAND_TOPIC, SteeredVehicle
from drone_bridge.tools.web.wishes import PRESSED_STOP, RUN_S, Report, Wish, Wishes

MAX_WANTED, MAX_NAME_OF_ROS = 64, 255
"""Maximum number of unknown vehicles with a wanted hold, or of remembered ones, and length of a topic's name."""
STOP_TIMEOUT_S = 1.0
"""Time after which the page shows that a vehicle has not stopped, s."""
HELM_TAKEN_S = 1.0
"""Time in which a vehicle that was held after a helm ended follows a new one, s."""

AskToHold = Callable[[str, bool, Callable[[str], None]], None]
"""Holds or releases a vehicle. A problem, or an empty string, is reported to the callable."""
SendWish = Callable[[str, str, str], None]
"""Publishes the wish to hold the vehicle of a node: its full name, the id of the wish or "", and the reason."""
WishWriter = FileWriter[Sequence[FiledWish]]
"""Writer of the wish file."""


class StopRequests:
    """Wanted and reported holds. Times are in seconds, of one clock that is never set and counts suspension."""

    def __init__(
        self, helms: HelmLeases, wishes: Wishes, ask_to_hold: AskToHold, send_wish: SendWish, writer: WishWriter
    ) -> None:
        """Prepare."""
        self._helms, self._ask_to_hold, self._send_wish, self._writer = helms, ask_to_hold, send_wish, writer
        self.wishes = wishes
        self.vehicles: dict[str, SteeredVehicle] = {}
        self.statuses: dict[str, HoldStatus] = {}
        """Newest reports by node."""
        self._reported_s: dict[str, float] = {}  # their times
        self._confirmed_s: dict[str, float] = {}  # times of the newest ones with a pilot of this server
        self._filed: list[FiledWish] = []  # newest content of the wish file
        self._seen: dict[str, SteeredVehicle] = {}  # last state, as one may disappear before it responds
        self._unconfirmed: set[str] = set()  # vehicles that do not report the pilot whose lease they have here
        self._resuming: list[tuple[float, Callable[[], None]]] = []  # waiting for the end of a helm

    @property
    def is_idle(self) -> bool:
        """Whether no wish, resume or end of a helm needs `tick`."""
        return not (self.wishes.all() or self._resuming or self._helms.ending)

    def set_vehicles(self, vehicles: Iterable[SteeredVehicle], now_s: float) -> None:
        """Set the present vehicles. A pilot whose vehicle has disappeared loses the helm."""
        self.vehicles = {vehicle.topic: vehicle for vehicle in vehicles}
        reporters = {node for vehicle in self.vehicles.values() for node in vehicle.reporters}
        self.statuses = {node: status for node, status in self.statuses.items() if node in reporters}
        self._helms.set_vehicles(self.vehicles)
        gone = [each for each in self._seen.items() if each[0] not in self.vehicles]
        self._seen = dict(gone[-MAX_WANTED:]) | self.vehicles
        for topic, vehicle in self.vehicles.items():
            self.wishes.vehicle_appeared(topic, _nodes_of(vehicle))
        self._file()
        self.resend(now_s)
        self._helms.announce()

    def set_status(self, node: str, status: HoldStatus, now_s: float) -> None:
        """Update the wishes by the report of a node."""
        before, reached = dict(self.wishes.all()), self._reached()
        is_new, self.statuses[node], self._reported_s[node] = status != self.statuses.get(node), status, now_s
        if status.pilot == self._helms.id:
            self._confirmed_s[node] = now_s
        for topic, vehicle in self.vehicles.items():
            if node in vehicle.reporters and (other := self.other_pilot(topic, now_s)):
                self._helms.lose(topic, other)
        report = Report(status.run, status.wish, status.releases_before_wish, status.releases)
        self.wishes.reported(node, report, now_s)
        if not is_new and self._reached() == reached:
            return  # a sign of life, every second
        for topic in before.keys() - self.wishes.all().keys():
            self._end_wish(before[topic])  # a person has resumed it elsewhere
        self._file()
        for topic, vehicle in self.vehicles.items():
            if node in vehicle.reporters and self._reported_holds(topic):
                self._helms.confirm_end(topic)
        self._helms.announce()

    def stop(self, by: str, topics: Iterable[str] | None, now_s: float, wall_s: float, act: str = PRESSED_STOP) -> bool:
        """Want vehicles held, including absent ones; None for all, including later ones. `resend` publishes it.

        Returns whether a vehicle is, or may be, one of them. `wall_s` is the time by the wall clock, `act` the reason.
        """
        if topics is None:
            self.wishes.want_all(_wish(by, now_s, wall_s, act))
        wanted = False
        for topic in dict.fromkeys(self.vehicles if topics is None else topics):
            if self._may_be_vehicle(topic):
                wanted = True
                self._helms.leases.halt(topic)
                nodes = _nodes_of(self._seen[topic]) if topic in self._seen else ()
                self.wishes.want(topic, nodes, _wish(by, now_s, wall_s, act))
        self._file()
        return wanted

    def resend(self, now_s: float) -> None:
        """Publish wishes that are not reached, and stop vehicles that can't report a hold."""
        is_late = False
        for topic, wish in self.wishes.all().items():
            vehicle = self.vehicles.get(topic)
            if wish.is_reached or vehicle is None:
                continue
            if vehicle.reporters:
                for node in wish.nodes - wish.reached:
                    self._send_wish(node, wish.id, wish.reason)
            else:
                self._helms.command(topic, NEUTRAL, now_s)
                if vehicle.holds:
                    self._ask_to_hold(topic, True, functools.partial(self._confirm, topic, wish))
            is_late |= bool(vehicle.holds) and now_s - wish.pressed_s > STOP_TIMEOUT_S
        if is_late:
            self._helms.announce()  # which vehicles have not stopped, and why

    def tick(self, now_s: float, wall_s: float) -> None:
        """Repeat wishes, and release vehicles whose helm has ended. To be called every TOKEN_PERIOD_S."""
        for topic, pilot in self._helms.unconfirmed_ends(now_s):
            self._helms.confirm_end(topic)
            if self.vehicles[topic].reporters and topic not in self.wishes:
                self.stop(pilot, [topic], now_s - STOP_TIMEOUT_S, wall_s, "left the helm")
        unconfirmed = {topic for topic in self.vehicles if self._lacks_pilot(topic, now_s)}
        if unconfirmed != self._unconfirmed:
            self._unconfirmed = unconfirmed
            self._helms.announce()
        self.resend(now_s)
        self._release_due(now_s)

    def resume(self, page: int, topic: str | None, now_s: float) -> None:
        """Resume a vehicle for a page; None for all that are stopped or held, and later ones."""
        if topic is None:
            self.wishes.end_all()
        held = filter(self._reported_holds, self.vehicles)
        for each in sorted({*self.wishes.all(), *held}) if topic is None else [topic]:
            self._helms.leases.halt(each)
            self._helms.confirm_end(each)
            if wish := self.wishes.end(each):
                self._end_wish(wish)
            # Not before its helm has ended: that would be noticed later, and hold the vehicle again.
            release = functools.partial(self._release, page, each, wish, self._holds(each))
            self._resuming.append((self._helms.ends_at_s(each), release))
        self._release_due(now_s)
        self._file()
        self._helms.announce()

    def is_held(self, topic: str, now_s: float) -> bool:
        """Return whether sticks are disabled. A vehicle that was held after a helm ended follows a new one soon."""
        since_taken_s = now_s - self._helms.leases.taken_s(topic)
        return topic in self.wishes or (bool(self._reported_holds(topic)) and since_taken_s > HELM_TAKEN_S)

    def all_stopped(self, viewer: str) -> str | None:
        """Return for a viewer, by name, who wants all vehicles held, and any problem; None without such a wish."""
        by, problem = self.wishes.all_by, f"; {self._writer.problem}" if self._writer.problem else ""
        return None if by is None else f"{'you' if by == viewer else by} pressed STOP all{problem}"

    def unanswered(self) -> list[dict[str, str]]:
        """Return the vehicles that have disappeared without confirming STOP."""
        return [
            {"topic": topic, "name": vehicle.name if vehicle else topic.rpartition("/")[0].strip("/") or topic}
            for topic, wish in self.wishes.all().items()
            if topic not in self.vehicles
            and not wish.is_reached
            and ((vehicle := self._seen.get(topic)) is None or vehicle.holds)
        ]

    def hold_of(self, topic: str, viewer: str, now_s: float) -> dict[str, Any] | None:
        """Return for a viewer, by name, since when and why a vehicle is held or stopped, and any problem."""
        wish, vehicle = self.wishes.get(topic), self.vehicles[topic]
        all_held = self._reported_holds(topic)
        if not (wish or all_held or (vehicle.reporters and topic in self._helms.ending)):
            return None
        held = [each for each in self._statuses_of(topic).values() if each.held]
        problem, reason = "", next((each.reason for each in held), "")
        if wish and vehicle.holds and not wish.is_reached and now_s - wish.pressed_s > STOP_TIMEOUT_S:
            problem = wish.problem or "no confirmation yet"
        if wish:
            why = f"{'you' if wish.by == viewer else wish.by} {wish.act}"
        elif name := self._helms.ending.get(topic):
            why = f"{'you' if name == viewer else name} left the helm"
        elif any(each.is_inherited for each in all_held):
            why = "from before this launch"
        else:
            why = f"{reason} on another page" if reason.endswith(PRESSED_STOP) else reason  # perhaps of the same name
        is_sure = bool(all_held) or (wish is not None and (wish.is_reached or not vehicle.holds))
        # A restarted bridge reports that it is held since its start.
        starts = [each.since.sec + each.since.nanosec / 1e9 for each in all_held] + ([wish.since_s] if wish else [])
        since = min(starts, default=None)
        unkept = next((each.problem for each in held if each.problem), "") or (self._writer.problem if wish else "")
        return {"since": since, "why": why, "is_sure": is_sure, "problem": problem, "unkept": unkept}

    def refused_helm(self, topic: str) -> str:
        """Return why a vehicle does not follow its helm; empty if it does, or has none."""
        reasons = (each.helm.partition(HELM_REFUSED)[2] for each in self._statuses_of(topic).values())
        if reason := next(filter(None, reasons), ""):
            return f"each command is refused: {reason}"
        return "the vehicle does not confirm it" if topic in self._unconfirmed else ""

    def other_pilot(self, topic: str, now_s: float) -> str:
        """Return the name of another server's pilot, as a node of the vehicle has just reported it, or ""."""
        for node, status in self._statuses_of(topic).items():
            if status.pilot not in ("", self._helms.id) and now_s - self._reported_s[node] <= RUN_S:
                is_named = status.pilot != ANONYMOUS.id
                return f"{status.pilot_name or 'a person'} on another page" if is_named else status.pilot_name
        return ""

    def check_free(self, topic: str, now_s: float) -> None:
        """Raise HelmRefusedError if another server's pilot steers a vehicle."""
        if other := self.other_pilot(topic, now_s):
            raise HelmRefusedError(f"{other} is steering this vehicle: ask for the helm, or press STOP.")

    def _lacks_pilot(self, topic: str, now_s: float) -> bool:
        """Return whether a vehicle with a pilot here does not report it in time."""
        taken_s = self._helms.leases.taken_s(topic)
        if now_s - taken_s <= CONFIRMED_WITHIN_S:
            return False
        least_s = max(taken_s, now_s - RUN_S)
        return any(self._confirmed_s.get(node, -math.inf) < least_s for node in self.vehicles[topic].reporters)

    def _may_be_vehicle(self, topic: str) -> bool:
        """Return whether a topic is that of a known or possible vehicle, as this server may have just started."""
        has_room = len(self.wishes.all()) < MAX_WANTED and len(topic) <= MAX_NAME_OF_ROS
        may_come = topic.startswith("/") and topic.endswith(f"/{COMMAND_TOPIC}") and has_room
        return topic in self._seen or topic in self.wishes or may_come

    def _reached(self) -> dict[str, bool]:
        return {topic: wish.is_reached for topic, wish in self.wishes.all().items()}

    def _statuses_of(self, topic: str) -> dict[str, HoldStatus]:
        """Return the reports of a vehicle's nodes."""
        vehicle = self.vehicles.get(topic)
        reporters = vehicle.reporters if vehicle else ()
        return {name: self.statuses[name] for name in reporters if name in self.statuses}

    def _reported_holds(self, topic: str) -> list[HoldStatus]:
        """Return the reports of a vehicle's nodes, if all of them are held; else nothing."""
        reports = [*self._statuses_of(topic).values()]
        return reports if all(each.held for each in reports) else []

    def _file(self) -> None:
        """Write the wish file, if the wishes have changed."""
        if (filed := self.wishes.filed()) != self._filed:
            self._filed = filed
            self._writer.keep(filed)

    def _confirm(self, topic: str, wish: Wish, problem: str) -> None:
        before = wish.problem, wish.is_reached
        self.wishes.confirm(topic, wish, problem)
        if (wish.problem, wish.is_reached) != before:
            self._helms.announce()

    def _end_wish(self, wish: Wish) -> None:
        for node in wish.nodes:
            self._send_wish(node, "", "")

    def _release_due(self, now_s: float) -> None:
        due = [release for at_s, release in self._resuming if now_s >= at_s]
        self._resuming = [each for each in self._resuming if now_s < each[0]]
        for release in due:
            release()

    def _release(self, page: int, topic: str, wish: Wish | None, meant: dict[str, tuple[object, ...]]) -> None:
        """Release a vehicle on behalf of a page, unless a newer hold has begun than those that were meant."""

        def answer(problem: str) -> None:
            if problem:
                self._helms.notify(page, f"The vehicle is still on hold: {problem.rstrip('.')}.")
            self._helms.announce()

        begun = [self.statuses[name] for name, _ in self._holds(topic).items() - meant.items()]
        others = [each.reason for each in begun if not (wish and each.wish == wish.id)]
        if newer := [reason for reason in others if reason not in NOT_REQUESTED]:
            answer(newer[0])
        elif topic not in self.wishes and topic in self.vehicles and self.vehicles[topic].holds:
            self._ask_to_hold(topic, False, answer)

    def _holds(self, topic: str) -> dict[str, tuple[object, ...]]:
        """Return what identifies each reported hold of a vehicle, by node, to tell a newer one."""
        return {
            name: (each.run, each.since.sec, each.since.nanosec, each.reason, each.wish, each.releases)
            for name, each in self._statuses_of(topic).items()
            if each.held
        }


def _wish(by: str, now_s: float, wall_s: float, act: str) -> Wish:
    return Wish(uuid.uuid4().hex, by, wall_s, now_s, act)


def _nodes_of(vehicle: SteeredVehicle) -> tuple[str, ...]:
    """Return the receivers of a wish: nodes that report it, or else services."""
    return vehicle.reporters or vehicle.holds
