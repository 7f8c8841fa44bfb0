"""Errors and error bars of released histograms on real data, beside those of published algorithms."""
