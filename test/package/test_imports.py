# SPDX-License-Identifier: Apache-2.0
"""Imports without ROS and with other versions of ROS, and modules loaded by a configured bridge."""

import subprocess
import sys

import pytest
from architecture import KITS, MODULES, PACKAGE, PROTOCOLS, ROOT, part_of

from drone_bridge.kind import OWN

#: Modules that are loaded on first use, as for a log or a figure.
LATER = {"lz4", "mcap", "plotly", "av"}
CONFIGURE = """
import sys
import rclpy
import rclpy.node
alone = set(sys.modules)
from rclpy.parameter import Parameter
from drone_bridge.kind import kinds, load
bridge = load(kinds()[sys.argv[1]].bridge.node)
rclpy.init()
node = bridge(parameter_overrides=[Parameter("autostart", value=False)])
assert node.trigger_configure().name == "SUCCESS"
print("\\n".join(sorted(set(sys.modules) - alone)))
node.destroy_node()
rclpy.shutdown()
"""


IMPORT_ALL = """
import importlib, pkgutil
import rclpy.action, rclpy.lifecycle, rclpy.node, rclpy.task
names = ("client.Client", "publisher.Publisher", "service.Service", "subscription.Subscription", "task.Future")
for module, _, name in (name.partition(".") for name in names):
    generic = getattr(importlib.import_module(f"rclpy.{module}"), name)
    generic.__class_getitem__ = None  # as in jazzy and humble
import drone_bridge
for module in pkgutil.walk_packages(drone_bridge.__path__, "drone_bridge."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
"""


def test_listing_the_protocols_imports_no_numpy_and_no_ros():
    script = "import sys; from drone_bridge.kind import kinds; kinds(); print({'numpy', 'rclpy'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "set()\n"


def test_every_module_imports_where_rclpy_classes_are_not_generic():
    done = subprocess.run([sys.executable, "-c", IMPORT_ALL], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(params=sorted(OWN), scope="module")
def loaded(request):
    """Return a protocol, and the modules that its bridge loads in addition to those of rclpy."""
    command = [sys.executable, "-c", CONFIGURE, request.param]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return request.param, done.stdout.split()


def test_optional_modules_are_not_loaded_at_startup(loaded):
    _, modules = loaded
    assert "drone_bridge.ros.node.protocol_node" in modules
    assert not LATER & {module.partition(".")[0] for module in modules}


@pytest.mark.exhaustive
def test_opencv_is_loaded_only_for_images_and_before_a_vehicle_is_steered(loaded):
    """Its import may hold Python's lock for seconds."""
    protocol, modules = loaded
    assert ("cv2" in modules) == (protocol in ("testbed", "telemetry"))
    assert "yaml" not in modules  # but by rclpy
    assert "mcap" not in modules


def test_a_bridge_loads_only_its_own_protocol(loaded):
    protocol, modules = loaded
    spoken = {module.split(".")[1] for module in modules if module.count(".") > 1} & {*PROTOCOLS}
    assert spoken == {protocol}


@pytest.mark.exhaustive
def test_no_bridge_loads_the_codec_of_video_which_runs_in_a_child(loaded):
    _, modules = loaded
    assert not [module for module in modules if module.startswith("drone_bridge.ar_drone.uvlc")]


# Imports on a machine without ROS.

WITHOUT_ROS = {"kind", "parameter_fields", "robots", *KITS} - {"pictures", "ros"}
PARTS_WITHOUT_ROS = {
    *("__init__", "sample_conversation", "codec", "device", "discovery", "emulator", "operator", "ports", "session")
}
FILES_WITH_ROS = {"bridge", "server", "topics", "node", "scans", "contacts"}


def name_of(path):
    return "drone_bridge." + ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


def needs_no_ros(path):
    if part_of(path) in ("ar_drone", "robot_class"):
        return path.stem not in FILES_WITH_ROS
    is_protocols = path.relative_to(PACKAGE).parts[0] in PROTOCOLS
    return part_of(path).removeprefix("vehicle/") in (PARTS_WITHOUT_ROS if is_protocols else WITHOUT_ROS)


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
    assert len(names) > 150
    done = import_without_ros(*names)
    assert done.returncode == 0, done.stderr


def test_the_child_that_decodes_pictures_imports_no_ros():
    done = import_without_ros(
        "drone_bridge.pictures.worker", "drone_bridge.pictures.work", "drone_bridge.ar_drone.uvlc_work"
    )
    assert done.returncode == 0, done.stderr


def test_modules_that_need_ros_fail_to_import_there():
    """The test above can fail."""
    done = import_without_ros("drone_bridge.telemetry.bridge")
    assert done.returncode != 0
    assert "this machine has no ROS" in done.stderr
