"""From PyTorch modules to operator graphs; the only folder that imports torch and transformers."""
