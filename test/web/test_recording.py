# SPDX-License-Identifier: Apache-2.0
"""A bag on the page: events, and playback from any position."""

import time

import browser as chromium
import pytest
from geometry_msgs.msg import TransformStamped
from processes import Process, executable
from rcl_interfaces.msg import Log
from sensor_msgs.msg import BatteryState
from std_msgs.msg import Bool
from tf2_msgs.msg import TFMessage
from web_boxes import faults
from web_page import address_of
from written_bags import offer, write_bag

from drone_bridge.tools.bags.bag import BagReader
from drone_bridge.tools.bags.events import events

SECOND = 10**9
BEGIN = 1_700_000_000 * SECOND
LATCHED = [offer(latched=True)]


@pytest.fixture(scope="module")
def bag(tmp_path_factory):
    """20 s of a battery that drops by 1 % per second, with a gap, a warning and a landing."""
    messages = [("/landed", BEGIN, Bool(data=False)), ("/telemetry_bridge/state", BEGIN, Bool())]
    for tenth in range(200):
        time_ns = BEGIN + tenth * SECOND // 10
        transform = TransformStamped(child_frame_id="base_link")
        transform.header.frame_id = "odom"
        messages.append(("/tf", time_ns, TFMessage(transforms=[transform])))
        if not 50 <= tenth < 90:
            messages.append(("/battery_state", time_ns, BatteryState(percentage=0.9 - tenth / 1000)))
    messages.append(("/rosout", BEGIN + 12 * SECOND, Log(level=30, name="telemetry_bridge", msg="It is windy.")))
    messages.append(("/landed", BEGIN + 15 * SECOND, Bool(data=True)))
    messages.sort(key=lambda each: each[1])
    return write_bag(tmp_path_factory.mktemp("bags") / "flight", messages, {"/landed": LATCHED})


def test_a_landing_on_two_topics_is_one_event(tmp_path):
    messages = [
        (topic, BEGIN + second * SECOND, Bool(data=(topic == "/flying") != bool(second)))
        for second in (0, 1)
        for topic in ("/flying", "/landed")
    ]
    with BagReader(write_bag(tmp_path / "flight", messages)) as bag:
        assert [event.text for event in events(bag)] == ["landed (/flying)"]


def test_events_are_found(bag):
    with BagReader(bag) as opened:
        found = [((event.time_ns - BEGIN) / SECOND, event.kind, event.text) for event in events(opened)]
    assert found == [(12.0, "warning", "telemetry_bridge: It is windy."), (15.0, "state", "landed (/landed)")]


@pytest.mark.exhaustive
def test_a_bag_is_played_and_searched_in_the_page(bag):
    chromium.install()
    browser = chromium.Browser()
    at = "Number(document.querySelector('#timeline').dataset.at)"
    try:
        with Process(executable("drone-bridge"), "view", str(bag), "--port", "0", "--no-browser") as server:
            address = address_of(server)
            time.sleep(1.0)
            opened_s = time.monotonic()
            browser.open(address)
            browser.wait("document.querySelector('#timeline').dataset.at !== undefined")
            assert float(browser.evaluate(at)) < time.monotonic() - opened_s  # playback starts with the first viewer
            browser.wait("document.querySelector('#timeline').dataset.events === '2'")
            browser.wait(f"{at} > 0.5")
            browser.wait("document.querySelector('#scene').dataset.models === '1'")  # which was not recorded
            browser.click(".play")
            browser.wait("document.querySelector('#timeline').dataset.playing === 'false'")
            browser.evaluate(
                """(() => {
                  const events = document.querySelector('[aria-label="Go to event"]');
                  events.value = '0';
                  events.dispatchEvent(new Event('change'));
                })()"""
            )
            browser.wait(f"Math.abs({at} - 11.5) < 0.01")
            # The moment is shown although playback is paused; at 11.4 s the battery had 79 %.
            browser.wait("document.querySelector('[data-plot=Battery] .value')?.innerText === '79\\u00a0%'")
            # A plot has the whole recording, without the gap, and marks the moment.
            plot = "document.querySelector('[data-plot=Battery]')"
            assert browser.evaluate(f"[Number({plot}.dataset.points), Math.round({plot}.dataset.seconds)]") == [160, 20]
            cursor = f"{plot}.querySelector('.plot-cursor')"
            share = f"{cursor}.offsetLeft / {cursor}.parentElement.clientWidth"
            browser.wait(f"Math.abs({share} - 11.5 / 20) < 0.02")
            hidden = ("#steering", ".stops", ".record")
            assert not browser.evaluate(f"{list(hidden)}.some(each => document.querySelector(each).checkVisibility())")
            browser.evaluate(
                """(() => {
                  const speed = document.querySelector('[aria-label="Speed"]');
                  speed.value = '5';
                  speed.dispatchEvent(new Event('change'));
                })()"""
            )
            browser.click(".play")
            browser.wait("document.querySelector('.log')?.innerText.includes('It is windy.')")
            browser.wait(f"{at} > 19.8")
            browser.wait("document.querySelector('#timeline').dataset.playing === 'false'")
            browser.click(".play")  # restarts from the beginning
            browser.wait(f"{at} < 5 && document.querySelector('#timeline').dataset.playing === 'true'")
            browser.open(address, width=390, height=844)
            browser.wait("document.querySelector('#timeline').dataset.events === '2'")
            for section in ("look", "plots", "more"):
                browser.click(f".sections [data-section={section}]")
                assert faults(browser, 390, 844, steers=False) == []
                bottom, top = browser.evaluate(
                    "[['#timeline', 'bottom'], ['.sections', 'top']]"
                    ".map(([each, side]) => document.querySelector(each).getBoundingClientRect()[side])"
                )
                assert bottom <= top + 1
            assert browser.console_errors == []
            assert server.stop() == 0, server.output
    finally:
        browser.close()
