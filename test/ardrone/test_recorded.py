# SPDX-License-Identifier: Apache-2.0
"""What a wire log shows of a bridge and its drone."""

from drone_bridge.ardrone import KIND
from drone_bridge.ardrone.codec import NEED_DATA, WAKE_UP, ClientConnection, DroneConnection, Navdata, Pcmd, Ref, State
from drone_bridge.ardrone.sample_conversation import NavdataRequest
from drone_bridge.kind import Side, load


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
