# SPDX-License-Identifier: Apache-2.0
"""What tests of simulator_bridge have in common: a bridge with a vehicle, a buoy, a camera and a trigger."""

import pytest
from patience import wait_until
from processes import Process
from simulator_peer import STILL, SimulatorPeer

VEHICLE, BUOY = 0, 1  # entities, and their streams
FRONT = 0  # the camera, and its stream
NEAR = 0  # the trigger
ANSWER_TIMEOUT_S = 5.0  # longer than a busy machine may keep the peer from answering
PARAMETERS = {
    "body_to_model": [1.0, 0.0, 0.0, 0.0],  # else it is learned first, which turns the vehicle for a moment
    "entities": ["1:Buoy"],
    "cameras": ["front entity=0 xyz=0.3,0,0 targets=1 period=2"],
    "triggers": ["near collision a=0 b=1 distance=0.5"],
    "command_timeout": 0.3,
    "rate": 50.0,
    "release_after": 0.5,
    "request_timeout": ANSWER_TIMEOUT_S,
    "poll_period": 0.1,
    "publish_clock": True,
    "stamp_source": "wire",
    "frame_prefix": "s1/",
}


def two_entities():
    return {VEHICLE: dict(STILL), BUOY: dict(STILL)}


LEARNED = [0.0, 0.0, 0.0, 0.0]  # for body_to_model


def make_peer(**behaviour):
    return SimulatorPeer(entities=two_entities(), **behaviour)


def bridge(peer, **parameters):
    return Process.node("simulator_bridge", port=peer.port, **{**PARAMETERS, **parameters})


def shared_bridge(behaviour=(), **parameters):
    """Return fixtures: `shared`, a simulator with its bridge for all tests of a file; `peer`, with a new world."""

    @pytest.fixture(scope="module", name="shared")
    def shared_fixture():
        peer = make_peer(**dict(behaviour))
        with bridge(peer, **parameters) as peer.bridge:
            peer.wait_until_settled()
            yield peer
        peer.close()

    @pytest.fixture(name="peer")
    def peer_fixture(shared):
        shared.requests_, shared.streams = shared.restart(entities=two_entities(), **dict(behaviour))
        return shared

    return shared_fixture, peer_fixture


def call(ros, name, service, /, **fields):
    """Call a service of the bridge, which may be in a namespace: /a/run is /a/simulator_bridge/run.

    A bridge that has just stood still, as on a busy machine, is called again.
    """
    namespace, slash, name = name.rpartition("/")

    def answer():
        response = ros.call(service, f"{namespace}{slash}simulator_bridge/{name}", service.Request(**fields))
        return None if "has just stood still" in response.message else response

    return wait_until(answer, "an answer of a bridge that runs")
