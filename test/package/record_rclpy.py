# SPDX-License-Identifier: Apache-2.0
"""Write rclpy_names.json, the names of rclpy in each ROS distribution: record_rclpy.py CLONE, one of RELEASES.

The clone is of https://github.com/ros2-gbp/rclpy-release. Of its sources, only names and parameters are recorded.
"""

import ast
import json
import subprocess
import sys
from pathlib import Path

RELEASES = {
    "humble": ("3.3.21-1", "c7ae56c04b7cf650b9a5f99366153aa347461c89"),
    "jazzy": ("7.1.11-1", "b7c78c94f90d2f649e4fe66998e3ac1d47ff18da"),
    "kilted": ("9.1.5-1", "a54ff52a4471bfbae2b17c77a9f0663e1694445a"),
    "lyrical": ("10.0.10-1", "cc07f7e208478e7fabf04f5eaf39aac2ffb03e16"),
}
RECORDED = Path(__file__).with_name("rclpy_names.json")


def parameters(function):
    """Return the names of the parameters that a call can give by keyword, with * for any."""
    each = function.args
    return sorted({one.arg for one in (*each.args, *each.kwonlyargs)} | ({"*"} if each.kwarg else set()))


def record_body(body, names, functions, members):
    """Add the names that statements of a module define, the parameters of functions, and the members of classes."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
            functions[node.name] = sorted({*functions.get(node.name, ()), *parameters(node)})
        elif isinstance(node, ast.ClassDef):
            names.add(node.name)
            members.update(each.name for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names.update((each.asname or each.name).split(".")[0] for each in node.names)
        elif isinstance(node, ast.Assign):
            names.update(each.id for each in node.targets if isinstance(each, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        elif isinstance(node, ast.If | ast.Try):
            handlers = [line for each in getattr(node, "handlers", ()) for line in each.body]
            record_body([*node.body, *node.orelse, *handlers], names, functions, members)


def record(clone, commit):
    """Return the modules of a release with their names and functions, and the methods of all classes."""
    show = ["git", "-C", clone, "ls-tree", "-r", "--name-only", commit, "rclpy"]
    modules, functions, members = {}, {}, set()
    for path in subprocess.run(show, capture_output=True, text=True, check=True).stdout.split():
        if not path.endswith(".py"):
            continue
        module = path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        text = subprocess.run(["git", "-C", clone, "show", f"{commit}:{path}"], capture_output=True, check=True).stdout
        names, here = set(), {}
        record_body(ast.parse(text).body, names, here, members)
        modules[module] = sorted(names)
        functions |= {f"{module}.{name}": each for name, each in here.items()}
    return {"modules": modules, "functions": functions, "members": sorted(members)}


if __name__ == "__main__":
    clone = sys.argv[1]
    found = {name: record(clone, commit) for name, (_, commit) in RELEASES.items()}
    RECORDED.write_text(json.dumps(found, separators=(",", ":")) + "\n")
