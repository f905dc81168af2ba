# SPDX-License-Identifier: Apache-2.0
"""Navdata of the dronegui protocol: datagrams of the real GUI, and refusals."""

import json

import pytest
from repository import CAPTURES

from drone_bridge.dronegui import codec
from drone_bridge.wire.events import RemoteProtocolError

CAPTURE = CAPTURES / "gui_to_controller_navdata.jsonl"
DATAGRAMS = CAPTURE.read_bytes().splitlines()


def receive(document):
    """Pass one datagram to a connection and return its event."""
    controller = codec.ControllerConnection()
    controller.receive_data(document if isinstance(document, bytes) else json.dumps(document).encode())
    event = controller.next_event()
    assert controller.next_event() is codec.NEED_DATA
    return event


def refusal(document):
    with pytest.raises(RemoteProtocolError) as refused:
        receive(document)
    assert len(str(refused.value)) < 250
    return str(refused.value)


# Data of the real GUI.


def test_a_captured_flight_is_read_whole():
    controller = codec.ControllerConnection()
    for datagram in DATAGRAMS:
        controller.receive_data(datagram)
    events = list(iter(controller.next_event, codec.NEED_DATA))
    assert len(events) == len(DATAGRAMS) == 144
    demos = [event for event in events if isinstance(event, codec.Demo)]
    assert [demo.num_frames for demo in demos] == list(range(60))
    states = dict.fromkeys(demo.flight_state.name for demo in demos)
    assert list(states) == ["LANDED", "TAKING_OFF", "FLYING", "LANDING"]
    assert demos[-1].flight_state is codec.FlightState.LANDED
    demo = demos[14]
    assert (demo.ctrl_state, demo.vbat_flying_percentage, demo.num_frames) == (3 << 16, 87.0, 14)
    assert (demo.theta, demo.phi, demo.psi) == pytest.approx((-1205.4, 535.6, 36600.0), abs=0.1)
    assert (demo.vx, demo.vy, demo.vz, demo.altitude) == pytest.approx((200.9, -120.0, 0.0, 400.0), abs=0.1)
    detections = [event for event in events if isinstance(event, codec.VisionDetect)]
    assert detections[:2] == [codec.VisionDetect((codec.Feature(512, 430, 88, 61, 143),)), codec.VisionDetect()]
    assert {event.type for event in events if isinstance(event, codec.OtherNavdata)} == {"iphoneangles", "checksum"}


def test_the_flight_state_is_in_the_upper_half_of_ctrl_state():
    assert receive({"type": "demo", "ctrl_state": 4 << 16 | 7}).flight_state is codec.FlightState.HOVERING
    assert receive({"type": "demo", "ctrl_state": 77 << 16}).flight_state is None
    assert receive({"type": "demo"}).flight_state is None
    airborne = {state.name for state in codec.FlightState if state.is_airborne}
    assert airborne == {"FLYING", "HOVERING", "TAKING_OFF", "GOING_TO_FIX", "LANDING", "LOOPING"}


# Data of other versions.


def test_blocks_without_a_type_are_recognised_by_their_unique_fields():
    """The oldest version of the GUI does not send it."""
    for datagram in DATAGRAMS[:2]:
        document = json.loads(datagram)
        del document["type"]
        assert receive(document) == receive(datagram)
    assert receive({"checksum": 4}) == codec.OtherNavdata("", {"checksum": 4})
    assert receive({"theta": 4}) == codec.OtherNavdata("", {"theta": 4})


def test_non_finite_floats_count_as_missing():
    """Python's json writes them, and the drone's memory may contain them."""
    demo = receive(b'{"type": "demo", "theta": NaN, "phi": Infinity, "psi": -Infinity, "vx": 1e999, "vy": 5}')
    assert demo == codec.Demo(vy=5.0)


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (bytes(codec.MAX_DATAGRAM_BYTES + 1), "limit 8192"),
        ({"type": 1}, "type is 1"),
        ({"type": None}, "type is None"),
        ({"type": "demo", "theta": "1"}, "theta is '1'"),
        ({"type": "demo", "altitude": True}, "altitude is True"),
        ({"type": "demo", "vx": 10**400}, "vx is 1000"),
        ({"type": "demo", "ctrl_state": 1.5}, "ctrl_state is 1.5"),
        ({"type": "demo", "ctrl_state": -1}, "ctrl_state is -1"),
        ({"type": "demo", "ctrl_state": 2**32}, "ctrl_state is 4294967296"),
        ({"type": "visiondetect", "features": {}}, "features is {}"),
        ({"type": "visiondetect", "features": [1]}, "features[0] is 1"),
        ({"type": "visiondetect", "features": [{"xc": 1, "yc": 1}]}, "features[0].width is missing"),
        ({"type": "visiondetect", "features": [{}] * (codec.MAX_FEATURES + 1)}, "at most 16"),
    ],
)
def test_invalid_navdata_is_refused_with_a_reason(document, reason):
    assert reason in refusal(document)
