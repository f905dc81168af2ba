# SPDX-License-Identifier: Apache-2.0
"""An agent with ros-mcp's tools, by a script in place of a model: agent.py SETTINGS. It flies until it is held."""

import asyncio
import json
import sys
from pathlib import Path

from fastmcp import Client


async def main(settings):
    async with Client(settings) as agent:

        async def use(tool, **arguments):
            used = await agent.call_tool(tool, arguments)
            print(tool, *(getattr(each, "text", f"<{each.type}>") for each in used.content), flush=True)

        async def send(action, kind, **goal):
            kind = f"drone_bridge/action/{kind}"
            await use("send_action_goal", action_name=action, action_type=kind, goal=goal, timeout=120.0)

        def ahead(x):
            return {"pose": {"position": {"x": x, "z": 1.5}, "orientation": {"w": 0.0}}}

        await use("connect_to_robot", ip="127.0.0.1", port=8765)
        await use("get_topics")
        picture = {"topic": "/camera/image_raw/compressed", "msg_type": "sensor_msgs/msg/CompressedImage"}
        await use("subscribe_once", expects_image="true", timeout=60.0, **picture)
        await send("/take_off", "TakeOff", height=1.5)
        await send("/go_to", "GoTo", pose=ahead(1.0))
        print("at 1 m", flush=True)
        await send("/go_to", "GoTo", pose=ahead(30.0))
        hold = {"service_name": "/telemetry_bridge/hold", "service_type": "std_srvs/srv/SetBool"}
        await use("call_service", request={"data": False}, **hold)
        await send("/land", "Land", anything="")


asyncio.run(main(json.loads(Path(sys.argv[1]).read_text())))
