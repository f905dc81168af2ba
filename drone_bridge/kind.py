# SPDX-License-Identifier: Apache-2.0
"""What there is to know of a protocol before any of its code is read, and the list of all protocols.

A protocol is a folder: codec, device, emulator, operator, topics, bridge, server. Its `__init__` holds one
ProtocolKind, `KIND`, which names these parts as text, `module:attribute`, so that asking which protocols there are
takes milliseconds and imports no part, no NumPy and no rclpy. Everything that does something for each protocol goes by
`kinds()`: `emulate`, `operate`, `wire`, the launch files' common parts, the page, fuzzing, the conformance
tests and the generated reference.

A package of somebody else adds a protocol by an entry point, with no edit here:

    [options.entry_points]
    drone_bridge.protocols =
        tello = tello_bridge:KIND

What the entry point names may also be a class with a KIND, as each `robot_class.Robot` has one.
"""

import functools
import importlib
import operator
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

ENTRY_POINTS = f"{__package__}.protocols"
#: Our own, which are there also where no package metadata is: a colcon build has none.
OWN = ("testbed", "dronegui", "simulator", "robot", "telemetry")

Value = bool | int | float | str | list[Any]
NOT_STATED = -1.0


class Side(str, Enum):
    """The two ends of a conversation."""

    OPERATOR = "operator"
    VEHICLE = "vehicle"

    @property
    def other(self) -> "Side":
        return Side.VEHICLE if self is Side.OPERATOR else Side.OPERATOR


@dataclass(frozen=True, slots=True)
class Sent:
    """A message of a conversation: who sends it, and what the other end reads where that is more than the message."""

    side: Side
    message: Any
    read: Any = None


@dataclass(frozen=True, slots=True)
class Port:
    """A port by its number in the protocol's document."""

    parameter: str  # of the bridge
    default: int
    side: Side  # who listens on it


@dataclass(frozen=True, slots=True)
class Role:
    """One end of the conversation."""

    name: str  # in the protocol's words
    connection: str
    """What makes a connection of this role, without arguments."""


@dataclass(frozen=True, slots=True)
class Program:
    """An emulator or an operator, a plain program."""

    name: str
    summary: str
    main: str
    """Takes the arguments of the command line, and returns the exit status. Beside it `parse` only reads them."""
    agreed: Mapping[str, str] = field(default_factory=dict)
    """Its options by the parameters of the node, bridge or server, that they have to agree with."""
    apart: Mapping[str, Value] = field(default_factory=dict)
    """Options without which several of them would be in each other's way."""
    agree: Callable[[Mapping[str, Value]], dict[str, Value]] | None = None
    """What a mapping can't say of `agreed`: takes the node's parameters, and returns options."""
    at_once: Mapping[str, Value] = field(default_factory=dict)
    """Options with which an operator steers from its start, and an emulated vehicle follows from its start."""

    def beside(self, node: "NodeKind", parameters: Mapping[str, Value]) -> dict[str, Value]:
        """Return the options by which it agrees with a node of these parameters, and disturbs no other program."""
        agreed = {
            option: parameters[name] if name in parameters else node.declarations[name].default
            for name, option in self.agreed.items()
        }
        return {**self.apart, **agreed, **(self.agree(parameters) if self.agree else {})}

    @staticmethod
    def words(options: Mapping[str, Value]) -> list[str]:
        """Return options as they are on the command line: true is an option without a value."""
        return [
            f"--{name}" if value is True else f"--{name}={value}"
            for name, value in options.items()
            if value is not False
        ]


@dataclass(frozen=True, slots=True)
class NodeKind:
    """A class of nodes and its parameters, imported only when somebody wants one."""

    node: str
    parameters: str = ""
    """Its parameters' declarations, where they are not PARAMETERS of its module."""
    executable: str = ""
    """The executable that runs it, in its kind's package, where that is not called after it: <kind>_bridge."""
    arguments: tuple[str, ...] = ()
    """Of the executable."""

    @property
    def make(self) -> Any:
        """The class: takes rclpy's options of a node, such as `namespace`."""
        return load(self.node)

    @property
    def declarations(self) -> Mapping[str, Any]:
        """The declarations of its parameters by name."""
        return {each.name: each for each in load(self.parameters or f"{self.node.partition(':')[0]}:PARAMETERS")}


@dataclass(frozen=True, slots=True)
class Emergency:
    """A service, without a request, that ends a flight there and then. Only people call it, and they are warned."""

    action: str
    """In few words, as on a button: cut motors"""
    effect: str
    """What happens in flight, as the end of a sentence."""


@dataclass(frozen=True, slots=True)
class ProtocolKind:
    """A protocol and where its parts are."""

    name: str
    summary: str
    ports: tuple[Port, ...]  # the first one is the conversation's
    operator_role: Role
    vehicle_role: Role
    is_stream: bool
    topics: str
    """A TopicTable: what is on topics, and how it comes from the wire and goes there."""
    bridge: NodeKind
    server: NodeKind | None = None
    emulator: Program | None = None
    operator: Program | None = None
    launch_file: str = ""  # with the bridge, the emulator and a controller
    launch_arguments: Mapping[str, Value] = field(default_factory=dict)
    """Without which the launch file is for no vehicle."""
    controller: NodeKind | None = None
    conversation: str = ""
    """A function that returns one conversation in which each message of the protocol occurs, as a sequence of Sent.

    What is sent and read back, split anywhere and mutated in tests, goes by it."""
    title: str = ""
    """What its owner calls the vehicle, in the middle of a sentence; empty: the name"""
    emulated: Mapping[str, Value] = field(default_factory=dict)
    """The bridge's parameters when its vehicle is emulated, unless somebody has others."""
    commands: str = ""
    """A function that makes a reader of one connection: it takes what an operator sends, in any pieces of a stream, and
    yields for each command whether it is neutral. Without it nobody can judge what a vehicle was commanded."""
    recorded: str = "drone_bridge.kind:Recorded"
    """What reads a recorded conversation"""
    emergencies: Mapping[str, Emergency] = field(default_factory=dict)
    """Such services of the bridge, by name."""
    model: str = "drone"
    """What the vehicle looks like: a model of `vehicle_model`."""
    has_north: bool = False
    """Whether a yaw of 0 is east, so that its vehicle's headings are from north."""
    watchdog_s: float | None = NOT_STATED
    """After so long without a command the emulated vehicle stops by itself, None: never. `drone-bridge check` measures
    it, where it is stated."""
    package: str = "drone_bridge"
    """The ament package that has the launch file."""

    def role(self, side: Side) -> Role:
        return self.operator_role if side is Side.OPERATOR else self.vehicle_role

    def connect(self, side: Side) -> Any:
        """Return a new connection of one end."""
        return load(self.role(side).connection)()


class Recorded:
    """Reads both directions of a recorded conversation: what a side sent goes to a connection of the other.

    What one of them reads, the sender's own connection is taken to have sent. A protocol whose messages can't be
    distinguished by that alone has a subclass.
    """

    def __init__(self, kind: ProtocolKind, parameters: Mapping[str, Any]) -> None:
        """`parameters`: of the node that recorded it, as far as they are known."""
        self.readers = {side: kind.connect(side.other) for side in Side}

    def heard(self, sender: Side, event: Any) -> None:
        """Note what a side has sent. Raises LocalProtocolError where that has no meaning for its connection."""
        self.readers[sender.other].send(event)

    def before(self, sender: Side) -> None:
        """Note that a side is about to send."""


def load(part: str) -> Any:
    """Return what `module:attribute` names, or `module:attribute.of.that`. Raises ImportError and AttributeError."""
    module, _, attribute = part.partition(":")
    return operator.attrgetter(attribute)(importlib.import_module(module))


def kinds() -> Mapping[str, ProtocolKind]:
    """Return all protocols by name: ours, then those of other packages in the order of their names.

    A name that is taken is skipped, as is an entry point that can't be loaded; the latter with a warning.
    """
    return _loaded()[0]


def unloadable() -> Mapping[str, str]:
    """Return why entry points of other packages are left out, by their names."""
    return _loaded()[1]


@functools.cache
def _loaded() -> tuple[Mapping[str, ProtocolKind], Mapping[str, str]]:
    # It doubles the time that a codec's import takes, and only who asks for all protocols needs it.
    from importlib.metadata import entry_points

    found: dict[str, ProtocolKind] = {name: load(f"drone_bridge.{name}:KIND") for name in OWN}
    failures: dict[str, str] = {}
    for entry in sorted(entry_points(group=ENTRY_POINTS), key=lambda entry: entry.name):
        if entry.name in found:
            continue
        try:
            kind = entry.load()
            kind = getattr(kind, "KIND", kind)  # of a robot_class.Robot
            if not isinstance(kind, ProtocolKind) or kind.name != entry.name:
                raise TypeError(f"it is {kind!r}, and has to be a ProtocolKind of the name {entry.name!r}")
        except Exception as error:  # whatever somebody else's module raises
            failures[entry.name] = f"{entry.value}: {type(error).__name__}: {error}"
            warnings.warn(f"The protocol {entry.name!r} is left out: {failures[entry.name]}", stacklevel=4)
            continue
        found[entry.name] = kind
    return found, failures
