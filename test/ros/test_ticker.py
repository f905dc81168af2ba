# SPDX-License-Identifier: Apache-2.0
"""Periodic work on its own thread."""

import threading

from patience import TIMEOUT_S

from drone_bridge.ros.ticker import Ticker

LONG_S = TIMEOUT_S


def test_it_calls_again_and_again_until_it_is_stopped():
    calls, third = [], threading.Event()

    def call():
        calls.append(threading.current_thread().name)
        if len(calls) == 3:
            third.set()

    ticker = Ticker("ticks", 0.001, call, on_failure=calls.append)
    assert third.wait(LONG_S)
    ticker.stop()
    number = len(calls)
    assert set(calls) == {"ticks"}
    assert not [thread for thread in threading.enumerate() if thread.name == "ticks"]
    assert len(calls) == number


def test_a_failure_is_reported_and_the_next_call_is_made_anyway():
    failures, second = [], threading.Event()

    def call():
        if failures:
            second.set()
        raise ValueError("broken")

    ticker = Ticker("ticks", 0.001, call, failures.append)
    assert second.wait(LONG_S)
    ticker.stop()
    assert failures[0].endswith("ValueError: broken\n")


def test_stopping_does_not_wait_for_the_next_call():
    Ticker("ticks", 3600.0, lambda: None, on_failure=print).stop()
