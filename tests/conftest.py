from hypothesis import settings

# Heavy imports happen on first use, so the first example of a test may be slow without anything being wrong.
settings.register_profile("noisette", deadline=None)
settings.load_profile("noisette")
