# SPDX-License-Identifier: Apache-2.0
"""What holds for the whole tree: who may import whom, what works without ROS, and what every file has."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "drone_bridge"
MODULES = sorted(PACKAGE.rglob("*.py"))

# The kits, which know no protocol.
WIRE, NET = {"protocols"}, {"links"}
MOTION = {"described", "flight", "geometry"}
VISION, PROGRAMS = {"vision"}, {"programs"}
ROS = {"translate", "node", "link_node", "msg", "srv"}
PROTOCOLS = ("testbed", "dronegui", "simulator", "robot", "telemetry")
# Which parts of drone_bridge, or modules of them, each part may import beside itself.
ALLOWED = {
    "protocols": set(),
    "protocols/__init__": set(PROTOCOLS),  # the door to their codecs
    "kind": set(),
    "links": set(),
    "geometry": set(),
    "described": set(),
    "missing_package": set(),
    "__init__": set(),
    "flight": {"described", "geometry"},
    "vision": {"described", "geometry"},
    "translate": {"flight", "geometry", "protocols", "msg", "srv"},
    "node": {"described", "translate"},
    "link_node": MOTION | WIRE | NET | ROS,
    "bridges": MOTION | WIRE | NET | ROS,
    # What the vehicle's side of a conversation answers: used by emulators (simulated) and servers (a ROS vehicle).
    "vehicle_side": {"geometry", "protocols"},
    "servers": MOTION | WIRE | NET | ROS | VISION | {"vehicle_side"},
    "controllers": MOTION | VISION | ROS - {"link_node"},
    "controllers/rover_controller": MOTION | ROS - {"link_node"} | {"telemetry"},
    "programs": {"links", "protocols"},
    "emulators": {"geometry", "links", "missing_package", "programs", "protocols", "vehicle_side"},
    "operators": {"flight", "geometry", "links", "programs", "protocols"},
    "tools": {"geometry", "kind", "translate", "node", "missing_package", "msg", "srv"},
    "tools/launch": {"kind", "missing_package", "programs"},
    "tools/view": {"programs"},
    "tools/wire": {"links", "programs", "protocols", "testbed", "robot", "simulator", "dronegui", "telemetry"},
    # Shows a flight, and so knows its world.
    "tools/demo": {"emulators", "operators", "geometry", "kind", "translate", "node", "msg", "srv", "telemetry"},
    "tools/fleet": {"kind", "node", "programs"},  # many of them in one process
}
# The same for the parts of a protocol's folder. Those of other protocols are out of reach.
OF_PROGRAMS = WIRE | NET | MOTION | VISION | PROGRAMS | {"emulators", "missing_package", "operators", "vehicle_side"}
OF_NODES = WIRE | NET | MOTION | VISION | ROS | {"servers", "vehicle_side"}
PARTS = {
    "__init__": ({"kind"}, ()),
    "conversation": ({"kind"}, ("codec",)),
    "codec": (WIRE, ()),
    "device": (WIRE | MOTION | {"vehicle_side"}, ("codec",)),
    "emulator": (OF_PROGRAMS, ("codec", "device")),
    "operator": (OF_PROGRAMS, ("codec", "device")),
    "topics": (WIRE | MOTION | ROS, ("codec",)),
    "bridge": (OF_NODES, ("codec", "device", "topics")),
    "server": (OF_NODES, ("codec", "device", "topics")),
}
# A protocol has no socket, no thread and no clock; its caller has.
FORBIDDEN_IN_PROTOCOLS = {"asyncio", "datetime", "select", "selectors", "socket", "subprocess", "threading", "time"}
WITHOUT_ROS = {"kind", "protocols", "links", "vehicle_side", "emulators", "operators", "programs", *MOTION, *VISION}
PARTS_WITHOUT_ROS = {"__init__", "conversation", "codec", "device", "emulator", "operator"}

SOURCE_FOLDERS = (
    ".ci",
    "benchmark",
    "cmake",
    "config",
    "docs",
    "drone_bridge",
    "env",
    "launch",
    "msg",
    "rviz",
    "srv",
    "urdf",
    "web",
)
NO_LICENCE_LINE = re.compile(
    r"(^|/)(LICENSE|README\.md|CHANGELOG\.rst|\.gitignore|\.k)$|\.(json|md|bin|jsonl|mcap|png|rviz)$"
)
GENERATED = re.compile(r"/(__pycache__|node_modules|dist|\.(?!k$)[^/]*)(/|$)")
# Folders of one person's machine, as opposed to those that every system has.
PRIVATE_FOLDER = re.compile(rb"(?<![\w.})~-])/(?:home|root|work|Users|tmp/w)/\w")


def allowed_prefixes(path):
    names = path.relative_to(PACKAGE).with_suffix("").parts
    if names[0] in PROTOCOLS:
        kits, parts = PARTS[names[1]]
        own = (f"drone_bridge.{names[0]}.{part}." for part in (names[1], *parts))
        return tuple(f"drone_bridge.{name}." for name in kits | {"protocols"}) + tuple(own)
    allowed = ALLOWED.get("/".join(names[:2]), ALLOWED[names[0]])
    return tuple(f"drone_bridge.{name}." for name in {names[0]} | allowed)


def part_of(path):
    """Return the kit, or the part of a protocol's folder."""
    names = path.relative_to(PACKAGE).with_suffix("").parts
    return names[1] if names[0] in PROTOCOLS else names[0]


def name_of(path):
    return "drone_bridge." + ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


def needs_no_ros(path):
    is_protocols = path.relative_to(PACKAGE).parts[0] in PROTOCOLS
    return part_of(path) in (PARTS_WITHOUT_ROS if is_protocols else WITHOUT_ROS)


def imported_names(path):
    """Every module that a file imports anywhere in it; for `from a import b` both a and a.b."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield node.module
            if node.module == "drone_bridge":
                yield from (f"drone_bridge.{alias.name}" for alias in node.names)


def source_files():
    """Every file that somebody wrote; what tools leave behind has a name with a dot or underscores in its path."""
    files = [path for folder in (*SOURCE_FOLDERS, "test") for path in (ROOT / folder).rglob("*")]
    written = [path for path in files if not GENERATED.search(path.relative_to(ROOT).as_posix())]
    return sorted(
        path for path in [*written, *ROOT.iterdir()] if path.is_file() and path.name not in (".git", ".coverage")
    )


def import_without_ros(*names):
    command = [sys.executable, "-c", IMPORT_WITHOUT_ROS, *names]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_one_way(path):
    ours = {name for name in imported_names(path) if name.startswith("drone_bridge.")}
    assert not {name for name in ours if not f"{name}.".startswith(allowed_prefixes(path))}


def test_protocols_have_no_socket_no_thread_no_clock():
    found = {
        (path.name, name)
        for path in MODULES
        if part_of(path) in ("protocols", "codec")
        for name in imported_names(path)
        if name.split(".")[0] in FORBIDDEN_IN_PROTOCOLS
    }
    assert not found


def test_translate_imports_messages_but_no_node():
    found = {path.name for path in MODULES if part_of(path) == "translate" and "rclpy" in set(imported_names(path))}
    assert not found


IMPORT_WITHOUT_ROS = r"""
import importlib, re, sys

ROS = re.compile(
    r"(rclpy|rosidl_.*|.*_msgs|.*_interfaces|cv_bridge|ament_.*|launch|launch_.*|rpyutils|tf2_.*|rosbag2_.*)(\..*)?$"
    r"|drone_bridge\.(msg|srv)(\..*)?$"
)

class NoRos:
    def find_spec(self, name, path=None, target=None):
        if ROS.match(name):
            raise ModuleNotFoundError(f"No module named {name!r}: this machine has no ROS", name=name)

sys.meta_path.insert(0, NoRos())
for name in [name for name in sys.modules if ROS.match(name)]:
    del sys.modules[name]
try:
    import rclpy
except ModuleNotFoundError:
    pass
else:
    sys.exit("rclpy could be imported")
import drone_bridge
for name in sys.argv[1:]:
    importlib.import_module(name)
"""


def test_protocols_links_and_emulators_import_on_a_machine_without_ros():
    names = [name_of(path) for path in MODULES if needs_no_ros(path)]
    assert len(names) > 100
    done = import_without_ros(*names)
    assert done.returncode == 0, done.stderr


def test_what_needs_ros_does_not_import_there():
    """The test above can fail."""
    done = import_without_ros("drone_bridge.telemetry.bridge")
    assert done.returncode != 0
    assert "this machine has no ROS" in done.stderr


def private_attributes(path):
    """Return the private attributes that the classes of a file give themselves."""
    assigned = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute))
    own = (node for node in assigned if isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self")
    return {node.attr for node in own if node.attr.startswith("_")}


def test_no_node_assigns_a_private_attribute_of_its_base():
    bases = (PACKAGE / "link_node" / "link_node.py", PACKAGE / "link_node" / "entity_owner.py")
    of_bases = set().union(*map(private_attributes, bases))
    assert "_is_publishing" in of_bases
    nodes = [path for path in MODULES if re.search(r"^class \w+\(LinkNode\):$", path.read_text(), re.MULTILINE)]
    assert len(nodes) >= 10
    assert not {path.name: names for path in nodes if (names := private_attributes(path) & of_bases)}


def test_every_file_names_its_licence():
    without = []
    for path in source_files():
        name = path.relative_to(ROOT).as_posix()
        if NO_LICENCE_LINE.search(name):
            continue
        head = path.read_text().splitlines()[: 1 if path.suffix == ".py" else 4]  # XML has declarations before it
        if not any("SPDX-License-Identifier: Apache-2.0" in line for line in head):
            without.append(name)
    assert not without


def test_no_file_names_a_folder_of_somebodys_machine():
    found = []
    for path in source_files():
        for number, line in enumerate(path.read_bytes().splitlines(), 1):
            if PRIVATE_FOLDER.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line[:200]!r}")
    assert not found
