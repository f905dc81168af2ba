# SPDX-License-Identifier: Apache-2.0
"""The page of one's own in examples/, in a real browser: it shows a camera and a height, and steers."""

import functools
import http.server
import threading

import browser as chromium
import numpy as np
import pytest
from geometry_msgs.msg import PointStamped, TwistStamped
from repository import ROOT
from ros_session import module_ros, repeating, wait_until
from sensor_msgs.msg import CompressedImage
from std_msgs.msg import Header
from web_viewer import web_bridge

from drone_bridge.vision.jpegs import jpeg_of_rgb

TOPIC = "/cmd_vel_stamped"
HEIGHT_M = 1.25
WIDTH_PX, HEIGHT_PX = 64, 48

browser = chromium.module_browser()
ros = module_ros()


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files without a log."""

    def log_message(self, *_):
        pass


@pytest.fixture
def own_page(tmp_path):
    """Address of the page in the documentation, and the folder in which it is."""
    handler = functools.partial(Quiet, directory=tmp_path)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}", tmp_path
        server.shutdown()


def test_documented_page_shows_a_camera_and_a_value_and_steers(browser, ros, own_page):
    address, folder = own_page
    page = (ROOT / "examples" / "page.html").read_text()
    came = []
    jpeg = jpeg_of_rgb(np.zeros((HEIGHT_PX, WIDTH_PX, 3), np.uint8), 80)
    image = CompressedImage(header=Header(frame_id="camera_optical"), format="rgb8; jpeg", data=jpeg)
    height = PointStamped(header=Header(frame_id="ground"))
    height.point.z = HEIGHT_M
    published = {
        ros.node.create_publisher(type(message), topic, 1): message
        for topic, message in (("camera/image_raw/compressed", image), ("height", height))
    }

    def publish(_):
        for publisher, message in published.items():
            publisher.publish(message)

    with web_bridge(origins=[f"http://{address}"]) as server, repeating(publish, period_s=0.2):
        (folder / "index.html").write_text(page.replace("127.0.0.1:8765", server.address.rstrip("/")))
        browser.open(address)
        browser.wait(f"camera.naturalWidth === {WIDTH_PX} && camera.naturalHeight === {HEIGHT_PX}")
        browser.wait(f"height.value === '{HEIGHT_M:.2f}'")
        assert browser.evaluate("drive.disabled")  # a vehicle that is not known yet can't be taken
        ros.node.create_subscription(TwistStamped, TOPIC, came.append, 10)
        browser.wait("!drive.disabled")
        browser.grab("#drive")
        wait_until(lambda: came and came[-1].twist.linear.x > 0.0, "a vehicle that drives")
        browser.drop()
        wait_until(lambda: came[-1].twist.linear.x == 0.0, "a vehicle that stands")
        browser.grab("#drive")
        wait_until(lambda: came[-1].twist.linear.x > 0.0, "a vehicle that drives again")
        browser.evaluate("document.querySelector('#halt').click()")
        wait_until(lambda: came[-1].twist.linear.x == 0.0, "a stopped vehicle")
        browser.drop()
        assert browser.console_errors == []
