# SPDX-License-Identifier: Apache-2.0
"""Calls of ~/hold of the vehicles that are discovered, and their outcomes."""

import os
import sys
import time
import uuid
from collections.abc import Sequence
from typing import Any

import rclpy
from rclpy.duration import Duration

from drone_bridge.msg import HoldWish
from drone_bridge.ros.hold.hold_services import HoldServices, is_of, node_of
from drone_bridge.ros.node.program import initialize_ros, shut_down_ros
from drone_bridge.ros.process.environment import discovery_problem, domain_of, is_on_this_machine_only
from drone_bridge.ros.qos import latched
from drone_bridge.tools.hold import REASON
from drone_bridge.tools.shared.discovery import DISCOVERY_S, QUIET_S

#: Timeout of the response of a vehicle's node, s.
ANSWER_S = 5.0
#: Timeout of the discovery of a named vehicle that is to be held, s: its bridge may be starting again.
RESTART_S = 60.0
#: Time of the discovery of vehicles, if none is named, s: to resume them, as one that is discovered later stays held,
#: and to hold them if topics stay on this machine, as the wish file has reached all.
SHORT_S = 1.0
_LOOK_S = 0.1
#: Timeout of the delivery of a wish to a node that has answered, s.
_WISH_S = 1.0
#: Exit status if a vehicle was not found, did not answer or refused.
FAILED = 1


def set_all(wanted: Sequence[str], *, is_held: bool) -> int:
    """Hold or resume the wanted vehicles, or all if none is named. Return the exit status."""
    initialize_ros([])
    node = rclpy.create_node("drone_bridge_hold")
    try:
        return _set(node, wanted, is_held=is_held)
    finally:
        node.destroy_node()
        shut_down_ros()


def _set(node: Any, wanted: Sequence[str], *, is_held: bool) -> int:
    """Call the services of the wanted vehicles, and print the outcomes. Returns the exit status."""
    wishes: dict[str, Any] = {}
    services = HoldServices(node, lambda service: not wanted or any(is_of(service, each) for each in wanted))
    calls = _call(node, services, wanted, wishes if is_held else None)
    for publisher in wishes.values():
        publisher.wait_for_all_acked(Duration(seconds=_WISH_S))
    missing = _missing(services, wanted)
    if missing or not services.found:
        wanted_names = f" {' or '.join(missing)}" if missing else ""
        later = " If it starts later, it follows commands." if missing and is_held else ""
        print(f"Found no vehicle{wanted_names}. {_vehicles(services)}{later}", file=sys.stderr)
        if not services.all() and (problem := discovery_problem()):
            print(problem, file=sys.stderr)
    statuses = [_report(service, calls.get(service)) for service in sorted(services.found)]
    return FAILED if missing or not services.found else max(statuses)


def _vehicles(services: HoldServices) -> str:
    there = ", ".join(map(node_of, services.all())) or "none"
    return f"Vehicles in ROS domain {domain_of(os.environ)}: {there}."


def _missing(services: HoldServices, wanted: Sequence[str]) -> list[str]:
    """Return the named vehicles that have not been discovered."""
    return [each for each in wanted if not any(is_of(service, each) for service in services.found)]


def _call(node: Any, services: HoldServices, wanted: Sequence[str], wishes: dict[str, Any] | None) -> dict[str, Any]:
    """Call each service as soon as it is discovered, and return the calls by service.

    To hold, `wishes` collects publishers of a wish for each, which makes the hold a person's also on another machine,
    where the wish file is not read.

    Returns when all named vehicles have responded, or after the timeouts of discovery and of the responses. Without
    names, discovery takes QUIET_S if there is a vehicle, or SHORT_S. A named vehicle that is to be held is
    held once it starts, for RESTART_S at most.
    """
    is_held, calls = wishes is not None, dict[str, Any]()
    began_s = called_s = time.monotonic()
    longest_s, is_waiting = RESTART_S if wanted and is_held else DISCOVERY_S, False
    quiet_s = 0.0 if wanted else QUIET_S if is_held and not is_on_this_machine_only() else SHORT_S
    while True:
        now_s = time.monotonic()
        if now_s - began_s <= longest_s:
            services.find()
        if wishes is not None:
            for service in set(services.found) - wishes.keys():
                wishes[service] = node.create_publisher(HoldWish, f"{node_of(service)}/hold_wish", latched())
                wishes[service].publish(HoldWish(id=uuid.uuid4().hex, reason=REASON))
        if services.call(is_held, calls):
            called_s = now_s
        is_missing = not services.found or bool(_missing(services, wanted))
        if is_missing and not is_waiting and wanted and is_held and now_s - began_s > QUIET_S:
            is_waiting, names = True, " or ".join(_missing(services, wanted))
            later = "It is held if it starts while this command runs."
            print(f"Found no vehicle {names} yet. {_vehicles(services)} {later}", file=sys.stderr)
        discovery_s = longest_s if is_missing else quiet_s
        have_answered = len(calls) == len(services.found) and all(call.done() for call in calls.values())
        is_time_over = now_s > max(began_s + discovery_s, called_s) + ANSWER_S
        if now_s - began_s >= discovery_s and (have_answered or is_time_over):
            return calls
        rclpy.spin_once(node, timeout_sec=_LOOK_S)


def _report(service: str, call: Any) -> int:
    """Print the answer to a call. Returns the exit status."""
    name = node_of(service)
    if call is None or not call.done():
        print(f"{name}: {'disappeared' if call is None else 'no answer in time'}", file=sys.stderr)
        return FAILED
    response = call.result()
    print(f"{name}: {response.message}", file=sys.stdout if response.success else sys.stderr)
    return 0 if response.success else FAILED
