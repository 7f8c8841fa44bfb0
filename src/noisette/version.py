"""The version of the package, which records name."""

__all__ = ["__version__"]

__version__ = "0.1.0"
