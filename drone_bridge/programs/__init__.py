# SPDX-License-Identifier: Apache-2.0
"""What emulators and operators share: options, signals, output, exit status. No ROS."""
