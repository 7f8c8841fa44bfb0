"""Privacy-loss distributions: the pairs of laws that dominate mechanisms, and their composition.

loss               the dominating pairs (P, Q) of single mechanisms: randomized response, Laplace, Gaussian, sampled
ranges             pairs whose losses lie within a bounded range: the exponential mechanism, chosen adaptively
lattice_gaussian   discrete Gaussian noise on vectors of whole numbers
discretize         one loss on the multiples of a step
convolve, compose  sums of many losses by FFT, never below the truth
tight              the entry point: the smallest delta(epsilon) and epsilon(delta) known
"""
