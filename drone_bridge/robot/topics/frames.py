# SPDX-License-Identifier: Apache-2.0
"""The robot protocol's units."""


# The robot protocol counts in whole thousandths and hundredths.


def volts_from_millivolts(millivolts: int) -> float:
    """Return a voltage in V."""
    return millivolts / 1000


def millivolts_from_volts(volts: float) -> int:
    """Return a finite voltage as it is on the wire."""
    return round(volts * 1000)


def amperes_from_milliamperes(milliamperes: int) -> float:
    """Return a current in A."""
    return milliamperes / 1000


def milliamperes_from_amperes(amperes: float) -> int:
    """Return a finite current as it is on the wire."""
    return round(amperes * 1000)


def celsius_from_hundredths(hundredths: int) -> float:
    """Return a temperature in degrees Celsius."""
    return hundredths / 100


def hundredths_from_celsius(celsius: float) -> int:
    """Return a finite temperature as it is on the wire."""
    return round(celsius * 100)
