# SPDX-License-Identifier: Apache-2.0
"""Allowlist: what clients of rosbridge may publish, call and send goals to. Everything else is refused.

They are programs: they command by the topics of programs, and may hold a vehicle. They may not resume it, take its
helm, send what our controllers and vehicles report, or change parameters and lifecycles. A test compares these names
with all that our nodes subscribe to and serve.
"""

from typing import Any

from drone_bridge.kind import kinds

#: Names without namespace.
TOPICS = frozenset(("cmd_vel", "cmd_vel_stamped", "cmd_axes", "cmd_rates", "takeoff", "land", "light"))
SERVICES = frozenset(("hold", "takeoff", "land", "land_on_pad", "hover", "light"))
ACTIONS = frozenset(("go_to", "follow_path", "take_off", "land", "navigate_to_pose", "follow_waypoints"))
HOLD, LAND = "hold", "land"
RESUME_REFUSED = "A program can't resume a vehicle. A person does, on the page or by drone-bridge resume."


def last_part(name: str) -> str:
    """Return a name without namespace and node."""
    return name.rpartition("/")[2]


def buttons() -> frozenset[str]:
    """Return the services of robots in one class, which may be called, too, except emergencies."""
    return frozenset[str]().union(*(kind.buttons.keys() - kind.emergencies.keys() for kind in kinds().values()))


def check_topic(name: str) -> None:
    """Raise PermissionError unless clients may publish on a topic."""
    _check(name, TOPICS, "publish on")


def check_action(name: str) -> None:
    """Raise PermissionError unless clients may send goals to an action."""
    _check(name, ACTIONS, "send goals to")


def check_service(name: str, request: Any = None) -> None:
    """Raise PermissionError unless clients may call a service, with this request if there is one."""
    if last_part(name) not in buttons():
        _check(name, SERVICES, "call")
    if request is not None and last_part(name) == HOLD and not request.data:
        raise PermissionError(RESUME_REFUSED)


def _check(name: str, allowed: frozenset[str], verb: str) -> None:
    if last_part(name) not in allowed:
        raise PermissionError(f"Programs may not {verb} {name:.200}, but only {', '.join(sorted(allowed))}.")
