# SPDX-License-Identifier: Apache-2.0
"""Requests to the emulated world: entities, attributes, objects, and items."""

import contextlib
import math

import pytest
from offline_simulator import LEVEL, OfflineSimulator, RecordingClient, entity

from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.vehicle.device.requests import Quirks, ServedClient
from drone_bridge.simulator.vehicle.device.world import FULL, INVALID, MAX_ITEMS, MAX_SPIES, UNSUPPORTED
from drone_bridge.simulator.vehicle.emulator.scene import SCENES
from drone_bridge.wire.events import DisconnectPeerError, RemoteProtocolError

ZERO = (0.0, 0.0, 0.0)
VEHICLE, GRAVITY = 0, 0
X, V, A, Q, W, CORPOREAL = sim.Attribute
QUARTER_ABOUT_Z = (math.sqrt(0.5), 0, 0, math.sqrt(0.5))


@pytest.fixture
def simulator():
    return OfflineSimulator()


def value(simulator, number, attribute):
    return simulator.get(sim.GetEntity(number, attribute)).value


def constant(force=ZERO, torque=ZERO):
    return sim.Turbulence(force, force, 0, 0, torque, torque, 0, 0).encode()


# The default environment.


def test_a_new_world_has_a_vehicle_gravity_buoyancy_and_drag(simulator):
    assert simulator.get(sim.ListEntities()).ids == (VEHICLE,)
    engines = simulator.scene.entities[VEHICLE].engines
    assert [type(engine).__name__ for engine in engines] == ["Buoyancy"] + 7 * ["DragPlane"]
    assert list(simulator.scene.objects) == [GRAVITY]
    state = [value(simulator, VEHICLE, attribute) for attribute in sim.Attribute]
    assert state == [ZERO, ZERO, ZERO, LEVEL, ZERO, True]


def test_config_reports_the_speed_and_a_step_lasts_speed_over_frequency():
    simulator = OfflineSimulator(rate=50.0, speed=2.0)
    config = simulator.get(sim.GetConfig())
    assert (config.frequency, config.speed, config.non_real_time) == (50.0, 2.0, False)
    number = simulator.add(entity())
    simulator.get(sim.SetEntity(number, V, (1, 0, 0)))
    simulator.step(50)
    assert value(simulator, number, X)[0] == pytest.approx(2.0)


@pytest.mark.parametrize("scene", SCENES)
def test_scenes_are_at_rest_and_have_render_attributes(scene):
    simulator = OfflineSimulator()
    SCENES[scene](simulator.world, simulator.scene)
    numbers = simulator.get(sim.ListEntities()).ids
    before = [value(simulator, number, X) for number in numbers]
    simulator.step(50)
    assert [value(simulator, number, X) for number in numbers] == [pytest.approx(place, abs=1e-9) for place in before]
    for number in numbers:
        assert simulator.get(sim.GetExtended(number, "render")).data.isascii()


# Entities.


def test_an_added_entity_has_its_requested_state(simulator):
    xattrs = (sim.ExtendedAttribute("render", b"buoy"), sim.ExtendedAttribute("", b""))
    number = simulator.add(entity((1, 2, 3), q=(0, 2, 0, 0), corporeal=True, attributes=xattrs))
    assert simulator.get(sim.ListEntities()).ids == (number, VEHICLE)
    assert value(simulator, number, X) == (1, 2, 3)
    assert value(simulator, number, Q) == (0, 1, 0, 0)
    assert value(simulator, number, CORPOREAL) is True
    assert simulator.get(sim.GetExtended(number, "render")).data == b"buoy"
    assert simulator.get(sim.GetExtended(number, "")).data == b""


BROKEN = (
    *({"mass": 0}, {"mass": math.nan}, {"radius": -1}, {"inertia": (1, 0, 1)}),
    *({"btom": (0, 0, 0, 0)}, {"q": (math.inf, 0, 0, 0)}, {"position": (0, math.nan, 0)}),
)


@pytest.mark.parametrize("broken", BROKEN, ids=str)
def test_an_invalid_entity_is_refused_and_leaves_nothing_behind(simulator, broken):
    assert simulator.code(entity(**broken)) == 0
    assert simulator.get(sim.ListEntities()).ids == (VEHICLE,)
    assert simulator.add(entity()) == 1
    simulator.step()


def test_attributes_are_set_and_got_in_the_documented_frames(simulator):
    number = simulator.add(entity(btom=QUARTER_ABOUT_Z))  # the body's x is the model's y
    for attribute in (X, V, A):
        simulator.get(sim.SetEntity(number, attribute, (1.0, 2.0, 3.0)))
        assert value(simulator, number, attribute) == (1, 2, 3)
    simulator.get(sim.SetEntity(number, Q, LEVEL))
    assert value(simulator, number, Q) == pytest.approx(QUARTER_ABOUT_Z)  # model · btom
    simulator.get(sim.SetEntity(number, W, (0.0, 2.0, 0.0)))
    assert value(simulator, number, W) == pytest.approx((0, 2, 0))
    assert simulator.scene.entities[number].w == pytest.approx((2, 0, 0))
    simulator.get(sim.SetEntity(number, CORPOREAL, True))
    assert value(simulator, number, CORPOREAL) is True


def test_errors_of_setting_and_getting_are_the_documented_ones(simulator):
    assert simulator.code(sim.SetEntity(7, X, ZERO)) == 0
    assert simulator.code(sim.SetEntity(VEHICLE, 6, b"")) == 1
    assert simulator.code(sim.GetEntity(7, X)) == 0
    assert simulator.code(sim.GetEntity(VEHICLE, 6)) == 1
    for attribute, broken in ((X, (math.nan, 0, 0)), (W, (0, math.inf, 0)), (Q, (0, 0, 0, 0))):
        assert simulator.code(sim.SetEntity(VEHICLE, attribute, broken)) == INVALID
    assert simulator.ask(sim.GetEntity(5, X)).message == "No entity with given ID."


def test_numbers_of_any_size_stop_the_entity_and_nothing_else(simulator):
    number = simulator.add(entity((1, 2, 3)))
    for attribute in (V, A, W):
        simulator.get(sim.SetEntity(number, attribute, (1.7e308, -1.7e308, 1e300)))
    simulator.get(sim.SetEntity(VEHICLE, V, (1e200, 1.7e308, 0)))
    simulator.step(3)
    assert simulator.reports[0].startswith("entity ")
    for attribute in (X, V, A, Q, W):
        assert all(map(math.isfinite, value(simulator, number, attribute)))
        assert all(map(math.isfinite, value(simulator, VEHICLE, attribute)))


# Extended attributes.


def test_extended_attributes_are_bytes_under_names(simulator):
    simulator.get(sim.SetExtended(VEHICLE, "note", b"\0\xff"))
    simulator.get(sim.SetExtended(VEHICLE, "note", b"two"))
    simulator.get(sim.SetExtended(VEHICLE, "\udcff" * 255, b"odd"))
    assert simulator.get(sim.GetExtended(VEHICLE, "note")).data == b"two"
    assert simulator.get(sim.GetExtended(VEHICLE, "\udcff" * 255)).data == b"odd"
    assert simulator.code(sim.GetExtended(VEHICLE, "nope")) == 0
    assert simulator.code(sim.GetExtended(7, "note")) == 0
    assert simulator.code(sim.SetExtended(7, "note", b"")) == 0


def test_extended_attributes_are_limited_to_8_mebibytes(simulator):
    ball = entity(attributes=(sim.ExtendedAttribute("big", bytes(1_000_000)),))
    added = [answer.id for answer in (simulator.ask(ball) for _ in range(100)) if isinstance(answer, sim.Added)]
    assert len(added) == 8
    assert simulator.get(sim.ListEntities()).ids == (*reversed(added), VEHICLE)
    assert simulator.code(sim.SetExtended(VEHICLE, "more", bytes(400_000))) == FULL
    simulator.get(sim.SetExtended(added[0], "big", b"small"))
    simulator.get(sim.SetExtended(VEHICLE, "more", bytes(1_000_000)))
    simulator.get(sim.Remove(sim.ItemType.ENTITY, added[1]))
    simulator.get(sim.SetExtended(VEHICLE, "even more", bytes(1_000_000)))
    assert simulator.code(sim.SetExtended(VEHICLE, "yet more", bytes(400_000))) == FULL


# Objects.


@pytest.mark.parametrize(
    "data", [b"", bytes(127), bytes(129), sim.Turbulence((1, 0, 0), ZERO, 0, 0, ZERO, ZERO, 0, 0).encode()]
)
def test_invalid_turbulence_is_refused(simulator, data):
    assert simulator.code(sim.AddObject("turbulence", data)) == 0


UNDOCUMENTED = [kind(b"body") for kind in sim.REQUESTS.values() if "body" in kind.__slots__]


@pytest.mark.parametrize("request_", [*UNDOCUMENTED, sim.BroadcastCamera(0), sim.StreamExtended(VEHICLE, 1, ("a",))])
def test_requests_that_no_simulator_has_are_refused(simulator, request_):
    assert simulator.code(request_) == UNSUPPORTED


# Items.


def add_one_of_each(simulator):
    """Return the items that depend on a new entity, by type."""
    number = simulator.add(entity((5, 0, 0)))
    camera = simulator.add(sim.AddCamera(number, LEVEL, ZERO, 1.0))
    keys = {
        sim.ItemType.ENTITY: number,
        sim.ItemType.CAMERA: camera,
        sim.ItemType.TRIGGER: simulator.add(sim.AddTrigger(sim.CollisionTrigger(VEHICLE, number, -1))),
        sim.ItemType.ENTITY_STREAM: simulator.add(sim.StreamEntity(number, 1, (X,))),
        sim.ItemType.CAMERA_STREAM: simulator.add(sim.StreamCamera(camera, 1, VEHICLE)),
    }
    return {
        **keys,
        sim.ItemType.OBJECT: simulator.add(sim.AddObject("turbulence", constant())),
        sim.ItemType.SPY: simulator.add(sim.Spy()),
    }


UNSUPPORTED_ITEMS = {sim.ItemType.CAMERA_BROADCAST, sim.ItemType.EXTENDED_STREAM}


@pytest.mark.parametrize("kind", set(sim.ItemType) - UNSUPPORTED_ITEMS)
def test_items_of_each_type_can_be_removed_once(simulator, kind):
    number = add_one_of_each(simulator)[kind]
    simulator.get(sim.Remove(kind, number))
    assert simulator.code(sim.Remove(kind, number)) == 0
    simulator.step()


def test_removing_an_entity_removes_its_dependents(simulator):
    keys = add_one_of_each(simulator)
    del keys[sim.ItemType.OBJECT], keys[sim.ItemType.SPY]
    simulator.client.take()
    simulator.get(sim.Remove(sim.ItemType.ENTITY, keys[sim.ItemType.ENTITY]))
    spied = [event for event in simulator.client.take() if isinstance(event, sim.Spied)]
    gone = [(event.type, event.id) for event in spied if not event.is_added]
    assert sorted(gone) == sorted(keys.items())
    assert gone[-1] == (sim.ItemType.ENTITY, keys[sim.ItemType.ENTITY])
    kinds = [kind for kind, _ in gone]
    assert kinds.index(sim.ItemType.CAMERA_STREAM) < kinds.index(sim.ItemType.CAMERA)
    assert not simulator.world.items.of(sim.ItemType.CAMERA)
    assert simulator.step() == []


def test_streams_triggers_and_spies_end_with_their_client(simulator):
    other = RecordingClient()
    number = simulator.add(entity(), other)
    camera = simulator.add(sim.AddCamera(number, LEVEL, ZERO, 1.0), other)
    simulator.add(sim.StreamEntity(number, 1, (X,)), other)
    simulator.add(sim.StreamCamera(camera, 1, VEHICLE), other)
    simulator.add(sim.AddTrigger(sim.CollisionTrigger(VEHICLE, number, 1)), other)
    simulator.add(sim.Spy(), other)
    simulator.step()
    assert other.take()
    simulator.world.leave(other)
    simulator.step()
    assert other.take() == []
    assert simulator.get(sim.ListEntities()).ids == (number, VEHICLE)
    assert list(simulator.world.items.of(sim.ItemType.CAMERA)) == [camera]


def test_a_spy_is_notified_of_added_and_removed_items_until_its_removal(simulator):
    other = RecordingClient()
    spy = simulator.add(sim.Spy())
    number = simulator.add(entity(), other)
    stream = simulator.add(sim.StreamEntity(number, 1, ()), other)
    simulator.get(sim.Remove(sim.ItemType.ENTITY, number), other)
    assert simulator.client.take() == [
        sim.Spied(True, sim.ItemType.ENTITY, number),
        sim.Spied(True, sim.ItemType.ENTITY_STREAM, stream),
        sim.Spied(False, sim.ItemType.ENTITY_STREAM, stream),
        sim.Spied(False, sim.ItemType.ENTITY, number),
    ]
    simulator.get(sim.Remove(sim.ItemType.SPY, spy))
    simulator.add(entity())
    assert simulator.client.take() == []
    assert other.take() == []


def test_a_spied_id_that_needs_more_than_a_byte_gets_four(simulator):
    simulator.add(sim.Spy())
    for _ in range(256):
        simulator.add(entity())
    first, *_, last = simulator.client.take()
    assert (first.id, first.id_bytes) == (1, 1)
    assert (last.id, last.id_bytes) == (256, 4)


def test_a_thousand_items_of_each_type_are_allowed(simulator):
    for request in (entity(), sim.StreamEntity(VEHICLE, 0, ()), sim.AddObject("turbulence", constant())):
        for _ in range(MAX_ITEMS + 1):
            last = simulator.ask(request)
        assert last.code == FULL


def test_one_spy_per_client_is_allowed(simulator):
    """Each is sent a message for each added or removed item, while other clients wait."""
    answers = [simulator.ask(sim.Spy()) for _ in range(MAX_SPIES + 1)]
    assert not any(isinstance(answer, sim.Error) for answer in answers[:MAX_SPIES])
    assert answers[MAX_SPIES].code == FULL


# Behaviour of the CUAUV server.


@pytest.fixture
def cuauv(simulator):
    simulator.context.is_real = True
    return simulator


def test_streams_and_triggers_stay_although_remove_is_answered_with_ok(cuauv):
    stream = cuauv.add(sim.StreamEntity(VEHICLE, 1, (X,)))
    kinds = (sim.ItemType.ENTITY_STREAM, sim.ItemType.TRIGGER, 9)
    for kind in kinds:
        assert cuauv.ask(sim.Remove(kind, stream)) == sim.Ok()
    assert [event.id for event in cuauv.step()] == [stream]


def test_the_returned_id_of_turbulence_would_remove_gravity(cuauv):
    added = [cuauv.add(sim.AddObject(sim.Turbulence.CLASS, constant((30.0, 0.0, 0.0)))) for _ in range(2)]
    assert added == [0, 1]
    assert cuauv.ask(sim.Remove(sim.ItemType.OBJECT, added[0])) == sim.Ok()
    cuauv.step()
    north, _, down = value(cuauv, VEHICLE, V)
    assert north > 0.019  # two of them for 0.01 s on 30 kg
    assert down < -0.09  # only its buoyancy is left


def test_a_body_of_more_than_1024_bytes_ends_the_connection():
    client, served = sim.ClientConnection(max_request_bytes=2048), ServedClient(print, Quirks.REAL)
    for size, refusal in ((1024, contextlib.nullcontext()), (1025, pytest.raises(RemoteProtocolError, match="1024"))):
        served.protocol.receive_data(client.send(sim.SetExtended(VEHICLE, "k", bytes(size - 10))))
        with refusal:
            assert served.next_request().data == bytes(1014)


@pytest.mark.parametrize("said", [sim.frame(sim.Spy()), sim.frame(sim.GetExtended(0, "")), sim.frame(sim.Pause())[:4]])
def test_unknown_empty_or_split_requests_end_the_connection(said):
    served = ServedClient(print, Quirks.REAL)
    served.protocol.receive_data(said)
    with pytest.raises(DisconnectPeerError):
        served.next_request()


@pytest.mark.parametrize(
    ("quirks", "written"),
    [
        (Quirks.NONE, [b"\x02\0\0\0\5\0\0\0\0\7\xff\0\0\0\0"]),
        (Quirks.REAL, [b"\x02\0\0\0\5", b"\0\0\0\0\7", b"\xff\0\0\0\0"]),
    ],
)
def test_header_and_body_are_sent_separately(quirks, written):
    served = ServedClient(print, quirks)
    served.post(sim.Added(0, 7))
    served.post(sim.Completed())
    assert served.take() == written
