# SPDX-License-Identifier: Apache-2.0
"""Uses of rclpy, messages and launch files, compared with every distribution's names, written by `record_*.py`."""

import ast
import json
import re
from xml.etree import ElementTree

import pytest
import record_interfaces
from record_rclpy import RECORDED, RELEASES
from repository import ROOT

RCLPY = json.loads(RECORDED.read_text())
MEMBERS = {name: set(each["members"]) for name, each in RCLPY.items()}
#: Names that a distribution lacks of messages and of launch files.
LACKING = {name: set(each) for name, each in json.loads(record_interfaces.RECORDED.read_text()).items()}
#: Messages of which a distribution lacks a field or constant.
CHANGED = {path.rpartition(".")[0] for each in LACKING.values() for path in each}
#: The one module with branches for a distribution.
BRANCHES = "drone_bridge/ros/distributions.py"
FOLDERS = ("drone_bridge", "examples", "measure", "test")
#: Attributes of other libraries, and of ROS's messages, with the name of a method that one of rclpy's classes has.
OTHERS = {"service_name", "destroy_when_not_in_use"}


def lacking(tree, own=frozenset()):
    """Yield each use of ROS in a module that a distribution lacks: its line, the distribution and the name."""
    nodes, imported = [*ast.walk(tree)], {}
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for each in node.names:
                path = f"{node.module}.{each.name}" if isinstance(node, ast.ImportFrom) else each.name
                imported[each.asname or each.name] = path
                yield from ((node.lineno, name, path) for name in RCLPY if not _has(name, path))
    for node in nodes:
        if isinstance(node, ast.Attribute):
            yield from _lacking_attribute(node, own, imported)
        elif isinstance(node, ast.Call):
            yield from _lacking_keywords(node, imported)
    types = {name: path for name, path in imported.items() if path in CHANGED}
    yield from _lacking_members(nodes, types, ast.unparse(tree)) if types else ()


def _has(distribution, path):
    module, _, name = path.rpartition(".")
    modules = RCLPY[distribution]["modules"]
    is_there = path in modules or name in modules.get(module, ())
    return is_there or (path.split(".")[0] != "rclpy" and path not in LACKING[distribution])


def _lacking_attribute(node, own, imported):
    if isinstance(node.value, ast.Name) and node.value.id == "rclpy" and "rclpy" in imported:
        path = f"rclpy.{node.attr}"
        yield from ((node.lineno, name, path) for name in RCLPY if not _has(name, path))
    elif not node.attr.startswith("_") and node.attr not in own and any(node.attr in each for each in MEMBERS.values()):
        yield from ((node.lineno, name, node.attr) for name, each in MEMBERS.items() if node.attr not in each)


def _lacking_keywords(node, imported):
    path = ast.unparse(node.func)
    path = imported.get(path, path)
    for name, recorded in RCLPY.items():
        elsewhere = recorded["functions"].get(path.replace("rclpy.", "rclpy.utilities.", 1))
        known = recorded["functions"].get(path, elsewhere)
        if known is not None and "*" not in known:
            wrong = (each.arg for each in node.keywords if each.arg and each.arg not in known)
            yield from ((node.lineno, name, f"{path}({each}=)") for each in wrong)


def _lacking_members(nodes, types, text):
    """Yield fields and constants of types, and of variables, attributes and parameters with such a type."""
    declared = re.findall(rf"([\w.]+)(?:: | = )({'|'.join(types)})\b", text)
    instances = types | {name: types[each] for name, each in declared}
    for node in nodes:
        if isinstance(node, ast.Attribute):
            members = {f"{instances.get(ast.unparse(node.value))}.{node.attr}"}
        elif isinstance(node, ast.Call):
            members = {f"{types.get(ast.unparse(node.func))}.{each.arg}" for each in node.keywords}
        else:
            continue
        yield from ((node.lineno, name, path) for name in LACKING for path in LACKING[name] & members)


def lacking_in_launch(text):
    """Yield each element, attribute and substitution of a launch file that a distribution lacks, and the latter."""
    for node in ElementTree.fromstring(text).iter():
        names = {f"<{node.tag}", *(f"{each}=" for each in node.attrib)}
        names.update(each for value in node.attrib.values() for each in re.findall(r"\$\([\w-]+", value))
        yield from ((each, name) for name in LACKING for each in LACKING[name] & names)


def trees():
    """Return the syntax trees of the repository's Python files that have to do with ROS, by path."""
    paths = (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")))
    texts = {str(path.relative_to(ROOT)): path.read_text() for path in paths if "node_modules" not in path.parts}
    return {path: ast.parse(text) for path, text in texts.items() if re.search("rclpy|node|_msgs", text)}


def test_ros_is_used_only_as_every_distribution_has_it():
    files = trees()
    nodes = [node for tree in files.values() for node in ast.walk(tree)]
    own = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    own -= {"count_services", "count_clients"}  # those of BRANCHES are no methods
    found = {
        f"{path}:{line}: {name} has no {what}"
        for path, tree in files.items()
        if path != BRANCHES
        for line, name, what in lacking(tree, own | OTHERS)
    }
    assert not found


def test_launch_files_use_only_what_every_distribution_parses():
    for path in [*(ROOT / "launch").rglob("*.xml"), *ROOT.glob("examples/*.xml")]:
        assert not [*lacking_in_launch(path.read_text())], path
    assert ("on_exit=", "humble") in lacking_in_launch('<launch><node on_exit="shutdown"/></launch>')
    assert ("$(equals", "humble") in lacking_in_launch('<launch><log if="$(equals a b)"/></launch>')


@pytest.mark.parametrize(
    ("text", "distributions"),
    [
        ("import rclpy\nrclpy.try_shutdown(uninstall_handlers=False)", {"humble", "jazzy"}),
        ("from rclpy.topic_endpoint_info import TopicEndpointInfo", {"lyrical"}),
        ("import rclpy.qos_event", {"lyrical"}),
        ("from rclpy.qos_event import SubscriptionEventCallbacks", {"jazzy", "kilted", "lyrical"}),
        ("from rclpy.event_handler import SubscriptionEventCallbacks as Callbacks", {"humble"}),
        ("servers = self._node.count_services(name)", {"humble"}),
        ("from rclpy import try_shutdown as end\nend(uninstall_handlers=True)", {"humble", "jazzy"}),
        ("import rclpy\nrclpy.get_rmw_implementation_identifier()\nrclpy.init(args=[])", set()),
        ("from rclpy.node import Node, TopicEndpointInfo", set()),
        ("from geometry_msgs.msg import Pose2D", {"lyrical"}),
        ("from sensor_msgs.msg import Range\nRange(variance=0.1)", {"humble"}),
        ("from sensor_msgs.msg import Range\nself.sent = Range()\nself.sent.variance = 0.1", {"humble"}),
        ("from sensor_msgs.msg import Range\ndef take(message: Range): message.range = 1.0", set()),
        ("from sensor_msgs.msg import BatteryState as B\nB.POWER_SUPPLY_TECHNOLOGY_VRLA", {"humble"}),
        ("from lifecycle_msgs.msg import TransitionEvent as E\ndef take(event: E): event.timestamp", {"lyrical"}),
    ],
)
def test_names_and_keywords_that_a_distribution_lacks_are_found(text, distributions):
    assert {name for _, name, _ in lacking(ast.parse(text))} == distributions


def test_names_are_of_the_releases_of_all_distributions():
    assert list(RCLPY) == list(RELEASES) == list(LACKING)
