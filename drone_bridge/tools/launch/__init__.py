# SPDX-License-Identifier: Apache-2.0
"""Run XML launch files where launch_ros cannot be installed.

The files are those of `ros2 launch`, and mean the same here: `parse` knows the tags, `substitutions` the $(...),
`parameters` how a value gets its type, `evaluate` turns a file and its arguments into processes, and `processes`
starts, watches and stops them. All of a file is evaluated before anything starts, so that whatever is wrong with
it is refused, by file and line, while there is nothing to stop yet.

Where this differs from `ros2 launch`, on purpose:

- a tag, attribute, substitution or launch argument that is not known is refused, never ignored;
- a parameter file or executable that does not exist is refused before the start;
- quotes in a command line may enclose a substitution, and white space alone is no argument;
- there are no log files, so all output goes to the screen, whatever `output` says;
- processes are stopped one after the other, the last one started first;
- the exit status tells how it went (see `processes`).

What is supported is what our own launch files use, and known to `ros2 launch` from Humble on.
"""
