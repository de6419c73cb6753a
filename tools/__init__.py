"""What maintainers run; no part of the package, which imports nothing of it."""
