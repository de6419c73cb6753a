"""Published runs of real clusters beside ours: rows, predictions, statistics."""
