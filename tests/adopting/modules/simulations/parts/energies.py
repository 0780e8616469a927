"""Energies; the constants are imported when they are needed."""


def kinetic(bodies):
    import importlib

    from . import constants

    half = importlib.import_module(constants.__name__).HALF
    return half * float((bodies.mass * bodies.vel**2).sum())
