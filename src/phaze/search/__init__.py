"""Search: the space of chips, bounds over all of it, and the best with a certificate."""
