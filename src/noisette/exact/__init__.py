"""Coins and exact numbers: the only place where randomness enters.

random             the one source of random bits
keyed              coins that follow from a secret key, for tasks that an engine may run twice
number, rational   numbers as people write them, read exactly; enclosures of exp, ln and sqrt
frozen             values that read their fields: frozen dataclasses with converters
samplers           the specification: one exact draw from each law
vector             the same laws for arrays; built on lookup_table, geometric_arrays, gaussian_arrays and integers
bit_arrays         many coins of one probability, packed into words
convolution        exact convolutions of whole numbers
choice, real       an exact choice in proportion to e^-y; exact comparison of Gumbel variables
"""

from noisette.exact import rational, samplers, vector

__all__ = ["rational", "samplers", "vector"]
