# SPDX-License-Identifier: Apache-2.0
"""Responses of services to clients that are not fully discovered."""

import sys
import threading
import warnings
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from patience import wait_until
from processes import TIMEOUT_S, Process
from rcl_interfaces.srv import ListParameters
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.service import Service
from std_srvs.srv import Trigger

from drone_bridge.robot.bridge.node import RobotBridge
from drone_bridge.ros import service_responses as responses
from drone_bridge.ros.service_responses import resend_if_lost


def warn():
    warnings.warn("failed to send response (timeout): client will not receive response", RuntimeWarning, stacklevel=2)


def fail():
    raise rclpy_implementation.RCLError("failed to send response: client will not receive response, at ...")


@pytest.fixture
def service():
    """Stand-in for a service of rclpy, which fails as often as requested."""
    service = SimpleNamespace(failures=[], tries=0, sent=[], changed=threading.Event())

    def send_response(response, header):
        service.tries += 1
        if service.failures:
            service.failures.pop()()
        else:
            service.sent.append((response, header))
        if service.sent or service.tries == 1 + responses.MAX_RETRIES:
            service.changed.set()

    service.send_response = send_response
    return service


@pytest.mark.parametrize("failure", [warn, fail], ids=["as now", "as humble before 3.3.10"])
def test_an_answer_that_finds_no_reader_is_sent_again_once(ros, service, failure):
    service.failures = [failure] * 3
    resend_if_lost(ros.node, service)
    service.send_response("answer", "header")
    assert responses.has_undelivered()  # which keeps a finalized node's process
    assert service.changed.wait(TIMEOUT_S)
    assert service.sent == [("answer", "header")]
    assert service.tries == 4
    wait_until(lambda: not responses.has_undelivered(), "the end of the repetition")


def test_an_answer_that_was_sent_is_not_sent_again(ros, service):
    timers = len(list(ros.node.timers))
    resend_if_lost(ros.node, service)
    service.send_response("answer", "header")
    assert service.sent == [("answer", "header")]
    assert len(list(ros.node.timers)) == timers


def test_waiting_for_a_client_is_bounded(ros, service, monkeypatch):
    monkeypatch.setattr(responses, "RETRY_PERIOD_S", 0.01)
    service.failures = [warn] * 1000
    resend_if_lost(ros.node, service)
    service.send_response("answer", "header")
    assert service.changed.wait(TIMEOUT_S)
    assert not service.sent
    wait_until(lambda: not responses.has_undelivered(), "the end of the repetition")


def test_other_errors_are_raised(ros, service):
    error = rclpy_implementation.RCLError("failed to send response: out of memory")
    service.failures = [Mock(side_effect=error)]
    resend_if_lost(ros.node, service)
    with pytest.raises(rclpy_implementation.RCLError, match="out of memory"):
        service.send_response("answer", "header")


def test_services_that_a_node_makes_late_are_patient_too(ros, free_port, monkeypatch):
    """As for a client whose port was in use when it started."""
    tries, sent = [], threading.Event()

    def lose_first(self, response, header):
        tries.append(response)
        if len(tries) == 1:
            warn()
        else:
            sent.set()

    monkeypatch.setattr(Service, "send_response", lose_first)
    node = ros.run(RobotBridge, port=free_port, autostart=False)
    node.create_service(Trigger, "~/late", lambda request, response: response).send_response("answer", "header")
    assert sent.wait(TIMEOUT_S)
    assert tries == ["answer"] * 2


#: Node whose first response finds no reader.
OVERHEARD_NODE = """
import importlib, sys, warnings
from rclpy.service import Service

send, lost = Service.send_response, []

def send_or_lose(self, response, header):
    if lost:
        send(self, response, header)
    else:
        lost.append(response)
        warnings.warn("failed to send response (timeout): client will not receive response", RuntimeWarning)

Service.send_response = send_or_lose
sys.exit(importlib.import_module(f"drone_bridge.tools.{sys.argv.pop(1)}.program").main())
"""


@pytest.mark.parametrize(("node", "folder"), [("vehicle_model", "vehicle_model"), ("recorder", "record")])
def test_nodes_are_patient(ros, tmp_path, node, folder):
    parameters = ("-p", f"bag:={tmp_path / 'bag'}", "-p", "topics:=['/none']") if node == "recorder" else ()
    with Process(sys.executable, "-c", OVERHEARD_NODE, folder, "--ros-args", *parameters):
        answer = ros.call(ListParameters, f"{node}/list_parameters", ListParameters.Request())
    assert "use_sim_time" in answer.result.names
