# SPDX-License-Identifier: Apache-2.0
"""Finding things in images, without ROS."""
