# SPDX-License-Identifier: Apache-2.0
"""Events that a connection has received so far."""

from drone_bridge.wire.events import RemoteProtocolError


def drain(connection):
    """Return all pending events. A protocol error is the last one."""
    events = []
    try:
        for event in connection.events():
            events.append(event)
    except RemoteProtocolError as error:
        events.append(str(error))
    return events
