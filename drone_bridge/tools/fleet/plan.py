# SPDX-License-Identifier: Apache-2.0
"""The file of a fleet: YAML with ranges, read into one description per vehicle. See docs/fleet.md for its keys."""

import contextlib
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import yaml
from rclpy.exceptions import InvalidNamespaceException
from rclpy.validate_namespace import validate_namespace

from drone_bridge import kind as registry
from drone_bridge.kind import NodeKind, ProtocolKind, Value, kinds
from drone_bridge.ros.parameters import ParameterDeclaration
from drone_bridge.tools.launch import yaml_text
from drone_bridge.tools.launch.parse import read_file

KEYS = ("protocol", "namespace", "frame_prefix", "host", "port", "parameters", "emulate", "control")
MAX_VEHICLES = 1000
MAX_PORT = 65535
Pairs = dict[str, tuple[yaml.Node, yaml.Node]]
"""Of a map: each key's node and that of its value, by the key"""


class FleetFileError(ValueError):
    """The file of a fleet is wrong; the text says where and why."""


@dataclass(frozen=True, slots=True)
class Vehicle:
    """One vehicle of a fleet."""

    name: str
    protocol: str
    namespace: str
    frame_prefix: str
    parameters: Mapping[str, Value]  # the bridge's, host and port among them
    emulate: Mapping[str, Value] | None = None  # options of the emulator; None: it is a real vehicle
    control: Mapping[str, Value] | None = None  # parameters of the controller; None: there is none

    @property
    def kind(self) -> ProtocolKind:
        """What belongs to its protocol."""
        return kinds()[self.protocol]

    def parameter(self, name: str) -> Value | None:
        """Return the value of a parameter of the bridge, the default where the file has none."""
        declarations = self.kind.bridge.declarations
        return self.parameters.get(name, declarations[name].default if name in declarations else None)

    @property
    def emulator_options(self) -> list[str]:
        """The emulator's command line."""
        return self.kind.emulator.words(self.emulate or {})


@dataclass(frozen=True, slots=True)
class Overrides:
    """Settings for all vehicles of a fleet, from outside its file."""

    namespace: str = ""  # prefix for that of each vehicle
    frame_prefix: str = ""  # likewise
    host: str = "127.0.0.1"  # of vehicles without one in the file
    emulate: bool = False  # all of them
    control: bool = False


def load(path: Path, overrides: Overrides | None = None) -> tuple[Vehicle, ...]:
    """Read a file. Raises OSError and FleetFileError."""
    try:
        return _File(str(path), read_file(path).decode(), overrides or Overrides()).vehicles()
    except UnicodeDecodeError as error:
        raise FleetFileError(f"{path} is not text in UTF-8: {error}") from error


@dataclass(slots=True)
class _File:
    path: str
    text: str
    overrides: Overrides
    found: dict[str, Vehicle] = field(default_factory=dict)
    claimed: dict[tuple[str, str], str] = field(default_factory=dict)  # by whom, by protocol and claim
    addresses: dict[tuple[str, str, Value], Vehicle] = field(default_factory=dict)

    def vehicles(self) -> tuple[Vehicle, ...]:
        try:
            root = yaml_text.compose(self.text)
        except yaml.YAMLError as error:
            raise FleetFileError(f"{yaml_text.refusal(self.path, error)}.") from error
        if root is None:
            raise FleetFileError(f"{self.path} is empty, and has to have the key 'vehicles'.")
        top = self._map(root, "the file", ("vehicles",))
        if "vehicles" not in top:
            raise self._error(root, "the key 'vehicles' is missing.")
        for name, (key, entry) in self._map(top["vehicles"][1], "'vehicles'").items():
            for vehicle in self._vehicles_of(name, key, entry):
                self._add(key, vehicle)
        if not self.found:
            raise self._error(top["vehicles"][0], "'vehicles' is empty.")
        return tuple(self.found.values())

    def _add(self, key: yaml.Node, vehicle: Vehicle) -> None:
        try:
            validate_namespace(vehicle.namespace)
        except InvalidNamespaceException as error:
            why = str(error).partition(":\n")[0].removeprefix("Invalid namespace: ")
            raise self._error(
                key, f"'{vehicle.name}' can't have the namespace '{vehicle.namespace}': {why}."
            ) from error
        if vehicle.name in self.found:
            raise self._error(key, f"there is a vehicle '{vehicle.name}' already.")
        for other in self.found.values():
            if other.namespace == vehicle.namespace and other.protocol == vehicle.protocol:
                raise self._error(key, f"'{vehicle.name}' has the namespace of '{other.name}', {vehicle.namespace}.")
        for claim in _claims(vehicle):
            owner = self.claimed.setdefault((vehicle.protocol, claim), vehicle.name)
            if owner != vehicle.name:
                raise self._error(key, f"'{vehicle.name}' has {claim}, and so has '{owner}'.")
        if address := _address(vehicle):
            other = self.addresses.setdefault(address, vehicle)
            if other.protocol != vehicle.protocol:  # its bridge would talk to the other one's vehicle
                raise self._error(
                    key,
                    f"'{vehicle.name}' ({vehicle.protocol}) has the {address[0]} address {address[1]}:{address[2]}, "
                    f"and so has '{other.name}' ({other.protocol}).",
                )
        if len(self.found) == MAX_VEHICLES:
            raise self._error(key, f"there are more than {MAX_VEHICLES} vehicles.")
        self.found[vehicle.name] = vehicle

    def _vehicles_of(self, text: str, key: yaml.Node, node: yaml.Node) -> Iterator[Vehicle]:
        """Yield the vehicles of one entry."""
        names = self._expanded(key, text)
        entry = self._map(node, f"'{text}'", KEYS)
        if "protocol" not in entry:
            raise self._error(key, f"'{text}' has no protocol; it is one of {', '.join(kinds())}.")
        for number, name in enumerate(names):
            vehicle = self._vehicle(name, entry, (number, len(names)))
            if vehicle.emulate and number == 0:
                self._check_emulator(entry["emulate"][1], vehicle)
            yield vehicle

    def _vehicle(self, name: str, entry: Pairs, nth: tuple[int, int]) -> Vehicle:
        """Return the vehicle that is the first of two, say, of an entry."""
        protocol = str(self._nth(entry["protocol"], "protocol", nth))
        if protocol not in kinds():
            raise self._error(entry["protocol"][1], f"protocol is '{protocol}', and is one of {', '.join(kinds())}.")
        kind = kinds()[protocol]
        namespace, frame_prefix = (
            str(self._nth(entry[key], key, nth)) if key in entry else default
            for key, default in (("namespace", name), ("frame_prefix", f"{name}/"))
        )
        vehicle = Vehicle(
            name,
            protocol,
            "/" + "/".join(part for part in (self.overrides.namespace.strip("/"), namespace.strip("/")) if part),
            self.overrides.frame_prefix + frame_prefix,
            self._parameters(entry, nth, kind.bridge, f"{protocol}_bridge"),
            self._switch(entry, "emulate", nth, None),
            self._switch(entry, "control", nth, kind.controller),
        )
        return _completed(vehicle, self.overrides.host)

    def _check_emulator(self, node: yaml.Node, vehicle: Vehicle) -> None:
        """Refuse options that the emulator would refuse."""
        said = io.StringIO()
        try:
            parse = registry.load(f"{vehicle.kind.emulator.main.partition(':')[0]}:parse")
            with contextlib.redirect_stderr(said):
                parse(vehicle.emulator_options)
        except ModuleNotFoundError:  # it will say so itself
            return
        except SystemExit as error:
            why = said.getvalue().rpartition("error: ")[2].strip()
            raise self._error(node, f"the emulator refuses its options: {why}.") from error

    def _parameters(self, entry: Pairs, nth: tuple[int, int], kind: NodeKind, what: str) -> dict[str, Value]:
        given = {name: pair for name, pair in entry.items() if name in ("host", "port")}
        if "parameters" in entry:
            nested = self._map(entry["parameters"][1], "'parameters'")
            for name, (key, _) in nested.items():
                if name in given or name == "frame_prefix":
                    raise self._error(key, f"{name} belongs beside 'parameters', not inside.")
            given.update(self._flat(nested))
        return {name: self._checked(pair, name, nth, kind, what) for name, pair in given.items()}

    def _switch(self, entry: Pairs, key: str, nth: tuple[int, int], kind: NodeKind | None) -> dict[str, Value] | None:
        """Read what is true, false, or a map of options or parameters."""
        everywhere: dict[str, Value] | None = {} if getattr(self.overrides, key) else None
        if key not in entry:
            return everywhere
        node = entry[key][1]
        if isinstance(node, yaml.MappingNode):
            pairs = self._flat(self._map(node, f"'{key}'"))
            if kind is None:
                return {name: self._nth(pair, name, nth) for name, pair in pairs.items()}
            what = f"the controller {kind.node.partition(':')[2]}"
            return {name: self._checked(pair, name, nth, kind, what) for name, pair in pairs.items()}
        value = self._value(node)
        if not isinstance(value, bool):
            raise self._error(node, f"{key} is {value!r}, and is true, false or a map.")
        return {} if value else everywhere

    def _flat(self, pairs: Pairs, prefix: str = "") -> Pairs:
        """Join the names of nested maps by dots, as parameter files do."""
        flat = {}
        for name, (key, node) in pairs.items():
            if isinstance(node, yaml.MappingNode):
                flat.update(self._flat(self._map(node, f"'{prefix}{name}'"), f"{prefix}{name}."))
            else:
                flat[prefix + name] = (key, node)
        return flat

    def _checked(
        self, pair: tuple[yaml.Node, yaml.Node], name: str, nth: tuple[int, int], kind: NodeKind, what: str
    ) -> Value:
        """Return the value of a parameter; refuse what the node would refuse."""
        value = self._nth(pair, name, nth)
        if name.startswith("qos_overrides.") or name == "use_sim_time":
            return value
        declaration = kind.declarations.get(name)
        if declaration is None or declaration.read_only:
            raise self._error(pair[0], f"{what} has no parameter {name} that can be set.")
        value = float(value) if isinstance(declaration.default, float) and type(value) is int else value
        if problem := _problem_with(declaration, value):
            raise self._error(pair[1], problem)
        return value

    def _nth(self, pair: tuple[yaml.Node, yaml.Node], name: str, nth: tuple[int, int]) -> Value:
        """Return the value for one of the vehicles: ranges in step with them, ports counting up, the rest the same."""
        (number, count), node = nth, pair[1]
        value = self._value(node)
        if isinstance(value, str) and has_range(value):
            texts = self._expanded(node, value)
            if len(texts) != count:
                raise self._error(node, f"{name} has {len(texts)} values for {count} vehicles.")
            return int(texts[number]) if texts[number].isdecimal() else texts[number]
        if isinstance(value, int) and not isinstance(value, bool) and _is_port(name) and value != 0:
            last = value + count - 1
            if last > MAX_PORT:
                raise self._error(node, f"{name} counts up from {value} to {last}, beyond {MAX_PORT}.")
            return value + number
        return value

    def _expanded(self, node: yaml.Node, text: str) -> tuple[str, ...]:
        try:
            return tuple(expand(text))
        except ValueError as error:
            raise self._error(node, str(error)) from error

    def _map(self, node: yaml.Node, what: str, allowed: tuple[str, ...] = ()) -> Pairs:
        """Return the pairs of a map by their keys, which are texts, different, and allowed."""
        if not isinstance(node, yaml.MappingNode):
            raise self._error(node, f"{what} has to be a map of keys and values.")
        pairs: Pairs = {}
        for key, value in node.value:
            name = str(key.value) if isinstance(key, yaml.ScalarNode) else ""
            if not name:
                raise self._error(key, f"a key of {what} is not text.")
            if name in pairs:
                raise self._error(key, f"the key '{name}' of {what} is repeated.")
            if allowed and name not in allowed:
                raise self._error(key, f"{what} has no key '{name}'; it has {', '.join(allowed)}.")
            pairs[name] = (key, value)
        return pairs

    def _value(self, node: yaml.Node) -> Value:
        if isinstance(node, yaml.SequenceNode):
            return [self._value(item) for item in node.value]
        try:
            value = yaml_text.scalar(node)
        except yaml.YAMLError as error:
            raise self._error(node, f"{error}.") from error
        if not isinstance(value, bool | int | float | str):
            raise self._error(node, f"'{node.value}' is not a number, text, true or false.")
        return value

    def _error(self, node: yaml.Node, sentence: str) -> FleetFileError:
        return FleetFileError(f"{self.path}:{node.start_mark.line + 1}: {sentence}")


def _claims(vehicle: Vehicle) -> Iterator[str]:
    """Yield what no other vehicle of its protocol may have as well."""
    value = vehicle.parameter
    if value("transport") == "topic":
        yield "the transport 'topic', whose topics have no namespace"
        return
    if value("port"):  # else it takes a free one
        which = [f"{name} {value(name)!r}" for name in ("robot_name", "vehicle") if value(name)]
        yield " and ".join([f"the address {value('host')}:{value('port')}", *which])
    if port := value("navdata_port"):
        yield f"the navdata_port {port}"


def _address(vehicle: Vehicle) -> tuple[str, str, Value] | None:
    """Return what no vehicle of another protocol may have as well: UDP or TCP, the host and the port."""
    port = vehicle.parameter("port")
    if vehicle.parameter("transport") == "topic" or not port:
        return None
    host = str(vehicle.parameter("host"))
    return "TCP" if vehicle.kind.is_stream else "UDP", "127.0.0.1" if host == "localhost" else host, port


def _completed(vehicle: Vehicle, host: str) -> Vehicle:
    """Return the vehicle with what follows from the rest: its address, and what its emulator has to agree with."""
    kind = vehicle.kind
    parameters: dict[str, Value] = {"host": host, **vehicle.parameters, "frame_prefix": vehicle.frame_prefix}
    emulate = vehicle.emulate
    if emulate is not None:
        parameters = {**kind.emulated, **parameters}
        emulate = {
            **kind.emulator.beside(kind.bridge, parameters),
            **{name.replace("_", "-"): value for name, value in emulate.items()},
        }
    control = None if vehicle.control is None else {**kind.control, **vehicle.control}
    return replace(vehicle, parameters=parameters, emulate=emulate, control=control)


def _problem_with(declaration: ParameterDeclaration, value: Value) -> str | None:
    """Return why the node would refuse the value, or None."""
    default = declaration.default
    if type(value) is not type(default) and not (isinstance(value, list) and isinstance(default, (list, tuple))):
        return f"{declaration.name} is {value!r}, and has to be of the type {type(default).__name__}."
    if declaration.range and isinstance(value, int | float):
        low, high = declaration.range
        if not low <= value <= high:
            return f"{declaration.name} is {value}, and has to be from {low:g} to {high:g}."
    return declaration.problem_with(value, "")


def _is_port(name: str) -> bool:
    return name.rpartition("_")[2].rpartition("-")[2] == "port"


# Ranges in texts: drone[1-3] is drone1, drone2, drone3; [08-10] keeps its zeros.


#: Texts that a range may stand for; more are taken for a typo.
MAX_RANGE = 1000
_RANGE = re.compile(r"\[(\d+)-(\d+)\]")


def has_range(text: str) -> bool:
    """Return whether there is a range in the text."""
    return bool(_RANGE.search(text))


def expand(text: str) -> Sequence[str]:
    """Return the texts that a text with one range or none stands for. Raises ValueError with a sentence."""
    ranges = list(_RANGE.finditer(text))
    if not ranges:
        return (text,)
    if len(ranges) > 1:
        raise ValueError(f"'{text}' has {len(ranges)} ranges; at most one is allowed.")
    first, last = ranges[0].groups()
    count = int(last) - int(first) + 1
    if count < 1:
        raise ValueError(f"The range [{first}-{last}] in '{text}' counts down; ranges count up.")
    if count > MAX_RANGE:
        raise ValueError(
            f"The range [{first}-{last}] in '{text}' has {count} members; at most {MAX_RANGE} are allowed."
        )
    width = len(first) if first.startswith("0") else 0
    before, after = text[: ranges[0].start()], text[ranges[0].end() :]
    return tuple(f"{before}{number:0{width}}{after}" for number in range(int(first), int(last) + 1))
