"""Sweeps along one value of a study."""
