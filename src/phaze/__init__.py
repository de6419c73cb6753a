"""phaze: the AI accelerator and the way training runs on many of them, searched together, with a proof."""

__version__ = "0.1.0"

__all__ = ["__version__"]
