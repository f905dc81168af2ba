# SPDX-License-Identifier: Apache-2.0
"""State machines of the landing challenge's protocol, for the controller and the drone."""
