# SPDX-License-Identifier: Apache-2.0
"""Announcements: the vehicles as pages read them, with their pilots, holds and goals. No socket, no clock."""

from dataclasses import asdict
from typing import Any

from drone_bridge.tools.web.helm_leases import HelmLeases
from drone_bridge.tools.web.landings import PadPlace
from drone_bridge.tools.web.stop_requests import StopRequests
from drone_bridge.tools.web.vehicles import AXES, SteeredVehicle


class Announcements:
    """State of all vehicles, for each page."""

    def __init__(self, helms: HelmLeases, stops: StopRequests) -> None:
        self._helms, self._stops = helms, stops
        self._goals: dict[str, tuple[dict[str, Any], float]] = {}  # by vehicle, with the time of the last change
        self._below: dict[str, PadPlace | None] = {}
        self._max_speed_m_s: float | None = None

    def set_goal(self, topic: str, state: dict[str, Any], now_s: float) -> None:
        """Update the state of a vehicle's goal."""
        before = self._goals[topic][0] if topic in self._goals else {}
        self._goals[topic] = {**before, "distance": None, "left_s": None, **state}, now_s
        self._helms.announce()

    def set_below(self, topic: str, place: PadPlace | None) -> None:
        """Record the pad that a vehicle stands on."""
        if place != self._below.get(topic):
            self._below[topic] = place
            self._helms.announce()

    def set_max_speed(self, speed_m_s: float) -> None:
        """Record the speed at full deflection of a stick, m/s."""
        if speed_m_s != self._max_speed_m_s:
            self._max_speed_m_s = speed_m_s
            self._helms.announce()

    def for_page(self, page: int, now_s: float) -> dict[str, Any]:
        """Return the vehicles as a page reads them, by its number."""
        viewer, vehicles = self._helms.names[page], self._stops.vehicles
        return {
            "you": viewer,
            "all_stopped": self._stops.all_stopped(viewer),
            "vehicles": [self._described(vehicles[topic], page, now_s) for topic in sorted(vehicles)],
            "unanswered": self._stops.unanswered(),
        }

    def _described(self, vehicle: SteeredVehicle, page: int, now_s: float) -> dict[str, Any]:
        topic, names = vehicle.topic, self._helms.names
        pilot, asked = self._helms.leases.pilot_of(topic), self._helms.leases.asked(topic, now_s)
        other = "" if pilot else self._stops.other_pilot(topic, now_s)
        goal, changed_s = self._goals.get(topic, (None, now_s))
        statuses = self._stops.statuses
        return {
            "topic": topic,
            "name": vehicle.name,
            "node": vehicle.node,
            "model": vehicle.model,
            "title": vehicle.title,
            "has_north": vehicle.has_north,
            "axes": [axis for axis in AXES if axis in vehicle.axes],
            "pilot": "you" if pilot == page else "other" if pilot or other else None,
            "pilot_name": names[pilot] if pilot else other,
            "asked": [
                {"number": number, "name": names[number], "is_you": number == page, "left_s": left_s}
                for number, left_s in asked.items()
            ],
            "holds": vehicle.holds,
            "held": self._stops.hold_of(topic, names[page], now_s),
            "refused_helm": self._stops.refused_helm(topic),
            "commanders": vehicle.commanders,
            "emergencies": {service: asdict(each) for service, each in vehicle.emergencies.items()},
            "buttons": vehicle.buttons,
            "runs": {name: statuses[name].run for name in vehicle.reporters if name in statuses},
            "max_speed": None if (limit := self._max_speed_m_s) is None else vehicle.max_speed("x", limit),
            "takes_goals": bool(vehicle.goal),
            "below": place._asdict() if (place := self._below.get(topic)) else None,
            "goal": goal and {**goal, "age_s": now_s - changed_s},
        }
