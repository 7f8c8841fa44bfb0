"""Noisette side by side with NumPy and with other privacy libraries, in one process; see README.md."""
