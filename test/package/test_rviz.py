# SPDX-License-Identifier: Apache-2.0
"""Views for rviz2, compared with what the launch file of the same name really publishes.

No rviz2 is needed: a program that only says how it was started stands in for it.
"""

from rviz_views import DURABILITIES, RELIABILITIES, VIEWS, each_view, with_topics
from shipped import LAUNCH_FILES

from drone_bridge.kind import ROBOTS

TOPIC_PROPERTIES = {
    "Value": str,
    "Depth": int,
    "History Policy": ("Keep Last", "Keep All"),
    "Reliability Policy": tuple(RELIABILITIES),
    "Durability Policy": tuple(DURABILITIES),
    "Filter size": int,
}


def test_every_launch_file_has_its_view():
    launch_files = set(LAUNCH_FILES)
    names = {path.name.removesuffix(".launch.xml") for path in launch_files}
    servers = {name for name in names if name.endswith("_server")}  # their topics are those of their bridges
    assert len(servers) == 5
    # vehicle and the files of robots/ have the view of robot, and ardrone that of dronegui.
    assert {path.stem for path in VIEWS} == names - servers - {"vehicle", "ardrone", *ROBOTS}


@each_view
def test_a_view_spells_topics_and_their_qos_as_rviz2_reads_them(path):
    for display, topic in with_topics(path):
        for name, value in topic.items():
            allowed = TOPIC_PROPERTIES[name]
            assert isinstance(value, allowed) if isinstance(allowed, type) else value in allowed, display["Name"]
        if "RobotModel" in display["Class"]:
            # The launch file puts the prefix into the model itself, as it can't put it into the view.
            assert (display["Description Source"], display.get("TF Prefix", "")) == ("Topic", "")
