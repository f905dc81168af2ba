# SPDX-License-Identifier: Apache-2.0
"""Whatever clients ask of the emulated simulator: an answer that fits the request, and a world that goes on."""

import numpy as np
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from offline_simulator import OfflineSimulator

from drone_bridge.simulator import codec as wire

IDS = st.integers(0, 3) | st.sampled_from([2**31, 2**31 + 1, 2**32 - 1])
PERIODS = st.integers(0, 2)
NUMBERS = st.floats() | st.sampled_from([0.0, 1.0, -1.0, 1e-320, 1e300, 5e-324])
VECTORS = st.tuples(NUMBERS, NUMBERS, NUMBERS)
QUATERNIONS = st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS) | st.just((1.0, 0.0, 0.0, 0.0))
POSITIVE = st.floats(min_value=0, exclude_min=True, allow_infinity=False)
MOMENTS = VECTORS | st.tuples(POSITIVE, POSITIVE, POSITIVE)
KEYS = st.sampled_from(["", "a", "b", "\udc80"])
BYTES = st.binary(max_size=8)
EXTENDED = st.builds(wire.ExtendedAttribute, KEYS, BYTES)
VALUES = {
    **dict.fromkeys((0, 1, 2, 4), VECTORS),
    3: QUATERNIONS,
    5: st.booleans(),
    6: BYTES,
}
CAMERA_VALUES = {0: QUATERNIONS, 1: VECTORS, 2: NUMBERS, 3: st.booleans(), 4: BYTES}
TURBULENCE = st.builds(
    wire.Turbulence, VECTORS, VECTORS, NUMBERS, NUMBERS, VECTORS, VECTORS, NUMBERS, NUMBERS
) | VECTORS.map(lambda force: wire.Turbulence(force, force, 0.0, 0.0, force, force, 0.0, 0.0))
TRIGGERS = (
    st.builds(wire.CollisionTrigger, IDS, IDS, NUMBERS)
    | st.builds(wire.SweepCollisionTrigger, IDS, IDS)
    | st.builds(wire.BytecodeTrigger, BYTES)
    | st.builds(wire.PathTrigger, IDS, VECTORS, VECTORS, NUMBERS)
    | st.builds(wire.UnknownTrigger, st.integers(4, 255), BYTES)
)

REQUESTS = {
    wire.Remove: st.builds(wire.Remove, st.integers(0, 9), IDS),
    wire.AddEntity: st.builds(
        wire.AddEntity,
        NUMBERS | POSITIVE,
        NUMBERS | POSITIVE,
        MOMENTS,
        QUATERNIONS,
        VECTORS,
        QUATERNIONS,
        st.booleans(),
        st.lists(EXTENDED, max_size=3).map(tuple),
    ),
    wire.SetEntity: st.sampled_from(sorted(VALUES)).flatmap(
        lambda attribute: st.builds(wire.SetEntity, IDS, st.just(attribute), VALUES[attribute])
    ),
    wire.GetEntity: st.builds(wire.GetEntity, IDS, st.integers(0, 6)),
    wire.AddObject: st.builds(
        wire.AddObject, st.sampled_from(["turbulence", "x"]), BYTES | TURBULENCE.map(lambda some: some.encode())
    ),
    wire.SetObject: st.builds(
        wire.SetObject, IDS, st.integers(0, 1), BYTES | TURBULENCE.map(lambda some: some.encode())
    ),
    wire.GetObject: st.builds(wire.GetObject, IDS, st.integers(0, 1)),
    wire.AddCamera: st.builds(wire.AddCamera, IDS, QUATERNIONS, VECTORS, NUMBERS, st.booleans()),
    wire.SetCamera: st.sampled_from(sorted(CAMERA_VALUES)).flatmap(
        lambda attribute: st.builds(wire.SetCamera, IDS, st.just(attribute), CAMERA_VALUES[attribute])
    ),
    wire.ViewCamera: st.builds(wire.ViewCamera, IDS, IDS),
    wire.BroadcastCamera: st.builds(wire.BroadcastCamera, IDS),
    wire.AddTrigger: st.builds(wire.AddTrigger, TRIGGERS),
    wire.StreamEntity: st.builds(wire.StreamEntity, IDS, PERIODS, st.lists(st.integers(0, 6), max_size=7).map(tuple)),
    wire.StreamCamera: st.builds(wire.StreamCamera, IDS, PERIODS, IDS),
    wire.StreamExtended: st.builds(wire.StreamExtended, IDS, PERIODS, st.lists(KEYS, max_size=3).map(tuple)),
    wire.SetExtended: st.builds(wire.SetExtended, IDS, KEYS, BYTES),
    wire.GetExtended: st.builds(wire.GetExtended, IDS, KEYS),
    wire.Run: st.builds(wire.Run, st.integers(0, 2**64 - 1)),
    **{
        kind: st.just(kind())
        for kind in (
            wire.ListEntities,
            wire.ListObjectClasses,
            wire.ListObjects,
            wire.ListCameras,
            wire.GetConfig,
            wire.Reassure,
            wire.Spy,
            wire.Pause,
        )
    },
}


def test_every_request_of_the_protocol_is_answered_and_tried_here():
    assert set(REQUESTS) == set(wire.REQUESTS.values())


@examples(400)
@given(st.lists(st.one_of(*REQUESTS.values()), max_size=30))
def test_any_requests_get_fitting_answers_and_the_world_goes_on(requests):
    simulator = OfflineSimulator()
    for request in requests:
        decoded = type(request).decode(request.encode())  # what a server would make of it
        simulator.ask(decoded)
        simulator.step()
        assert np.isfinite(simulator.scene.physics.bodies.state).all()
        lengths = np.linalg.norm(simulator.scene.physics.bodies.q, axis=0)
        assert np.allclose(lengths, 1.0)
