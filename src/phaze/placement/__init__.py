"""Placement: how the layers of a model are split over many devices, and the proof that no split is faster."""
