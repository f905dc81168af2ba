# SPDX-License-Identifier: Apache-2.0
"""H.264 of the emulated camera and of real drones, as PyAV decodes it."""

import numpy as np
import pytest
from repository import CAPTURES

from drone_bridge.ardrone.codec import FrameType, PaveReader
from drone_bridge.ardrone.vehicle.emulator.ipcm_h264 import IpcmEncoder
from drone_bridge.vision.h264 import H264Decoder

av = pytest.importorskip("av", reason="PyAV is not installed")
WIDTH, HEIGHT = 640, 360


@pytest.fixture
def random():
    return np.random.default_rng(0)


def planes(random, least=0, most=256):
    shapes = (HEIGHT, WIDTH), (HEIGHT // 2, WIDTH // 2), (HEIGHT // 2, WIDTH // 2)
    return [random.integers(least, most, shape, dtype=np.uint8) for shape in shapes]


def shown(context, data):
    """Return the planes that PyAV shows for one picture."""
    (frame,) = context.decode(av.Packet(data))
    samples = frame.to_ndarray().reshape(-1)
    y, cb, cr = np.split(samples, [WIDTH * HEIGHT, WIDTH * HEIGHT * 5 // 4])
    return [y.reshape(HEIGHT, WIDTH), *(each.reshape(HEIGHT // 2, WIDTH // 2) for each in (cb, cr))]


def context():
    made = av.CodecContext.create("h264", "r")
    made.thread_type = "SLICE"
    return made


@pytest.mark.parametrize("most", [256, 4], ids=["any samples", "samples like start codes"])
def test_every_sample_comes_back_also_where_only_some_blocks_change(random, most):
    encoder, decoder, picture = IpcmEncoder(WIDTH, HEIGHT), context(), planes(random, 0, most)
    for number in range(300):  # more than the numbers of pictures until they begin again
        picture = [plane.copy() for plane in picture]
        if number % 50 == 49:
            picture = planes(random, 0, most)
        for plane in picture:
            row, column = (random.integers(size) for size in plane.shape)
            plane[row, column] ^= 3
        data = encoder.encode(*picture, is_idr=number == 150)
        for before, after in zip(picture, shown(decoder, data), strict=True):
            assert np.array_equal(before, after), number


def test_no_number_of_a_picture_is_left_out():
    """A strict decoder would miss pictures. PyAV says nothing."""
    encoder, picture = IpcmEncoder(16, 16), [np.zeros((side, side), np.uint8) for side in (16, 8, 8)]
    pictures = [encoder.encode(*picture, is_idr=number == 10) for number in range(300)]
    headers = [f"{int.from_bytes(each.rpartition(bytes((0, 0, 1)))[2][1:4]):024b}" for each in pictures]
    # The numbers of the first block, of the kind (7: by itself, 5: predicted), and of the parameters come before.
    numbers = [int(bits.removeprefix("1").removeprefix("0001000").removeprefix("00110")[1:9], 2) for bits in headers]
    assert numbers == [*range(10), *(number % 256 for number in range(290))]


def test_blocks_that_do_not_change_take_no_room(random):
    encoder, picture = IpcmEncoder(WIDTH, HEIGHT), planes(random)
    assert len(encoder.encode(*picture, is_idr=True)) > 1.5 * WIDTH * HEIGHT
    assert len(encoder.encode(*picture, is_idr=False)) < 30


def frames(name):
    return list(PaveReader().receive((CAPTURES / "ardrone" / name).read_bytes()))


@pytest.mark.parametrize("name", ["uavpilot_video.bin", "node_pave-68.bin"])
def test_pictures_of_a_real_drone_come_one_by_one(name):
    decoder = H264Decoder()
    for frame in frames(name):
        assert decoder.decode(frame.payload, frame.stream).shape == (360, 640, 3)


def test_a_picture_that_is_not_shown_is_decoded_for_the_next_one():
    whole, sparing = H264Decoder(), H264Decoder()
    for frame in frames("uavpilot_video.bin")[:4]:
        expected = whole.decode(frame.payload, 1)
        is_shown = frame.number % 2 == 0
        picture = sparing.decode(frame.payload, 1, is_shown=is_shown)
        assert np.array_equal(picture, expected) if is_shown else picture is None


def test_decoder_that_joins_midway_refuses_until_a_key_frame():
    decoder, of_drone = H264Decoder(), frames("uavpilot_video.bin")
    assert of_drone[1].type == FrameType.PREDICTED
    with pytest.raises(ValueError, match="decoded"):
        decoder.decode(of_drone[1].payload, 1)
    key = next(frame for frame in of_drone[2:] if frame.type == FrameType.IDR)
    assert decoder.decode(key.payload, 1) is not None


def test_another_stream_has_no_pictures_of_the_one_before():
    decoder, of_drone = H264Decoder(), frames("uavpilot_video.bin")
    decoder.decode(of_drone[0].payload, 1)
    with pytest.raises(ValueError, match="decoded"):
        decoder.decode(of_drone[1].payload, 2)


def test_other_sizes_are_refused_and_the_missing_package_is_named(monkeypatch, random):
    encoder = IpcmEncoder(1296, 720)
    y, cb, cr = (np.zeros(shape, np.uint8) for shape in ((720, 1296), (360, 648), (360, 648)))
    with pytest.raises(ValueError, match="1296 x 720"):
        H264Decoder().decode(encoder.encode(y, cb, cr, is_idr=True), 1)
    monkeypatch.setitem(__import__("sys").modules, "av", None)
    with pytest.raises(ValueError, match="pip install"):
        H264Decoder().decode(b"", 1)
