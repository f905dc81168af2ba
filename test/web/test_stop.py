# SPDX-License-Identifier: Apache-2.0
"""STOP on the page, in a real browser: on the vehicle's wire, by whom and with which keys, and where it is seen."""

import signal

import browser as chromium
import pytest
from dronegui_peer import module_peer
from geometry_msgs.msg import Twist, TwistStamped
from processes import Process
from ros_session import module_ros, repeating, wait_until
from twists import twist
from web_boxes import faults
from web_viewer import web_bridge

PERIOD_S = 0.05
#: Packets, 30 ms each: after 1 s a helm counts as ended.
LONGER_THAN_A_HELM = 60
FORWARD = twist(forward=1.0)
HOLDS = "/^On hold since/.test(document.querySelector('.banner').innerText)"
MOVES_ON = "document.querySelector('.banner').hidden"
IS_LATE = "/late. Please repeat it/.test(document.querySelector('.notice').innerText)"

browser = chromium.module_browser()
ros = module_ros()
peer = module_peer()


@pytest.fixture(scope="module")
def strangers(ros, peer):
    """Drone that follows another node, which commands it 20 times per second."""
    with Process.node("dronegui_bridge", port=peer.port, receive_navdata=False) as process:
        peer.wait()
        plain = ros.publisher(Twist, "cmd_vel")
        stamped = ros.publisher(TwistStamped, "cmd_vel_stamped")

        def command(_):
            plain.publish(FORWARD)
            ros.publish_fresh(stamped, TwistStamped(twist=FORWARD))

        with repeating(command, PERIOD_S):
            yield process


def is_moving(packet):
    return packet.state["pitch"] != 0.0


def nothing_moves(peer, packets=30):
    peer.forget()
    wait_until(lambda: len(peer.packets) >= packets, "packets")
    assert not any(map(is_moving, peer.packets))


def moves_again(peer):
    peer.forget()
    peer.wait(is_moving)


@pytest.fixture(scope="module")
def server(strangers):
    with web_bridge() as process:
        yield process


@pytest.fixture
def page(browser, server, peer):
    """The page with a moving drone, commanded by another node."""
    browser.open(server.address)
    browser.wait("document.querySelector('.who').innerText === 'the helm is free'")
    moves_again(peer)
    yield browser
    if browser.evaluate("!document.querySelector('.banner').hidden"):
        browser.click(".resume")
        browser.wait(MOVES_ON)


def press(browser, key):
    browser.key(key, down=True)
    browser.key(key, down=False)


def test_stop_holds_the_vehicle_against_all_commands_until_resumed(page, peer):
    assert page.evaluate("getComputedStyle(document.querySelector('.stop'), '::after').content") == '"Space or Escape"'
    for stop in (lambda: page.click(".stop"), lambda: press(page, "Space"), lambda: press(page, "Escape")):
        stop()
        page.wait(HOLDS)
        nothing_moves(peer)
        assert "is ignored" in page.text(".banner")
        page.evaluate("document.querySelector('.resume').focus()")
        press(page, "Space")  # STOP with any focus
        nothing_moves(peer)
        assert page.evaluate(HOLDS)
        press(page, "Enter")
        page.wait(f"{MOVES_ON} || {IS_LATE}")
        if not page.evaluate(MOVES_ON):  # on a busy machine, and the page says that it has to be repeated
            press(page, "Enter")
            page.wait(MOVES_ON)
        moves_again(peer)
    peer.forget()
    wait_until(lambda: len(peer.packets) >= LONGER_THAN_A_HELM, "packets")
    assert page.evaluate(MOVES_ON)  # as STOP leaves no helm that would end now


#: Counts the requests to stop.
COUNTED = """
window.stops = 0;
const send = WebSocket.prototype.send;
WebSocket.prototype.send = function (data) {
  if (typeof data === "string" && JSON.parse(data).op === "stop") window.stops += 1;
  return send.call(this, data);
};
"""


@pytest.fixture
def phone(browser, server):
    browser.open(server.address, width=844, height=390, hasTouch=True, before=COUNTED)
    browser.wait("document.querySelector('.who').innerText === 'the helm is free'")
    yield browser
    browser.click(".resume")
    browser.wait(MOVES_ON)


def touch_by_a_second_finger(phone):
    thumb = (".stick.right", 0)
    phone.touch("touchStart", thumb=thumb)
    phone.touch("touchStart", finger=(".stop", 0), thumb=thumb)


def touch_and_slide(phone):
    phone.touch("touchStart", finger=(".stop", -15))
    for pixels in (-10, -5, 0, 5, 10):
        phone.touch("touchMove", finger=(".stop", pixels))


def tap(phone):
    phone.touch("touchStart", finger=(".stop", 0))


def press_beside(phone):
    """Press the mouse on STOP, and move it away. It is released later."""
    phone.grab(".stop", right=-150, up=-60)


@pytest.mark.parametrize(
    "press_stop",
    [
        tap,
        touch_by_a_second_finger,
        pytest.param(touch_and_slide, marks=pytest.mark.exhaustive),
        pytest.param(press_beside, marks=pytest.mark.exhaustive),
    ],
)
def test_stop_acts_once_when_any_pointer_goes_down(phone, peer, press_stop):
    press_stop(phone)
    phone.wait(HOLDS)
    nothing_moves(peer)
    phone.drop() if press_stop is press_beside else phone.touch("touchEnd")
    assert phone.evaluate("window.stops") == 1


def test_stop_without_a_server_is_sent_after_the_reconnection(browser, strangers, peer):
    with web_bridge() as first:
        port = int(first.address.rstrip("/").rpartition(":")[2])
        browser.open(first.address)
        browser.wait("document.querySelector('.who').innerText === 'the helm is free'")
        first.send(signal.SIGKILL)
        first.wait()
    browser.wait("document.querySelector('[data-cell=connection]').innerText.includes('No connection since')")
    assert "OK" not in browser.text("[data-cell=health]")
    assert "ago" in browser.text("[data-cell=doing]")
    browser.click(".stop")
    browser.wait("document.querySelector('.banner').innerText.includes('STOP has not reached the server')")
    with web_bridge(port=port):
        browser.wait(HOLDS)
        nothing_moves(peer)
        browser.click(".resume")
        browser.wait(MOVES_ON)
        moves_again(peer)


REFUSED = "{ get() { throw new DOMException('Access is denied.', 'SecurityError'); } }"
LACKS = {
    "gamepads": "delete Navigator.prototype.getGamepads",
    "storage": f"Object.defineProperty(window, 'localStorage', {REFUSED})",
    "WebGL": "HTMLCanvasElement.prototype.getContext = () => null",
    "what plots and the scene need": "delete window.ResizeObserver",
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("before", LACKS.values(), ids=LACKS.keys())
def test_a_browser_without_a_feature_has_stop_and_names_the_feature(browser, server, peer, before):
    browser.open(server.address, before=before)
    browser.wait("document.querySelector('.who').innerText === 'the helm is free'")
    assert browser.text(".missing")
    if before == LACKS["WebGL"]:  # nobody can tap a target in a scene that is not drawn
        assert browser.evaluate("document.querySelector('.set-goal').disabled")
    browser.click(".stop")
    browser.wait(HOLDS)
    nothing_moves(peer)
    browser.click(".resume")
    browser.wait(MOVES_ON)


NEVER_OPENS = "window.WebSocket = class extends EventTarget { static OPEN = 1; readyState = 0; close() {} send() {} }"


@pytest.mark.exhaustive
def test_page_shows_stop_and_connecting_until_the_server_answers(browser, server):
    browser.open(server.address, before=NEVER_OPENS)
    browser.wait("document.querySelector('main') !== null")
    assert browser.text(".connecting").startswith(f"Connecting to {server.address.partition('/')[0]}")
    assert browser.evaluate("document.querySelector('.stop').checkVisibility()")
    assert not browser.evaluate("document.querySelector('main').checkVisibility()")
    browser.open(server.address)
    browser.wait("document.querySelector('.connecting') === null && document.querySelector('main').checkVisibility()")


@pytest.mark.exhaustive
def test_the_log_shows_its_newest_line_however_its_height_changes(page):
    page.wait("document.querySelectorAll('.log li').length > 0")
    is_at_end = "(log => log.scrollHeight - log.scrollTop - log.clientHeight < 2)(document.querySelector('.log'))"
    for height in ("12px", "60px", "8px"):
        page.evaluate(f"document.querySelector('.log').style.flex = '0 0 {height}'")
        page.wait(f"document.querySelector('.log').clientHeight <= parseInt('{height}') && {is_at_end}")
    page.evaluate("document.querySelector('.log').scrollTop = 0")
    page.wait(f"!{is_at_end}")


# Visibility.

SIZES = [(1280, 720, 5), (390, 844, 5)]
OTHER_SIZES = [(1400, 900), (1366, 650), (820, 1180), (768, 1024), (844, 390), (932, 430)]
MORE_SIZES = [*((*size, 5) for size in OTHER_SIZES), (390, 844, 1)]
SECTIONS = ("look", "steer", "plots", "more")


@pytest.mark.parametrize(
    ("width", "height", "vehicles"),
    [*SIZES, *(pytest.param(*each, marks=pytest.mark.exhaustive) for each in MORE_SIZES)],
)
def test_stop_is_always_visible_and_elements_do_not_overlap(browser, ros, server, width, height, vehicles):
    topics = [f"/vehicle_{number}/cmd_vel_stamped" for number in range(1, vehicles)]
    others = [ros.node.create_subscription(TwistStamped, topic, print, 1) for topic in topics]
    try:
        browser.open(server.address, width=width, height=height)
        browser.wait(f"document.querySelectorAll('[data-vehicle]').length === {vehicles}")
        browser.evaluate("document.querySelector('[data-vehicle=dronegui]').click()")
        for section in SECTIONS if width < height < 900 else (None,):
            if section:
                browser.click(f".sections [data-section={section}]")
            assert faults(browser, width, height) == []
            browser.click(".stop")
            browser.wait("!document.querySelector('.banner').hidden")
            assert faults(browser, width, height) == []
            browser.click(".resume")
            browser.wait(MOVES_ON)
        if vehicles > 1:
            browser.click(".overview-button")
            assert faults(browser, width, height) == []
    finally:
        for other in others:
            ros.node.destroy_subscription(other)
