# SPDX-License-Identifier: Apache-2.0
"""STOP on the page, in a real browser, judged on the wire of each kind of vehicle."""

import signal
import time

import browser as chromium
from processes import TIMEOUT_S
from ros_session import module_ros
from std_srvs.srv import SetBool
from vehicle_pair import BridgePair, assert_neutral_after, assert_nothing_moved, each_kind, shared
from web_viewer import web_bridge

browser, ros = chromium.module_browser(), module_ros()
kind, pair = each_kind(), shared(BridgePair)


def test_stop_is_the_last_word_even_if_the_server_is_killed_and_a_stranger_goes_on(browser, ros, pair):
    pair.drive()  # 20 times per second, all the time
    with web_bridge() as server:
        browser.open(server.address)
        browser.wait("document.querySelector('.who').innerText === 'nobody steers'")
        stopped_s = time.monotonic()
        browser.click(".stop")
        browser.wait("/Holding since/.test(document.querySelector('.banner').innerText)")
        server.send(signal.SIGKILL)
        server.wait()
    assert_neutral_after(pair.commands, stopped_s)
    held_s = time.monotonic()
    pair.watch()
    assert_nothing_moved(pair.commands, held_s)
    resumed_s = time.monotonic()
    hold = f"/{pair.name}/{pair.kind.name}_bridge/hold"
    assert ros.call(SetBool, hold, SetBool.Request(data=False)).success
    pair.works_after(resumed_s, TIMEOUT_S)  # so the stranger did go on
