# SPDX-License-Identifier: Apache-2.0
"""Four vehicles of one kind in one launch file, as in examples/."""

import re

from repository import ROOT

from drone_bridge.tools.launch.evaluate import evaluate

DRONES = ("drone1", "drone2", "drone3", "drone4")


def test_each_vehicle_has_its_names_and_port_and_all_share_one_page(tmp_path):
    given = dict.fromkeys(("emulate", "control", "record", "view"), "true")
    processes = evaluate(ROOT / "examples" / "drones.launch.xml", given, tmp_path)
    started = [(" ".join(process.command), "".join(process.files.values())) for process in processes]
    for name in ("recorder", "web_bridge"):
        assert sum(f"__node:={name} " in command for command, _ in started) == 1
    ports = set()
    for drone in DRONES:
        own = {
            re.search(r"__node:=(\w+)", command)[1]: parameters
            for command, parameters in started
            if f"__ns:=/{drone} " in f"{command} "
        }
        assert own.keys() == {"testbed_bridge", "drone_controller", "vehicle_model"}
        assert f"frame_prefix: {drone}/" in own["testbed_bridge"]
        port = re.search(r"\bport: (\d+)", own["testbed_bridge"])[1]
        assert sum(f" --port {port} " in command for command, _ in started) == 1  # an emulator's
        ports.add(port)
    assert len(ports) == len(DRONES)
    assert len(started) == 2 + 4 * len(DRONES)
