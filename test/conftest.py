# SPDX-License-Identifier: Apache-2.0
"""What every test gets: ROS to itself (`alone`), clocks that stand still, children that always end."""

import contextlib
import importlib
import signal
import socket
import sys
import time
from pathlib import Path

import pytest

from drone_bridge.stop_signals import STOP_SIGNALS

# What tests share lies in these and beside the tests of a folder. pytest's own way is unknown to that of humble.
TESTS = Path(__file__).parent
ROOMS = sorted({path.parent for path in TESTS.glob("*/test_*.py")} - {TESTS / "conformance"})
sys.path[:0] = [str(folder) for folder in (TESTS / "support", TESTS / "conformance/support", TESTS / "runner", *ROOMS)]
import place  # noqa: E402
from alone import (  # noqa: E402, F401
    nothing_kept,
    pytest_addoption,
    pytest_collection_modifyitems,
    pytest_configure,
    ros,
)


@pytest.fixture(autouse=True)
def usual_signals():
    """A program that ends in this process leaves stop signals ignored, which later tests and their children need."""
    usual = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    yield
    for number, handler in usual.items():
        if signal.getsignal(number) != handler:
            signal.signal(number, handler)


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
def udp_socket(closing):
    """udp_socket(port) returns a socket on a port of 127.0.0.1; 0: a free one."""

    def bind(port=0):
        opened = closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        opened.bind(("127.0.0.1", port))
        opened.settimeout(importlib.import_module("patience").TIMEOUT_S)
        return opened

    return bind


@pytest.fixture
def domain(monkeypatch):
    """A domain for one test alone: with nothing that the tests before may have left."""
    number = place.domains()[1]
    monkeypatch.setenv("ROS_DOMAIN_ID", str(number))
    return number


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
