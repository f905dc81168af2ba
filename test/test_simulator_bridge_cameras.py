# SPDX-License-Identifier: Apache-2.0
"""What simulator_bridge does about cameras, which the CUAUV server loses sight of, and crashes for."""

import struct

import pytest
from geometry_msgs.msg import Point, Pose
from rclpy.qos import DurabilityPolicy, QoSProfile
from ros_session import TIMEOUT_S, wait_until
from simulator_fixtures import BUOY, FRONT, bridge, call, make_peer, two_entities
from tf2_msgs.msg import TFMessage

from drone_bridge import srv
from drone_bridge.msg import CameraView, TriggerEvent
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import CameraAttribute, ItemType

TWO_CAMERAS = ["front entity=0 targets=1", "rear entity=0 rpy=0,0,3.14 targets=1"]


@pytest.fixture
def peer(closing):
    return closing(make_peer())


def of_cameras(streams):
    """Return what was asked about streams of cameras."""
    removed = [request for request in streams.requests if isinstance(request, sim.StreamCamera | sim.Remove)]
    return [(request.type if isinstance(request, sim.Remove) else "stream", request.id) for request in removed]


def test_cameras_are_all_there_before_any_of_them_is_streamed(peer, ros):
    added = []

    def add_first(request):
        added.append(request)
        return sim.Added(ItemType.CAMERA, 0) if len(added) == 1 else None

    peer.answers[sim.AddCamera] = add_first
    peer.extended[0, "drone_bridge.btom"] = struct.pack(">4d", 1.0, 0.0, 0.0, 0.0)
    with bridge(peer, cameras=TWO_CAMERAS, item_events="none", request_timeout=20.0):
        requests, streams = peer.wait_until_settled()
        wait_until(lambda: len(added) == 2, "both cameras")
        client = ros.node.create_client(srv.AddTrigger, "simulator_bridge/add_trigger")
        assert client.wait_for_service(TIMEOUT_S)
        trigger = client.call_async(srv.AddTrigger.Request(entity_a=0, entity_b=1))  # which follows the cameras
        events = ros.subscribe(TriggerEvent, "trigger_events")
        wait_until(lambda: peer.send(streams, sim.Triggered(77)) or len(events), "an event")
        assert not streams.asked_for(sim.StreamCamera)
        peer.send(requests, sim.Added(ItemType.CAMERA, 1))
        wait_until(lambda: of_cameras(streams) == [("stream", 0), ("stream", 1)], "the streams of the cameras")
        wait_until(trigger.done, "the trigger")
        assert trigger.result().success


def test_adding_a_camera_recreates_the_streams_of_the_others(peer, ros):
    with bridge(peer):
        _, streams = peer.wait_until_settled()
        wait_until(lambda: of_cameras(streams) == [("stream", FRONT)], "the stream of the camera")
        assert call(ros, "add_camera", srv.AddCamera, name="down", entity_id=0).id == 1
        renewed = [("stream", FRONT), (ItemType.CAMERA_STREAM, 0), ("stream", FRONT)]
        wait_until(lambda: of_cameras(streams) == renewed, "a new stream of the first one")
        views = ros.subscribe(CameraView, "camera_view")
        wait_until(lambda: peer.send(streams, sim.CameraData(1, 0.0, 0.0, 0.0, 2.0)) or len(views), "a view")
        view = views.wait()
        assert (view.camera, view.target_id, view.stream_id) == ("front", BUOY, 1)


def test_removing_a_camera_recreates_the_streams_of_the_others(peer, ros):
    with bridge(peer, cameras=TWO_CAMERAS):
        _, streams = peer.wait_until_settled()
        wait_until(lambda: len(of_cameras(streams)) == 2, "the streams of the cameras")
        assert call(ros, "remove", srv.RemoveItem, type=ItemType.CAMERA, id=0).success
        wait_until(lambda: of_cameras(streams)[2:] == [(ItemType.CAMERA_STREAM, 1), ("stream", 1)], "a new stream")


@pytest.mark.parametrize("who", ["here", "by others"])
def test_removing_an_entity_recreates_camera_streams_once(peer, ros, who):
    peer.entities[9] = peer.entities[BUOY]
    with bridge(peer):
        requests, streams = peer.wait_until_settled()
        wait_until(lambda: len(requests.asked_for(sim.ListEntities)) > 1, "a list with the entity")
        wait_until(lambda: of_cameras(streams) == [("stream", FRONT)], "the stream of the camera")
        if who == "here":
            assert call(ros, "remove", srv.RemoveItem, type=ItemType.ENTITY, id=9).success
        del peer.entities[9]
        renewed = [("stream", FRONT), (ItemType.CAMERA_STREAM, 0), ("stream", FRONT)]
        wait_until(lambda: of_cameras(streams) == renewed, "a new stream of the camera")
        lists = len(requests.asked_for(sim.ListEntities))
        wait_until(lambda: len(requests.asked_for(sim.ListEntities)) > lists + 1, "lists without the entity")
        assert of_cameras(streams) == renewed


def test_a_missing_camera_is_not_set(peer, ros):
    peer.answers[sim.StreamCamera] = lambda request: (
        sim.Error(0, "No camera with given ID.") if request.id == 7 else sim.Error(1, "No entity with given ID.")
    )
    with bridge(peer, cameras=[""]):
        peer.wait_until_settled()
        fields = {"set_focal_length": True, "focal_length": 2.0}
        response = call(ros, "set_camera", srv.SetCamera, id=7, **fields)
        assert (response.success, response.code) == (False, 0)
        assert "there is no camera with the ID" in response.message
        assert not peer.requests(sim.SetCamera)
        assert call(ros, "set_camera", srv.SetCamera, id=5, **fields).success
        assert peer.requests(sim.SetCamera) == [sim.SetCamera(5, CameraAttribute.FOCAL_LENGTH, 2.0)]


def test_a_camera_that_was_set_has_its_new_frame_until_a_new_simulation_has_it_as_parameters_say(peer, ros):
    latched = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    transforms = ros.subscribe(TFMessage, "/tf_static", latched)

    def is_there(message):
        found = [item.transform for item in message.transforms if item.child_frame_id == "s1/front"]
        return found and (found[0].translation.x, found[0].translation.y) == (1.0, 2.0)

    with bridge(peer):
        _, streams = peer.wait_until_settled()
        wait_until(lambda: of_cameras(streams), "the stream of the camera")
        pose = Pose(position=Point(x=1.0, y=2.0, z=3.0))
        fields = {"set_position": True, "pose": pose, "set_enabled": True, "enabled": False}
        assert call(ros, "set_camera", srv.SetCamera, id=FRONT, **fields).success
        transforms.wait(is_there)
        peer.hang_up()
        peer.wait_until_settled()
        transforms.clear()
        requests, _ = peer.restart(entities=two_entities())
        wait_until(lambda: requests.asked_for(sim.AddCamera), "the camera")
        again = requests.asked_for(sim.AddCamera)[0]
        assert (again.position, again.focal_length, again.enabled) == ((0.3, 0.0, 0.0), 1.0, True)
        transforms.wait(lambda message: not is_there(message))


def test_the_frame_of_a_removed_camera_is_no_longer_published(peer, ros):
    latched = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    transforms = ros.subscribe(TFMessage, "/tf_static", latched)

    def frames_with(frame):
        def is_there(message):
            return frame in {transform.child_frame_id for transform in message.transforms}

        return {transform.child_frame_id for transform in transforms.wait(is_there).transforms}

    with bridge(peer):
        peer.wait_until_settled()
        down = call(ros, "add_camera", srv.AddCamera, name="down", entity_id=0).id
        assert frames_with("s1/down") == {"s1/odom", "s1/front", "s1/down"}
        assert call(ros, "remove", srv.RemoveItem, type=ItemType.CAMERA, id=down).success
        assert call(ros, "add_camera", srv.AddCamera, name="rear", entity_id=0).success
        assert frames_with("s1/rear") == {"s1/odom", "s1/front", "s1/rear"}
