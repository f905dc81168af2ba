# SPDX-License-Identifier: Apache-2.0
"""Protocol descriptions, and the registry of all protocols.

A protocol is a folder: codec, device, emulator, operator, topics, bridge, server. Its `__init__` contains one
ProtocolKind, `KIND`, which names these parts as text (`module:attribute`). Listing the protocols therefore takes
milliseconds, and imports no part, no NumPy and no rclpy. Code for all protocols iterates over `kinds()`: `emulate`,
`operate`, `wire`, the shared parts of launch files, the page, fuzzing, the conformance tests and the generated
reference.

Another package adds a robot in one class, a `robot_class.Robot`, by an entry point, without an edit here:

    [options.entry_points]
    drone_bridge.protocols =
        my_robot = my_robot:MyRobot

One with the name of a class in `robots/` replaces it. A protocol in a folder is only found inside this package.

Names that other programs use:

| name | used by |
|---|---|
| nodes `<kind>_bridge`, `<kind>_server`; executables of these names, or `NodeKind.executable` | page, doctor, \
`check`, launch files, servers' `target.*` |
| `PARAMETERS` beside the class of a node, or `NodeKind.parameters` | launch files' checks, reference, `check` |
| the status `<node>: link` on `/diagnostics`; `open_state` of its message: connected, sending, listening, serving | \
page, `check`, which waits for `connected` of a stream |
| an emulator's lines `listening on <host>:<port>`, and with `watchdog_s` `moves at`, `stands at` | `check` |
| `cmd_vel`, `cmd_vel_stamped`, `~/helm`, `~/hold`, `held`, `odom` | page, controllers, users' nodes |
"""

import functools
import importlib
import operator
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

ENTRY_POINTS = f"{__package__}.protocols"
SLOW_IMPORT_S = 5.0
#: Our own protocols, listed here because a colcon build has no package metadata.
OWN = ("testbed", "dronegui", "ardrone", "simulator", "robot", "telemetry")
#: Classes of the modules in `robots/`.
ROBOTS = {"tello": "Tello", "create2": "Create2", "robomaster": "RoboMaster", "pioneer": "Pioneer", "kobuki": "Kobuki"}
ROBOTS |= {"arduino": "Arduino", "hoverboard": "Hoverboard", "neato": "Neato"}

Value = bool | int | float | str | list[Any]
NOT_STATED = -1.0


class Side(str, Enum):
    """The two ends of a conversation."""

    OPERATOR = "operator"
    VEHICLE = "vehicle"

    @property
    def other(self) -> "Side":
        return Side.VEHICLE if self is Side.OPERATOR else Side.OPERATOR


class Mechanism(str, Enum):
    """Mechanisms that several kinds have in common. `represents` of a kind says which ones it stands for in tests."""

    STREAM = "stream"
    DATAGRAMS = "datagrams"
    NUMBERED = "numbered datagrams"
    PROCESS = "process"  # what nodes do alike for each protocol: signals, output, respawn


@dataclass(frozen=True, slots=True)
class Sent:
    """A message of a sample conversation: its sender, and the event that the other end reads if it differs."""

    side: Side
    message: Any
    read: Any = None


@dataclass(frozen=True, slots=True)
class Port:
    """A port by its number in the specification."""

    parameter: str  # of the bridge
    default: int
    side: Side  # the side that listens on it


@dataclass(frozen=True, slots=True)
class Role:
    """One end of the conversation."""

    name: str  # as in the specification
    connection: str
    """Import path of a function without arguments that returns a connection of this role."""


@dataclass(frozen=True, slots=True)
class Program:
    """An emulator or an operator: a program without ROS."""

    name: str
    summary: str
    main: str
    """Import path of a function from command-line arguments to an exit status. Its module also has `parse`."""
    agreed: Mapping[str, str] = field(default_factory=dict)
    """Options that must agree with a parameter of the bridge or server, by the parameter's name."""
    apart: Mapping[str, Value] = field(default_factory=dict)
    """Options that keep several instances apart."""
    agree: Callable[[Mapping[str, Value]], dict[str, Value]] | None = None
    """Further options that must agree: a function from the node's parameters to options."""
    at_once: Mapping[str, Value] = field(default_factory=dict)
    """Options with which an operator steers from its start, and an emulated vehicle obeys from its start."""

    def beside(self, node: "NodeKind", parameters: Mapping[str, Value]) -> dict[str, Value]:
        """Return the options that agree with a node of these parameters and keep clear of other programs."""
        agreed = {
            option: parameters[name] if name in parameters else node.declarations[name].default
            for name, option in self.agreed.items()
        }
        return {**self.apart, **agreed, **(self.agree(parameters) if self.agree else {})}

    @staticmethod
    def words(options: Mapping[str, Value]) -> list[str]:
        """Return options as command-line arguments. True is an option without a value."""
        return [
            f"--{name}" if value is True else f"--{name}={value}"
            for name, value in options.items()
            if value is not False
        ]


@dataclass(frozen=True, slots=True)
class NodeKind:
    """A node class and its parameters, imported on first use."""

    node: str
    parameters: str = ""
    """Import path of its parameter declarations; by default PARAMETERS of its module."""
    executable: str = ""
    """Name of its executable; by default <kind>_bridge."""
    arguments: tuple[str, ...] = ()
    """Command-line arguments of the executable."""

    @property
    def make(self) -> Any:
        """The class. It accepts rclpy's node options, such as `namespace`."""
        return load(self.node)

    @property
    def declarations(self) -> Mapping[str, Any]:
        """Its parameter declarations by name."""
        return {each.name: each for each in load(self.parameters or f"{self.node.partition(':')[0]}:PARAMETERS")}


@dataclass(frozen=True, slots=True)
class Emergency:
    """A service without a request that ends a flight immediately. Only people call it, after a warning."""

    action: str
    """The effect in a few words, as on a button: cut motors"""
    effect: str
    """The consequence in flight, as the end of a sentence."""


CUT_MOTORS = Emergency("cut motors", "the motors stop immediately, and the drone falls")


@dataclass(frozen=True, slots=True)
class ProtocolKind:
    """A protocol and the import paths of its parts."""

    name: str
    summary: str
    ports: tuple[Port, ...]  # the first one carries the conversation
    operator_role: Role
    vehicle_role: Role
    is_stream: bool
    topics: str
    """Import path of a TopicTable: the topics, and their conversion to and from the wire."""
    bridge: NodeKind
    server: NodeKind | None = None
    emulator: Program | None = None
    operator: Program | None = None
    launch_file: str = ""  # of the bridge with the emulator and a controller
    launch_arguments: Mapping[str, Value] = field(default_factory=dict)
    """Arguments without which the launch file has no vehicle."""
    controller: NodeKind | None = None
    conversation: str = ""
    """Import path of a function that returns a sample conversation: a sequence of Sent with each message of the
    protocol.

    Tests encode and decode it, split it anywhere, and mutate it."""
    title: str = ""
    """The vehicle's common name, as in the middle of a sentence. Empty: the name"""
    emulated: Mapping[str, Value] = field(default_factory=dict)
    """Default parameters of the bridge for an emulated vehicle."""
    commands: str = ""
    """Import path of a function that returns a reader of one connection: a function from the operator's bytes, split
    anywhere if it is a stream, to one bool per command: whether it is neutral. Without it, no test can judge
    commands."""
    recorded: str = "drone_bridge.kind:Recorded"
    """Import path of the reader of recorded conversations"""
    emergencies: Mapping[str, Emergency] = field(default_factory=dict)
    """Emergency services of the bridge, by name."""
    buttons: Mapping[str, bool] = field(default_factory=dict)
    """Requests that are the page's buttons, in this order, and whether each may move the vehicle. One that may takes
    two presses, and is refused on hold and while another person steers."""
    model: str = "drone"
    """The vehicle's model in `vehicle_model`."""
    axes: tuple[str, ...] = ()
    """Axes of cmd_vel that it follows, of x, y, z and yaw. Empty: those of its model."""
    max_speeds: Mapping[str, float] = field(default_factory=dict)
    """Its maximum speeds along and about these, m/s and rad/s, as far as they are fixed."""
    has_north: bool = False
    """Whether a yaw of 0 is east, so that headings relate to north."""
    watchdog_s: float | None = NOT_STATED
    """Time without a command after which the emulated vehicle stops by itself. None: never. `drone-bridge check`
    measures it if it is stated."""
    faults: str = ""
    """Import path of a function that yields what is wrong with the description, as sentences. Starts no process."""
    findings: str = ""
    """Import path of a function that yields what `drone-bridge doctor` reports about this machine: pairs of a finding
    and its remedy, which is empty if there is no problem. It sends the vehicle nothing."""
    represents: tuple[Mechanism, ...] = ()
    """Mechanisms that are tested with this kind for all others, by the promises with the marker `by_mechanism`."""

    @property
    def module(self) -> str:
        """Module of its bridge; of a `robot_class.Robot`, that of the class."""
        return self.bridge.node.partition(":")[0]

    def role(self, side: Side) -> Role:
        return self.operator_role if side is Side.OPERATOR else self.vehicle_role

    def connect(self, side: Side) -> Any:
        """Return a new connection for one end."""
        return load(self.role(side).connection)()


class Recorded:
    """Reader of both directions of a recorded conversation. Data of one side is read by a connection of the other side.

    Each event is also noted as sent by the sender's own connection. A protocol whose messages need more context has a
    subclass.
    """

    def __init__(self, kind: ProtocolKind, parameters: Mapping[str, Any]) -> None:
        """`parameters`: those known of the node that recorded it."""
        self.readers = {side: kind.connect(side.other) for side in Side}

    def note_sent(self, sender: Side, event: Any) -> None:
        """Note that a side has sent an event. Raises LocalProtocolError if its connection can't send it."""
        self.readers[sender.other].send(event)

    def prepare(self, sender: Side) -> None:
        """Prepare for the next message of a side."""


def load(part: str) -> Any:
    """Import `module:attribute`, `module:attribute.nested` or `module`. Raises ImportError and AttributeError."""
    name, _, attribute = part.partition(":")
    try:
        module = importlib.import_module(name)
    except SystemExit as error:  # of a script without `if __name__ == "__main__"`
        raise ImportError(f"importing the module {name} ends the program (exit status {error.code})") from error
    return operator.attrgetter(attribute)(module) if attribute else module


def kinds() -> Mapping[str, ProtocolKind]:
    """Return all protocols by name: ours, classes of other packages in alphabetical order, then those of `robots/`.

    A name in use is skipped. An entry point that fails to load is left out with a warning, and keeps its name.
    """
    return _loaded()[0]


def unloadable() -> Mapping[str, str]:
    """Return the reasons why classes of other packages could not be loaded, by name."""
    return _loaded()[1]


@functools.cache
def _loaded() -> tuple[Mapping[str, ProtocolKind], Mapping[str, str]]:
    # Imported here, since it doubles the import time of a codec.
    from importlib.metadata import entry_points

    found: dict[str, ProtocolKind] = {name: load(f"drone_bridge.{name}:KIND") for name in OWN}
    failures: dict[str, str] = {}
    for entry in sorted(entry_points(group=ENTRY_POINTS), key=lambda entry: entry.name):
        if entry.name in found:
            continue
        sentence = f"Importing {entry.value} takes long. A module that is imported must not run a program that goes on."
        slow = threading.Timer(SLOW_IMPORT_S, print, [sentence], {"file": sys.stderr, "flush": True})
        slow.daemon = True
        slow.start()
        try:
            kind = load(f"{entry.module}:{entry.attr}")
            kind = getattr(kind, "KIND", kind)  # of a robot_class.Robot
            if not isinstance(kind, ProtocolKind):
                raise TypeError(f"it is {kind!r:.60} and must be a robot_class.Robot")
            if kind.bridge.executable != "robot_class_bridge":
                raise TypeError("a protocol in a folder must be in drone_bridge; others may add robots in one class")
            if kind.name != entry.name:
                raise ValueError(f"its name is {kind.name!r} and must be that of its entry point, {entry.name!r}")
        except BaseException as error:  # another package's module may raise any, and Ctrl-C ends a long import
            failures[entry.name] = f"{entry.value}: {type(error).__name__}: {' '.join(str(error).split())}"
            file = f"{entry.module.rpartition('.')[2]}.py"
            lines = [at.lineno for at in traceback.extract_tb(error.__traceback__) if at.filename.endswith(file)]
            if lines:
                failures[entry.name] += f" ({file}, line {lines[-1]})"
            elif entry.dist and not isinstance(error, SyntaxError):  # its folder was moved or removed: still registered
                failures[entry.name] += f" (install its folder again, or run 'pip uninstall {entry.dist.name}')"
            warnings.warn(f"The protocol {entry.name!r} could not be loaded: {failures[entry.name]}", stacklevel=4)
            continue
        finally:
            slow.cancel()
        found[entry.name] = kind
    for name in [name for name in ROBOTS if name not in {*found, *failures}]:
        found[name] = load(f"drone_bridge.robots.{name}:{ROBOTS[name]}.KIND")
    return found, failures
