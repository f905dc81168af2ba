# SPDX-License-Identifier: Apache-2.0
"""Uses of rclpy, compared with its names in every ROS distribution, which `record_rclpy.py` has written."""

import ast
import json

import pytest
from record_rclpy import RECORDED, RELEASES
from repository import ROOT

RCLPY = json.loads(RECORDED.read_text())
MEMBERS = {name: set(each["members"]) for name, each in RCLPY.items()}
#: The one module with branches for a distribution.
BRANCHES = "drone_bridge/ros/distributions.py"
FOLDERS = ("drone_bridge", "examples", "measure", "test")
#: Attributes of other libraries, and of ROS's messages, with the name of a method that one of rclpy's classes has.
OTHERS = {"service_name", "destroy_when_not_in_use"}


def lacking(tree, own=frozenset()):
    """Yield each use of rclpy in a module that a distribution lacks: its line, the distribution and the name."""
    imported = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "rclpy":
            imported |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
            for distribution, recorded in RCLPY.items():
                modules = recorded["modules"]
                for each in node.names:
                    path = f"{node.module}.{each.name}"
                    if path not in modules and each.name not in modules.get(node.module, ()):
                        yield node.lineno, distribution, path
        elif isinstance(node, ast.Import):
            imported |= {each.name: each.name for each in node.names}
            for each in node.names:
                if each.name.split(".")[0] == "rclpy":
                    yield from (
                        (node.lineno, name, each.name) for name in RCLPY if each.name not in RCLPY[name]["modules"]
                    )
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield from _lacking_attribute(node, own, imported)
        elif isinstance(node, ast.Call):
            yield from _lacking_keywords(node, imported)


def _lacking_attribute(node, own, imported):
    if isinstance(node.value, ast.Name) and node.value.id == "rclpy" and "rclpy" in imported:
        for name, recorded in RCLPY.items():
            if node.attr not in recorded["modules"]["rclpy"] and f"rclpy.{node.attr}" not in recorded["modules"]:
                yield node.lineno, name, f"rclpy.{node.attr}"
    elif not node.attr.startswith("_") and node.attr not in own and any(node.attr in each for each in MEMBERS.values()):
        yield from ((node.lineno, name, node.attr) for name, each in MEMBERS.items() if node.attr not in each)


def _lacking_keywords(node, imported):
    path = ast.unparse(node.func)
    path = imported.get(path, path)
    for name, recorded in RCLPY.items():
        module, _, function = path.rpartition(".")
        known = recorded["functions"].get(path)
        if known is None and module == "rclpy":  # imported there from another module
            known = recorded["functions"].get(f"rclpy.utilities.{function}")
        for each in node.keywords:
            if known is not None and each.arg and each.arg not in known and "*" not in known:
                yield node.lineno, name, f"{path}({each.arg}=)"


def trees():
    """Return the syntax trees of the repository's Python files that have to do with ROS, by path."""
    paths = (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")))
    texts = {str(path.relative_to(ROOT)): path.read_text() for path in paths if "node_modules" not in path.parts}
    return {path: ast.parse(text) for path, text in texts.items() if "rclpy" in text or "node" in text}


def test_rclpy_is_used_only_as_every_distribution_has_it():
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
    ],
)
def test_names_and_keywords_that_a_distribution_lacks_are_found(text, distributions):
    assert {name for _, name, _ in lacking(ast.parse(text))} == distributions


def test_names_are_of_the_releases_of_all_distributions():
    assert list(RCLPY) == list(RELEASES)
