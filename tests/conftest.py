"""Settings that every test shares: how many random examples Hypothesis tries.

``make test`` uses the profile ``default`` (a few hundred examples a property in all), ``make nightly`` thousands.
There is no deadline: the machine is shared, and a time is a bench's business.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

_SLOW_IS_FINE = [HealthCheck.too_slow, HealthCheck.data_too_large]

settings.register_profile("default", max_examples=150, deadline=None, suppress_health_check=_SLOW_IS_FINE)
settings.register_profile("nightly", max_examples=5000, deadline=None, suppress_health_check=_SLOW_IS_FINE)
settings.load_profile("default")
