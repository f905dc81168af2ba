# SPDX-License-Identifier: Apache-2.0
"""Which vehicles can be steered, and along which axes."""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field

from drone_bridge.kind import Emergency, ProtocolKind, kinds

COMMAND_TOPIC = "cmd_vel_stamped"
COMMAND_TYPE = "geometry_msgs/msg/TwistStamped"
#: Where a node of ours takes the commands of a person at a stick, and what keeps its vehicle neutral: see hold.py.
HELM_TOPIC, HOLD_SERVICE, HOLD_TYPE = "helm", "hold", "std_srvs/srv/SetBool"
#: Where it reports whether it is held, and takes the wish that it be: see hold.py.
STATUS_TOPIC, STATUS_TYPE, WISH_TOPIC = "hold_status", "drone_bridge/msg/HoldStatus", "hold_wish"
#: The same of nodes without such reports.
HELD_TOPIC, HELD_TYPE = "held", "std_msgs/msg/Bool"
#: What begins the last part of a name on which a vehicle is commanded.
COMMANDS = "cmd_"
AXES = ("x", "y", "z", "yaw")
#: Of the bridges' vehicles that do not have all of them, by what they look like.
AXES_OF = {"rover": ("x", "yaw")}


@dataclass(frozen=True, slots=True)
class Vehicle:
    """Something that follows velocities."""

    topic: str
    """Where it takes commands, as TwistStamped in its own frame."""
    node: str
    """The node that takes them."""
    targets: tuple[str, ...] = ()
    """Where the helm's commands go: a topic for helms of each node that has one, and `topic` for any other."""
    holds: tuple[str, ...] = ()
    """The services that hold it; a vehicle without any follows the next one who commands it when the helm ends."""
    reporters: tuple[str, ...] = ()
    """The full names of its nodes, if all that hold it report that and take wishes."""
    held: str = ""
    """The topic that says whether it is held, of a vehicle without such reports."""
    commanders: tuple[str, ...] = ()
    """The nodes that publish commands for it, but for this one."""
    goal: str = ""
    """The action or topic that takes goals for it, where somebody does."""
    emergencies: Mapping[str, Emergency] = field(default_factory=dict)
    """What ends its flight there and then, by service."""

    @property
    def name(self) -> str:
        """Its namespace, or what the node bridges where it has none."""
        return self.topic.rpartition("/")[0].strip("/") or self.node.removesuffix("_bridge")

    @property
    def model(self) -> str:
        """What it looks like, where it is one of the bridges'."""
        kind = _kind_of(self.node)
        return kind.model if kind else ""

    @property
    def title(self) -> str:
        """What its owner calls it, where it is one of the bridges'."""
        kind = _kind_of(self.node)
        return kind.title if kind else ""

    @property
    def has_north(self) -> bool:
        """Whether a yaw of 0 is east."""
        kind = _kind_of(self.node)
        return bool(kind and kind.has_north)

    @property
    def axes(self) -> tuple[str, ...]:
        """Those that it has, of AXES: forward, left, up, turning left."""
        return AXES_OF.get(self.model, AXES)


def emergencies_of(nodes: Mapping[str, str], services: Container[str]) -> dict[str, Emergency]:
    """Return what ends the flight of a vehicle whose nodes have these full names: names, of the services that exist."""
    found: dict[str, Emergency] = {}
    for full_name, name in sorted(nodes.items()):
        kind = _kind_of(name)
        emergencies = kind.emergencies if kind else {}
        found.update((f"{full_name}/{service}", each) for service, each in emergencies.items())
    return {service: each for service, each in found.items() if service in services}


def _kind_of(node: str) -> ProtocolKind | None:
    """Return the protocol that a node bridges, by its name."""
    return kinds().get(node.removesuffix("_bridge"))
