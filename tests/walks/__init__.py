"""Random schemas of rare combinations of keywords, followed over masks to the end; see :mod:`tests.walks.walk`."""
