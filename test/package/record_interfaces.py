# SPDX-License-Identifier: Apache-2.0
"""Write lacking_names.json, the names that only some ROS distributions have: record_interfaces.py CLONES.

The folder CLONES has those repositories of https://github.com/ros2-gbp, with their tags. Recorded are types, fields and
constants of interfaces, and of launch files the elements ("<name"), attributes ("name=") and substitutions ("$(name").
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import record_rclpy

#: Version of each distribution, in the order of record_rclpy, with the tags release/*/PACKAGE/VERSION.
RELEASES = {
    # Lyrical's is Rolling's of the month before.
    "common_interfaces-release": ("4.9.1-1", "5.3.7-1", "5.5.2-1", "5.9.2-1"),
    "rcl_interfaces-release": ("1.2.3-1", "2.0.4-1", "2.3.2-1", "2.4.5-1"),
    # The first ones: a robot's computer is rarely updated, and Humble's 1.0.9 has attributes that 1.0.1 refuses.
    "launch-release": ("1.0.1-2", "3.4.2-2", "3.8.1-2", "3.9.7-3"),
    "launch_ros-release": ("0.19.2-2", "0.26.5-2", "0.28.1-2", "0.29.7-3"),
}
RECORDED = Path(__file__).with_name("lacking_names.json")
#: Calls in Python code that parses launch files, and the form of their first argument in these files.
FORMS = {"get_attr": "{}=", "expose_action": "<{}", "expose_substitution": "$({}"}


def names(clone, version):
    """Yield the names in all packages of a version."""

    def git(*words):
        return subprocess.run(["git", "-C", clone, *words], capture_output=True, text=True, check=True).stdout

    for tag in git("tag", "--list", f"release/*/*/{version}").split():
        package = tag.split("/")[2]
        for path in map(Path, git("ls-tree", "-r", "--name-only", tag).split()):
            if path.suffix in (".msg", ".srv", ".action"):
                kind = f"{package}.{path.suffix[1:]}.{path.stem}"
                fields = re.findall(r"^[\w/]+\S*[ \t]+(\w+)", git("show", f"{tag}:{path}"), re.MULTILINE)
                yield from (kind, *(f"{kind}.{each}" for each in fields))
            elif path.suffix == ".py" and path.parts[0] == package:
                calls = re.findall(rf"({'|'.join(FORMS)})\(\s*'([\w-]+)'", git("show", f"{tag}:{path}"))
                yield from (FORMS[call].format(name) for call, name in calls)


if __name__ == "__main__":
    found = [set() for _ in record_rclpy.RELEASES]
    for clone, versions in RELEASES.items():
        for each, version in zip(found, versions, strict=True):
            each.update(names(Path(sys.argv[1], clone), version))
    lacking = [set.union(*found) - each for each in found]
    # Without the members of types that are recorded.
    kept = [sorted(name for name in each if name.rpartition(".")[0] not in each) for each in lacking]
    RECORDED.write_text(json.dumps(dict(zip(record_rclpy.RELEASES, kept, strict=True)), separators=(",", ":")) + "\n")
