# SPDX-License-Identifier: Apache-2.0
"""Video of an AR.Drone: pictures of the maker's codec, broken packets, and output of the encoder."""

import hashlib
import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from repository import CAPTURES

from drone_bridge.ar_drone.uvlc import MAX_PACKET_BYTES, SIZES, UvlcPicture, check, decode, encode
from drone_bridge.ar_drone.uvlc.dequantization import FACTORS, ZIGZAG
from drone_bridge.ar_drone.uvlc.run_level import codes_of_levels, codes_of_runs, level_of, run_of
from drone_bridge.wire.events import LocalProtocolError, RemoteProtocolError

VIDEO = CAPTURES / "dronegui_video"
PICTURES = json.loads((VIDEO / "pictures.json").read_text())
PACKETS = {name: (VIDEO / f"{name}.bin").read_bytes() for name in PICTURES}
#: A short packet with each way to encode a block, so that a change has an effect.
BROKEN = ("qcif_q30", "qcif_stripes", "hand_not_coded")
SLOW = settings(suppress_health_check=[HealthCheck.too_slow])


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def swapped(data):
    """Convert between the byte order of a packet and bit order."""
    return np.frombuffer(data, "<u4").byteswap().tobytes()


def with_bits(packet, at, count, value):
    """Replace bits of a packet."""
    stream = int.from_bytes(swapped(packet), "big")
    above = 8 * len(packet) - at - count
    stream = stream & ~((1 << count) - 1 << above) | value << above
    return swapped(stream.to_bytes(len(packet), "big"))


def refusal(packet):
    with pytest.raises(RemoteProtocolError) as refused:
        decode(packet)
    assert len(str(refused.value)) < 200
    return str(refused.value)


def decoded_or_refused(packet):
    """Decode, where a refusal is a valid result, but no other error."""
    try:
        picture = decode(packet)
    except RemoteProtocolError:
        return
    assert (picture.width, picture.height) in SIZES
    assert len(picture.rgb8) == 3 * len(picture.y) == 3 * picture.width * picture.height


def pixels(picture):
    return np.frombuffer(picture.rgb8, np.uint8).reshape(picture.height, picture.width, 3)


def scene(width, height):
    """A picture with slopes, edges and colours."""
    row, column = np.mgrid[:height, :width]
    grey = (row // 16 + column // 16) % 2 * 60
    return np.stack((row * 180 // height + grey, column * 180 // width + grey, 200 - grey), axis=2).astype(np.uint8)


def noise(width, height, *, seed=1):
    return np.random.default_rng(seed).choice(np.array([0, 255], np.uint8), (height, width, 3))


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_are_identical_with_those_of_the_makers_decoder(name):
    picture, expected = decode(PACKETS[name]), PICTURES[name]
    assert (picture.width, picture.height, picture.number) == tuple(expected[k] for k in ("width", "height", "number"))
    assert sha256(picture.y + picture.cb + picture.cr) == expected["planes_sha256"]
    assert sha256(picture.rgb8) == expected["rgb8_sha256"]
    red, green, blue = (pixels(picture)[..., channel].astype("<u2") for channel in range(3))
    shown = red >> 3 << 11 | green >> 2 << 5 | blue >> 3
    assert sha256(shown.tobytes()) == expected["rgb565_sha256"]


def test_the_captures_have_both_sizes():
    assert {(each["width"], each["height"]) for each in PICTURES.values()} == set(SIZES)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("cif_q15", "352 x 288"),
        ("cut", "truncated"),
        ("inter_head", "INTRA"),
        ("no_end", "0x3f"),
        ("p264_head", "video:video_codec to 32"),
        ("quantizer_in_row", "changes its quantizer"),
        ("run_too_long", "without an end"),
    ],
)
def test_refused_captures_are_refused_with_the_reason(name, reason):
    assert reason in refusal((VIDEO / f"refused_{name}.bin").read_bytes())


@pytest.mark.parametrize(
    ("at", "count", "value", "reason"),
    [
        (0, 22, 0x21, "0x21"),  # a further row
        (22, 2, 0, "family 0"),
        (22, 2, 3, "family 3"),
        (24, 3, 0, "size 0"),
        (24, 3, 6, "size 6"),
        (24, 3, 1, "88 x 72"),
        (22, 5, 2 << 3 | 3, "640 x 480"),
        (27, 3, 7, "type 7"),
        (30, 5, 0, "quantizer 0"),
        (67, 2, 0, "without its marker"),
    ],
)
def test_each_field_of_a_head_is_checked(at, count, value, reason):
    assert reason in refusal(with_bits(PACKETS["qcif_q30"], at, count, value))


def test_a_row_has_its_own_number_and_quantizer():
    packet = encode(np.zeros((144, 176, 3), np.uint8))  # each row has 11 macroblocks of 69 bits
    second_row = (67 + 11 * 69 + 7) // 8 * 8
    assert decode(with_bits(packet, second_row, 22, 0x21)) == decode(packet)
    assert "0x22" in refusal(with_bits(packet, second_row, 22, 0x22))
    assert "quantizer 0" in refusal(with_bits(packet, second_row + 22, 5, 0))


def test_a_block_has_64_coefficients_at_most():
    black = swapped(encode(np.zeros((144, 176, 3), np.uint8)))
    head, further_rows = f"{int.from_bytes(black[:9], 'big'):072b}"[:67], black[(67 + 11 * 69 + 7) // 8 :]
    last_place = "010000001000000000100000011111010"  # Y0 alone has pairs: 62 zeros, then 1
    others = "0000000001" * 5 + "1" * 10  # and the other macroblocks are not coded
    packets = []
    for end in ("101", "110101"):
        row = head + last_place + end + others
        row += "0" * (-len(row) % 8)
        stream = int(row, 2).to_bytes(len(row) // 8, "big") + further_rows
        packets.append(swapped(stream + bytes(-len(stream) % 4)))
    assert len(set(decode(packets[0]).y[:8])) > 1
    assert "64 coefficients" in refusal(packets[1])


def test_zero_bytes_ahead_of_a_row_are_skipped_up_to_three():
    stream = swapped(encode(np.zeros((144, 176, 3), np.uint8)))
    row = (67 + 11 * 69 + 7) // 8  # where row 1 starts, in bytes
    filled = [swapped((each := stream[:row] + bytes(count) + stream[row:]) + bytes(-len(each) % 4)) for count in (3, 4)]
    assert decode(filled[0]) == decode(swapped(stream))
    refusal(filled[1])


def test_bytes_after_the_end_are_ignored():
    packet = PACKETS["qcif_q30"]
    assert decode(packet + b"\xff" * 7) == decode(packet)


def test_a_packet_longer_than_a_datagram_is_refused():
    assert str(MAX_PACKET_BYTES) in refusal(PACKETS["qcif_q30"] + bytes(MAX_PACKET_BYTES))


@pytest.mark.parametrize("name", BROKEN)
def test_a_packet_cut_anywhere_is_refused(name):
    packet = PACKETS[name]
    end = len(swapped(packet).rstrip(b"\0"))
    for length in {*range(0, end - 4, 13), 0, 1, 4, 8, 9, 11}:
        refusal(packet[:length])


@SLOW
@given(st.sampled_from(BROKEN), st.lists(st.tuples(st.integers(0), st.integers(0, 255)), min_size=1, max_size=8))
def test_a_packet_with_other_bytes_is_decoded_or_refused(name, changes):
    packet = bytearray(PACKETS[name])
    for at, value in changes:
        packet[at % len(packet)] ^= value
    decoded_or_refused(bytes(packet))


@SLOW
@given(st.sampled_from(BROKEN), st.integers(67, 900), st.binary(min_size=0, max_size=800))
def test_random_bits_after_a_right_beginning_are_decoded_or_refused(name, at, data):
    kept = swapped(PACKETS[name])[: at // 8]
    stream = kept + data
    decoded_or_refused(swapped(stream + bytes(-len(stream) % 4)))


@SLOW
@given(st.binary(min_size=4, max_size=4), st.integers(1, 31))
def test_one_pattern_up_to_the_longest_packet_is_decoded_or_refused(pattern, quantizer):
    head = swapped(PACKETS["qvga_q20"])[:9]
    stream = (head + pattern * (MAX_PACKET_BYTES // 4))[: MAX_PACKET_BYTES // 4 * 4]
    decoded_or_refused(with_bits(swapped(stream), 30, 5, quantizer))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("quantizer", "rms"), [(1, 2.5), (2, 2.5), (31, 2.5), (8, 5.0), (30, 9.0)])
def test_an_encoded_picture_is_decoded_to_nearly_the_same(size, quantizer, rms):
    wanted = scene(*size)
    picture = decode(encode(wanted, quantizer, number=2**32 + 5))
    assert (picture.width, picture.height, picture.number) == (*size, 5)
    y = wanted @ [0.299, 0.587, 0.114]
    error = np.frombuffer(picture.y, np.uint8).reshape(y.shape) - y
    assert np.sqrt(np.mean(error**2)) < rms
    assert np.abs(np.mean(pixels(picture) - wanted.astype(float), axis=(0, 1))).max() < 4


@pytest.mark.parametrize("quantizer", [1, 2, 12, 30, 31])
def test_no_packet_is_longer_than_a_datagram(quantizer):
    packet = encode(noise(320, 240), quantizer)
    assert len(packet) <= MAX_PACKET_BYTES
    assert len(packet) % 4 == 0
    assert isinstance(decode(packet), UvlcPicture)


@pytest.mark.parametrize("name", PICTURES)
def test_an_encoded_picture_has_only_what_the_guis_programs_decode(name):
    """Levels are documented ones, and no DC is 0. Decoded here independently, code by code."""
    stream = swapped(encode(pixels(decode(PACKETS[name])), quantizer=1))
    bits = "".join(f"{byte:08b}" for byte in stream)
    at = 67
    columns, rows = PICTURES[name]["width"] // 16, PICTURES[name]["height"] // 16
    for row in range(rows):
        if row:
            at = -(-at // 8) * 8
            assert int(bits[at : at + 22], 2) == 0x20 + row
            at += 27
        for _ in range(columns):
            assert bits[at : at + 3] == "010"  # coded, the mark, no change of the quantizer
            flags, at = bits[at + 3 : at + 9][::-1], at + 9
            for flag in flags:
                assert int(bits[at : at + 10], 2) > 0
                at += 10
                place = 0
                while flag == "1":
                    zeros = bits.index("1", at) - at
                    at += zeros + max(zeros, 1) if zeros != 1 else 2
                    place += int(bits[at - zeros : at], 2) + 1 if zeros > 1 else zeros + 1
                    zeros = bits.index("1", at) - at
                    if zeros == 1:
                        at += 2
                        break
                    assert zeros <= 7
                    at += 2 * zeros + 1 if zeros else 2
                    assert place < 64
    at = -(-at // 8) * 8
    assert int(bits[at : at + 22], 2) == 0x3F
    assert "1" not in bits[at + 22 :]
    assert len(bits) - at - 22 < 32


@pytest.mark.parametrize(
    ("rgb", "quantizer"),
    [
        (np.zeros((240, 320), np.uint8), 31),
        (np.zeros((320, 240, 3), np.uint8), 31),
        (np.zeros((288, 352, 3), np.uint8), 31),
        (np.zeros((240, 320, 3), np.float32), 31),
        (np.zeros((240, 320, 3), np.uint8), 0),
        (np.zeros((240, 320, 3), np.uint8), 32),
    ],
)
def test_other_pictures_and_quantizers_are_not_encoded(rgb, quantizer):
    with pytest.raises(LocalProtocolError):
        encode(rgb, quantizer)


def test_codes_of_runs_and_levels_are_those_of_the_table():
    codes, bits = codes_of_runs(np.array([0, 1, 2, 7, 62]))
    assert [f"{code:0{n}b}" for code, n in zip(codes, bits, strict=True)] == [
        "1", "01", "0010", "000111", "000000111110",
    ]  # fmt: skip
    assert run_of(codes, bits).tolist() == [0, 1, 2, 7, 62]
    codes, bits = codes_of_levels(np.array([1, -1, 2, -3, 127]))
    assert [f"{code:0{n}b}" for code, n in zip(codes, bits, strict=True)] == [
        "10", "11", "00100", "00111", "000000011111110",
    ]  # fmt: skip
    assert level_of(codes).tolist() == [1, -1, 2, -3, 127]


def test_factors_and_places_are_those_of_the_format():
    assert sorted(ZIGZAG) == list(range(64))
    assert FACTORS[31].tolist() == FACTORS[2].tolist()
    assert FACTORS[31, :3].tolist() == [3, 5, 5]
    assert FACTORS[30, 63] == 451


# Check of a packet for programs that use the maker's decoder.


def refused_check(packet):
    with pytest.raises(RemoteProtocolError) as refused:
        check(packet)
    return str(refused.value)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("quantizer", [1, 12, 31])
def test_whatever_is_encoded_may_be_sent(size, quantizer):
    for rgb in (scene(*size), noise(*size), np.zeros((*size[::-1], 3), np.uint8)):
        head = check(encode(rgb, quantizer, number=7))
        assert (head.width, head.height, head.number) == (*size, 7)


@pytest.mark.parametrize("name", PICTURES)
def test_captured_packets_may_be_sent_but_for_blocks_that_are_not_coded(name):
    if name == "hand_not_coded":
        assert "not coded" in refused_check(PACKETS[name])
    else:
        assert check(PACKETS[name]).number == PICTURES[name]["number"]


@pytest.mark.parametrize("path", sorted(VIDEO.glob("refused_*.bin")), ids=lambda path: path.stem)
def test_what_is_not_decoded_may_not_be_sent(path):
    assert refused_check(path.read_bytes())


def test_bytes_between_rows_may_not_be_sent():
    """They are skipped here, but crash the maker's decoder."""
    packet = encode(scene(176, 144), number=1)
    ordered = swapped(packet)
    second_row = 0x21 << 2  # the 22 bits of its start code, at the start of three bytes
    at = next(at for at in range(9, len(ordered)) if int.from_bytes(ordered[at : at + 3], "big") & ~3 == second_row)
    longer = ordered[:at] + bytes(2) + ordered[at:]
    longer = swapped(longer + bytes(-len(longer) % 4))
    assert decode(longer).rgb8 == decode(packet).rgb8
    assert "between its rows" in refused_check(longer)


def test_a_dc_of_zero_may_not_be_sent():
    packet = with_bits(encode(scene(176, 144)), 67 + 9, 10, 0)
    assert decode(packet)
    assert "DC" in refused_check(packet)


@pytest.mark.parametrize("more", [bytes(4), b"\xff\xff\xff\xff", b"\x00"])
def test_nothing_may_follow_a_picture(more):
    packet = encode(scene(176, 144)) + more
    assert decode(packet)
    assert refused_check(packet)


@SLOW
@given(st.data())
def test_what_may_be_sent_is_decoded(data):
    packet = bytearray(PACKETS["qcif_q30"])
    for _ in range(data.draw(st.integers(1, 4))):
        packet[data.draw(st.integers(0, len(packet) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    try:
        check(bytes(packet))
    except RemoteProtocolError:
        return
    assert decode(bytes(packet))
