"""The ICML 2024 paper reproduced."""
