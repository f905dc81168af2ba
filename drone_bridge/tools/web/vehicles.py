# SPDX-License-Identifier: Apache-2.0
"""Vehicles that can be steered, and their axes."""

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from drone_bridge.kind import Emergency, ProtocolKind, kinds

COMMAND_TOPIC = "cmd_vel_stamped"
COMMAND_TYPE = "geometry_msgs/msg/TwistStamped"
#: Suffix of a node's topic for stick commands with the pilot's id and name, see hold.py.
PILOT_TOPIC = "pilot"
#: Suffix of that for stick commands without these.
HELM_TOPIC, HOLD_SERVICE, HOLD_TYPE = "helm", "hold", "std_srvs/srv/SetBool"
#: Suffixes of the topics for hold reports and wishes, see hold.py.
STATUS_TOPIC, STATUS_TYPE, WISH_TOPIC = "hold_status", "drone_bridge/msg/HoldStatus", "hold_wish"
#: Prefix of the last part of a command topic's name.
COMMANDS = "cmd_"
AXES = ("x", "y", "z", "yaw")
#: Axes of the bridges' vehicles that do not have all of them, by model.
AXES_OF = {"rover": ("x", "yaw")}
ValueT = TypeVar("ValueT")


@dataclass(frozen=True, slots=True)
class SteeredVehicle:
    """Vehicle that follows velocities."""

    topic: str
    """Topic of its commands, a TwistStamped in its own frame; below its node's name if another vehicle has that."""
    node: str
    """Node that subscribes to them."""
    targets: tuple[str, ...] = ()
    """Topics for commands of the helm: for each node that of a pilot, or of a helm, else `topic`."""
    holds: tuple[str, ...] = ()
    """Services that hold it. Without any, it follows the next commander when the helm ends."""
    reporters: tuple[str, ...] = ()
    """Full names of its nodes, if all of them report holds and accept wishes."""
    commanders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Other nodes that publish commands for it, by topic."""
    goal: str = ""
    """Action or topic that accepts its goals, or ""."""
    emergencies: Mapping[str, Emergency] = field(default_factory=dict)
    """Its emergencies, by service."""
    buttons: Mapping[str, bool] = field(default_factory=dict)
    """Its requests that are buttons, by service in their order, and whether each may move it."""

    @property
    def name(self) -> str:
        """Namespace, or the bridged protocol without one."""
        return (self.topic.rpartition("/")[0].strip("/") or self.node).removesuffix("_bridge")

    @property
    def model(self) -> str:
        """Model, if it is one of the bridges' vehicles."""
        kind = _kind_of(self.node)
        return kind.model if kind else ""

    @property
    def title(self) -> str:
        """Owner's name for it, if it is one of the bridges' vehicles."""
        kind = _kind_of(self.node)
        return kind.title if kind else ""

    @property
    def has_north(self) -> bool:
        """Whether a yaw of 0 is east."""
        kind = _kind_of(self.node)
        return bool(kind and kind.has_north)

    @property
    def axes(self) -> tuple[str, ...]:
        """Its axes, of AXES: forward, left, up, turning left."""
        kind = _kind_of(self.node)
        return (kind.axes if kind else ()) or AXES_OF.get(self.model, AXES)

    def max_speed(self, axis: str, limit: float) -> float:
        """Return its maximum speed along or about an axis, m/s or rad/s; at most `limit`."""
        kind = _kind_of(self.node)
        return min(limit, kind.max_speeds.get(axis, limit)) if kind else limit


def by_service(
    nodes: Mapping[str, str], services: Container[str], declared: Callable[[ProtocolKind], Mapping[str, ValueT]]
) -> dict[str, ValueT]:
    """Return what the kinds of a vehicle's nodes declare about its services, for those that exist.

    `nodes` has the nodes' names by their full names.
    """
    found: dict[str, ValueT] = {}
    for full_name, name in sorted(nodes.items()):
        kind = _kind_of(name)
        found.update((f"{full_name}/{service}", each) for service, each in (declared(kind) if kind else {}).items())
    return {service: each for service, each in found.items() if service in services}


def _kind_of(node: str) -> ProtocolKind | None:
    """Return the protocol of a bridge by its name."""
    return kinds().get(node.removesuffix("_bridge"))
