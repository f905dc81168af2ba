# SPDX-License-Identifier: Apache-2.0
"""Evaluation of a launch file with its arguments to processes. It starts and writes nothing."""

import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from drone_bridge.programs.options import ENDS_LAUNCH, NEEDED_BY_LAUNCH
from drone_bridge.tools.launch import parameters, substitutions
from drone_bridge.tools.launch.arguments import Argument, declared_in, refuse_unknown
from drone_bridge.tools.launch.parse import Element, LaunchFileError, load
from drone_bridge.tools.launch.substitutions import Scope, SubstitutionError, find_executable, package_prefix

_VARIABLE = re.compile(r"\$\(var\s+(\w+)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Launch variable that stores the namespace of <push_ros_namespace>, so that groups scope it.
_NAMESPACE = "ros_namespace"
# Part of our launch files that makes `ros2 launch` end with the processes that have the option ENDS_LAUNCH.
_ENDS_LAUNCH_PART = "ends_launch.launch.py"
# Executables that record or show how the others end.
_OBSERVERS = ("recorder", "web_bridge")
# Ends of the names of executables that command a vehicle: see `NodeKind.executable`.
_DRIVERS = ("_bridge", "_server")


@dataclass(frozen=True, slots=True)
class Process:
    """Process to run."""

    label: str  # unique prefix of its output lines: name-1, name-2, ...
    command: tuple[str, ...]
    environment: Mapping[str, str]
    is_required: bool  # whether its end ends the launch
    is_observer: bool  # whether it is stopped after all others, whose end it records or shows
    must_start: bool  # whether the launch ends if it can't start
    is_driver: bool  # whether it is a bridge or server, which has to stop its vehicle before it ends
    respawn_delay: float | None  # s from its end to its restart; None: never
    files: Mapping[Path, str] = field(default_factory=dict)  # parameter files that the command names


def evaluate(
    path: Path, given: Mapping[str, str], folder: Path, warn: Callable[[str], None] = lambda _: None
) -> list[Process]:
    """Return the processes of a launch file, in the order of their start.

    `given`: launch arguments by name; `folder`: future location of the parameter files; `warn`: called with a sentence
    for each probable mistake. Raises LaunchFileError for errors and unsupported features, also in included files.
    """
    root = load(path)
    evaluation = _Evaluation(given, folder, warn)
    evaluation.run_file(root, dict(given))
    refuse_unknown(given, {**declared_in(root), **evaluation.declared}, path)
    evaluation.refuse_unused()
    evaluation.name_unused_parameters()
    return evaluation.processes


class _Evaluation:
    """Evaluator of the element tree, in document order. A group has its own scope, an included file does not."""

    def __init__(self, given: Mapping[str, str], folder: Path, warn: Callable[[str], None]) -> None:
        self.processes: list[Process] = []
        self.declared: dict[str, Argument] = {}
        self._given = given
        self._folder = folder
        self._warn = warn
        self._files = 0
        # Executables by full name of the node, by parameter file, except for installed files of the node's package.
        self._addressed: dict[Path, dict[str, str]] = {}
        self._scope = Scope({}, dict(os.environ), Path())
        # Conditions of the skipped elements that use a variable, as the launch arguments that fulfil them, by its name.
        self._skipped: dict[str, dict[str, None]] = {}
        self._actions = {
            "arg": self._arg,
            "let": self._let,
            "node": self._node,
            "executable": self._executable,
            "include": self._include,
            "group": self._group,
            "push_ros_namespace": self._push_ros_namespace,
            "set_env": self._set_env,
        }

    def name_unused_parameters(self) -> None:
        """Warn of unused entries in parameter files, except installed ones."""
        for path, nodes in self._addressed.items():
            declared = {name: parameters.declared_by(executable) for name, executable in nodes.items()}
            for sentence in parameters.unused(path, declared):
                self._warn(sentence)

    def refuse_unused(self) -> None:
        """Raise LaunchFileError for a given argument that only skipped elements use."""
        for name, value in self._given.items():
            if name in self._skipped and name not in self._scope.read:
                raise LaunchFileError(f"{name}:={value} would be ignored: it needs {' or '.join(self._skipped[name])}")

    def run_file(self, root: Element, given: dict[str, str]) -> None:
        self._scope.configurations.update(given)
        self._scope.directory = root.path.absolute().parent
        self._run(root.children)

    def _run(self, elements: Iterable[Element]) -> None:
        for element in elements:
            try:
                if self._condition_holds(element):
                    self._actions[element.tag](element)
                else:
                    self._skip(element)
            except (ValueError, OSError) as error:
                raise element.error(self._with_argument(element, error)) from error

    def _skip(self, element: Element) -> None:
        """Note the variables that a skipped element uses, if its condition is a launch argument."""
        (attribute,) = element.attributes.keys() & {"if", "unless"}
        (*_, condition) = ["", *_VARIABLE.findall(element.attributes[attribute])]
        if condition in self.declared:
            for name in _VARIABLE.findall(repr(element)):  # with all that it contains
                self._skipped.setdefault(name, {})[f"{condition}:={str(attribute == 'if').lower()}"] = None

    def _with_argument(self, element: Element, problem: object) -> str:
        """Return a problem of an element, prefixed by the launch argument that caused it, if any."""
        used = _VARIABLE.findall(" ".join(element.attributes.values()))
        for name in used:
            value = self._given.get(name)
            if value and value in str(problem) and not str(problem).startswith(f"{name}:="):
                return f"{name}:={value}: {problem}"
        return str(problem)

    def _condition_holds(self, element: Element) -> bool:
        for attribute, wanted in (("if", ("true", "1")), ("unless", ("false", "0"))):
            condition = self._optional(element, attribute)
            if condition is not None:
                value = condition.strip().lower()
                if value not in ("true", "1", "false", "0"):
                    self._refuse_argument(element.attributes[attribute], value)
                    raise SubstitutionError(f"{attribute}: '{condition}' is none of true, 1, false and 0")
                return value in wanted
        return True

    def _refuse_argument(self, text: str, value: str) -> None:
        """Raise LaunchFileError if the value of a condition is that of a given launch argument."""
        for name in _VARIABLE.findall(text):
            if self._given.get(name, "").strip().lower() == value:
                raise LaunchFileError(f"{name}:={self._given[name]} must be true or false")

    def _text(self, element: Element, attribute: str) -> str:
        return substitutions.perform(element.attributes[attribute], self._scope)

    def _optional(self, element: Element, attribute: str) -> str | None:
        return self._text(element, attribute) if attribute in element.attributes else None

    def _arg(self, element: Element) -> None:
        argument = Argument.declared_by(element)
        self.declared[argument.name] = argument
        if argument.name not in self._scope.configurations:
            if argument.default is None:
                raise SubstitutionError(argument.demand)
            self._scope.configurations[argument.name] = self._text(element, "default")
        value = self._scope.configurations[argument.name]
        if argument.choices and value not in argument.choices:
            raise SubstitutionError(f"{argument.name}:={value} is none of {', '.join(argument.choices)}")

    def _let(self, element: Element) -> None:
        name, value = self._text(element, "name"), self._text(element, "value")
        self._scope.configurations[name] = value

    def _set_env(self, element: Element) -> None:
        name, value = self._text(element, "name"), self._text(element, "value")
        self._scope.environment[name] = value

    def _push_ros_namespace(self, element: Element) -> None:
        pushed = self._text(element, "namespace")
        self._scope.configurations[_NAMESPACE] = _checked_namespace(self._namespace_below(pushed))

    def _namespace_below(self, namespace: str | None) -> str | None:
        """Return a namespace made absolute by pushed ones, or None without any."""
        base = self._scope.configurations.get(_NAMESPACE)
        if namespace is None or not base or namespace.startswith("/"):
            joined = base if namespace is None else namespace
        else:
            joined = f"{base if base != '/' else ''}/{namespace}"
        if joined is None:
            return None
        joined = joined if joined == "/" else joined.rstrip("/")
        return joined if joined.startswith("/") else f"/{joined}"

    def _group(self, element: Element) -> None:
        outside = dict(self._scope.configurations), dict(self._scope.environment)
        self._run(element.children)
        self._scope.configurations, self._scope.environment = outside

    def _include(self, element: Element) -> None:
        path = Path(self._text(element, "file"))
        if path.name == _ENDS_LAUNCH_PART:  # `_add` has the same effect
            return
        if path.suffix in (".py", ".yaml", ".yml"):
            raise SubstitutionError(f"{path}: this runner includes XML launch files only")
        root = load(path)
        directory = self._scope.directory
        # As upstream, $(dirname) in the arguments is that of the included file.
        self._scope.directory = path.absolute().parent
        given: dict[str, str] = {}
        for argument in element.named("arg"):
            name, value = self._text(argument, "name"), self._text(argument, "value")
            given[name] = self._scope.configurations[name] = value
        self.run_file(root, given)
        self._scope.directory = directory

    def _executable(self, element: Element) -> None:
        command = substitutions.split_command(element.attributes["cmd"], self._scope)
        if not command:
            raise SubstitutionError("cmd: there is no command")
        self._add(element, command, self._optional(element, "name"), files={})

    def _node(self, element: Element) -> None:
        package, executable = self._text(element, "pkg"), self._text(element, "exec")
        command = [find_executable(package, executable)]
        for attribute, separator in (("args", []), ("ros_args", ["--ros-args"])):
            if attribute in element.attributes:
                command += [*separator, *substitutions.split_command(element.attributes[attribute], self._scope)]
        name, namespace = self._optional(element, "name"), self._namespace_below(self._optional(element, "namespace"))
        command += ["--ros-args", *_renamed(name, namespace)]
        full_name = None if name is None or namespace is None else f"{namespace.rstrip('/')}/{name}"
        files: dict[Path, str] = {}
        for parameter in element.named("param"):
            file = self._parameter_file(parameter, full_name, files)
            command += ["--params-file", str(file)]
            if file not in files and package_prefix(package) not in file.parents:
                addressed = self._addressed.setdefault(file, {})
                addressed[f"{(namespace or '').rstrip('/')}/{name or executable}"] = executable
        command += self._remappings(element)
        self._add(element, command, None, files)

    def _remappings(self, element: Element) -> Iterator[str]:
        for remap in element.named("remap"):
            yield from ("-r", f"{self._text(remap, 'from')}:={self._text(remap, 'to')}")

    def _parameter_file(self, element: Element, node: str | None, files: dict[Path, str]) -> Path:
        """Return the parameter file for a <param>. The text of a new file is added to `files`."""
        try:
            if element.attributes.keys() == {"from"}:
                path = Path(self._text(element, "from"))
                if not path.is_file():
                    raise SubstitutionError(f"there is no parameter file {path}")
                parameters.check_file(path)
                return path
            text = parameters.parameter_file(element, self._scope, node)
        except SubstitutionError as error:
            raise element.error(self._with_argument(element, error)) from error
        self._files += 1
        path = self._folder / f"launch_params_{self._files}.yaml"
        files[path] = text
        return path

    def _add(self, element: Element, command: list[str], name: str | None, files: Mapping[Path, str]) -> None:
        """Add the process of a <node> or <executable>, with their common attributes."""
        environment = dict(self._scope.environment)
        if shutil.which(command[0], path=environment.get("PATH")) is None:
            raise SubstitutionError(f"there is no executable '{command[0]}'")
        program = Path(command[0]).name
        is_observer = program in _OBSERVERS
        self.processes.append(
            Process(
                label=f"{name or program}-{len(self.processes) + 1}",
                command=tuple(command),
                environment=environment,
                is_required=ENDS_LAUNCH in command,
                is_observer=is_observer,
                must_start=program.endswith(NEEDED_BY_LAUNCH),
                is_driver=program.endswith(_DRIVERS) and not is_observer,
                respawn_delay=self._respawn_delay(element),
                files=files,
            )
        )

    def _respawn_delay(self, element: Element) -> float | None:
        delay = float(element.attributes.get("respawn_delay", "0"))
        respawn = self._optional(element, "respawn")
        return delay if respawn is not None and substitutions.truth(respawn) else None


def _renamed(name: str | None, namespace: str | None) -> list[str]:
    """Return the ROS arguments for the name and namespace of a node."""
    words = [] if name is None else ["-r", f"__node:={name}"]
    return words if namespace is None else [*words, "-r", f"__ns:={_checked_namespace(namespace)}"]


def _checked_namespace(namespace: str | None) -> str:
    if not namespace or (namespace != "/" and not all(map(_NAME.fullmatch, namespace[1:].split("/")))):
        raise SubstitutionError(
            f"'{namespace}' is not a namespace: letters, digits and underscores, a slash between names, no digit first"
        )
    return namespace
