# SPDX-License-Identifier: Apache-2.0
"""The codecs as a library: common names, and working examples."""

import re
import runpy
from pathlib import Path

import pytest
from repository import ROOT

from drone_bridge import protocols
from drone_bridge.ardrone import codec as ardrone
from drone_bridge.dronegui import codec as dronegui
from drone_bridge.robot import codec as robot
from drone_bridge.simulator import codec as simulator
from drone_bridge.telemetry import codec as telemetry
from drone_bridge.testbed import codec as testbed
from drone_bridge.wire.events import EventSource

PAGE = (ROOT / "docs" / "protocols.md").read_text()
EXAMPLES = runpy.run_path(str(ROOT / "examples" / "codecs.py"))
MODULES = (testbed, dronegui, ardrone, simulator, robot, telemetry)


@pytest.mark.parametrize("module", [each for each in MODULES if each is not testbed])
def test_the_example_of_a_protocol_runs(module):
    EXAMPLES[f"converse_{module.__name__.split('.')[1]}"]()


def test_the_page_s_example_runs():
    [example] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(example, "docs/protocols.md", "exec"), {})


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_protocols_export_the_same_names(module):
    assert "DEFAULT_PORT" in module.__all__
    assert all(hasattr(module, name) for name in module.__all__)
    assert f"| `{module.__name__.removesuffix('.codec').rpartition('.')[2]}` |" in PAGE
    assert f" {module.DEFAULT_PORT}" in PAGE
    connections = [getattr(module, name) for name in module.__all__ if name.endswith("Connection")]
    assert len(connections) >= 2
    assert all(issubclass(kind, EventSource) or kind is telemetry.RoverConnection for kind in connections)


def test_shared_definitions_are_in_one_place():
    assert {"NEED_DATA", "ConnectionClosed", "LocalProtocolError", "ProtocolError", "RemoteProtocolError"} <= set(
        protocols.__all__
    )
    assert all(getattr(protocols, name) for name in protocols.__all__)
    assert Path(protocols.__file__).parent.with_name("py.typed").is_file()


def test_events_end_with_the_connection_or_when_data_run_out():
    client, server = simulator.ClientConnection(), simulator.ServerConnection()
    server.receive_data(client.send(simulator.Reassure()) + client.send(simulator.Pause())[:3])
    assert list(server.events()) == [simulator.Reassure()]
    assert list(server.events()) == []
    other = simulator.ServerConnection()
    other.receive_eof()
    assert list(other.events()) == [protocols.ConnectionClosed()]
