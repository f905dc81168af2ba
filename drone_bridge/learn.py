# SPDX-License-Identifier: Apache-2.0
"""The emulators as environments of Gymnasium, in this process, without ROS or sockets.

import drone_bridge.learn  # registers them
env = gymnasium.make("drone_bridge/Landing-v0")

Those of other packages' protocols are registered as well, under the names of their emulators.
"""

import gymnasium

from drone_bridge.kind import kinds, load


def register() -> None:
    """Make the environments known to gymnasium.make()."""
    for kind in kinds().values():
        if kind.environment:
            gymnasium.register(
                f"drone_bridge/{kind.emulator.name.title()}-v0",
                entry_point=lambda part=kind.environment, **options: load(part)(**options),
                max_episode_steps=kind.episode_steps,
            )


register()
