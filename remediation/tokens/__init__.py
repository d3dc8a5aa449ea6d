"""Token counting without a network: families, vocabularies, counters, calibration and the size of a request."""
