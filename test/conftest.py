# SPDX-License-Identifier: Apache-2.0
"""What every test gets: ROS to itself, data that hypothesis draws the same way each time, children that always end."""

import contextlib
import importlib
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import hypothesis
import pytest

from drone_bridge.ros import shared_memory
from drone_bridge.ros.environment import name_profile_for_fast_dds_2

# What tests share. pytest's own way is unknown to that of humble.
TESTS = Path(__file__).parent
sys.path[:0] = [str(TESTS / "support"), str(TESTS / "runner")]
import place  # noqa: E402

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
CONFIG = TESTS.parent / "config"
os.environ["FASTDDS_DEFAULT_PROFILES_FILE"] = str(CONFIG / "fastdds_loopback.xml")
name_profile_for_fast_dds_2(os.environ)

shared_memory.make_room()  # as nodes do at their start

# A shell has programs in the background ignore SIGINT, and so would all that tests start and then interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A machine that stands still for a while, or is slow, ends no node: only one that hangs. Less than Process.end waits.
os.environ["DRONE_BRIDGE_WATCHDOG_SECONDS"] = "15"

hypothesis.settings.register_profile("deterministic", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("deterministic")


@pytest.fixture(scope="module", autouse=True)
def nothing_kept():
    """What outlives the nodes of one test file, as that a vehicle is held, does not outlive the file."""
    yield
    for path in Path(RUNTIME.name).iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def pytest_configure():
    try:
        importlib.import_module("drone_bridge.msg")
    except ImportError as error:
        raise pytest.UsageError(
            f"These tests need the installed package with its messages, and drone_bridge.msg can't be imported "
            f"({error}). Without ROS: 'make setup', then '. env/activate'. With ROS: build the workspace, source it."
        ) from error


@pytest.fixture
def free_port():
    """A port of 127.0.0.1 on which nobody listens."""
    return importlib.import_module("ports").free_port()


@pytest.fixture
def clock(monkeypatch):
    """time.monotonic, which stands still; clock[0] is the time in s."""
    now_s = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now_s[0])
    return now_s


@pytest.fixture
def cancellation():
    """What ends the waiting of links; nobody may wait any more when the test is over."""
    from drone_bridge.net.connector import Cancellation

    cancellation = Cancellation()
    yield cancellation
    cancellation.close()


@pytest.fixture
def closing():
    """closing(thing) returns the thing, and closes it when the test is over."""
    with contextlib.ExitStack() as stack:

        def close_at_end(thing):
            stack.callback(thing.close)
            return thing

        yield close_at_end


@pytest.fixture
def domain(monkeypatch):
    """A domain for one test alone: with nothing that the tests before may have left."""
    number = place.domains()[1]
    monkeypatch.setenv("ROS_DOMAIN_ID", str(number))
    return number


@pytest.fixture
def ros():
    """A node that spins in a thread: see RosSession."""
    from ros_session import RosSession

    session = RosSession()
    yield session
    session.close()


@pytest.fixture
def start_child():
    """start_child(*command) gives a Process, made by `make`; all of them end with the test, whatever happens."""
    from processes import Process

    children = []

    def start(*command, make=Process, **options):
        children.append(make(*command, **options))
        return children[-1]

    yield start
    for child in reversed(children):
        child.end()
