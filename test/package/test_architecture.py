# SPDX-License-Identifier: Apache-2.0
"""Rules of the whole tree: permitted imports, and headers of files."""

import ast
import graphlib
import re

import pytest
from architecture import KITS, MODULES, PACKAGE, PROTOCOLS, ROOT, part_of

from drone_bridge.kind import OWN
from drone_bridge.session.session import Session

ALL_KITS = {*KITS, "action", "parameter_fields", "kind", "msg", "srv", "standard_files", "stop_signals"}
#: Kits of a family of protocols, which nothing else imports.
FAMILIES = {"ar_drone": ("ardrone", "dronegui")}
ALLOWED = {
    **KITS,
    "ar_drone": {"wire", "net", "session", "motion", "vision", "pictures", "ros", "msg", "parameter_fields"},
    "__init__": set(),
    "parameter_fields": set(),
    "kind": set(),
    "protocols": {"wire"},
    "standard_files": set(),
    "stop_signals": set(),
    "robot_class": ALL_KITS,
    "robots": {"robot_class"},
    "controllers": {"session", "ros", "motion", "vision", "wire", "parameter_fields", "action", "msg", "srv"},
    "tools": ALL_KITS,
    "vehicle": {"ros", "motion", "action"},
}
#: Kits that a node may import.
NODE_KITS = ALL_KITS - {"programs"}
#: Parts of the bridge's end, and of the vehicle's end below it, which the bridge's end never imports.
PARTS = {
    "__init__": ({"kind"}, ()),
    "sample_conversation": ({"kind", "wire"}, ("codec",)),
    "codec": ({"wire"}, ()),
    "units": ({"wire", "motion", "parameter_fields"}, ("codec",)),
    "device": ({"wire", "motion"}, ("codec", "units")),
    "discovery": ({"wire", "net"}, ("codec",)),
    "pictures": ({"wire", "net", "session", "pictures", "ros"}, ("codec", "ports")),
    "ports": ({"wire", "net"}, ("codec",)),
    "topics": ({"wire", "motion", "pictures", "ros", "msg", "srv"}, ("codec", "pictures", "units")),
    "session": ({"wire", "motion", "session", "parameter_fields"}, ("codec", "device", "units")),
    "bridge": (NODE_KITS, ("codec", "device", "discovery", "pictures", "ports", "session", "topics", "units")),
    "vehicle/__init__": (set(), ()),
    "vehicle/device": ({"wire", "motion"}, ("codec", "units")),
    "vehicle/findings": ({"net"}, ("codec",)),
    "vehicle/pictures": ({"wire", "net", "session", "pictures", "ros"}, ("codec", "pictures", "ports")),
    "vehicle/topics": ({"wire", "motion", "ros", "srv"}, ("codec", "topics", "units")),
    "vehicle/session": (
        {"wire", "motion", "session", "parameter_fields"},
        ("codec", "device", "session", "units", "vehicle/device"),
    ),
    "vehicle/emulator": (
        {"wire", "net", "motion", "vision", "programs"},
        ("codec", "device", "discovery", "ports", "units", "vehicle/device"),
    ),
    "vehicle/operator": (
        {"wire", "net", "session", "motion", "vision", "programs"},
        ("codec", "device", "discovery", "ports", "session", "units", "vehicle/device"),
    ),
    "vehicle/server": (
        NODE_KITS,
        (
            *("codec", "device", "discovery", "pictures", "ports", "session", "topics", "units"),
            *("vehicle/device", "vehicle/pictures", "vehicle/session", "vehicle/topics"),
        ),
    ),
}
#: The session of a client with a robot in one class.
CLIENT_PARTS = "client_requests client_sender client_session greeting heard_reports obedience outstanding"
CLIENT = [PACKAGE / f"robot_class/{stem}.py" for stem in CLIENT_PARTS.split()]
# Modules that may depend on protocols.
KNOWN = {
    "protocols/__init__": set(OWN),  # the door to their codecs
}
# A protocol has no socket, no thread and no clock; its caller has.
FORBIDDEN_IN_PROTOCOLS = {"asyncio", "datetime", "select", "selectors", "socket", "subprocess", "threading", "time"}

#: Class names that stand in several modules, as these are public: a traceback names the module as well.
DOUBLES = {
    "Answer": "of a session's Call, of a robot in one class, and of the simulator's codec",
    "Camera": "of a robot in one class, and of the codec of telemetry",
    "ClientConnection": "an end in two codecs",
    "ControllerConnection": "an end in two codecs",
    "Demo": "a block of navdata in two codecs",
    "DroneConnection": "an end in two codecs",
    "Packet": "of the robot's codec, and of a robot in one class",
    "Request": "of a session, of a robot in one class, and of the simulator's codec",
}

SOURCE_FOLDERS = (
    ".ci",
    "action",
    "cmake",
    "config",
    "docs",
    "drone_bridge",
    "env",
    "launch",
    "measure",
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
# Folders of a particular machine, as opposed to standard ones.
PRIVATE_FOLDER = re.compile(rb"(?<![\w.})~-])/(?:home|root|work|Users|tmp/w)/\w")


def allowed_prefixes(path):
    names = path.relative_to(PACKAGE).with_suffix("").parts
    if names[0] in PROTOCOLS:
        kits, parts = PARTS[part_of(path)]
        own = (f"drone_bridge.{names[0]}.{part.replace('/', '.')}." for part in (part_of(path), *parts))
        families = {family for family, protocols in FAMILIES.items() if names[0] in protocols}
        return tuple(f"drone_bridge.{name}." for name in kits | families) + tuple(own)
    allowed = ALLOWED[names[0]] | KNOWN.get("/".join(names[:2]), set())
    return tuple(f"drone_bridge.{name}." for name in {names[0]} | allowed)


def imported_names(path):
    """Return all modules that a file imports; for `from a import b` both a and a.b."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def source_files():
    """Every file that somebody wrote; what tools leave behind has a name with a dot or underscores in its path."""
    files = [path for folder in (*SOURCE_FOLDERS, "test") for path in (ROOT / folder).rglob("*")]
    written = [path for path in files if not GENERATED.search(path.relative_to(ROOT).as_posix())]
    return sorted(
        path for path in [*written, *ROOT.iterdir()] if path.is_file() and path.name not in (".git", ".coverage")
    )


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_one_way(path):
    ours = {name for name in imported_names(path) if name.startswith("drone_bridge.")}
    ours -= {f"drone_bridge.{protocol}" for protocol in PROTOCOLS}  # of `from drone_bridge.robot import codec`
    assert not {name for name in ours if not f"{name}.".startswith(allowed_prefixes(path))}


def test_no_modules_import_each_other_in_a_circle():
    """Imports for type checking count, too, since a reader of one module has to read all."""
    names = {path: ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in MODULES}
    imports = {names[path]: set(names_in_imports(path)) & set(names.values()) - {names[path]} for path in MODULES}
    order = graphlib.TopologicalSorter(imports)
    order.prepare()  # raises CycleError, which names a circle


def names_in_imports(path):
    """Every module that may be meant by the imports of a file, the package of a module only where it is used itself."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            modules = {f"{node.module}.{alias.name}" for alias in node.names}
            yield from modules if any(is_module(name) for name in modules) else {node.module}


def is_module(name):
    place = ROOT.joinpath(*name.split("."))
    return place.is_dir() or place.with_suffix(".py").is_file()


def test_a_class_name_means_one_class():
    modules = {}
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                modules.setdefault(node.name, set()).add(str(path.relative_to(PACKAGE)))
    assert {name: found for name, found in modules.items() if len(found) > 1}.keys() == DOUBLES.keys()


def test_a_bridge_never_imports_the_vehicles_end():
    """Neither by itself, nor by what it imports; the same for a robot in one class."""
    own = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in MODULES
        if path.relative_to(PACKAGE).parts[0] in (*PROTOCOLS, "robot_class")
    }
    imports = {name: own.keys() & set(imported_names(path)) for name, path in own.items()}
    reached = {name for name in own if name.split(".")[2:3] == ["bridge"]}
    assert len({name.split(".")[1] for name in reached}) == len(PROTOCOLS) + 1
    while further := set().union(*(imports[name] for name in reached)) - reached:
        reached |= further
    assert not {name for name in reached if name.split(".")[2:3] == ["vehicle"]}


@pytest.mark.parametrize("path", CLIENT, ids=lambda path: path.stem)
def test_the_parts_of_a_client_session_can_be_held_in_mind(path):
    for each in (each for each in ast.parse(path.read_text()).body if isinstance(each, ast.ClassDef)):
        nodes = list(ast.walk(each))
        stored = (node for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store))
        own = {node.attr for node in stored if ast.unparse(node.value) == "self" and not hasattr(Session, node.attr)}
        texts = sum(isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) for node in nodes)
        assert len(own) <= 15, own
        assert sum(isinstance(node, ast.stmt) for node in nodes) - texts <= 250


def test_codecs_and_sessions_have_no_socket_no_thread_no_clock():
    found = {
        (path.name, name)
        for path in MODULES
        if part_of(path).removeprefix("vehicle/") in ("wire", "codec", "units", "session") or "uvlc" in path.parts
        for name in imported_names(path)
        if name.split(".")[0] in FORBIDDEN_IN_PROTOCOLS
    }
    assert not found


def test_sessions_of_robot_classes_and_goals_have_no_socket_thread_clock_or_ros():
    of_classes = ("robot", "connection", "vehicle/robot_session", "vehicle/body")
    pure = [*CLIENT, *(PACKAGE / "robot_class" / f"{stem}.py" for stem in of_classes)]
    pure += [PACKAGE / "controllers/goals" / f"{stem}.py" for stem in ("guides", "requests", "session", "watches")]
    names = {name for path in pure for name in imported_names(path)}
    assert not {name for name in names if name.split(".")[0] in FORBIDDEN_IN_PROTOCOLS}
    assert not {name for name in names if name.startswith(("drone_bridge.net", "drone_bridge.ros", "rclpy"))}


def test_nodes_have_no_clock_thread_or_lock():
    """Sessions decide what is sent when, and run in the loop of the kit."""
    parts = ("bridge", "vehicle/server", "topics", "sample_conversation")
    nodes = [path for path in MODULES if path.relative_to(PACKAGE).parts[0] in PROTOCOLS and part_of(path) in parts]
    assert {part_of(path) for path in nodes} >= {"bridge", "vehicle/server"}
    found = {(path.relative_to(PACKAGE).as_posix(), name) for path in nodes for name in imported_names(path)}
    assert not {each for each in found if each[1] in ("time", "threading", "asyncio", "socket", "select")}


def test_rooms_of_processes_need_no_ros():
    paths = [path for path in MODULES if path.is_relative_to(PACKAGE / "ros/process")]
    names = {name for path in paths for name in imported_names(path)}
    assert paths
    assert not {name for name in names if name.startswith("rclpy")}
    others = {name for name in names if name.startswith("drone_bridge.ros.")}
    assert not {name for name in others if not name.startswith("drone_bridge.ros.process")}


def test_few_modules_of_ros_are_in_no_room():
    assert len(list((PACKAGE / "ros").glob("*.py"))) <= 25


def private_attributes(path, *classes):
    """Return the private attributes that the classes of a file give themselves; all of its classes, or these."""
    defined = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef)]
    assigned = (node for each in defined if not classes or each.name in classes for node in ast.walk(each))
    own = (node for node in assigned if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store))
    return {node.attr for node in own if node.attr.startswith("_") and ast.unparse(node.value) == "self"}


def test_no_node_assigns_a_private_attribute_of_its_base():
    of_base = private_attributes(PACKAGE / "ros/node/protocol_node.py", "ProtocolNode")
    of_base |= private_attributes(PACKAGE / "ros/node/configured_node.py", "ConfiguredNode")
    assert {"_is_publishing", "_kept_subscriptions"} <= of_base
    nodes = {
        path: match[1]
        for path in MODULES
        if (match := re.search(r"^class (\w+)\(\w*(?:Protocol|ArDrone)Node\):$", path.read_text(), re.MULTILINE))
    }
    assert len(nodes) >= 10
    assert not {name: names for path, name in nodes.items() if (names := private_attributes(path, name) & of_base)}


def test_reports_reach_limits_and_pilot_in_sessions():
    """There, no subscriber, message or publication that fails can lose a report that steers: session/feedback.py."""
    parts = {"bridge", "vehicle/server", "topics"}
    nodes = [path for path in MODULES if not parts.isdisjoint((part_of(path), path.stem))]
    assert "robot_class/bridge.py" in {path.relative_to(PACKAGE).as_posix() for path in nodes}
    feeding = re.compile(r"\.(measured|stands|doubted|charged)\(")
    assert not {path.relative_to(PACKAGE).as_posix() for path in nodes if feeding.search(path.read_text())}


#: Calls of a codec's `send` past a session's `encode`, by file: why their errors end no link.
CALLERS_ANSWER = {
    "testbed/vehicle/server/properties.py",  # a trial, which says what is wrong with the drone's properties
}


def sends_of_codecs(path):
    """Return the calls of a connection's `send` that are no argument of `encode`."""
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    encoding = [call for call in calls if re.search(r"(^|\.)encoded?$", ast.unparse(call.func))]
    inside = {id(node) for call in encoding for each in call.args for node in ast.walk(each)}
    called = [ast.unparse(call.func) for call in calls if id(call) not in inside]
    return [name for name in called if re.search(r"([Cc]onnection|[Pp]rotocol)(\(.*\))?\.send$", name)]


def test_bridges_and_servers_encode_what_they_send_in_one_place():
    """There, computed values are clamped to the wire's range, so that our own errors end no link."""
    nodes = [
        path for path in MODULES if part_of(path) in ("bridge", "vehicle/server") or path.stem.startswith("datagram_")
    ]
    assert len(nodes) > 20
    found = {path.relative_to(PACKAGE).as_posix() for path in nodes if sends_of_codecs(path)}
    assert found == CALLERS_ANSWER


def test_every_file_has_a_license_header():
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


def test_names_of_tests_have_at_most_76_characters():
    definitions = (
        each for path in (ROOT / "test").rglob("test_*.py") for each in ast.walk(ast.parse(path.read_text()))
    )
    assert not [name for each in definitions if len(name := getattr(each, "name", None) or "") > 76]
