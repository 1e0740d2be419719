"""Workers of a Ray cluster: vocabularies lie in its object store once, and what a lost worker had is done again by Ray.

The cluster's machines need wfsa with the extras ``store`` and ``ray``, and a store that all of them reach.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator, Sequence
from typing import Any, Final

from wfsa.errors import WfsaError
from wfsa.fleet.farm.batches import Portion
from wfsa.fleet.farm.worker import Outcome, Output, Settings, compile_portion, lost
from wfsa.storage.places import Place
from wfsa.storage.ray_cluster import cluster
from wfsa.vocab import Vocab

_RETRIES: Final = 3  # of a portion whose worker was lost
_kept: dict[str, Any] = {}  # in a worker, from one portion to the next: vocabularies by their references, and the store


def run_on_ray(
    portions: Sequence[Portion], vocabs: list[Vocab], names: list[str], settings: Settings, address: str,
    memory: int,
) -> Iterator[list[Outcome]]:  # fmt: skip
    """The outcomes of each portion, as they come.  What ended its workers is tried again by itself.

    `address` is what ``ray.init`` takes ("auto", "local", "ray://…", "host:port").  `memory` bytes are reserved for
    each worker, by which Ray chooses its machine; what a worker takes is limited in memory_limit.py.
    Raises WfsaError where Ray is missing or no cluster answers, StoreDown.
    """
    output = Output(Place.of(settings.url, settings.url_options))
    with cluster(address) as ray:
        ended = (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError)
        stored = [ray.put(vocab) for vocab in vocabs]
        # In a list, a reference goes to the worker as one, which reads each vocabulary once.
        task = ray.remote(_work).options(max_retries=_RETRIES, memory=memory)
        waiting = collections.deque(portions)
        under_way: dict[Any, Portion] = {}
        while waiting or under_way:
            room = 2 * int(ray.cluster_resources().get("CPU", 1))
            while waiting and len(under_way) < room:
                portion = waiting.popleft()
                under_way[task.remote([stored[portion.vocab]], portion, names[portion.vocab], settings)] = portion
            for done in ray.wait(list(under_way), timeout=1.0)[0]:
                portion = under_way.pop(done)
                try:
                    yield ray.get(done)
                except ended as error:
                    if portion.alone:
                        reason, vocab, name = str(error).splitlines()[0], vocabs[portion.vocab], names[portion.vocab]
                        yield lost(portion.tasks[0], vocab, name, reason, settings, output)
                    else:
                        waiting.extend(portion.one_by_one())
                except ray.exceptions.RayTaskError as error:
                    if isinstance(error.cause, (OSError, WfsaError)):
                        raise error.cause from None  # as it was there, without the worker's traceback
                    raise


def _work(stored: list[Any], portion: Portion, name: str, settings: Settings) -> list[Outcome]:
    """In a worker."""
    import ray

    vocab = _kept.get(stored[0].hex())
    if vocab is None:
        vocab = _kept[stored[0].hex()] = ray.get(stored[0])
    return compile_portion(portion.tasks, vocab, name, settings, _output(settings))


def _output(settings: Settings) -> Output:
    """That of the last portion where it has the same store, since it counts what could not be written."""
    where = settings.url, settings.url_options
    if _kept.get("where") != where:
        _kept.update(where=where, output=Output(Place.of(*where)))
    output: Output = _kept["output"]
    return output
