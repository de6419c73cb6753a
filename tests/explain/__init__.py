"""Explanations of a finished search."""
