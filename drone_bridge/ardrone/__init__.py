# SPDX-License-Identifier: Apache-2.0
"""An AR.Drone 1 or 2 itself: AT commands to the drone, navdata and video back."""
