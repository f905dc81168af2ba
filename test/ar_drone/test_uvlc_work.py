# SPDX-License-Identifier: Apache-2.0
"""Work on the video of an AR.Drone 1: packets to pictures, and images of other cameras to packets."""

import numpy as np
import pytest
from repository import CAPTURES

from drone_bridge.ar_drone import uvlc, uvlc_work
from drone_bridge.vision.jpegs import bgr_of_jpeg, jpeg_of_rgb
from drone_bridge.wire.events import RemoteProtocolError

PACKET = (CAPTURES / "dronegui_video" / "qvga_q31.bin").read_bytes()


def colours(height, width):
    """Image with a different colour in each quarter."""
    pixels = np.zeros((height, width, 3), np.uint8)
    pixels[: height // 2, : width // 2] = (200, 30, 30)
    pixels[: height // 2, width // 2 :] = (30, 200, 30)
    pixels[height // 2 :, : width // 2] = (30, 30, 200)
    pixels[height // 2 :, width // 2 :] = (200, 200, 200)
    return pixels


def shows(packet, expected):
    """Whether a packet shows a picture, but for the losses of its compression."""
    picture = uvlc.decode(packet)
    pixels = np.frombuffer(picture.rgb8, np.uint8).reshape(picture.height, picture.width, 3)
    return np.abs(pixels.astype(int) - expected).mean() < 8


def test_a_picture_is_decoded_with_a_jpeg_beside_the_pixels():
    facts, (pixels, jpeg) = uvlc_work.decode(PACKET, {"jpeg": 80})
    assert facts == {"width": 320, "height": 240}
    assert pixels == uvlc.decode(PACKET).rgb8
    assert bgr_of_jpeg(jpeg).shape == (240, 320, 3)


@pytest.mark.parametrize("encoding", ["rgb8", "bgr8", "mono8"])
def test_raw_images_become_packets(encoding):
    pixels = colours(240, 320)
    data = {"rgb8": pixels, "bgr8": pixels[..., ::-1], "mono8": pixels[..., 0]}[encoding].tobytes()
    request = {"encoding": encoding, "width": 320, "height": 240, "step": len(data) // 240, "number": 9}
    _, (packet,) = uvlc_work.encode(data, request)
    assert uvlc.check(packet).number == 9
    assert shows(packet, np.stack([pixels[..., 0]] * 3, axis=2) if encoding == "mono8" else pixels)


@pytest.mark.parametrize(("width", "height", "rows", "columns"), [(640, 480, 240, 320), (640, 320, 160, 320)])
def test_images_of_other_sizes_are_fitted_into_that_of_the_front_camera(width, height, rows, columns):
    request = {"encoding": "rgb8", "width": width, "height": height, "step": 3 * width, "number": 1}
    _, (packet,) = uvlc_work.encode(colours(height, width).tobytes(), request)
    expected = np.zeros((240, 320, 3), int)
    top, left = (240 - rows) // 2, (320 - columns) // 2
    expected[top : top + rows, left : left + columns] = colours(rows, columns)
    assert shows(packet, expected)


def test_a_jpeg_becomes_a_packet():
    _, (packet,) = uvlc_work.encode_jpeg(jpeg_of_rgb(colours(240, 320), 90), {"number": 3})
    assert shows(packet, colours(240, 320))


@pytest.mark.parametrize(
    ("work", "data", "request_"),
    [
        (uvlc_work.encode, bytes(12), {"encoding": "bayer_rggb8", "width": 2, "height": 2, "step": 6}),
        (uvlc_work.encode, bytes(12), {"encoding": "rgb8", "width": 320, "height": 240, "step": 960}),
        (uvlc_work.encode_jpeg, b"no JPEG", {}),
        (uvlc_work.check, b"no packet", {}),
        (uvlc_work.check, PACKET[:-40], {}),
    ],
)
def test_images_and_packets_that_can_not_be_sent_are_refused(work, data, request_):
    with pytest.raises((ValueError, RemoteProtocolError)):
        work(data, {"number": 1, **request_})


def test_a_packet_that_may_be_sent_passes_the_check():
    assert uvlc_work.check(PACKET, {}) == ({}, [])
