"""Compiled constraints that processes and machines share: :class:`ConstraintStore`.

Importing this package imports only dependencies of wfsa; opening a store at a URL needs the extra ``store``.
"""

from wfsa.fleet.store.remote import RemoteFailure
from wfsa.fleet.store.stats import StoreStats
from wfsa.fleet.store.store import ConstraintStore

__all__ = ["ConstraintStore", "RemoteFailure", "StoreStats"]
