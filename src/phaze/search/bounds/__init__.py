"""Lower bounds on batch time for all chips of a space at once: chains of equal blocks, graphs of
any shape, shapes of a cluster. Internal: :mod:`phaze.search.bounds.model_bounds` is the way in."""
