# SPDX-License-Identifier: Apache-2.0
"""Plots on the page, and the recorder, on the launch file of a vehicle."""

import browser as chromium
from composition import launch
from ports import free_ports
from ros_session import wait_until
from web_page import address_of, grows
from web_viewer import web_bridge

HEADING = "Heading"

browser = chromium.module_browser()


def picture(browser, plot):
    return browser.evaluate(f"document.querySelector('[data-plot=\"{plot}\"] canvas').toDataURL()")


def test_plots_pause_and_zoom_and_the_recorder_writes_a_bag(browser, ros, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where web_bridge runs, and so where its bags are
    plot = f'[data-plot="{HEADING}"]'
    (port,) = free_ports(1)
    options = {"emulate": True, "view": True, "view_port": 0, "testbed_port": port, "namespace": "alpha"}
    with launch("testbed.launch.xml", **options) as composition, web_bridge():  # another page beside it
        browser.open(address_of(composition))
        grows(browser, plot, "points", 20)
        nodes = [f"{namespace.rstrip('/')}/{name}" for name, namespace in ros.node.get_node_names_and_namespaces()]
        assert sorted(each for each in nodes if "web_bridge" in each) == ["/alpha/web_bridge", "/web_bridge"]
        check_recorder(browser, tmp_path)
        check_pause(browser, plot)
        check_zoom(browser, plot)
    assert bag_of(tmp_path)["message_count"] > 0


def check_recorder(browser, folder):
    browser.wait("!document.querySelector('.record').hidden")
    browser.click(".record")
    browser.wait("document.querySelector('.record').getAttribute('aria-pressed') === 'true'")
    full = 1_000_000  # bytes: some images
    wait_until(lambda: [each for each in folder.glob("bag_*/*.mcap") if each.stat().st_size > full], "a filled bag")
    browser.click(".record")
    browser.wait("document.querySelector('.record').getAttribute('aria-pressed') === 'false'")


def bag_of(folder):
    (metadata,) = folder.glob("bag_*/metadata.yaml")
    import yaml

    return yaml.safe_load(metadata.read_text())["rosbag2_bagfile_information"]


def check_pause(browser, plot):
    pause = "[...document.querySelectorAll('#plots button')].find(each => /Pause|Resume/.test(each.innerText))"
    browser.evaluate(f"{pause}.click()")
    paused = picture(browser, HEADING)
    grows(browser, plot, "points", 20)
    assert picture(browser, HEADING) == paused
    browser.evaluate(f"{pause}.click()")
    wait_until(lambda: picture(browser, HEADING) != paused, "the plot to go on")


def check_zoom(browser, plot):
    scale = f"document.querySelector('{plot}').dataset.seconds"
    browser.wait(f"Number({scale}) > 1")
    before = float(browser.evaluate(scale))
    browser.grab(f"{plot} .u-over", right=20)
    browser.drop()
    browser.wait(f"Number({scale}) < {before / 2}")
    zoomed = browser.evaluate(scale)
    grows(browser, plot, "points", 20)
    assert browser.evaluate(scale) == zoomed
    browser.evaluate(f"document.querySelector('{plot} .u-over').dispatchEvent(new MouseEvent('dblclick'))")
    browser.wait(f"Number({scale}) > {before / 2}")
