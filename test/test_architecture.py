# SPDX-License-Identifier: Apache-2.0
"""What holds for the whole tree: who may import whom, what works without ROS, and what every file has."""

import ast
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "drone_bridge"
MODULES = sorted(PACKAGE.rglob("*.py"))
MAX_LINES = 400

# Which parts of drone_bridge, or modules of them, each part may import beside itself.
ALLOWED = {
    "protocols": set(),
    "links": set(),
    "geometry": set(),
    "described": set(),
    "kind": set(),
    **{key: {"kind", "protocols"} for key in ("testbed", "dronegui", "simulator", "robot", "telemetry")},
    "flight": {"described", "geometry"},
    "vision": {"described", "geometry"},
    "translate": {"flight", "geometry", "protocols", "msg", "srv"},
    "node": {"described", "translate"},
    "link_node": {"flight", "geometry", "translate", "links", "protocols", "node", "msg", "srv"},
    "bridges": {"flight", "geometry", "translate", "links", "protocols", "node", "link_node", "msg", "srv"},
    # What the vehicle's side of a conversation answers: used by emulators (simulated) and servers (a ROS vehicle).
    "vehicle_side": {"geometry", "protocols"},
    "servers": {
        "flight",
        "geometry",
        "translate",
        "links",
        "protocols",
        "vehicle_side",
        "vision",
        "node",
        "link_node",
        "msg",
        "srv",
    },
    "controllers": {"described", "flight", "geometry", "translate", "node", "vision", "msg", "srv"},
    "programs": {"links", "protocols"},
    "emulators": {"geometry", "links", "missing_package", "programs", "protocols", "vehicle_side"},
    "operators": {"flight", "geometry", "links", "programs", "protocols"},
    "tools": {"geometry", "kind", "translate", "node", "missing_package", "msg", "srv"},
    "tools/view": {"programs"},
    "tools/wire": {"links", "programs", "protocols"},
    # Shows a flight, and so knows its world.
    "tools/demo": {"emulators", "operators", "geometry", "translate", "node", "msg", "srv"},
    "tools/fleet": {"kind", "node", "programs"},  # many of them in one process
    "missing_package": set(),
    "__init__": set(),
}
# A protocol has no socket, no thread and no clock; its caller has.
FORBIDDEN_IN_PROTOCOLS = {"asyncio", "datetime", "select", "selectors", "socket", "subprocess", "threading", "time"}
WITHOUT_ROS = (
    "protocols",
    "links",
    "vehicle_side",
    "emulators",
    "operators",
    "programs",
    "geometry",
    "flight",
    "vision",
)

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
    allowed = ALLOWED.get("/".join(names[:2]), ALLOWED[names[0]])
    return tuple(f"drone_bridge.{name}." for name in {names[0]} | allowed)


def part_of(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


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


def import_without_ros(*parts):
    command = [sys.executable, "-c", IMPORT_WITHOUT_ROS, *parts]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_one_way(path):
    ours = {name for name in imported_names(path) if name.startswith("drone_bridge.")}
    assert not {name for name in ours if not f"{name}.".startswith(allowed_prefixes(path))}


def test_protocols_have_no_socket_no_thread_no_clock():
    found = {
        (path.name, name)
        for path in MODULES
        if part_of(path) == "protocols"
        for name in imported_names(path)
        if name.split(".")[0] in FORBIDDEN_IN_PROTOCOLS
    }
    assert not found


def test_translate_imports_messages_but_no_node():
    found = {path.name for path in MODULES if part_of(path) == "translate" and "rclpy" in set(imported_names(path))}
    assert not found


IMPORT_WITHOUT_ROS = r"""
import importlib, pkgutil, re, sys

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
for part in sys.argv[1:]:
    package = importlib.import_module(f"drone_bridge.{part}")
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
        print(module.name)
"""


def test_protocols_links_and_emulators_import_on_a_machine_without_ros():
    done = import_without_ros(*WITHOUT_ROS)
    assert done.returncode == 0, done.stderr
    expected = {
        "drone_bridge." + ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        for path in MODULES
        if part_of(path) in WITHOUT_ROS and path.name != "__init__.py"
    }
    assert set(done.stdout.split()) >= expected


def test_what_needs_ros_does_not_import_there():
    """The test above can fail."""
    done = import_without_ros("translate")
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


def test_no_module_is_longer_than_a_reader_can_hold():
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in MODULES}
    assert not {name: length for name, length in lengths.items() if length > MAX_LINES}


def test_no_file_names_a_folder_of_somebodys_machine():
    found = []
    for path in source_files():
        for number, line in enumerate(path.read_bytes().splitlines(), 1):
            if PRIVATE_FOLDER.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line[:200]!r}")
    assert not found


def test_the_architecture_diagram_is_current():
    spec = importlib.util.spec_from_file_location("draw_architecture", ROOT / "docs" / "draw_architecture.py")
    drawing = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(drawing)
    assert drawing.is_current(), "run 'make architecture'"
