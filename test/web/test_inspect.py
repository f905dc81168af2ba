# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser, for inspection: a correct status, topics, plots, bags, forms, goals."""

import json
import os
import signal
import subprocess

import browser as chromium
import pytest
import yaml
from composition import launch
from geometry_msgs.msg import PointStamped, PoseStamped
from nav_msgs.msg import Odometry
from ports import free_ports
from ros_session import wait_until
from std_msgs.msg import Bool
from web_page import address_of, grows

from drone_bridge.tools.bags.bag import BagReader

pytestmark = pytest.mark.exhaustive

LAMP = "document.querySelector('[data-cell=connection] .lamp')?.classList.contains('%s') ?? false"

browser = chromium.module_browser()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Home of web_bridge's user, with its bags."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def composition(folder):
    options = {"emulate": True, "control": True, "rover_pattern": "circular", "view": True, "view_port": 0}
    with launch(
        "telemetry.launch.xml", telemetry_port=free_ports(1)[0], env={"HOME": str(folder)}, **options
    ) as composition:
        composition.address = address_of(composition)
        yield composition


@pytest.fixture
def page(browser, composition):
    browser.open(composition.address)
    browser.wait(LAMP % "ok")
    yield browser
    assert browser.console_errors == []


def test_a_silent_vehicle_is_red_and_cannot_be_steered(page, composition):
    emulator = int(composition.wait_for_line(r"\[launch\] telemetry-\d+ started \(pid (\d+)\)")[1])
    page.wait("!document.querySelector('.take').disabled")
    page.wait("/server .* s · telemetry_bridge .* s · vehicle .* s/.test(document.body.innerText)")
    page.wait("document.querySelector('[data-cell=doing]').innerText.includes('drone_controller')")
    page.wait("/\\d Hz/.test(document.querySelector('.camera .note')?.innerText)")  # an image is shown
    os.kill(emulator, signal.SIGSTOP)
    try:
        page.wait(LAMP % "error")
        page.wait("document.querySelector('.take').disabled")
        assert "vehicle" in page.text("[data-cell=connection]")
        # Last values are dimmed, with their age.
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
    page.wait(f"/stamp .* received .* s ago/.test(document.querySelector('{row}').innerText)")
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


def picture(page, plot):
    return page.evaluate(f"document.querySelector('{plot} canvas').toDataURL()")


def test_plots_pause_and_zoom(page, composition):
    plot = "[data-plot=Altitude]"
    page.evaluate("""localStorage.setItem("plots /", '[{"quantity": "Altitude"}]')""")  # other values do not change it
    page.open(composition.address)
    pause = "[...document.querySelectorAll('#plots button')].find(each => /Pause|Resume/.test(each.innerText))"
    grows(page, plot, "points")
    page.evaluate(f"{pause}.click()")
    paused = picture(page, plot)
    grows(page, plot, "points", 20)
    assert picture(page, plot) == paused
    page.evaluate(f"{pause}.click()")
    wait_until(lambda: picture(page, plot) != paused, "the plot to go on")
    scale = f"document.querySelector('{plot}').dataset.seconds"
    page.wait(f"Number({scale}) > 1")
    before = float(page.evaluate(scale))
    page.grab(f"{plot} .u-over", right=20)
    page.drop()
    page.wait(f"Number({scale}) < {before / 2}")
    zoomed = page.evaluate(scale)
    grows(page, plot, "points", 20)
    assert page.evaluate(scale) == zoomed
    page.evaluate(f"document.querySelector('{plot} .u-over').dispatchEvent(new MouseEvent('dblclick'))")
    page.wait(f"Number({scale}) > {before / 2}")
    page.evaluate("localStorage.clear()")


def test_the_recorder_writes_a_bag(page, folder):
    for is_pressed in ("true", "false"):
        page.click(".record")
        page.wait(f"document.querySelector('.record').getAttribute('aria-pressed') === '{is_pressed}'")
        wait_until(
            lambda: [
                each for each in (folder / "drone_bridge" / "bags").glob("bag_*/*.mcap") if each.stat().st_size > 10_000
            ],
            "messages",
        )
    (bag,) = (folder / "drone_bridge" / "bags").glob("bag_*")
    with BagReader(bag) as recorded:
        assert recorded.count > 0


def test_a_form_publishes_once_and_velocities_need_the_helm(page, ros):
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
    # Pressed a second time, with a slow response: the filled-in values stay.
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
    assert "Take its helm" in page.text(".publisher")


def test_parameters_show_changes_and_are_exported_as_yaml(page):
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
    page.wait(f"document.querySelector('{row} .note').innerText.includes('until the node ends')")
    page.evaluate("[...document.querySelectorAll('button')].find(each => each.innerText === 'YAML of all').click()")
    page.wait("document.querySelector('[data-yaml]') !== null")
    parameters = yaml.safe_load(page.evaluate("document.querySelector('[data-yaml]').dataset.yaml"))
    assert parameters["/web_bridge"]["ros__parameters"]["max_turn_rate"] == 0.5
    assert {"/telemetry_bridge", "/drone_controller"} <= parameters.keys()


def test_a_tap_on_the_ground_sets_a_goal_if_a_controller_accepts_it_and_there_is_odometry(page, ros):
    page.wait("document.querySelector('.take') !== null")
    button = "[...document.querySelectorAll('#scene button')].find(each => each.innerText === 'Set a goal')"
    assert page.evaluate(f"{button}?.checkVisibility() ?? false") is False
    goals = ros.subscribe(PoseStamped, "/goal_pose")
    ros.node.create_publisher(Odometry, "/odom", 1)
    page.wait(f"{button}?.checkVisibility() ?? false")
    page.evaluate(f"{button}.click()")
    page.wait("document.querySelector('.goal').innerText.includes('Tap the target')")
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
    script = chromium.ROOT / "test" / "web" / "foxglove_client.mjs"
    command = [chromium.NODE, script, f"ws://{composition.address}", "/said"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
        assert heard.wait().data is True
        seen = json.loads(client.stdout.readline())
        client.stdin.close()
    assert {"clientPublish", "connectionGraph", "parameters", "services"} <= set(seen["capabilities"])
    assert [each["value"] for each in seen["parameter"]] == [2]
    assert "/imu/data" in seen["graph"]
