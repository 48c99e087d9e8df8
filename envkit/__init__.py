"""envkit takes a bare machine to a proven PyTorch environment."""

__version__ = "0.1.0"
