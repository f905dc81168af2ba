# SPDX-License-Identifier: Apache-2.0
"""Plugin of pytest for every test: an isolated ROS environment, and reproducible hypothesis data."""

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

from drone_bridge.kind import ROBOTS, Mechanism, kinds
from drone_bridge.ros.process import shared_memory
from drone_bridge.ros.process.environment import name_profile_for_fast_dds_2
from drone_bridge.tools.demo.composition import confinement

# Before rclpy is imported: an own ROS domain, on this machine only.
os.environ["ROS_DOMAIN_ID"] = str(place.domains()[0])
# Folder for persistent state of nodes, which must not outlive the tests.
RUNTIME = tempfile.TemporaryDirectory()
os.environ["ROS_HOME"] = RUNTIME.name
os.environ["DRONE_BRIDGE_WIRE"] = f"{RUNTIME.name}/wire"
CONFIG = Path(get_package_share_directory("drone_bridge"), "config")
os.environ["FASTDDS_DEFAULT_PROFILES_FILE"] = str(CONFIG / "fastdds_loopback.xml")
name_profile_for_fast_dds_2(os.environ)
os.environ |= confinement()

shared_memory.make_room()  # as nodes do at their start

#: The robot in one class whose promises the gate tests by processes. `drone-bridge check` tests each one.
ROBOT_OF_THE_GATE = "tello"

# Shells let background programs ignore SIGINT and SIGQUIT, and nohup SIGHUP, and so would all programs that tests start
# and signal.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)

# A stalled or slow machine must not end a node, unlike a hang. Shorter than the timeout of Process.end.
os.environ["DRONE_BRIDGE_WATCHDOG_SECONDS"] = "15"
os.environ["DRONE_BRIDGE_REFUSED_SECONDS"] = "1"  # a program that can't start need not wait for its respawn

# Reproducible, by the number of examples: pytest --hypothesis-profile=exhaustive
hypothesis.settings.register_profile("exhaustive", max_examples=200, derandomize=True, deadline=None, database=None)
hypothesis.settings.register_profile("gate", hypothesis.settings.get_profile("exhaustive"), max_examples=25)
hypothesis.settings.load_profile("gate")


def pytest_addoption(parser):
    """Add the option that selects one protocol's tests."""
    parser.addoption("--protocol", help="only tests of this protocol")


@pytest.hookimpl(tryfirst=True)  # before pytest looks at markers
def pytest_collection_modifyitems(config, items):
    """Deselect tests of other protocols, if one is selected. Mark promises that other kinds represent as exhaustive."""
    others = set() if config.getoption("protocol") else ROBOTS.keys() - {ROBOT_OF_THE_GATE}
    for item in items:
        if {"kind", "pair"} <= set(item.fixturenames) and item.callspec.params["kind"].name in others:
            item.add_marker(pytest.mark.exhaustive)
        if promise := item.get_closest_marker("by_mechanism"):
            if not represented_by(item.callspec.params["kind"], config) & set(map(Mechanism, promise.args)):
                item.add_marker(pytest.mark.exhaustive)
        elif {"kind", "pair"} <= set(item.fixturenames) and not item.get_closest_marker("every_kind"):
            raise pytest.UsageError(f"{item.nodeid} needs the marker every_kind or by_mechanism.")
    if name := config.getoption("protocol"):
        asked = [getattr(item, "callspec", None) for item in items]
        kinds = [callspec and callspec.params.get("kind") for callspec in asked]
        items[:] = [item for item, kind in zip(items, kinds, strict=True) if kind and kind.name == name]


def represented_by(kind, config):
    """Return the mechanisms that a kind represents. One that is tested alone represents its own transport, once."""
    if not (name := config.getoption("protocol")):
        return {*kind.represents}
    own = {Mechanism.STREAM if kind.is_stream else Mechanism.DATAGRAMS}
    return {*kind.represents, *own} - {Mechanism.PROCESS} if kind == kinds().get(name) else set()


#: Measured values, as sentences for the end of the output.
SAID = []


def say(sentence):
    """Print a sentence after the results."""
    SAID.append(sentence)


def pytest_terminal_summary(terminalreporter):
    """Print the measured values."""
    for sentence in SAID:
        terminalreporter.write_line(sentence)


def pytest_configure(config):
    """Register the markers, and require the installed package."""
    for marker in (
        "exhaustive: not in the gate (make test), but in make test_all",
        "every_kind: a promise that the gate tests for each protocol",
        "by_mechanism(name, ...): a promise that the gate tests for protocols that represent one of these mechanisms",
    ):
        config.addinivalue_line("markers", marker)
    try:
        importlib.import_module("drone_bridge.msg")
    except ImportError as error:
        raise pytest.UsageError(
            f"These tests need the installed package with its messages, and drone_bridge.msg can't be imported "
            f"({error}). Without ROS: 'make setup', then '. env/activate'. With ROS: build the workspace, source it."
        ) from error


def clear_state():
    """Clear persistent state of nodes, such as a hold."""
    for path in Path(RUNTIME.name).iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.fixture(scope="module", autouse=True)
def nothing_kept():
    """Clear persistent state of nodes after each test file."""
    yield
    clear_state()


@pytest.fixture
def ros():
    """Node that spins in a thread: see RosSession."""
    from ros_session import RosSession

    session = RosSession()
    yield session
    session.close()
