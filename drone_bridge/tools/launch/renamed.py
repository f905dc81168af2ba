# SPDX-License-Identifier: Apache-2.0
"""The names that arguments of our launch files had in 0.1, read from the command line for this release.

An included file takes any argument of the same name from the file around it, and launch does not say whether it was
passed on purpose. So the common names of 0.1 count where they were typed after our file's name, and nowhere else.
`launch/parts/old_names.launch.py` does this for `ros2 launch`, and `evaluate` for `drone-bridge launch`.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping
from pathlib import Path
from typing import Final

PART: Final = "old_names.launch.py"
#: The argument with which a launch file tells the part who includes it.
OWNER: Final = "old_names_of"

_ROVER = {"pattern": "rover_pattern", "speed": "rover_speed", "amplitude": "rover_amplitude"}
_LANDING = {
    "seed": "landing_seed",
    "start": "landing_start",
    "height": "landing_start_height",
    "trajectory": "landing_trajectory",
}
_PLAN = {"plan": "operator_plan"}


def _prefixed(prefix: str, names: str) -> dict[str, str]:
    return {name: f"{prefix}_{name}" for name in names.split()}


_IMAGES = {"width": "testbed_image_width", "height": "testbed_image_height"}

#: By launch file: the present name of each argument that was renamed.
RENAMED: Final[Mapping[str, Mapping[str, str]]] = {
    "all": _prefixed("peer", "host"),
    "fleet": _prefixed("fleet", "file host"),
    "testbed": _prefixed("testbed", "host port sync seed pace rate trajectory")
    | _IMAGES
    | {"role": "testbed_bridge_role"},
    "dronegui": _prefixed("dronegui", "host port rate plan loss seed trajectory"),
    "landing": _prefixed("telemetry", "host port transport") | _ROVER | _LANDING,
    "robot": _prefixed("robot", "host port trajectory") | _ROVER,
    "simulator": _prefixed("simulator", "host port running plan rate speed scene items seed trajectory"),
    "testbed_server": _prefixed("testbed_server", "host port role")
    | _prefixed("testbed", "sync seed pace rate trajectory cameras")
    | _IMAGES
    | _PLAN,
    "dronegui_server": _prefixed("dronegui_server", "host port")
    | _prefixed("dronegui", "loss seed trajectory")
    | _PLAN,
    "robot_server": _prefixed("robot_server", "host port") | _prefixed("robot", "trajectory") | _PLAN,
    "simulator_server": _prefixed("simulator_server", "host port role")
    | _prefixed("simulator", "running scene items trajectory")
    | _PLAN,
    "telemetry_server": _prefixed("operator", "host port transport") | _LANDING | _PLAN,
}

_warned_about: set[str] = set()  # ignored names


def typed_after(file: Path, words: Iterable[str]) -> set[str]:
    """Return the arguments that follow this launch file on a command line, by whichever path or name it is called."""
    before, names, found = "", set(), False
    for word in words:
        name, separator, _ = word.partition(":=")
        if separator:
            if found:
                names.add(name)
        elif Path(word).name == file.name:
            found = before == "drone_bridge" or Path(word).resolve() == file.resolve()
        before = word
    return names


def rename(
    configurations: MutableMapping[str, str], owner: str, typed: Collection[str], warn: Callable[[str], None]
) -> None:
    """Move the values typed under old names to the present ones, and ignore those inherited from an including file.

    `configurations` are the variables where `owner` (a key of RENAMED) is included or run. Each ignored name is warned
    about once, as several of our files can be included.
    """
    names = RENAMED[owner]
    for old in [name for name in names if name in typed and name in configurations]:
        configurations.setdefault(names[old], configurations.pop(old))
        warn(f"{old}:= is called {names[old]}:= now; the old name is for this release only")
    inherited = [name for name in names if name in configurations and name not in _warned_about]
    if inherited:
        _warned_about.update(inherited)
        theirs, ours = (", ".join(map(repr, words)) for words in (inherited, [names[name] for name in inherited]))
        warn(f"{owner}.launch.xml does not read {theirs} of the file that includes it: where it is meant, pass {ours}")
