# SPDX-License-Identifier: Apache-2.0
"""Hypothesis strategies for requests of the simulator's protocol."""

from dataclasses import fields

from hypothesis import strategies as st

from drone_bridge.simulator import codec as wire

IDS = st.integers(0, 3) | st.sampled_from([2**31, 2**31 + 1, 2**32 - 1])
NUMBERS = st.floats() | st.sampled_from([0.0, 1.0, -1.0, 1e-320, 1e300, 5e-324])
VECTORS = st.tuples(NUMBERS, NUMBERS, NUMBERS)
QUATERNIONS = st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS) | st.just((1.0, 0.0, 0.0, 0.0))
POSITIVE = st.floats(min_value=0, exclude_min=True, allow_infinity=False)
KEYS = st.sampled_from(["", "a", "b", "\udc80"])
BYTES = st.binary(max_size=8)
ATTRIBUTES = {**dict.fromkeys((0, 1, 2, 4), VECTORS), 3: QUATERNIONS, 5: st.booleans(), 6: BYTES}
CAMERA_ATTRIBUTES = {0: QUATERNIONS, 1: VECTORS, 2: NUMBERS, 3: st.booleans(), 4: BYTES}
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
#: Strategies for fields of requests, by name.
FIELDS = {
    **dict.fromkeys(("id", "entity", "target"), IDS),
    **dict.fromkeys(("mass", "radius", "focal_length"), NUMBERS | POSITIVE),
    **dict.fromkeys(("body_to_model", "orientation"), QUATERNIONS),
    **dict.fromkeys(("corporeal", "enabled"), st.booleans()),
    "type": st.integers(0, 9),
    "inertia": VECTORS | st.tuples(POSITIVE, POSITIVE, POSITIVE),
    "position": VECTORS,
    "attribute": st.integers(0, 6),
    "attributes": st.lists(st.integers(0, 6), max_size=7).map(tuple),
    "class_name": st.sampled_from(["turbulence", "x"]),
    "data": BYTES | TURBULENCE.map(lambda some: some.encode()),
    "body": BYTES,
    "key": KEYS,
    "keys": st.lists(KEYS, max_size=3).map(tuple),
    "period": st.integers(0, 2),
    "steps": st.integers(0, 2**64 - 1),
    "trigger": TRIGGERS,
}
EXTENDED = st.lists(st.builds(wire.ExtendedAttribute, KEYS, BYTES), max_size=3).map(tuple)


def requests_of(kind):
    """Return a strategy for requests of a kind that can be encoded."""
    if kind in (wire.SetEntity, wire.SetCamera):
        values = ATTRIBUTES if kind is wire.SetEntity else CAMERA_ATTRIBUTES
        return st.sampled_from(sorted(values)).flatmap(
            lambda attribute: st.builds(kind, IDS, st.just(attribute), values[attribute])
        )
    own = {each.name: FIELDS[each.name] for each in fields(kind)}
    return st.builds(kind, **(own | {"attributes": EXTENDED} if kind is wire.AddEntity else own))


#: Strategy for any request of the codec.
ANY_REQUEST = st.one_of(*map(requests_of, wire.REQUESTS.values()))
