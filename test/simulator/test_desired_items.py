# SPDX-License-Identifier: Apache-2.0
"""DesiredItems: streams, cameras and triggers after additions and removals."""

import pytest

from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.session.desired_items import (
    MAX_DESIRED_ITEMS,
    DesiredCamera,
    DesiredCameraStream,
    DesiredEntityStream,
    DesiredItems,
)

FRONT = sim.AddCamera(0, (1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 1.0)


def desired(*configured):
    items = DesiredItems()
    for item in configured:
        item.is_configured = True
        items.add(item)
    return items


def test_desired_items_are_bounded():
    items = desired(*(DesiredEntityStream(number, 1) for number in range(MAX_DESIRED_ITEMS)))
    with pytest.raises(ValueError, match=f"limit of {MAX_DESIRED_ITEMS}"):
        items.add(DesiredEntityStream(0, 1))


@pytest.mark.parametrize("are_configured", [False, True])
def test_removing_a_camera_removes_its_streams(are_configured):
    camera = DesiredCamera("front", FRONT)
    stream, other = DesiredCameraStream(camera, 1, 1), DesiredEntityStream(1, 1)
    items = desired(camera, stream, other)
    for number, item in enumerate(items):
        item.is_configured = are_configured
        items.mark_added(item, number)
    items.removed(sim.ItemType.CAMERA, 0, is_ours=True)
    assert list(items) == [other]
    assert items.find(sim.ItemType.CAMERA_STREAM, 1) is None
    assert items.find(sim.ItemType.ENTITY_STREAM, 2) is other


def test_only_configured_items_stay_desired_after_an_entity_is_removed():
    stream, trigger, service = DesiredEntityStream(1, 1), DesiredEntityStream(2, 1), DesiredEntityStream(1, 1)
    items = desired(stream, trigger)
    items.add(service)
    items.mark_added(stream, 0)
    items.removed(sim.ItemType.ENTITY, 1, is_ours=True)
    assert list(items) == [stream, trigger]
    assert stream.id is None
    # But not a stream that was removed on request.
    items.mark_added(trigger, 1)
    items.removed(sim.ItemType.ENTITY_STREAM, 1, is_ours=True)
    assert list(items) == [stream]
