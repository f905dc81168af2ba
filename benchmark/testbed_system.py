# SPDX-License-Identifier: Apache-2.0
"""TestbedSystem: the testbed bridge, or its baseline, between a testbed and a subscriber."""

import os
from collections.abc import Iterable
from dataclasses import dataclass

from system import READY_TIMEOUT_S, Measurement, Place, System, bridge_command, script_command, ticks, until
from table import BRIDGE
from testbed_c import compiled_baseline
from testbed_endpoint import EndpointConversation, EndpointPeer, endpoint_command
from testbed_loads import Load
from testbed_peer import Conversation, Peer

WARM_UP_HZ = 30.0
WARM_UP_S = 0.3
READY_ANSWERS = 5  # correct replies in a row, after which the controller counts as discovered
#: Minimum share of the images that a subscriber gets at a steady rate. A side that has switched to Fast DDS's
#: asynchronous writer loses a quarter, and takes 3.8 ms per frame. A busy machine loses some, too.
LEAST_SHARE = 0.9

Size = tuple[int, int]  # width and height, pixels


@dataclass(frozen=True, slots=True)
class Received:
    """Images received by the subscriber in one measurement."""

    images: int  # of both sides
    latencies_s: list[float]  # of each complete frame: receiving its second image, after sending its first byte


class TestbedSystem(System):
    """One side of the comparison."""

    def __init__(self, side: str, place: Place, load: Load, **parameters: object) -> None:
        self._is_controlled = load is Load.CONTROLLED
        self._conversation: Conversation | EndpointConversation | None = None
        namespace = f"/benchmark_{os.getpid()}"
        is_endpoint = side != BRIDGE and load is Load.BESIDE_ENDPOINT
        self._peer = EndpointPeer(namespace) if is_endpoint else Peer()
        subscriber = script_command("testbed_subscriber.py", namespace, load.name)
        port = self._peer.port
        if side == BRIDGE:
            sync = "lockstep" if self._is_controlled else "latest"
            command = bridge_command("testbed_bridge", namespace, port=port, sync=sync, **parameters)
        elif is_endpoint:
            command = endpoint_command(port)
        elif load is Load.BESIDE_C:
            command = [compiled_baseline(place.scratch), str(port), namespace]
        else:
            command = script_command("testbed_baseline.py", str(port), namespace, load.name)
        super().__init__(side, place, command, {"subscriber": subscriber})
        self.subject.may_fail = is_endpoint  # it responds to SIGINT with a traceback

    def open(self, size: Size) -> None:
        """Start a connection with cameras of this size, with one flat colour each."""
        self._part()
        with self.explained():
            self._conversation = self._peer.meet(*size)

    def warm_up(self) -> None:
        """Send frames until discovery is complete, and some more."""
        with self.explained():
            right_answers = 0
            for number in ticks(round(READY_TIMEOUT_S * WARM_UP_HZ), WARM_UP_HZ):
                right_answers = right_answers + 1 if self._exchange(0, number)[0] else 0
                if self.helpers["subscriber"].has_spoken and right_answers >= READY_ANSWERS:
                    break
            else:
                raise TimeoutError(f"The {self.side} and its subscriber did not connect within {READY_TIMEOUT_S:g} s.")
            for number in until(WARM_UP_S):
                self._exchange(0, number)

    def unpaced(self, measurement: Measurement, seconds: float) -> None:
        """Send each frame as soon as the previous one is answered."""
        self._measure(measurement, until(seconds))

    def paced(self, measurement: Measurement, seconds: float, rate_hz: float) -> None:
        """Send frames at this rate."""
        self._measure(measurement, ticks(round(seconds * rate_hz), rate_hz))

    def frames(self, measurement: Measurement, count: int) -> None:
        """Send this many frames, each as soon as the previous one is answered."""
        self._measure(measurement, range(count))

    def received(self, measurement: Measurement) -> Received:
        """Return the images received by the subscriber; known after `stop`."""
        return Received(**self.notes[str(measurement.number)])

    def share_received(self, measurement: Measurement) -> float:
        """Return the share of the images that arrived; known after `stop`."""
        return self.received(measurement).images / (2 * measurement.items)

    def close_peer(self) -> None:
        self._part()
        self._peer.close()

    def _measure(self, measurement: Measurement, numbers: Iterable[int]) -> None:
        with self.turn(measurement):
            for number in numbers:
                is_right, round_trip_s = self._exchange(measurement.number, number)
                measurement.items += 1
                measurement.round_trips_s.append(round_trip_s)
                if not is_right:
                    raise ValueError(f"The {self.side} sent a wrong reply to frame {number}.")

    def _exchange(self, measurement: int, number: int) -> tuple[bool, float]:
        """Send a frame; return whether the reply is correct, and the round trip, s."""
        assert self._conversation
        mark, thrust, round_trip_s = self._conversation.exchange(measurement, number)
        is_right = abs(thrust - mark.thrust) < 1e-3 if self._is_controlled else thrust > 0.0
        return is_right, round_trip_s

    def _part(self) -> None:
        if self._conversation:
            self._conversation.close()
        self._conversation = None
