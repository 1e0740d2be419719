"""Workers of a Ray cluster: vocabularies lie in its object store once, and what a lost worker had is done again by Ray.

The cluster's machines need wfsa with the extras ``store`` and ``ray``, and a store that all of them reach.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator, Sequence
from typing import Any, Final

from wfsa.errors import WfsaError
from wfsa.farm.batches import Portion
from wfsa.farm.worker import Outcome, Settings, compile_portion
from wfsa.storage.places import Place
from wfsa.vocab import Vocab

_RETRIES: Final = 3  # of a portion whose worker was lost
_kept: dict[Any, Any] = {}  # in a worker: vocabularies and the store, from one portion to the next


def run_on_ray(
    portions: Sequence[Portion], vocabs: list[Vocab], names: list[str], settings: Settings, address: str,
    memory: int,
) -> Iterator[list[Outcome]]:  # fmt: skip
    """The outcomes of each portion, as they come.

    `address` is what ``ray.init`` takes ("auto", "local", "ray://…", "host:port"); `memory` bytes are reserved for each
    worker.  Raises WfsaError where Ray is missing, ConnectionError where no cluster answers.
    """
    try:
        import ray
    except ImportError:
        raise WfsaError("compiling on a cluster needs Ray: pip install 'wfsa[ray]'") from None
    began = not ray.is_initialized()
    if began:
        ray.init(address=address, log_to_driver=False, logging_level="warning")
    try:
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
                except ray.exceptions.WorkerCrashedError as error:
                    yield from _one_by_one(portion, waiting, names, error)
                except ray.exceptions.OutOfMemoryError as error:
                    yield from _one_by_one(portion, waiting, names, error)
    finally:
        if began:
            ray.shutdown()


def _one_by_one(
    portion: Portion, waiting: collections.deque[Portion], names: list[str], error: Exception
) -> Iterator[list[Outcome]]:
    """Of a portion that ended its workers: each task by itself, and those that do it again have failed."""
    if portion.alone:
        reason = f"the process that compiled it ended: {str(error).splitlines()[0]}"
        yield [Outcome(task.source.place, names[portion.vocab], "failed", reason) for task in portion.tasks]
    else:
        waiting.extend(Portion(portion.vocab, [task], alone=True) for task in portion.tasks)


def _work(stored: list[Any], portion: Portion, name: str, settings: Settings) -> list[Outcome]:
    """In a worker."""
    import ray

    vocab = _kept.get(stored[0].hex())
    if vocab is None:
        vocab = _kept[stored[0].hex()] = ray.get(stored[0])
    store = _kept.get(settings.url)
    if store is None:
        store = _kept[settings.url] = Place.of(settings.url, settings.url_options)
    return compile_portion(portion.tasks, vocab, name, settings, store)
