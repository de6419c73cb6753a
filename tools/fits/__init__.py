"""Bundled constants fitted anew on measured rows: operators, stacks, and the error bands of
answers."""
