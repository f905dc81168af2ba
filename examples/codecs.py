# SPDX-License-Identifier: Apache-2.0
"""A conversation in each protocol, by the codecs alone. The testbed's is in docs/protocols.md."""

from drone_bridge.protocols import RemoteProtocolError, ardrone, dronegui, robot, simulator, telemetry


def converse_dronegui():
    """A client commands pitch to the GUI, and a bad packet is described."""
    controller, gui = dronegui.ControllerConnection(), dronegui.ReceiverConnection()
    gui.receive_data(controller.send(dronegui.Controls(hover=False, pitch=-0.25)))
    (packet,) = gui.events()
    assert (packet.seq, packet.controls.pitch) == (1, -0.25)
    gui.receive_data(b'{"seq": 2, "state": {"roll": "x"}}')
    try:
        gui.next_event()
    except RemoteProtocolError as error:
        reason = str(error)
    assert "roll is 'x'" in reason


def converse_ardrone():
    """A client flies forward, and the drone reports that it flies."""
    client, drone = ardrone.ClientConnection(), ardrone.DroneConnection()
    drone.receive_data(client.send(ardrone.Pcmd(ardrone.PROGRESSIVE, pitch=-0.25), ardrone.Ref(is_flying=True)))
    assert [type(command).__name__ for command in drone.events()] == ["Pcmd", "Ref"]
    client.receive_data(drone.send(ardrone.Navdata(ardrone.State.FLYING, 1)))
    (navdata,) = client.events()
    assert navdata.is_airborne


def converse_simulator():
    """A client requests the vehicle's position."""
    client, server = simulator.ClientConnection(), simulator.ServerConnection()
    server.receive_data(client.send(simulator.GetEntity(simulator.VEHICLE, simulator.Attribute.POSITION)))
    for request in server.events():
        assert request.attribute == simulator.Attribute.POSITION
        client.receive_data(server.send(simulator.EntityGot(request.attribute, (1.0, 2.0, 3.0))))
    (answer,) = client.events()
    assert answer.response.value == (1.0, 2.0, 3.0)


def converse_robot():
    """A driver binds the tracks, and drives."""
    driver, bot = robot.DriverConnection(), robot.RobotConnection([robot.SubsystemType.SKID_STEER])
    bot.receive_data(driver.send(robot.RegisterDriver("me")) + driver.send(robot.BindSubsystem(0)))
    for packet in bot.events():
        if isinstance(packet, robot.BindSubsystem):
            driver.receive_data(bot.send(robot.BindSuccess(packet.id)))
    assert list(driver.events()) == [robot.BindSuccess(0)]
    bot.receive_data(driver.send(robot.SkidSteerUpdate(0, left=robot.FULL_SPEED, right=0)))
    assert [update.left for update in bot.events()] == [robot.FULL_SPEED]


def converse_telemetry():
    """A controller receives the rover's document, and climbs."""
    controller, rover = telemetry.ControllerConnection(), telemetry.RoverConnection()
    still = telemetry.Vector(0.0, 0.0, 0.0)
    document = rover.send(telemetry.RoverTelemetry(telemetry.Vector(1.0, 2.0, 0.0), still, "circular", timestamp=4.0))
    controller.receive_data(document)
    (event,) = controller.events()
    assert event.position.y == 2.0
    assert controller.send(telemetry.DroneCommand(thrust=0.5)).startswith(b'{"thrust":0.5')


if __name__ == "__main__":
    converse_dronegui()
    converse_ardrone()
    converse_simulator()
    converse_robot()
    converse_telemetry()
