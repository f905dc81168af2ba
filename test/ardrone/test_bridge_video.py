# SPDX-License-Identifier: Apache-2.0
"""Video of ardrone_bridge as a process, with drawn, captured and replayed pictures of a drone."""

import contextlib
import math
import struct
from importlib.util import find_spec

import numpy as np
import pytest
from ports import free_ports
from processes import Process
from repository import CAPTURES
from ros_session import wait_until
from sensor_msgs.msg import CameraInfo, CompressedImage, Image

from drone_bridge.ar_drone.cameras import DOWN_2, FRONT_2
from drone_bridge.ardrone.codec import PaveReader
from drone_bridge.vision.h264 import H264Decoder

CAPTURED = CAPTURES / "ardrone" / "uavpilot_video.bin"
EMULATOR = ("drone_bridge.ardrone.vehicle.emulator",)
NAMES = ("port", "navdata_port", "control_port", "video_port")
needs_pyav = pytest.mark.skipif(not find_spec("av"), reason="PyAV is not installed")


@pytest.fixture
def start(start_child):
    """Return a function that starts an emulated drone and its bridge."""
    running = []

    def started(*options, env=None, program=EMULATOR, **parameters):
        ports = dict(zip(NAMES, free_ports(len(NAMES)), strict=True))
        words = [word for name, port in ports.items() for word in (f"--{name.replace('_', '-')}", port)]
        drone = Process.module(*program, *words, *options)
        running.append(drone.__enter__())
        drone.wait_for_line("listening on")
        patient = {"navdata_timeout": 30.0, "confirm_timeout": 30.0}
        bridge = Process.node("ardrone_bridge", env=env, host="127.0.0.1", **ports, **patient, **parameters)
        running.append(bridge.__enter__())
        bridge.wait_for_line("sends navdata")
        return drone, bridge

    yield started
    for each in reversed(running):
        each.__exit__(None, None, None)


def frame_of(camera):
    return f"{camera.name}_camera_optical_frame"


@needs_pyav
def test_captured_pictures_are_published_as_decoded(ros, start):
    decoder = H264Decoder()
    frames = list(PaveReader().receive(CAPTURED.read_bytes()))
    expected = {decoder.decode(frame.payload, 1).tobytes() for frame in frames}
    images, infos = ros.subscribe(Image, "image_raw"), ros.subscribe(CameraInfo, "camera_info")
    compressed = ros.subscribe(CompressedImage, "image_raw/compressed")
    start("--video", CAPTURED)
    for _ in range(40):
        image = images.wait()
        assert image.data.tobytes() in expected
        images.clear()
    assert (image.width, image.height, image.encoding) == (640, 360, "rgb8")
    assert image.header.frame_id == frame_of(FRONT_2)
    info = infos.wait()
    assert (info.width, info.height, info.k[0]) == (640, 360, pytest.approx(FRONT_2.focal_length))
    assert compressed.wait().format


def pictures_of(data):
    """Yield the pictures of a capture, by PyAV alone."""
    av = pytest.importorskip("av")
    context = av.CodecContext.create("h264", "r")
    for part in data.split(b"PaVE")[1:]:
        head, size = struct.unpack_from("<2xHI", part)
        with contextlib.suppress(av.error.InvalidDataError):  # after frames that the capture lacks
            for frame in context.decode(av.Packet(part[head - 4 : head - 4 + size])):
                yield frame.to_ndarray(format="rgb24")[::8, ::8].astype(int)


@pytest.mark.exhaustive
@needs_pyav
@pytest.mark.parametrize("name", ["node_pave.bin", "node_pave-68.bin", "uavpilot_video.bin"])
def test_a_log_is_a_drone_with_the_pictures_of_the_capture(name, ros, start, tmp_path):
    capture = CAPTURED.with_name(name)
    known, images = list(pictures_of(capture.read_bytes())), ros.subscribe(Image, "image_raw")
    drone, bridge = start("--bootstrapped", "--video", capture, wire_log=tmp_path)
    wait_until(lambda: len(images) > 100, "pictures")
    assert bridge.stop() == 0
    drone.stop()
    (log,) = tmp_path.glob("*.mcap")
    images.clear()
    start("--replay", log, program=("drone_bridge.tools.cli", "emulate", "ardrone"))
    wait_until(lambda: len(images) > 60, "the pictures again")
    shown = set()
    for _ in range(len(images)):
        image = images.wait()
        picture = np.frombuffer(image.data, np.uint8).reshape(image.height, image.width, 3)[::8, ::8]
        distances = [np.abs(picture - each).mean() for each in known]
        assert min(distances) < 1.0
        shown.add(np.argmin(distances))
    assert len(shown) >= min(5, len(known))


@pytest.mark.exhaustive
@needs_pyav
def test_the_camera_is_switched_and_named_from_the_first_picture_on(ros, start):
    images = ros.subscribe(Image, "image_raw")
    drone, _ = start()
    front = images.wait()
    assert front.header.frame_id == frame_of(FRONT_2)
    assert ros.switch("ardrone_bridge/set_camera", True).success
    came = []
    images.wait(lambda image: came.append(image) or image.header.frame_id == frame_of(DOWN_2))
    drone.wait_for_line("video:video_channel = 1")
    # Both cameras of a drone on the ground see something else, which does not change.
    *before, down = map(mean_of, came)
    assert math.dist(mean_of(front), down) > 10
    assert all(math.dist(each, mean_of(front)) < 1 for each in before)


def mean_of(image):
    return np.frombuffer(image.data, np.uint8).reshape(-1, 3).mean(axis=0).tolist()
