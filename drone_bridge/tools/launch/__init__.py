# SPDX-License-Identifier: Apache-2.0
"""Runner of XML launch files, for systems on which launch_ros cannot be installed.

Launch files have the same format and meaning as for `ros2 launch`. `parse` checks the tags, `substitutions` performs
$(...), `parameters` converts values to types, `evaluate` converts a file and its arguments to processes, and
`processes` starts, monitors and stops them. A file is evaluated completely before the first process starts, so that all
errors are reported, with file and line, while there is nothing to stop.

Intended differences from `ros2 launch`:

- an unknown tag, attribute, substitution or launch argument is refused, never ignored;
- a missing parameter file or executable is refused before the start;
- quotes in a command line may enclose a substitution, and white space alone is no argument;
- there are no log files: all output goes to the screen, regardless of `output`;
- processes are stopped one after the other, in reverse order of their start;
- the exit status reports the outcome (see `processes`).

It supports the features that our own launch files use. `ros2 launch` supports all of them since Humble.
"""
