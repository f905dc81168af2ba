# SPDX-License-Identifier: Apache-2.0
"""The sticks on the page, in a real browser: display, text, ownership, and the pilot's view."""

import contextlib
import functools
import math
import time
from itertools import pairwise
from pathlib import Path

import browser as chromium
import pytest
from dronegui_peer import module_peer
from geometry_msgs.msg import TwistStamped
from nav_msgs.msg import Odometry
from processes import Process
from ros_session import TIMEOUT_S, module_ros, repeating, wait_until
from sensor_msgs.msg import Image
from web_boxes import boxes, contains, faults, overlap
from web_page import IS_AT_HELM, grows, press_twice, take_the_helm
from web_viewer import Pilot, web_bridge

from drone_bridge import dronegui

TOPIC = "/cmd_vel_stamped"
AXE = Path(chromium.ROOT) / "web" / "node_modules" / "axe-core" / "axe.min.js"
VALUE = "document.querySelector('.stick-box.right .stick-value').innerText"
FORWARD = "KeyW"

browser = chromium.module_browser()
ros = module_ros()
peer = module_peer()


@pytest.fixture(scope="module")
def server(peer):
    with (
        Process.node("dronegui_bridge", port=peer.port, receive_navdata=False),
        web_bridge() as process,
    ):
        peer.wait()
        yield process


@pytest.fixture
def page(browser, server):
    browser.open(server.address)
    browser.evaluate("localStorage.clear()")
    browser.wait("document.querySelector('.who').innerText === 'the helm is free'")
    yield browser
    browser.key(FORWARD, down=False)
    if browser.evaluate(IS_AT_HELM):
        browser.click(".take")
        browser.wait("!document.querySelector('.banner').hidden")
    if browser.evaluate("!document.querySelector('.banner').hidden"):
        browser.click(".resume")
        browser.wait("document.querySelector('.banner').hidden")


@pytest.fixture
def helm(page):
    take_the_helm(page)
    return page


def ahead(packet):
    return packet.state["pitch"] < 0.0


def wait_for_hover(peer):
    """Wait for a new packet without motion."""
    peer.forget()
    peer.wait(lambda packet: packet.is_hover)


def push_until(browser, peer, moves, press, let_go):
    """Push until the drone is commanded. After a delay of 0.3 s, the page must release the stick first."""
    deadline_s = time.monotonic() + TIMEOUT_S
    while True:
        press()
        try:
            peer.forget()
            peer.wait(moves, timeout_s=2)
        except AssertionError:
            assert time.monotonic() < deadline_s
            let_go()
            if not browser.evaluate(IS_AT_HELM):
                take_the_helm(browser)
        else:
            return


def push_until_shown(browser, value, press, let_go):
    """Push until the right stick's text matches a pattern, with a retry after each delay of the page."""

    def is_shown():
        if not browser.evaluate(IS_AT_HELM):
            take_the_helm(browser)
        press()
        with contextlib.suppress(AssertionError):
            return browser.wait(f"/^{value}/.test({VALUE})", timeout_s=3.0)
        let_go()
        return False

    wait_until(is_shown, value)


def push_forward(browser, peer):
    push_until(browser, peer, ahead, lambda: browser.key(FORWARD, down=True), lambda: browser.key(FORWARD, down=False))


@pytest.mark.exhaustive
def test_a_refused_push_is_shown_at_the_stick_and_the_next_one_moves(helm, peer, server):
    push_forward(helm, peer)
    with Pilot(server.address) as other:
        other.wait_for(lambda: other.vehicles.get(TOPIC, {}).get("holds"), "the vehicle")
        other.send(op="stop", vehicle=TOPIC)

        def push():
            helm.key(FORWARD, down=False)
            helm.key(FORWARD, down=True)
            return "Press Resume" in helm.text(".refusal") and boxes(helm, ".refusal")

        wait_until(push, "a refusal", period_s=1.0)
        for stick in boxes(helm, ".stick"):
            assert not any(overlap(refusal, stick) for refusal in boxes(helm, ".refusal"))
        helm.key(FORWARD, down=False)
        other.send(op="resume", vehicle=TOPIC)
        helm.wait("document.querySelector('.banner').hidden")
    push_forward(helm, peer)


def directions(packet):
    """Return the commanded direction of a drone: the axes of the wire, each with 1 or -1."""
    return {axis: math.copysign(1, value) for axis in ("pitch", "roll", "gas", "yaw") if (value := packet.state[axis])}


def test_each_key_moves_the_drone_along_one_axis_alone(helm, peer):
    for key, told in {FORWARD: {"pitch": -1}, "KeyA": {"roll": -1}, "KeyR": {"gas": 1}, "KeyQ": {"yaw": -1}}.items():
        press, let_go = (functools.partial(helm.key, key, down=down) for down in (True, False))
        push_until(helm, peer, lambda packet, told=told: directions(packet) == told, press, let_go)
        let_go()
        wait_for_hover(peer)


def test_a_released_stick_and_a_hidden_page_stop_the_drone(helm, peer):
    push_until(helm, peer, ahead, lambda: helm.grab(".stick.right", up=50), helm.drop)
    helm.drop()
    wait_for_hover(peer)
    push_forward(helm, peer)
    helm.evaluate("window.dispatchEvent(new Event('blur'))")
    wait_for_hover(peer)


@pytest.mark.exhaustive
def test_a_limit_applies_while_pushed_and_release_is_neutral(helm):
    helm.evaluate(
        """(() => {
          const input = document.querySelector('[data-feel="limit x"]');
          input.value = '40';
          input.dispatchEvent(new Event('change'));
        })()"""
    )
    press, let_go = (functools.partial(helm.key, FORWARD, down=down) for down in (True, False))
    push_until_shown(helm, "ahead 20 % · left 0 %$", press, let_go)  # at half speed
    helm.key(FORWARD, down=False)
    helm.wait(f"{VALUE} === 'ahead 0 % · left 0 %'")


@pytest.mark.exhaustive
def test_gamepad_axes_are_shown_and_changeable_and_its_button_is_stop(helm, peer):
    pad = """window.reads = 0; navigator.getGamepads = () => { window.reads += 1; return
      [{ id: 'pad', mapping: 'standard', connected: true, axes: [0, 0, 0, %s], buttons: [{}, { pressed: %s }] }]; }"""
    pad = " ".join(pad.split())  # a newline after `return` would end the statement

    def push():
        helm.evaluate(pad % (-1, "false"))

    def let_go():
        """An axis counts after the page has read it at neutral."""
        helm.evaluate(pad % (0, "false"))
        helm.wait("window.reads > 1")

    push_until(helm, peer, ahead, push, let_go)
    helm.evaluate("navigator.getGamepads = () => []")  # it disconnects while it is pushed
    helm.wait("document.querySelector('.hint.gamepad').hidden")
    push()
    helm.wait("!document.querySelector('.hint.gamepad').hidden")
    assert "release it first" in helm.text(".hint.gamepad")
    helm.click("#details [role=tab]:nth-child(2)")
    helm.wait("document.querySelector('[data-pad=x] .now').innerText === '100 %'")
    helm.click("[data-pad=x] input")  # reversed in browsers, and now no longer
    push_until(helm, peer, lambda packet: packet.state["pitch"] > 0.0, push, let_go)
    helm.evaluate(pad % (0, "true"))
    helm.wait("document.querySelector('.banner').innerText.includes('On hold since')")
    helm.evaluate(pad % (0, "false"))


EMERGENCY = "/dronegui_bridge/emergency"
BUTTON = f'[data-call="{EMERGENCY}"]'
FALLS = dronegui.KIND.emergencies["emergency"].effect


def says(text):
    return f"document.querySelector({BUTTON!r})?.textContent === {text!r}"


@pytest.mark.exhaustive
def test_emergency_is_called_by_a_second_press_and_its_notice_is_no_obstacle(page, ros, peer):
    """By its button next to the sticks; on hold, and in any state of the drone."""
    assert ros.switch("dronegui_bridge/hold", True).success
    peer.forget()
    page.wait(says("Emergency: cut motors"))
    page.click(BUTTON)
    page.wait(says(f"Press again: {FALLS}"))
    assert not any(packet.presses("reset") for packet in peer.packets)
    press_twice(page, BUTTON)
    page.wait("!document.querySelector('.notice').hidden")
    assert "reset was pressed and released" in page.text(".notice")
    for stick in boxes(page, ".stick"):
        assert not any(overlap(notice, stick) for notice in boxes(page, ".notice"))
    down = [packet.presses("reset") for packet in peer.packets]
    assert sum(now and not before for before, now in pairwise([False, *down])) == 1


@pytest.mark.exhaustive
def test_a_second_finger_presses_an_emergency_twice_but_not_by_bouncing(browser, ros, server, peer):
    """A press is ignored within 0.3 s after the first one was lifted, or while it is down."""
    assert ros.switch("dronegui_bridge/hold", True).success
    browser.open(server.address, width=844, height=390, hasTouch=True)
    browser.wait(says("Emergency: cut motors"))
    peer.forget()
    thumb, finger = ("header", 0), (BUTTON, 0)
    browser.touch("touchStart", thumb=thumb)
    browser.touch("touchStart", thumb=thumb, finger=finger)
    browser.wait(says(f"Press again: {FALLS}"))
    browser.evaluate(BOUNCE)
    assert browser.evaluate(says(f"Press again: {FALLS}"))
    assert not any(packet.presses("reset") for packet in peer.packets)
    browser.touch("touchEnd", finger=finger)
    browser.evaluate("new Promise((goOn) => setTimeout(goOn, 400))")
    browser.touch("touchStart", thumb=thumb, finger=finger)
    browser.wait("!document.querySelector('.notice').hidden")
    assert "reset was pressed and released" in browser.text(".notice")
    browser.touch("touchEnd")


#: Another pointer that goes down on the button of the emergency.
BOUNCE = f"""document.querySelector({BUTTON!r}).dispatchEvent(new PointerEvent("pointerdown", {{ pointerId: 77 }}))"""


# A camera, and an attitude: the bridge of this drone has neither.


@pytest.fixture
def camera(ros):
    images = ros.node.create_publisher(Image, "/camera/image_raw", 1)
    odometry = ros.node.create_publisher(Odometry, "/odom", 1)

    def publish(number):
        picture = Image(height=12, width=16, encoding="mono8", step=16)
        picture.data = bytes((number * 7 + each) % 256 for each in range(192))
        images.publish(picture)
        lies = Odometry()
        lies.pose.pose.position.z = 2.5
        lies.pose.pose.orientation.x, lies.pose.pose.orientation.w = math.sin(math.pi / 12), math.cos(math.pi / 12)
        odometry.publish(lies)

    with repeating(publish, 0.1):
        yield
    for publisher in (images, odometry):
        ros.node.destroy_publisher(publisher)


def fills(browser, width, height):
    return contains(boxes(browser, ".camera canvas")[0], ("window", 0, 0, width, height))


@pytest.mark.exhaustive
def test_a_phone_on_its_side_is_the_pilot_s_view(browser, server, camera):
    width, height = 844, 390
    browser.open(server.address, width=width, height=height)
    grows(browser, ".camera", "frames")
    take_the_helm(browser)
    assert fills(browser, width, height)
    browser.wait("document.querySelector('[data-hud=\"Above start\"]').innerText.includes('2.5 m')")
    browser.wait("document.querySelector('.horizon').dataset.roll === '30'")
    assert faults(browser, width, height) == []
    assert len(boxes(browser, ".stick")) == 2
    browser.click(".take")
    browser.wait("!document.querySelector('.banner').hidden")
    assert faults(browser, width, height) == []
    browser.evaluate("document.querySelector('.why').textContent = 'a reason of many words '.repeat(20)")
    assert browser.evaluate("document.querySelector('.banner').getBoundingClientRect().height") < height / 8
    browser.click(".resume")
    browser.wait("document.querySelector('.banner').hidden")


# Accessibility.


def problems(browser):
    """Return what axe-core finds on the screen: in the light, and of the dark, what it does not have in common."""
    if browser.evaluate("window.axe === undefined"):
        browser.evaluate(f"{AXE.read_text()}; 0")
    return browser.evaluate(
        """(async () => {
          const found = [];
          for (const [theme, options] of [['light', {}], ['dark', { runOnly: ['color-contrast'] }]]) {
            document.documentElement.dataset.theme = theme;
            const { violations } = await axe.run(options);
            found.push(...violations.flatMap(({ id, nodes }) => nodes.map(({ target, any, all }) =>
              [theme, id, target, ...[...any, ...all].map(each => each.message)].join(' '))));
          }
          return found;
        })()"""
    )


@pytest.mark.exhaustive
def test_axe_finds_no_defects_on_any_screen(browser, ros, server, camera):
    found = []

    def look(screen):
        found.extend(f"{screen}: {problem}" for problem in problems(browser))

    other = ros.node.create_subscription(TwistStamped, "/other/cmd_vel_stamped", print, 1)
    try:
        browser.open(server.address)
        browser.wait("document.querySelectorAll('[data-vehicle]').length === 2")
        browser.evaluate("document.querySelector('[data-vehicle=dronegui]').click()")
        grows(browser, ".camera", "frames")
        for tab in range(1, 4):
            browser.click(f"#details [role=tab]:nth-child({tab})")
            look(f"tab {tab}")
        take_the_helm(browser)
        browser.click(".stop")
        browser.wait("!document.querySelector('.banner').hidden")
        look("holding")
        browser.click(".take")
        browser.click(".resume")
        browser.click(".overview-button")
        look("all vehicles")
        for width, height in ((390, 844), (844, 390)):
            browser.open(server.address, width=width, height=height)
            browser.wait("document.querySelectorAll('[data-vehicle]').length === 2")
            for section in ("look", "steer", "plots", "more") if width < height else (None,):
                if section:
                    browser.click(f".sections [data-section={section}]")
                look(f"{width} x {height} {section}")
    finally:
        ros.node.destroy_subscription(other)
    assert found == []
