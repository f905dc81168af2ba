# SPDX-License-Identifier: Apache-2.0
"""The dronegui protocol, both roles: documented packets and refusals."""

import json
from dataclasses import asdict

import pytest

from drone_bridge.dronegui import codec
from drone_bridge.wire.events import RemoteProtocolError


def receive(receiver, document):
    """Pass one datagram to a connection and return its event."""
    datagram = document if isinstance(document, bytes) else json.dumps(document).encode()
    receiver.receive_data(datagram)
    event = receiver.next_event()
    assert receiver.next_event() is codec.NEED_DATA
    return event


@pytest.fixture
def receiver():
    return codec.ReceiverConnection()


def refusal(document, **options):
    with pytest.raises(RemoteProtocolError) as refused:
        receive(codec.ReceiverConnection(**options), document)
    return str(refused.value)


# The controller.


def test_packets_are_numbered_from_1_and_complete():
    connection = codec.ControllerConnection()
    for number in (1, 2, 3):
        assert connection.next_seq == number
        packet = json.loads(connection.send(codec.Controls(take_off=True, hover=False, roll=0.5, gas=-1)))
        buttons = {"take_off": True, "reset": False, "hover": False}
        assert packet == {"seq": number, "state": {**buttons, "roll": 0.5, "pitch": 0.0, "yaw": 0.0, "gas": -1}}


def test_an_urgent_packet_gets_through_higher_numbers_and_keeps_lower_ones_out(receiver):
    receive(receiver, {"seq": 1000, "state": {}})
    connection, hover = codec.ControllerConnection(), codec.Controls()
    for _ in range(20):
        connection.send(hover)
    datagrams = connection.peek_urgent(hover, hover)
    assert connection.next_seq == 21
    assert (*connection.send_urgent(hover), *connection.send_urgent(hover)) == datagrams
    assert [receive(receiver, each).seq for each in datagrams] == [1, 1, 21, 1, 1, 22]
    late = receive(receiver, {"seq": 20, "state": {}})
    assert isinstance(late, codec.LatePacket)
    assert [json.loads(each)["seq"] for each in codec.ControllerConnection().send_urgent(hover)] == [1, 1, 2]


# The receiver.


def test_states_are_merged(receiver):
    receive(receiver, {"seq": 1, "state": {"hover": False, "roll": 1.0, "pitch": 1.0}})
    receive(receiver, {"seq": 2, "state": {"take_off": True}})
    packet = receive(receiver, {"seq": 7, "state": {"pitch": -0.25}})
    assert packet == codec.ControlPacket(7, codec.Controls(take_off=True, hover=False, roll=1.0, pitch=-0.25))


def test_of_a_control_that_is_named_twice_the_last_one_counts(receiver):
    packet = receive(receiver, b'{"seq": 7, "seq": 1, "state": {"roll": 1, "hover": true, "hover": false, "roll": -1}}')
    assert packet == codec.ControlPacket(1, codec.Controls(hover=False, roll=-1.0))
    packet = receive(receiver, b'{"seq": 2, "state": {"hover": "x", "pitch": 1}, "state": {"yaw": 1}}')
    assert packet == codec.ControlPacket(2, codec.Controls(hover=False, roll=-1.0, yaw=1.0))


def test_late_packets_are_discarded(receiver):
    receive(receiver, {"seq": 10, "state": {"roll": 0.5}})
    for seq in (10, 9, 2, 0):
        assert receive(receiver, {"seq": seq, "state": {"roll": -1, "hover": False}}) == codec.LatePacket(seq, 10)
    assert receive(receiver, {"seq": 11}).controls == codec.Controls(roll=0.5)


def test_packet_1_restarts_the_sequence_and_keeps_the_state(receiver):
    receive(receiver, {"seq": 5000, "state": {"roll": 0.5}})
    assert receive(receiver, {"seq": 1}) == codec.ControlPacket(1, codec.Controls(roll=0.5))
    assert receive(receiver, {"seq": 2}).seq == 2
    assert receive(receiver, {"seq": 1}).seq == 1


def test_a_refused_packet_changes_nothing(receiver):
    receive(receiver, {"seq": 5, "state": {"gas": 0.5}})
    with pytest.raises(RemoteProtocolError):
        receive(receiver, {"seq": 900, "state": {"hover": False, "roll": "1.5"}})
    assert receive(receiver, {"seq": 6}) == codec.ControlPacket(6, codec.Controls(gas=0.5))


@pytest.mark.parametrize(
    ("datagram", "reason"),
    [
        (b"", "not JSON"),
        (b'{"seq": 1, "state": {"roll": NaN}}', "NaN"),
        (b"{}", "no seq"),
        (b"1", "not an object"),
        (b'[{"seq": 1}]', "not an object"),
        (b'{"seq": 1, "state": []}', "state is []"),
        (b'{"seq": 1, "state": null}', "state is None"),
        (b'{"seq": 1} {"seq": 2}', "not JSON"),
        (b'{"seq": 1}\0', "not JSON"),
        (b"{'seq': 1}", "not JSON"),
        (b'\xef\xbb\xbf{"seq": 1}', "not JSON"),
        ('{"seq": 1}'.encode("utf-16"), "not UTF-8"),
        (b'{"seq": 1, "x": "\xff"}', "not UTF-8"),
        (b'{"seq": 1, "state": {"roll": 1e999}}', "roll is inf"),
        (b'{"seq": ' + b"1" * 5000 + b"}", "packet can't be read|seq is 1111"),
        (b"[" * codec.MAX_DATAGRAM_BYTES, "nested more than"),
        (b'{"seq": 1, "x": ' + b"[" * codec.MAX_NESTING + b"]" * codec.MAX_NESTING + b"}", "nested more than"),
        (b'"' + b"\\" * 8000, "not JSON"),
        (b'{"x":' * 1000 + b"1" + b"}" * 1000, "nested more than"),
    ],
)
def test_invalid_packets_are_refused_with_a_reason(datagram, reason):
    sentence = refusal(datagram)
    assert any(part in sentence for part in reason.split("|"))
    assert len(sentence) < 250


# Deviations of real programs.

AS_DOCUMENTED = b'{ "seq": 1, "state": { "take_off": True, "hover": False, "note": None } }'


def test_python_literals_are_accepted():
    packet = receive(codec.ReceiverConnection(), AS_DOCUMENTED)
    assert packet.controls == codec.Controls(take_off=True, hover=False)


def test_the_real_receiver_requires_complete_states():
    complete = asdict(codec.Controls())
    for name in complete:
        partial = {key: value for key, value in complete.items() if key != name}
        assert f"state lacks {name}," in refusal({"seq": 1, "state": partial}, complete_states_only=True)
    assert "lacks take_off, reset" in refusal({"seq": 1}, complete_states_only=True)
    assert receive(codec.ReceiverConnection(complete_states_only=True), {"seq": 1, "state": complete}).seq == 1


def test_0_and_1_are_buttons_axes_are_clamped_and_fractions_count(receiver):
    """As accepted by the real receiver."""
    packet = receive(receiver, {"seq": 12.5, "state": {"take_off": 1, "hover": 0, "roll": 1.5, "gas": -(10**400)}})
    assert packet == codec.ControlPacket(12.5, codec.Controls(take_off=True, hover=False, roll=1.0, gas=-1.0))
    assert receive(receiver, {"seq": 12.25}) == codec.LatePacket(12.25, 12.5)
    assert receive(receiver, {"seq": 12.75, "state": {"take_off": False}}).controls.take_off is False
    assert receive(receiver, {"seq": 1.0}).seq == 1


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"seq": 1, "state": {"hover": 2}}, "hover is 2"),
        ({"seq": 1, "state": {"hover": None}}, "hover is None"),
        ({"seq": 1, "state": {"roll": "1"}}, "roll is '1'"),
        ({"seq": 1, "state": {"roll": True}}, "roll is True"),
        ({"seq": "1"}, "seq is '1', not a number"),
        ({"seq": -0.5}, "seq is -0.5"),
        ({"seq": True}, "seq is True"),
        (b'{"seq": NaN}', "NaN"),
        (b'{"seq": 1e999}', "seq is inf"),
        (b'{"seq": 1, "state": {"roll": -1e999}}', "roll is -inf"),
    ],
)
def test_not_every_value_is_taken(document, reason):
    assert reason in refusal(document)
