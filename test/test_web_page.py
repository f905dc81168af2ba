# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser: what it shows of each vehicle, and what stops one that is steered from it."""

import json
import math
import os
import re
import signal
import time
from pathlib import Path

import browser as chromium
import pytest
from composition import launch
from geometry_msgs.msg import TwistStamped
from nav_msgs.msg import Odometry
from ports import free_ports
from ros_session import TIMEOUT_S, wait_until
from web_page import address_of, grows, take_the_helm

LAYOUTS = sorted((Path(__file__).parent.parent / "config" / "foxglove").glob("*.json"))
FORWARD = "KeyW"
PORTS = ("testbed_port", "dronegui_port", "simulator_port", "robot_port", "telemetry_port", "discovery_port")


browser = chromium.module_browser()


def has_colours(browser, selector):
    """Return whether a canvas shows more than one colour."""
    return browser.evaluate(
        f"""(() => {{
          const canvas = document.querySelector('{selector} canvas');
          const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
          return new Set(new Uint32Array(data.buffer)).size > 1;
        }})()"""
    )


# What there is to see of each vehicle: whether it has a camera, how many things in the scene, and a plot.
VEHICLES = {
    "testbed": (True, 0, "Distance to target"),
    "dronegui": (False, 0, "Altitude"),
    "simulator": (False, 5, "Depth"),
    "robot": (False, 0, "Battery"),
    "landing": (True, 1, "Altitude"),
}


def test_the_page_shows_all_five_vehicles_and_talks_to_nobody_else(browser, ros):
    ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
    with launch("all.launch.xml", view=True, view_port=0, control=True, **ports) as composition:
        address = address_of(composition)
        browser.open(address)
        browser.wait(f"document.querySelectorAll('[data-vehicle]').length === {len(VEHICLES)}")
        browser.wait(f"document.querySelector('#scene').dataset.models >= {len(VEHICLES)}")
        browser.wait("document.querySelector('[data-cell=health] .lamp').classList.contains('ok')")
        for vehicle, (has_camera, marks, plot) in VEHICLES.items():
            browser.click(f'[data-vehicle="{vehicle}"]')
            bridge = "telemetry" if vehicle == "landing" else vehicle
            browser.wait(f"document.querySelector('[data-cell=connection]').innerText.includes('{bridge}_bridge')")
            if has_camera:
                grows(browser, f'.camera[data-topic^="/{vehicle}/"]', "frames")
                assert has_colours(browser, f'.camera[data-topic^="/{vehicle}/"]')
            browser.wait(f"document.querySelector('#scene').dataset.marks >= {marks}")
            grows(browser, f'[data-plot="{plot}"]', "points", 1)
        check_switching(browser)
        check_overview(browser)
        check_service(browser)
        check_layouts(ros)
        assert browser.console_errors == []
        host = address.partition("/")[0]
        assert [each for each in browser.requests if host not in each and not each.startswith(("data:", "blob:"))] == []


def check_switching(browser):
    """What another vehicle does is not shown of the one that is looked at, not even for the moment of the click."""
    browser.click("[data-vehicle=testbed]")
    browser.wait("/^Doing\\s+seek target/.test(document.querySelector('[data-cell=doing]').innerText)")
    click = "document.querySelector('[data-vehicle=robot]').click()"
    assert "seek target" not in browser.evaluate(f"({click}, document.querySelector('[data-cell=doing]').innerText)")


def check_overview(browser):
    """A card for each vehicle, with a picture where it has a camera; one tap goes to the vehicle."""
    all_vehicles = "[...document.querySelectorAll('.top button')].find(each => each.innerText === 'All vehicles')"
    browser.evaluate(f"{all_vehicles}.click()")
    for vehicle, (has_camera, _, _) in VEHICLES.items():
        card = f"document.querySelector('[data-card={vehicle}]')"
        browser.wait(f"{card}?.querySelector('.lamp').classList.contains('ok')")
        if has_camera:
            browser.wait(f"Number({card}.dataset.drawn) > 0")
    browser.wait("/Battery\\s+\\d+ %/.test(document.querySelector('[data-card=robot]').innerText)")
    browser.click("[data-card=landing]")
    browser.wait("document.querySelector('.overview').hidden")
    assert browser.text(".vehicles [aria-pressed=true]") == "landing"


def check_service(browser):
    """A service is called by its form, and its answer is shown."""
    browser.click("#details [role=tab]:nth-child(3)")
    service = '[data-service="/simulator/simulator_bridge/list_entities"]'
    browser.click(f"{service} summary")
    browser.click(f"{service} button")
    browser.wait(f"document.querySelector('{service} button').disabled === false")
    answer = browser.text(f"{service} .answer")
    assert "buoy" in answer, answer


def check_layouts(ros):
    """The layouts for Foxglove show topics that there are, of the launch file of that name."""
    topics = {name for name, _ in ros.node.get_topic_names_and_types()}
    for path in LAYOUTS:
        panels = json.loads(path.read_text())["configById"]
        shown = set(re.findall(r'"(/[a-z_/]+)', json.dumps(panels)))
        vehicle = "" if path.stem == "all" else f"/{path.stem}"
        missing = {topic for topic in shown if not topics & {topic, f"{vehicle}{topic}"}}
        assert (path.stem, missing) == (path.stem, set())


# Steering.


def stamp_s(message):
    return message.header.stamp.sec + message.header.stamp.nanosec / 1e9


def hold(browser, robot, press, let_go):
    """Press until the robot moves: a page that was held up has to let go first after 0.3 s, and has left after 5 s."""
    for _ in range(20):
        press()
        try:
            robot.wait(moves=True, timeout_s=2)
        except AssertionError:
            let_go()
            robot.wait(moves=False)
            if browser.text(".who") != "you steer":
                take_the_helm(browser)
        else:
            return
    raise AssertionError("the robot does not move")


def hold_forward(browser, robot):
    hold(browser, robot, lambda: browser.key(FORWARD, down=True), lambda: browser.key(FORWARD, down=False))


class Robot:
    """The emulated robot, as seen from its odometry and from its commands."""

    def __init__(self, ros):
        self.speed = math.nan
        self.commands = []
        ros.node.create_subscription(Odometry, "odom", self._see, 10)
        ros.node.create_subscription(TwistStamped, "cmd_vel_stamped", self._hear, 10)

    def _see(self, message):
        self.speed = message.twist.twist.linear.x

    def _hear(self, message):
        self.commands.append(message)

    @property
    def moving_commands(self):
        return [message for message in self.commands if message.twist.linear.x]

    def wait_until_stopped(self):
        """Wait until the server has commanded it, not only until the robot's bridge has missed commands."""
        wait_until(lambda: self.commands and not self.commands[-1].twist.linear.x, "a neutral command")
        self.wait(moves=False)

    def wait(self, moves, timeout_s=TIMEOUT_S):
        wait_until(
            lambda: not math.isnan(self.speed) and (self.speed != 0) == moves,
            f"a robot that {'moves' if moves else 'stands'}",
            timeout_s,
        )


@pytest.fixture(scope="module")
def robot_composition():
    port, discovery_port = free_ports(2)
    options = {"emulate": True, "publish_odometry": True, "view": True, "view_port": 0}
    with launch("robot.launch.xml", robot_port=port, discovery_port=discovery_port, **options) as composition:
        composition.address = address_of(composition)
        yield composition


def server_of(composition):
    return int(composition.wait_for_line(r"\[launch\] web_bridge\S* started \(pid (\d+)\)")[1])


@pytest.fixture
def robot(robot_composition, ros):
    return Robot(ros)


@pytest.fixture
def helm(browser, robot, robot_composition):
    """The page at the helm of the robot."""
    browser.open(robot_composition.address)
    take_the_helm(browser)
    yield browser
    browser.key(FORWARD, down=False)
    if browser.text(".who") == "you steer":
        browser.click(".take")


def test_holding_a_key_or_a_stick_moves_the_robot_and_letting_go_or_looking_away_stops_it(helm, robot):
    hold_forward(helm, robot)
    helm.key(FORWARD, down=False)
    robot.wait_until_stopped()
    hold(helm, robot, lambda: helm.grab(".stick.right", up=50), helm.drop)
    helm.drop()
    robot.wait_until_stopped()
    hold_forward(helm, robot)
    helm.evaluate("window.dispatchEvent(new Event('blur'))")
    robot.wait_until_stopped()


def test_a_server_that_is_stopped_and_goes_on_moves_nothing(helm, robot, robot_composition):
    pid = server_of(robot_composition)
    hold_forward(helm, robot)
    os.kill(pid, signal.SIGSTOP)
    try:
        robot.wait(moves=False)
    finally:
        os.kill(pid, signal.SIGCONT)
    went_on_s = time.time()
    helm.wait("!document.querySelector('.refusal').hidden")
    assert robot.speed == 0
    # What was on its way when the server was stopped has the stamp of then, and the bridge refuses it.
    assert not [each for each in robot.moving_commands if stamp_s(each) >= went_on_s]
    helm.key(FORWARD, down=False)
