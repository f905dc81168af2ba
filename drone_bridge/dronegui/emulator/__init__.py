# SPDX-License-Identifier: Apache-2.0
"""A drone behind its control GUI: the vehicle's side of the protocol."""
