# SPDX-License-Identifier: Apache-2.0
"""Hold of a vehicle, its file, and wishes of programs that hold several."""
