# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser: its display of each vehicle."""

import base64
import json
import os
import re
import signal
import time
from pathlib import Path

import browser as chromium
import cv2
import numpy as np
import pytest
from composition import launch
from mcap.reader import make_reader
from nav_msgs.msg import Odometry
from ports import free_ports
from processes import Process, executable
from rclpy.serialization import deserialize_message
from repository import ROOT, TESTS
from ros_session import wait_until
from rosbags.rosbag2 import Reader
from sensor_msgs.msg import LaserScan
from tf2_msgs.msg import TFMessage
from web_page import address_of, grows

from drone_bridge.ar_drone.cameras import DOWN, FRONT
from drone_bridge.ros.topics.frame_tree import all_static

LAYOUTS = sorted((ROOT / "config" / "foxglove").glob("*.json"))
TWO_VEHICLES = TESTS / "launch" / "launch_files" / "two_vehicles.launch.xml"
PORTS = ("testbed_port", "dronegui_port", "simulator_port", "robot_port", "telemetry_port", "discovery_port")
#: Size of a window, pixels.
LAPTOP = (1280, 720)
#: Number of vehicles in all.launch.xml.
VEHICLES = 5
#: Longest time from a cause to its name in Health.
NAMED_S = 2.0


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


# Expected parts for each vehicle: a camera, the number of objects in the scene, and a plot.
SEEN = {"testbed": (True, 0, "Distance to target"), "simulator": (False, 5, "Depth")}


@pytest.mark.exhaustive
def test_the_page_shows_each_vehicle_and_connects_to_nobody_else(browser):
    testbed_port, simulator_port = free_ports(2)
    ports = {"testbed_port": testbed_port, "simulator_port": simulator_port}
    with launch(TWO_VEHICLES, view=True, view_port=0, **ports) as composition:
        address = address_of(composition)
        browser.open(address)
        browser.wait(f"document.querySelectorAll('[data-vehicle]').length === {len(SEEN)}")
        browser.wait(f"document.querySelector('#scene').dataset.models >= {len(SEEN)}")
        browser.wait("document.querySelector('[data-cell=health] .lamp').classList.contains('ok')")
        for vehicle, (has_camera, marks, plot) in SEEN.items():
            browser.click(f'[data-vehicle="{vehicle}"]')
            browser.wait(f"document.querySelector('[data-cell=connection]').innerText.includes('{vehicle}_bridge')")
            if has_camera:
                grows(browser, f'.camera[data-topic^="/{vehicle}/"]', "frames")
                assert has_colours(browser, f'.camera[data-topic^="/{vehicle}/"]')
            browser.wait(f"document.querySelector('#scene').dataset.marks >= {marks}")
            grows(browser, f'[data-plot="{plot}"]', "points", 1)
        check_switching(browser)
        check_overview(browser)
        assert browser.console_errors == []
        host = address.partition("/")[0]
        assert [each for each in browser.requests if host not in each and not each.startswith(("data:", "blob:"))] == []


@pytest.mark.exhaustive
def test_the_page_counts_five_vehicles_with_the_topics_of_the_layouts(browser, ros):
    ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
    with launch("all.launch.xml", view=True, view_port=0, control=True, **ports) as composition:
        browser.open(address_of(composition))
        browser.wait(f"document.querySelectorAll('[data-vehicle]').length === {VEHICLES}")
        wait_until(lambda: not missing_topics(ros), "the topics of the layouts", period_s=0.2)


def test_the_end_of_a_launch_is_shown_with_how_its_vehicle_ended(browser):
    (port,) = free_ports(1)
    cell = "document.querySelector('[data-cell={}]').innerText"
    with launch("robot.launch.xml", emulate=True, view=True, view_port=0, robot_port=port) as composition:
        browser.open(address_of(composition))
        browser.wait(f"/x .* y /.test({cell.format('position')})")
        grows(browser, '[data-plot="Speed"]', "points")
        browser.wait("document.querySelector('#scene').dataset.models === '1'")
        composition.send(signal.SIGINT)
        browser.wait(f"/launch has ended/.test({cell.format('connection')})")
        browser.wait(f"/Stopped/.test({cell.format('doing')})")
        composition.wait()
    browser.wait("document.querySelector('[data-plot=Speed].old')?.innerText.includes('ago')")
    assert browser.evaluate("document.querySelector('[data-plot=Speed] .uplot') !== null")
    assert browser.evaluate("document.querySelector('#scene').dataset.old === '1'")
    assert not browser.evaluate("document.querySelector('[data-cell=health] .lamp').classList.contains('ok')")


@pytest.mark.exhaustive
def test_a_killed_bridge_leaves_its_values_and_the_jump_of_its_restart_is_marked(browser, ros):
    """Its last minute is saved before, by a button."""
    (port,) = free_ports(1)
    with launch("robot.launch.xml", emulate=True, control=True, view=True, view_port=0, robot_port=port) as composition:
        bridge = int(composition.wait_for_line(r"robot_bridge-\d+ started \(pid (\d+)\)")[1])
        browser.open(address_of(composition))
        grows(browser, '[data-plot="Speed"]', "points")
        browser.click("#details [role=tab]:nth-child(3)")
        browser.evaluate(
            "[...document.querySelectorAll('#details button')].find(e => e.innerText === 'Save wire').click()"
        )
        browser.wait("/The last minute of the wire is saved/.test(document.querySelector('#details').innerText)")
        saved = composition.wait_for_line(r"\(requested\) is in (.+): attach")[1]
        with Path(saved).open("rb") as file:
            assert len([*make_reader(file).iter_messages()]) > 10
        os.kill(bridge, signal.SIGKILL)
        browser.wait("Number(document.querySelector('[data-plot=Speed]')?.dataset.gaps) >= 1", timeout_s=60)
        grows(browser, '[data-plot="Speed"]', "points")
        browser.wait("document.querySelector('.scene-key').innerText.includes('restarted')")
        assert browser.console_errors == []


@pytest.mark.exhaustive
def test_health_names_a_cause_within_2_s(browser, ros):
    def named(cause):
        began_s = time.monotonic()
        browser.wait(f"/{cause}/.test(document.querySelector('#health').innerText)")
        return time.monotonic() - began_s

    (port,) = free_ports(1)
    emulator = executable("drone-bridge"), "emulate", "robot", "--port", port, "--no-discovery"
    options = {"view": True, "view_port": 0, "robot_port": port}
    with Process(*emulator) as robot, launch("robot.launch.xml", **options) as composition:
        browser.open(address_of(composition))
        named(r"robot_bridge: link\s+connected")
        ros.node.create_publisher(Odometry, "odom", 1)
        assert named("odom is published by .*: let one of them use another topic") < NAMED_S
        robot.stop()
        assert named("no peer is connected|there is no link") < NAMED_S


@pytest.mark.exhaustive
def test_a_lidar_is_on_its_topic_in_the_scene_and_in_a_bag(browser, ros, tmp_path):
    (port,), bag = free_ports(1), tmp_path / "bag"
    options = {"emulate": True, "view": True, "view_port": 0, "record": True, "bag": bag, "robot_port": port}
    scans, frames = ros.subscribe(LaserScan, "scan"), ros.subscribe(TFMessage, "/tf_static", all_static())
    with launch("neato.launch.xml", **options) as composition:
        browser.open(address_of(composition))
        browser.wait("document.querySelector('#scene').dataset.scanned === '360'")
        scan = scans.wait()
        assert browser.console_errors == []
        mount = frames.wait(lambda message: message.transforms[0].child_frame_id == scan.header.frame_id).transforms[0]
    assert [scan.ranges[at] for at in (0, 90, 180, 270)] == pytest.approx([3.1016, 2.5, 1.3984, 1.5], abs=0.002)
    at = mount.transform.translation
    assert (mount.header.frame_id, at.x, at.z) == ("base_link", -0.1016, 0.0889)
    with Reader(bag) as reader:
        kept = [bytes(data) for _, _, data in reader.messages([c for c in reader.connections if c.topic == "/scan"])]
    assert deserialize_message(kept[-1], LaserScan).ranges[0] == pytest.approx(3.1016, abs=0.002)


@pytest.mark.exhaustive
def test_page_shows_the_ar_drone_camera_and_follows_its_switch(browser):
    ports = dict(zip(("dronegui_port", "navdata_port", "video_port"), free_ports(3), strict=True))
    with launch("dronegui.launch.xml", emulate=True, view=True, view_port=0, **ports) as composition:
        emulator = int(composition.wait_for_line(r"dronegui-\d+ started \(pid (\d+)\)")[1])
        browser.open(address_of(composition), width=LAPTOP[0], height=LAPTOP[1])
        picture = '.camera[data-topic="/image_raw/compressed"]'
        browser.wait("document.querySelectorAll('.camera').length === 1")
        for camera in (FRONT, DOWN, FRONT):
            browser.wait(f"document.querySelector('{picture} canvas').width === {camera.width}")
            grows(browser, picture, "frames")
            assert browser.evaluate(f"document.querySelector('{picture} canvas').height") == camera.height
            os.kill(emulator, signal.SIGIO)
        browser.evaluate("HTMLAnchorElement.prototype.click = function () { saved = [this.download, this.href] }")
        browser.click(f"{picture} .save")
        name, address = browser.evaluate("saved")
        assert re.fullmatch(r"camera_\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.png", name)
        saved = cv2.imdecode(np.frombuffer(base64.b64decode(address.partition(",")[2]), np.uint8), cv2.IMREAD_COLOR)
        assert (*saved.shape[:2], saved.std() > 1) in [(each.height, each.width, True) for each in (FRONT, DOWN)]
        browser.click(f"{picture} .fill")
        browser.wait("document.body.classList.contains('pilot')")
        browser.wait("!document.querySelector('.horizon').classList.contains('unknown')")
        box = f"(({{width, height}}) => [width, height])(document.querySelector('{picture}').getBoundingClientRect())"
        assert browser.evaluate(box) == list(LAPTOP)
        grows(browser, picture, "frames")
        assert has_colours(browser, picture)
        assert browser.console_errors == []


def check_switching(browser):
    """Another vehicle's activity is not shown for the selected one, not even during the click."""
    browser.click("[data-vehicle=testbed]")
    browser.wait("/^Doing\\s+seek target/.test(document.querySelector('[data-cell=doing]').innerText)")
    click = "document.querySelector('[data-vehicle=simulator]').click()"
    assert "seek target" not in browser.evaluate(f"({click}, document.querySelector('[data-cell=doing]').innerText)")


def check_overview(browser):
    """A card for each vehicle, with an image, or else its model. A tap opens the vehicle."""
    all_vehicles = "[...document.querySelectorAll('.top button')].find(each => each.innerText === 'All vehicles')"
    browser.evaluate(f"{all_vehicles}.click()")
    for vehicle, (has_camera, _, _) in SEEN.items():
        card = f"document.querySelector('[data-card={vehicle}]')"
        browser.wait(f"{card}?.querySelector('.lamp').classList.contains('ok')")
        if has_camera:
            browser.wait(f"Number({card}.dataset.drawn) > 0")
        assert has_colours(browser, f"[data-card={vehicle}]")
    browser.wait("/Depth\\s+\\d/.test(document.querySelector('[data-card=simulator]').innerText)")
    browser.click("[data-card=simulator]")
    browser.wait("document.querySelector('.overview').hidden")
    assert browser.text(".vehicles [aria-pressed=true]") == "simulator"
    browser.evaluate(f"{all_vehicles}.click()")
    browser.wait("document.querySelectorAll('.card').length === 2")
    right = "[...document.querySelectorAll('.card')].map(each => each.getBoundingClientRect().right)"
    assert browser.evaluate(f"innerWidth - Math.max(...{right}) < 40")  # the cards use the window
    browser.click("[data-vehicle=simulator]")  # also that of the vehicle that was shown before
    browser.wait("document.querySelector('.overview').hidden && document.querySelector('main').checkVisibility()")


def missing_topics(ros):
    """Return the missing topics of the layouts for Foxglove, each with its layout."""
    topics = {name for name, _ in ros.node.get_topic_names_and_types()}
    missing = set()
    for path in LAYOUTS:
        panels = json.loads(path.read_text())["configById"]
        shown = set(re.findall(r'"(/[a-z_/]+)', json.dumps(panels)))
        vehicle = "" if path.stem == "all" else f"/{path.stem}"
        missing |= {(path.stem, topic) for topic in shown if not topics & {topic, f"{vehicle}{topic}"}}
    return missing
