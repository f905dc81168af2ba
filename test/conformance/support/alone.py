# SPDX-License-Identifier: Apache-2.0
"""What every test gets, as a plugin of pytest: ROS to itself, data that hypothesis draws the same way each time."""

import importlib
import os
import shutil
import signal
import tempfile
from pathlib import Path

import hypothesis
import place
import pytest
from ament_index_python.packages import get_package_share_directory

from drone_bridge.ros import shared_memory
from drone_bridge.ros.environment import name_profile_for_fast_dds_2

# Before anything imports rclpy: topics of our own, on this machine only.
os.environ["ROS_DOMAIN_ID"] = str(place.domains()[0])
if "fastrtps" in os.environ.get("RMW_IMPLEMENTATION", "rmw_fastrtps_cpp"):  # as env/activate has it: docs/network.md
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "SYSTEM_DEFAULT"
else:
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
if os.environ.get("ROS_DISTRO") == "humble":  # which has another name for it; later ones complain about that
    os.environ["ROS_LOCALHOST_ONLY"] = "1"
# Humble always does: a message refuses a value of another type than its field's, and be it 1 for 1.0.
os.environ["ROS_PYTHON_CHECK_FIELDS"] = "1"
# Where nodes keep what is to outlive them: with us it must not.
RUNTIME = tempfile.TemporaryDirectory()
os.environ["ROS_HOME"] = RUNTIME.name
CONFIG = Path(get_package_share_directory("drone_bridge"), "config")
os.environ["FASTDDS_DEFAULT_PROFILES_FILE"] = str(CONFIG / "fastdds_loopback.xml")
name_profile_for_fast_dds_2(os.environ)

shared_memory.make_room()  # as nodes do at their start

# A shell has programs in the background ignore SIGINT, and so would all that tests start and then interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A machine that stands still for a while, or is slow, ends no node: only one that hangs. Less than Process.end waits.
os.environ["DRONE_BRIDGE_WATCHDOG_SECONDS"] = "15"

hypothesis.settings.register_profile("deterministic", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("deterministic")


def pytest_addoption(parser):
    """Add the option that selects one protocol's questions."""
    parser.addoption("--protocol", help="only questions about this protocol")


def pytest_collection_modifyitems(config, items):
    """Keep the questions about the selected protocol, if one is."""
    if name := config.getoption("protocol"):
        asked = [getattr(item, "callspec", None) for item in items]
        kinds = [callspec and callspec.params.get("kind") for callspec in asked]
        items[:] = [item for item, kind in zip(items, kinds, strict=True) if kind and kind.name == name]


#: What tests have measured, as sentences for the end of the output.
SAID = []


def say(sentence):
    """Have a sentence printed after the results."""
    SAID.append(sentence)


def pytest_terminal_summary(terminalreporter):
    """Print what was measured."""
    for sentence in SAID:
        terminalreporter.write_line(sentence)


def pytest_configure():
    """Require the installed package."""
    try:
        importlib.import_module("drone_bridge.msg")
    except ImportError as error:
        raise pytest.UsageError(
            f"These tests need the installed package with its messages, and drone_bridge.msg can't be imported "
            f"({error}). Without ROS: 'make setup', then '. env/activate'. With ROS: build the workspace, source it."
        ) from error


@pytest.fixture(scope="module", autouse=True)
def nothing_kept():
    """What outlives the nodes of one test file, as that a vehicle is held, does not outlive the file."""
    yield
    for path in Path(RUNTIME.name).iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.fixture
def ros():
    """A node that spins in a thread: see RosSession."""
    from ros_session import RosSession

    session = RosSession()
    yield session
    session.close()
