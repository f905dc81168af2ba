# SPDX-License-Identifier: Apache-2.0
"""What the services of simulator_bridge about cameras have the link's thread do."""

from dataclasses import replace
from typing import Final

from drone_bridge.bridges.link_requests import ServiceResult
from drone_bridge.bridges.simulator.link import Outcome, ignore
from drone_bridge.bridges.simulator.session import SimulatorSession
from drone_bridge.bridges.simulator.tasks import OnResult, Result, Task, ask_all, result_of, wish_for
from drone_bridge.bridges.simulator.wishes import Camera, CameraStream
from drone_bridge.protocols import simulator as sim
from drone_bridge.protocols.errors import LocalProtocolError
from drone_bridge.protocols.simulator import ItemType
from drone_bridge.srv import SetCamera
from drone_bridge.translate import simulator_requests as translate
from drone_bridge.translate.simulator import Axes
from drone_bridge.translate.simulator_plans import CameraPlan

_NO_ENTITY: Final = 0xFFFFFFFF  # the last ID that there could be
_NO_CAMERA: Final = 0  # code of CSTREAM


def add_camera(plan: CameraPlan) -> Task:
    """Add a camera and stream to whom it looks; the value is its ID."""

    def task(session: SimulatorSession, on_result: OnResult) -> None:
        taken = session.outputs.entity_frames() | session.wishes.camera_frames()
        number = 0
        while not plan.name and f"camera_{number}" in taken:
            number += 1
        named = plan if plan.name else replace(plan, name=f"camera_{number}")
        if named.frame in taken:
            raise ValueError(f"There is a frame {named.frame!r} already, so no camera can be called {plan.name!r}.")
        camera = Camera(named)
        session.wishes.check_room(1 + len(plan.targets))
        wish_for(session, camera, on_result)
        for target in plan.targets:
            session.wishes.add(CameraStream(camera, target, plan.period))

    return task


def set_camera(request: SetCamera.Request, axes: Axes) -> Task:
    """Set attributes of a camera that is there: the CUAUV server crashes at CSET of one that is not.

    So the first question is for a stream that can't be, which shows what is missing.
    """
    questions = list(translate.set_camera(request, axes))
    probe = sim.StreamCamera(request.id, 0, _NO_ENTITY)

    def task(session: SimulatorSession, on_result: OnResult) -> None:
        def finish(result: Result) -> None:
            ours = session.wishes.find(ItemType.CAMERA, request.id)
            if result.success and isinstance(ours, Camera):
                ours.plan = translate.changed_camera(ours.plan, request)
                session.outputs.announce_camera(ours.plan)
            on_result(result)

        def take(outcome: Outcome) -> None:
            if isinstance(outcome, ServiceResult) or (isinstance(outcome, sim.Error) and outcome.code == _NO_CAMERA):
                on_result(result_of(probe, outcome))
                return
            try:
                if isinstance(outcome, sim.Added):
                    session.requests.ask(sim.Remove(outcome.type, outcome.id), ignore)
                ask_all(session.requests, questions, finish)
            except LocalProtocolError as error:
                on_result(Result(False, str(error)))

        session.requests.ask(probe, take)

    return task


def stream_camera(camera: int, target: int, period: int) -> Task:
    """Publish where an entity appears; the value is the ID of the stream."""

    def task(session: SimulatorSession, on_result: OnResult) -> None:
        ours = session.wishes.find(ItemType.CAMERA, camera)
        stream = CameraStream(ours if isinstance(ours, Camera) else camera, target, period or 1)
        wish_for(session, stream, on_result)

    return task


def view_camera(camera: int, target: int) -> Task:
    """Ask where an entity appears; the value is a CameraView."""
    question = sim.ViewCamera(camera, target)

    def task(session: SimulatorSession, on_result: OnResult) -> None:
        def take(outcome: Outcome) -> None:
            result = result_of(question, outcome)
            if isinstance(outcome, sim.CameraGot):
                ours = session.wishes.find(ItemType.CAMERA, camera)
                name = ours.plan.name if isinstance(ours, Camera) else ""
                result = result._replace(value=session.outputs.view(outcome, (camera, name), target, 0))
            on_result(result)

        session.requests.ask(question, take)

    return task
