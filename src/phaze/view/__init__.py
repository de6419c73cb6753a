"""A local page over all runs of a folder: ``phaze view``. It reads and never writes."""
