"""Bundled graphs: every named model and family traced anew."""
