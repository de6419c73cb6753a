"""Object code of the compiled functions, as it is shipped."""
