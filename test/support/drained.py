# SPDX-License-Identifier: Apache-2.0
"""What a connection of a protocol has received so far."""

from drone_bridge.wire.events import RemoteProtocolError


def drain(connection):
    """All the events there are; a broken protocol counts as the last one."""
    events = []
    try:
        for event in connection.events():
            events.append(event)
    except RemoteProtocolError as error:
        events.append(str(error))
    return events
