# SPDX-License-Identifier: Apache-2.0
"""CommandParser: command line of the `drone-bridge` command or of a subcommand, whose help ends with an example."""

import argparse

#: An example for each command that has a help text.
EXAMPLES = (
    *("emulate robot", "operate robot", "launch robot emulate:=true view:=true", "demo landing", "info my_bag"),
    *("record my_bag --topics /odom /cmd_vel", "play my_bag --rate 2", "report my_bag", "resume /drone"),
    *("recover broken.mcap whole.mcap", "run robot_bridge --ros-args -p port:=9000", "node list"),
    *("topic echo /odom", "topic list -t", "topic info /odom -v", "topic hz /odom", "view my_bag", "hold /drone"),
    *(
        "topic pub /cmd_vel geometry_msgs/msg/Twist '{linear: {x: 0.2}}'",
        "check robot",
        "picture pad.jpg",
        "new my_robot --serial",
    ),
    *(
        "service call /dronegui_bridge/land std_srvs/srv/Trigger",
        "service list -t",
        "wire show my_log.mcap",
        "wire keep my_log.mcap my_tello",
        "doctor",
    ),
    *("param list /robot_bridge", "param get /robot_bridge port", "param set /robot_bridge command_timeout 0.5"),
)
#: Formatter of help texts whose description is not wrapped.
AS_WRITTEN = argparse.RawDescriptionHelpFormatter


class CommandParser(argparse.ArgumentParser):
    """Command line of a command. Its `prog` begins with drone-bridge."""

    def format_help(self) -> str:
        """Return the help, with the first example of the command at its end."""
        (_, *command) = self.prog.split()
        example = next(each for each in EXAMPLES if each.split()[: len(command)] == command)
        return f"{super().format_help()}\nexample: drone-bridge {example}\n"
