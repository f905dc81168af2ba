# SPDX-License-Identifier: Apache-2.0
"""What a client of an AR.Drone says when. Pure."""
