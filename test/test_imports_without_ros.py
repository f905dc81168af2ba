# SPDX-License-Identifier: Apache-2.0
"""What imports on a machine without ROS: protocols, links and emulators, and nothing that needs it."""

import subprocess
import sys

from architecture import KITS, MODULES, PACKAGE, PROTOCOLS, ROOT, part_of

WITHOUT_ROS = {"kind", "described", *KITS} - {"ros"}
PARTS_WITHOUT_ROS = {"__init__", "conversation", "codec", "device", "discovery", "emulator", "operator", "session"}


def name_of(path):
    return "drone_bridge." + ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


def needs_no_ros(path):
    is_protocols = path.relative_to(PACKAGE).parts[0] in PROTOCOLS
    return part_of(path) in (PARTS_WITHOUT_ROS if is_protocols else WITHOUT_ROS)


def import_without_ros(*names):
    command = [sys.executable, "-c", IMPORT_WITHOUT_ROS, *names]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


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
    assert len(names) > 50
    done = import_without_ros(*names)
    assert done.returncode == 0, done.stderr


def test_what_needs_ros_does_not_import_there():
    """The test above can fail."""
    done = import_without_ros("drone_bridge.telemetry.bridge")
    assert done.returncode != 0
    assert "this machine has no ROS" in done.stderr
