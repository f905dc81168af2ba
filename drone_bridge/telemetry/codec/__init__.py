# SPDX-License-Identifier: Apache-2.0
"""The telemetry protocol of a drone without GPS and a rover: JSON documents, one per datagram or topic message.

A drone and a rover report what they sense, several times a second; commands go to the drone. Documents are not
answered. Signs and units are those of the wire; see docs/telemetry.md.

On the wire:

One JSON object per datagram (UDP, port 5555), or per message on a topic. There are no acknowledgements.

| document | field | unit, range | |
| --- | --- | --- | --- |
| telemetry of the drone, about 25 per second | `imu.orientation.roll`, `.pitch`, `.yaw` | rad | |
| | `imu.angular_velocity.x`, `.y`, `.z` | rad/s | |
| | `imu.linear_acceleration.x`, `.y`, `.z` | m/s² | may be missing |
| | `altimeter.altitude`, `.vertical_velocity` | m, m/s | |
| | `velocity.x`, `.y`, `.z` | m/s | |
| | `landing_pad.relative_x`, `.relative_y`, `.distance`, `.confidence` | m, m, m, 0 … 1 | `landing_pad` is null when no pad is seen |
| | `camera.width`, `.height` | pixels | |
| | `camera.fov` | degrees, horizontal, 1 … 179 | may be missing |
| | `camera.image` | base64 of a JPEG | null in four of five documents |
| | `landed` | `true`, `false` | may be missing |
| | `timestamp` | s, from 0 on | may be missing |
| telemetry of the rover | `position.x`, `.y`, `.z` | m | |
| | `velocity.x`, `.y`, `.z` | m/s | |
| | `pattern` | text of at most 64 letters | |
| | `timestamp` | s | may be missing |
| command | `thrust` | -1 … 1 | all four are needed |
| | `pitch`, `roll`, `yaw` | -0.5 … 0.5 | |

What may be missing may also be null. Fields that are not listed are ignored. A number beyond ±10⁶ cannot be a
measurement, and is refused.

```json
{"thrust":0.5,"pitch":0.1,"roll":-0.2,"yaw":0.0}
```
"""  # noqa: E501 -- tables

from drone_bridge.telemetry.codec.connections import (
    DEFAULT_PORT,
    RESTART_S,
    ControllerConnection,
    DroneConnection,
    LateTelemetry,
    RoverConnection,
    Sender,
)
from drone_bridge.telemetry.codec.documents import Document
from drone_bridge.telemetry.codec.messages import (
    MAX_FOV,
    MAX_MAGNITUDE,
    MAX_PATTERN_LETTERS,
    MAX_THRUST,
    MAX_TILT,
    MAX_TIMESTAMP_S,
    MIN_FOV,
    Altimeter,
    Camera,
    DroneCommand,
    DroneTelemetry,
    Imu,
    LandingPad,
    Limits,
    Orientation,
    RoverTelemetry,
    Vector,
)
from drone_bridge.wire.events import NEED_DATA

__all__ = [
    "DEFAULT_PORT",
    "MAX_FOV",
    "MAX_MAGNITUDE",
    "MAX_PATTERN_LETTERS",
    "MAX_THRUST",
    "MAX_TILT",
    "MAX_TIMESTAMP_S",
    "MIN_FOV",
    "NEED_DATA",
    "RESTART_S",
    "Altimeter",
    "Camera",
    "ControllerConnection",
    "Document",
    "DroneCommand",
    "DroneConnection",
    "DroneTelemetry",
    "Imu",
    "LandingPad",
    "LateTelemetry",
    "Limits",
    "Orientation",
    "RoverConnection",
    "RoverTelemetry",
    "Sender",
    "Vector",
]
