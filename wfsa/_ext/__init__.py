"""Compiled kernels: C++ behind Cython, arrays in, arrays out. Built from ``ext/`` by ``setup.py``."""
