# SPDX-License-Identifier: Apache-2.0
"""What a wire log shows of a bridge and its drone."""

import pytest

from drone_bridge.ardrone import KIND
from drone_bridge.ardrone.codec import NEED_DATA, WAKE_UP, ClientConnection, DroneConnection, Navdata, Pcmd, Ref, State
from drone_bridge.ardrone.codec.configuration import write_settings
from drone_bridge.ardrone.sample_conversation import Configuration, NavdataRequest
from drone_bridge.kind import Side, load
from drone_bridge.tools.wire.describing import describe
from drone_bridge.wire import RemoteProtocolError


def shown(recorded, sender, *datagrams):
    """Return the decoded messages of one side."""
    events, reader = [], recorded.readers[sender]
    for datagram in datagrams:
        recorded.prepare(sender)
        reader.receive_data(datagram)
        while (event := reader.next_event()) is not NEED_DATA:
            recorded.note_sent(sender, event)
            events.append(event)
    return events


def test_commands_requests_and_navdata_are_decoded():
    recorded, client = load(KIND.recorded)(KIND, {}), ClientConnection()
    sent = client.send(Pcmd(), Ref(True)), WAKE_UP, client.send(Pcmd())
    assert shown(recorded, Side.OPERATOR, *sent) == [Pcmd(), Ref(True), NavdataRequest(), Pcmd()]
    navdata = Navdata(State.FLYING, 1)
    assert shown(recorded, Side.VEHICLE, DroneConnection().send(navdata)) == [navdata]


def test_settings_of_the_control_port_are_decoded_and_incomplete_ones_named():
    recorded, settings = load(KIND.recorded)(KIND, {}), {"general:num_version_soft": "2.4.8"}
    text, reader = write_settings(settings), recorded.readers[Side.VEHICLE]
    assert shown(recorded, Side.VEHICLE, text[:10]) == []
    assert reader.inside_message
    assert shown(recorded, Side.VEHICLE, text[10:]) == [Configuration(settings)]
    assert not reader.inside_message
    assert "2.4.8" in describe(Configuration(settings))


def test_datagrams_that_are_neither_are_violations():
    reader = load(KIND.recorded)(KIND, {}).readers[Side.VEHICLE]
    for data in (b"", DroneConnection().send(Navdata(State.FLYING, 1)), b"garbage"):
        reader.receive_data(data)
    with pytest.raises(RemoteProtocolError):
        reader.next_event()
    assert reader.next_event() == Navdata(State.FLYING, 1)
    with pytest.raises(RemoteProtocolError):
        reader.next_event()
