# SPDX-License-Identifier: Apache-2.0
"""What a tracked robot answers its drivers: who may drive what, what they are told, and what stops the motors."""
