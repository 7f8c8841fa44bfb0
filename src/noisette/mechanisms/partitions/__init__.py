"""Partition selection: which groups may be released when their keys are not known in advance."""
