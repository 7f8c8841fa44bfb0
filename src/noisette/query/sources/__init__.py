"""Engines that compute exact measures of described tables."""
