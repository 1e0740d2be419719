"""Fuzzers: whatever comes in, only the project's own errors come out, and the process lives."""
