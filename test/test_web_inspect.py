# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser, to look into what runs: a status that is true, topics, plots, layers, goals."""

import json
import math
import os
import signal
import subprocess

import browser as chromium
import pytest
import yaml
from composition import launch
from geometry_msgs.msg import Point, PointStamped, Pose, PoseArray, PoseStamped, Quaternion
from nav_msgs.msg import OccupancyGrid, Path
from ports import free_ports
from sensor_msgs.msg import LaserScan, NavSatFix, PointCloud2, PointField
from std_msgs.msg import Bool, Header
from web_page import address_of

LAMP = "document.querySelector('[data-cell=connection] .lamp')?.classList.contains('%s') ?? false"

browser = chromium.module_browser()


@pytest.fixture(scope="module")
def composition():
    options = {"emulate": True, "control": True, "rover_pattern": "circular", "view": True, "view_port": 0}
    with launch("landing.launch.xml", telemetry_port=free_ports(1)[0], **options) as composition:
        composition.address = address_of(composition)
        yield composition


@pytest.fixture
def page(browser, composition):
    browser.open(composition.address)
    browser.wait(LAMP % "ok")
    yield browser
    assert browser.console_errors == []


def test_a_silent_vehicle_is_red_and_cannot_be_steered(page, composition):
    emulator = int(composition.wait_for_line(r"\[launch\] landing-\d+ started \(pid (\d+)\)")[1])
    page.wait("!document.querySelector('.take').disabled")
    page.wait("/server .* s · telemetry_bridge .* s · vehicle .* s/.test(document.body.innerText)")
    page.wait("document.querySelector('[data-cell=doing]').innerText.includes('drone_controller')")
    page.wait("/\\d Hz/.test(document.querySelector('.camera .note')?.innerText)")  # an image is shown
    os.kill(emulator, signal.SIGSTOP)
    try:
        page.wait(LAMP % "error")
        page.wait("document.querySelector('.take').disabled")
        assert "vehicle" in page.text("[data-cell=connection]")
        # What it said last is dimmed, with its age, wherever it stands.
        for value in ("[data-plot=Altitude] .value", "[data-plot=Yaw] .value", "[data-cell=position] strong"):
            page.wait(f"/\\d.* · \\d+ s ago$/.test(document.querySelector('{value}.silent')?.innerText)")
        page.wait("/ · \\d+ s ago$/.test(document.querySelector('.camera.stale .note.silent')?.innerText)")
    finally:
        os.kill(emulator, signal.SIGCONT)
    page.wait(LAMP % "ok")
    page.wait("!document.querySelector('.take').disabled")
    page.wait("document.querySelector('[data-cell=position] strong:not(.silent)') !== null")


def open_tab(page, number):
    page.click(f"#details [role=tab]:nth-child({number})")


def test_a_topic_opens_to_its_values_and_a_number_of_it_is_plotted(page):
    open_tab(page, 2)
    row = '[data-topic-row="/imu/data"]'
    page.click(f"{row} summary")
    page.wait(f"/Hz · .*B\\/s/.test(document.querySelector('{row} .number').innerText)")
    page.wait(f"/stamp .* came .* s ago/.test(document.querySelector('{row}').innerText)")
    leaf = f'{row} [data-path="linear_acceleration.z"]'
    page.wait(f"Number(document.querySelector('{leaf} .value').innerText) > 1")
    page.click(f"{leaf} button")
    plot = '[data-plot="/imu/data linear_acceleration.z"]'
    page.wait(f"Number(document.querySelector('{plot}')?.dataset.points) > 2")
    assert "m/s²" in page.text(plot)
    page.reload()
    page.wait(LAMP % "ok")
    page.wait(f"document.querySelector('{plot}')?.checkVisibility()")  # the layout is kept
    names = "[...document.querySelectorAll('.plot:not(.empty)')].map(each => each.dataset.plot)"
    first, second = page.evaluate(names)[:2]
    page.evaluate(f"document.querySelector('[aria-label=\"Move down: {first}\"]').click()")
    assert page.evaluate(names)[:2] == [second, first]
    page.evaluate(f"document.querySelector('[aria-label=\"Remove: {first}\"]').click()")
    assert first not in page.evaluate(names)
    page.evaluate("[...document.querySelectorAll('#plots button')].find(each => each.innerText === 'Reset').click()")
    page.wait("localStorage.length === 0 || !Object.keys(localStorage).some(key => key.startsWith('plots'))")


def test_a_form_publishes_once_and_what_moves_the_vehicle_needs_its_helm(page, ros):
    heard = ros.subscribe(PointStamped, "/place")
    open_tab(page, 2)
    takers = "fetch('takers.json' + location.search).then(answer => answer.json())"
    page.wait(f"{takers}.then(takers => takers.some(taker => taker.topic === '/place'))")
    choose = """(() => {{
      const topic = document.querySelector('.publisher select');
      topic.value = '{0}';
      topic.dispatchEvent(new Event('change'));
      return topic.value === '{0}';
    }})()"""
    button = ".publisher .primary"
    number = "document.querySelectorAll('.publisher .field input')[2].value"
    page.click(".publish")
    page.wait("!document.querySelector('.publisher').hidden")
    # Pressed a second time, with a slow answer: what is filled in meanwhile stays.
    page.evaluate(
        """(() => {
          const get = window.fetch;
          window.fetch = async (address) => {
            window.fetch = get;
            const answer = await (await get(address)).json();
            await new Promise((goOn) => { window.goOn = goOn; });
            return { json: async () => answer };
          };
        })()"""
    )
    page.click(".publish")
    page.wait("window.goOn !== undefined")
    assert page.evaluate(choose.format("/place"))
    page.evaluate(f"{number} = '1.5'")
    page.evaluate("window.goOn()")
    assert page.evaluate(number) == "1.5"
    page.click(button)
    message = heard.wait(lambda message: message.point.x == 1.5)
    assert message.header.stamp.sec > 1_700_000_000  # now
    assert page.evaluate(choose.format("/cmd_vel_stamped"))
    page.wait(f"document.querySelector('{button}').disabled")
    assert "take its helm first" in page.text(".publisher")


def test_parameters_tell_what_was_changed_and_come_out_as_yaml(page):
    open_tab(page, 4)
    page.evaluate(
        """(() => {
          const node = document.querySelector('.parameters').closest('.tab-body').querySelector('select');
          node.value = '/web_bridge';
          node.dispatchEvent(new Event('change'));
        })()"""
    )
    row = "[data-parameter=max_turn_rate]"
    page.wait(f"document.querySelector('{row} .changed')?.hidden")
    page.evaluate(
        f"""(() => {{
          const input = document.querySelector('{row} input');
          input.value = '0.5';
          input.dispatchEvent(new Event('change'));
        }})()"""
    )
    page.wait(f"document.querySelector('{row} .changed').innerText === 'changed, default 1.0'")
    page.wait(f"document.querySelector('{row} .note').innerText.includes('in force until the node ends')")
    page.evaluate("[...document.querySelectorAll('button')].find(each => each.innerText === 'YAML of all').click()")
    page.wait("document.querySelector('[data-yaml]') !== null")
    parameters = yaml.safe_load(page.evaluate("document.querySelector('[data-yaml]').dataset.yaml"))
    assert parameters["/web_bridge"]["ros__parameters"]["max_turn_rate"] == 0.5
    assert {"/telemetry_bridge", "/drone_controller"} <= parameters.keys()


def layers():
    """A message of each type that the scene draws, and that has a wheel."""
    header = Header(frame_id="base_link")
    pose = Pose(position=Point(x=1.0), orientation=Quaternion(w=1.0))
    cloud = PointCloud2(header=header, height=1, width=2, point_step=12, row_step=24, data=bytes(24))
    cloud.fields = [PointField(name=name, offset=4 * at, datatype=7, count=1) for at, name in enumerate("xyz")]
    grid = OccupancyGrid(header=header, data=[0, 100, -1, 50])
    grid.info.width = grid.info.height = 2
    grid.info.resolution = 0.5
    return {
        "/scan": LaserScan(header=header, angle_increment=0.1, range_max=9.0, ranges=[1.0, math.nan, 2.0]),
        "/points": cloud,
        "/plan": Path(header=header, poses=[PoseStamped(header=header, pose=pose)] * 2),
        "/poses": PoseArray(header=header, poses=[pose]),
        "/map": grid,
        "/fix": NavSatFix(header=header, latitude=50.0, longitude=14.0),
    }


def test_a_tap_on_the_ground_sets_a_goal_where_somebody_takes_it(page, ros):
    page.wait("document.querySelector('.take') !== null")
    button = "[...document.querySelectorAll('#scene button')].find(each => each.innerText === 'Set a goal')"
    assert page.evaluate(f"{button}?.checkVisibility() ?? false") is False
    goals = ros.subscribe(PoseStamped, "/goal_pose")
    page.wait(f"{button}?.checkVisibility() ?? false")
    page.evaluate(f"{button}.click()")
    page.wait("document.querySelector('.goal').innerText.includes('Tap the ground')")
    page.grab(".scene-view canvas", up=0)
    page.drop()
    page.wait("document.querySelector('.goal').innerText.includes('Goal at x')")
    page.click(".goal .primary")
    goal = goals.wait()
    assert goal.header.frame_id == "base_link"
    page.wait("document.querySelector('.goal').innerText.includes('reports no progress')")


def test_foxgloves_own_client_reads_publishes_and_sets_parameters(composition, ros):
    """It offers the older name of the protocol."""
    heard = ros.subscribe(Bool, "/said")
    script = chromium.ROOT / "test" / "support" / "foxglove_client.mjs"
    command = [chromium.NODE, script, f"ws://{composition.address}", "/said"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
        assert heard.wait().data is True
        seen = json.loads(client.stdout.readline())
        client.stdin.close()
    assert {"clientPublish", "connectionGraph", "parameters", "services"} <= set(seen["capabilities"])
    assert [each["value"] for each in seen["parameter"]] == [2]
    assert "/imu/data" in seen["graph"]
