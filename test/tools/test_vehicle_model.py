# SPDX-License-Identifier: Apache-2.0
"""The models of vehicles, as files."""

from xml.etree import ElementTree

import pytest
from repository import ROOT
from rotations import turned

from drone_bridge.ros.topics.urdf import fixed_transforms, put_before_frames
from drone_bridge.tools.vehicle_model.program import MODELS

FOLDER = ROOT / "urdf"

each_model = pytest.mark.parametrize("model", MODELS)


def robot(model):
    return ElementTree.parse(FOLDER / f"{model}.urdf").getroot()


def test_every_file_is_a_model_that_can_be_chosen():
    assert {path.stem for path in FOLDER.glob("*")} == set(MODELS)


@each_model
def test_a_model_is_a_tree_of_links_with_base_link_at_its_root(model):
    root = robot(model)
    assert (root.tag, root.get("name")) == ("robot", model)
    assert {child.tag for child in root} == {"material", "link", "joint"}
    links = [link.get("name") for link in root.findall("link")]
    assert len(set(links)) == len(links)
    parents = {}
    for joint in root.findall("joint"):
        assert joint.get("type") == "fixed", "nobody publishes joint states"
        parent, child = joint.find("parent").get("link"), joint.find("child").get("link")
        assert {parent, child} <= set(links)
        assert child not in parents
        parents[child] = parent
    assert set(links) - set(parents) == {"base_link"}
    for link in links:
        above = [link]
        while above[-1] in parents:
            above.append(parents[above[-1]])
            assert len(above) <= len(links), f"{link} is above itself"


@each_model
def test_a_model_is_the_same_on_its_left_and_its_right(model):
    """A slip in a sign is easily overlooked."""
    places = {v.get("name"): v.find("origin").get("xyz").split() for v in robot(model).iter("visual")}
    pairs = 0
    for name, (x, y, z) in places.items():
        if "left" in name:
            pairs += 1
            assert places[name.replace("left", "right")] == [x, f"-{y}", z]
    assert pairs


@each_model
def test_a_prefix_comes_before_every_frame(model):
    root = robot(model)
    plain = {link.get("name") for link in root.findall("link")}
    put_before_frames(root, "r1/")
    links = {link.get("name") for link in root.findall("link")}
    assert links == {f"r1/{name}" for name in plain}
    transforms = fixed_transforms(root)
    assert {transform.header.frame_id for transform in transforms} | {t.child_frame_id for t in transforms} == links


def test_a_fixed_joint_is_a_transform_and_another_one_is_not():
    text = """<robot name="r"><link name="a"/><link name="b"/><link name="c"/><link name="d"/>
      <joint name="ab" type="fixed"><parent link="a"/><child link="b"/><origin xyz="1 2 3" rpy="0 0 1.5707963"/></joint>
      <joint name="ac" type="fixed"><parent link="a"/><child link="c"/></joint>
      <joint name="ad" type="continuous"><parent link="a"/><child link="d"/></joint></robot>"""
    turn, none = fixed_transforms(ElementTree.fromstring(text))
    assert (turn.header.frame_id, turn.child_frame_id, none.child_frame_id) == ("a", "b", "c")
    move = turn.transform.translation
    assert (move.x, move.y, move.z) == (1, 2, 3)
    assert turned(turn.transform.rotation, [1, 0, 0]) == pytest.approx([0, 1, 0], abs=1e-6)  # to the left
    assert none.transform.rotation.w == 1
