"""The step over items in JAX: static shapes, no host reads, so it can stand inside ``jit`` and ``scan``.

    items = JaxItems(index)                                   # copies the arrays once
    beams = items.start(n_requests=2, width=70)
    for level in range(index.n_levels):
        beams = items.beam_step(beams, logits, level=level)   # compiled once a level and shape

Every method is jitted by itself. A JaxItems is a pytree: a jitted function of one's own takes it as an argument,
``jax.jit(lambda items, beams, logits: items.beam_step(beams, logits))``, or its arrays end up in the program. Node ids
are int64 with or without ``jax_enable_x64``. Both: ``wfsa/items/backends/jax_arrays.py``.

**Candidates.** The entries of a request's beams, and one more a beam for the end token or the beam's own end, lie one
after the other as in ``backends/torch.py`` (the static length is ``DeviceLayout.capacity`` and one a beam), by beam and
within it by token. That is the order of the tie rule, and ``lax.top_k`` takes the first of equals: no keys are made.
Everything is written for one request, or one node, and mapped by ``vmap``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from wfsa.installing import needs

with needs("wfsa.items.backends.jax", extra="jax"):
    import jax
    import jax.numpy as jnp

from wfsa.errors import ItemError
from wfsa.items.backends.device_layout import DeviceFilters, NodeFields, Tensor
from wfsa.items.backends.jax_arrays import LayoutPytree, jit_64
from wfsa.items.beams import Beams, Normalise, check_normalise
from wfsa.items.filter import Filters, stack_filters
from wfsa.items.index import ItemIndex
from wfsa.items.nodes import NONE


class _Candidates(NamedTuple):
    """Of one request's M beams; from ``beam`` on by place [C]. ``extra`` marks a beam's closing place."""

    fields: NodeFields
    finished: Tensor  # [M]
    overflow: Tensor  # []
    beam: Tensor
    entry: Tensor
    extra: Tensor
    token: Tensor
    present: Tensor  # is an allowed token


@jax.tree_util.register_pytree_node_class
class JaxItems(LayoutPytree):
    """An ItemIndex on a JAX device (or sharding); a pytree. Nodes are the index's own ids, int64.

    Methods, arguments and results are those of ``TorchItems``, with JAX's arrays (NumPy's are taken, too). Bad shapes
    and dtypes raise ItemError; bad values nothing: a beam with NaN or +inf among the logits that are read has no
    candidates. ``level``, ``width``, ``normalise`` and ``distinct`` are static.
    """

    def __init__(self, index: ItemIndex, device: Any = None) -> None:
        if not isinstance(index, ItemIndex):
            raise ItemError(f"a {type(index).__name__} does not step in JAX: use TorchItems, or merge the catalogue")
        self.device, self.levels, self.root = device, index.levels, index.root
        self.fingerprint = index.fingerprint
        self.n_levels, self.end_token = len(index.levels), index.levels.end_token
        self.unclosed = index.has_prefix_items and self.end_token is None
        self._put(index.layout, device)

    def __repr__(self) -> str:
        return f"JaxItems({self.layout.n_leaves:,} sequences of {self.levels.describe()}, of index {self.fingerprint})"

    # --- arguments ------------------------------------------------------------------------------------------------

    def start(self, n_requests: int, width: int) -> Beams:
        """As ``Beams.start``, on the device."""
        with jax.enable_x64(True):
            return jax.device_put(Beams.start(self, n_requests, width), self.device)  # type: ignore[no-any-return]

    def filters(self, filters: Filters, n_requests: int) -> DeviceFilters | None:
        """Copy one filter for all requests, or one (or None) a request, to the device; equal objects once."""
        stacked = stack_filters(filters, n_requests, self.fingerprint, self.layout.n_leaves)
        if stacked is None:
            return None
        with jax.enable_x64(True):
            which, words, before, rows, dead = jax.device_put(stacked, self.device)
        return DeviceFilters(which, words, before, rows, dead, self.fingerprint)

    def _check(self, nodes: Tensor, logits: Tensor | None = None) -> None:
        if nodes.dtype != jnp.int64:
            raise ItemError(f"nodes are {nodes.dtype}, not int64: outside jax.enable_x64(True) JAX cuts ids to 32 bits")
        want = (*nodes.shape, self.levels.logits_size)
        if logits is not None and (logits.shape != want or not jnp.issubdtype(logits.dtype, jnp.floating)):
            raise ItemError(f"logits are {logits.dtype}{list(logits.shape)}, not floats {list(want)}")

    def _which(self, filters: DeviceFilters | None, shape: tuple[int, ...]) -> Tensor:
        """The filter of each request, for nodes whose first axis is the request; broadcasts to them."""
        if filters is None:
            return jnp.asarray(-1)
        filters.check(self.fingerprint, shape[0] if shape else 1)
        return filters.which.reshape(-1, *[1] * (len(shape) - 1)) if shape else filters.which[0]

    # --- the pieces -----------------------------------------------------------------------------------------------

    def _candidates(
        self, nodes: Tensor, capacity: int, filters: DeviceFilters | None, which: Tensor, closing_first: bool = False
    ) -> _Candidates:
        """Of nodes [M]: their entries and closing places, by beam and token; ``capacity`` is that of the entries."""
        f = self.layout.fields(nodes)
        begin, closing = self.layout.begin[f.level], self.layout.closing(f, filters, which)
        end_token = -1 if closing_first or self.end_token is None else self.end_token
        extra_at = jnp.where(end_token < begin, 0, f.width)  # before or after all codes, never among them
        ends = (f.width + 1).cumsum()
        place = jnp.arange(capacity + len(nodes))
        beam = jnp.searchsorted(ends, place, side="right", method="scan_unrolled").clip(max=len(nodes) - 1)
        nth = place - (ends - f.width - 1)[beam]
        inside, extra = place < ends[-1], nth == extra_at[beam]
        entry = jnp.where(inside & ~extra, nth - (nth > extra_at[beam]), 0)
        g = self.layout.take(f, beam)
        code, exists = self.layout.entry(g, entry)
        exists = self.layout.if_live(exists, filters, which, *self.layout.child(g, entry)[1:])
        present = inside & jnp.where(extra, closing[beam], exists)
        token = jnp.where(extra, -1 if self.end_token is None else self.end_token, code + begin[beam])
        finished = self.layout.if_live(self.layout.finished(f), filters, which, f.low, f.high)
        token = jnp.where(present, token, -1)
        return _Candidates(f, finished, ends[-1] > len(place), beam, entry, inside & extra, token, present)

    def _children(self, c: _Candidates, at: Tensor) -> Tensor:
        """The nodes that the tokens at places ``at`` lead to."""
        g = self.layout.take(c.fields, c.beam[at])
        return jnp.where(c.extra[at], self.layout.closed(g.low), self.layout.child(g, c.entry[at])[0])

    def _present(self, nodes: Tensor, filters: DeviceFilters | None, level: int | None, size: int) -> Tensor:
        """bool[*nodes.shape, size], True at allowed tokens."""
        capacity = self.layout.capacity(level, 1, distinct=False)

        def one(node: Tensor, which: Tensor) -> Tensor:
            c = self._candidates(node[None], capacity, filters, which)
            return jnp.zeros(size + 1, bool).at[jnp.where(c.present, c.token, size)].set(True)[:size]

        return jnp.vectorize(one, signature="(),()->(k)")(nodes, self._which(filters, nodes.shape))

    @jit_64("level")
    def allowed(self, nodes: Tensor, filters: DeviceFilters | None = None, *, level: int | None = None) -> Tensor:
        """Packed masks int32[*nodes.shape, ceil(logits_size / 32)]. ``level``: all nodes have it (None: any)."""
        self._check(nodes)
        n_words = self.levels.n_words
        bits = self._present(nodes, filters, level, n_words * 32).reshape(*nodes.shape, n_words, 32)
        words = (bits.astype(jnp.uint32) << jnp.arange(32, dtype=jnp.uint32)).sum(-1, dtype=jnp.uint32)
        return jax.lax.bitcast_convert_type(words, jnp.int32)

    @jit_64("level")
    def mask_logits(
        self, logits: Tensor, nodes: Tensor, filters: DeviceFilters | None = None, *, level: int | None = None
    ) -> Tensor:
        """``logits[*nodes.shape, V]`` with -inf at what is not allowed."""
        self._check(nodes, logits)
        return jnp.where(self._present(nodes, filters, level, self.levels.logits_size), logits, -jnp.inf)

    @jit_64("level")
    def children(
        self, nodes: Tensor, filters: DeviceFilters | None = None, *, level: int | None = None
    ) -> tuple[Tensor, Tensor]:
        """Of nodes of any shape: tokens int32[..., K] and child nodes int64[..., K], -1 where there is none.

        K is the level's widest node, and one where there is an end token; the end token comes first.
        """
        self._check(nodes)
        capacity = self.layout.capacity(level, 1, distinct=False)

        def one(node: Tensor, which: Tensor) -> tuple[Tensor, Tensor]:
            c = self._candidates(node[None], capacity, filters, which, closing_first=True)
            at = jnp.arange(0 if self.end_token is not None else 1, capacity + 1)
            return c.token[at].astype(jnp.int32), jnp.where(c.present[at], self._children(c, at), NONE)

        one_each = jnp.vectorize(one, signature="(),()->(k),(k)")
        return one_each(nodes, self._which(filters, nodes.shape))  # type: ignore[no-any-return]

    @jit_64()
    def advance(self, nodes: Tensor, tokens: Tensor, filters: DeviceFilters | None = None) -> Tensor:
        """The nodes after one token each; -1 where the token is not allowed."""
        self._check(nodes)
        if tokens.shape != nodes.shape or not jnp.issubdtype(tokens.dtype, jnp.integer):
            raise ItemError(f"tokens are {tokens.dtype}{list(tokens.shape)}, not integers {list(nodes.shape)}")

        return self.layout.advance(nodes, tokens.astype(jnp.int64), filters, self._which(filters, nodes.shape))

    @jit_64()
    def finished(self, nodes: Tensor) -> Tensor:
        """Where an item is complete and nothing can follow; bool of nodes' shape."""
        self._check(nodes)
        return self.layout.finished(self.layout.fields(nodes))

    # --- the step -------------------------------------------------------------------------------------------------

    @jit_64("width", "normalise", "level", "distinct")
    def beam_step(
        self,
        beams: Beams,
        logits: Tensor,
        *,
        width: int | None = None,
        normalise: Normalise = "full",
        filters: DeviceFilters | None = None,
        level: int | None = None,
        distinct: bool = True,
    ) -> Beams:
        """One step as defined in ``wfsa.items.beams``, exact; ``level`` and ``distinct`` as in ``TorchItems``.

        ``sequences`` grows by a step; in the carry of a ``scan`` (with ``level=None``) leave it at ``[B, M, 0]``.
        """
        check_normalise(normalise)
        self._check(beams.nodes, logits)
        if beams.nodes.ndim != 2:
            raise ItemError(f"beams have nodes of shape {list(beams.nodes.shape)}, not [B, M]")
        if self.unclosed:
            raise ItemError("an item is a prefix of another: beam_step needs an index built with an end_token")
        n_requests, n_beams = beams.nodes.shape
        width = n_beams if width is None else width
        if width < 1:
            raise ItemError(f"{width} beams")
        capacity = self.layout.capacity(level, n_beams, distinct)

        def one(beams: Beams, logits: Tensor, which: Tensor) -> Beams:
            nodes = jnp.where(beams.valid, beams.nodes, NONE)
            c = self._candidates(nodes, capacity, filters, which)
            values = jnp.where(c.present, logits[c.beam, c.token.clip(min=0)].astype(jnp.float32), -jnp.inf)
            norm, good = self._norm(logits, c, values, normalise, level)
            stays = c.extra & c.finished[c.beam]
            scores = jnp.where(stays, beams.scores[c.beam], (beams.scores - norm)[c.beam] + values)
            scores = jnp.where((stays | c.present & good[c.beam]) & (scores > -jnp.inf), scores, -jnp.inf)
            scores = jnp.where(scores == 0, 0.0, scores)  # -0.0 would come after 0.0
            scores = jnp.pad(scores, (0, max(width - len(scores), 0)), constant_values=-jnp.inf)
            best, at = jax.lax.top_k(scores, width)
            valid = (best > -jnp.inf) & ~c.overflow
            parent, token = jnp.where(valid, c.beam[at], 0), jnp.where(valid, c.token[at], -1).astype(jnp.int32)
            child = jnp.where(stays[at], nodes[parent], self._children(c, at))
            before = jnp.where(valid[:, None], beams.sequences[parent], -1)
            return Beams(
                jnp.where(valid, child, NONE), jnp.where(valid, best, -jnp.inf), valid, parent.astype(jnp.int32),
                token, jnp.concatenate([before, token[:, None]], 1),
            )  # fmt: skip

        which = jnp.broadcast_to(self._which(filters, (n_requests,)), n_requests)
        return jax.vmap(one)(beams, logits, which)  # type: ignore[no-any-return]

    def _norm(
        self, logits: Tensor, c: _Candidates, values: Tensor, normalise: str, level: int | None
    ) -> tuple[Tensor, Tensor]:
        """float32[M], and whether the beam may have candidates."""
        if normalise in ("full", "level"):
            norm = self._dense_norm(logits, c.fields.level, normalise, level)
            good = jnp.isfinite(norm)
            return jnp.where(good, norm, 0.0), good
        of_beam: Any = {"segment_ids": c.beam, "num_segments": len(logits), "indices_are_sorted": True}
        top = jax.ops.segment_max(jnp.where(jnp.isnan(values), jnp.inf, values), **of_beam)
        good = top < jnp.inf
        if normalise == "none":
            return jnp.zeros_like(top), good
        good &= top > -jnp.inf
        top = jnp.where(good, top, 0.0).astype(jnp.float64)
        # Sums in float64, so that the order in which a device adds does not show in float32.
        total = jax.ops.segment_sum(jnp.exp(values - top[c.beam]), **of_beam)
        return jnp.where(good, top + jnp.log(total), 0.0).astype(jnp.float32), good

    def _dense_norm(self, logits: Tensor, of_beam: Tensor, normalise: str, level: int | None) -> Tensor:
        logits = logits.astype(jnp.float32)
        if normalise == "full":
            return jax.nn.logsumexp(logits, -1)
        end = jnp.full(len(logits), -jnp.inf) if self.end_token is None else logits[:, self.end_token]
        if level is None:
            token, begin = jnp.arange(logits.shape[1]), self.layout.begin[of_beam][:, None]
            inside = (token >= begin) & (token < begin + self.layout.sizes[of_beam][:, None])
            part = jnp.where(inside, logits, -jnp.inf)
        elif level < self.n_levels:
            begin, size = self.levels.offsets[level], self.levels.sizes[level]
            part = logits[:, begin : begin + size]
        else:
            return end
        return jnp.logaddexp(jax.nn.logsumexp(part, -1), end)
