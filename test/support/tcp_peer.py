# SPDX-License-Identifier: Apache-2.0
"""Peers of TCP links, threads that block, and expectations of their tests."""

import socket
import threading

import pytest
from patience import TIMEOUT_S

from drone_bridge.net.connector import Backoff, LinkCancelledError

# An unclosed socket is a defect, even if the garbage collector finds it in time.
NO_LEAKS = pytest.mark.filterwarnings("error::ResourceWarning", "error::pytest.PytestUnraisableExceptionWarning")

LONG_S = TIMEOUT_S  # even for immediate events


def has_ipv6():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


LOOPBACK = ["127.0.0.1", *["::1"] * has_ipv6()]


class Task:
    """Thread that runs a function and keeps its result."""

    def __init__(self, function, *arguments):
        self._outcome = None
        self._thread = threading.Thread(target=self._run, args=[function, *arguments], daemon=True)
        self._thread.start()

    def _run(self, function, *arguments):
        try:
            self._outcome = function(*arguments), None
        except BaseException as error:
            self._outcome = None, error

    @property
    def is_running(self):
        return self._thread.is_alive()

    def result(self, timeout_s=LONG_S):
        self._thread.join(timeout_s)
        assert not self.is_running, f"still running after {timeout_s} s"
        result, error = self._outcome
        if error:
            raise error
        return result


class FixedBackoff(Backoff):
    """Backoff with a constant delay, which counts its calls."""

    def __init__(self, delay_s):
        super().__init__()
        self.asked = 0
        self._fixed_s = delay_s

    def next_delay_s(self):
        self.asked += 1
        return self._fixed_s


def assert_ends_when_cancelled(task, cancellation):
    assert task.is_running
    cancellation.cancel()
    with pytest.raises(LinkCancelledError):
        task.result()
