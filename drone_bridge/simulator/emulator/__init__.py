# SPDX-License-Identifier: Apache-2.0
"""The simulator's side of its protocol: a world with rigid bodies, served to several clients."""
