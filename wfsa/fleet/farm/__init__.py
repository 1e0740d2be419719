"""Thousands of schemas and several vocabularies, compiled into a store by many processes or a cluster.

    sources       what there is to compile: folders, files, lines of JSON
    batches       which of it is missing in the store, and in what portions it goes to workers
    worker        compiles a portion, where it is sent to
    memory_limit  and what it may take there
    processes     workers of this machine (pebble)
    on_ray        workers of a cluster (Ray)
    run           all of it: :func:`compile_all`
"""

from wfsa.fleet.farm.run import FarmReport, compile_all
from wfsa.fleet.farm.sources import Source, read_sources
from wfsa.fleet.farm.worker import Outcome

__all__ = ["FarmReport", "Outcome", "Source", "compile_all", "read_sources"]
