"""Kernels of the item step. One program a beam finds its candidates, one a request takes the best of them.

    candidates   grid B·M   log-sum-exp, ragged scan of the node's entries, the beam's best K keys
    select       grid B     the best of the request's M·K keys, their nodes, scores and sequences
    scan         grid n     logits or bits of the allowed tokens of n nodes
    advance      grid n/BLOCK   the node after a token, by binary search

A loop runs as long as its own node needs: a hub costs the program that has it, and no other beam. K is the width
of the next beams, rounded up to a power of two; of one beam no more than K candidates can be chosen, so the result is
exact. Keys are those of backends/torch.py (score above beam and token), different from each other, so the tie rule
holds whatever the order of the programs.

Functions without a grid are elementwise: they work for one node in a scalar and for many in a block alike. Arguments
named ``*_ptr`` are the arrays of device_layout.py; a missing one is replaced by any other and never read.
``meta``: int64[4, L + 2], rows slot_offset, sizes, first token, end of states (csr), for level 0 .. L + 1.

A request's filter: ``filter_row`` is where its words begin, below 0 where all leaves are live; it excludes the leaves
``dead_ptr[dead_begin .. dead_end] - dead_key``. FILTER: 0 none, 1 words alone, 2 words and excluded leaves.
"""

# Triton's language is not typed, and its functions are not Python's.
# mypy: ignore-errors

from __future__ import annotations

from wfsa.installing import needs

with needs("wfsa.items.backends.triton_kernels", extra="items"):
    import triton
    import triton.language as tl


NO_KEY = tl.constexpr(-(1 << 63))
ENDED = tl.constexpr(31)
ENDED_LEAF = tl.constexpr((31 << 50) | (1 << 40))
VALUE_MASK = tl.constexpr((1 << 40) - 1)
RANK_MASK = tl.constexpr(0x7FFFFFFF)
NEGATIVE = tl.constexpr(float("-inf"))
POSITIVE = tl.constexpr(float("inf"))
SMALL, HEAD, LIST, NOTHING = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2), tl.constexpr(3)


@triton.jit
def popcount(words):
    """Set bits of the low 32 bits of int64."""
    x = words & 0xFFFFFFFF
    x = x - ((x >> 1) & 0x55555555)
    x = (x & 0x33333333) + ((x >> 2) & 0x33333333)
    x = (x + (x >> 4)) & 0x0F0F0F0F
    return ((x * 0x01010101) & 0xFFFFFFFF) >> 24


@triton.jit
def read(ptr, at, mask):
    return tl.load(ptr + at, mask=mask, other=0).to(tl.int64)


@triton.jit
def spread(flag, lanes):
    """A scalar bool as a block. (Triton's interpreter loses the type of a scalar comparison that is broadcast.)"""
    return (flag.to(tl.int32) + lanes * 0) != 0


@triton.jit
def rank_live(filter_words, filter_before, row, leaf, mask):
    """Live leaves before ``leaf``; ``row``: where the filter's words begin."""
    words = read(filter_words, row + (leaf >> 5), mask) & ((1 << (leaf & 31)) - 1)
    return read(filter_before, row + (leaf >> 5), mask) + popcount(words)


@triton.jit
def count_less(dead_ptr, begin, end, key, mask):
    """The first place of ``begin .. end`` (scalars) whose value is not less than ``key``, or ``end``."""
    low, high = begin + key * 0, end + key * 0
    left = end - begin
    while left > 0:
        middle = (low + high) >> 1
        open_ = low < high
        right = open_ & (read(dead_ptr, middle, mask & open_) < key)
        low = tl.where(right, middle + 1, low)
        high = tl.where(open_ & ~right, middle, high)
        left = left >> 1
    return low


@triton.jit
def is_live(filtered, filter_words, filter_before, row, dead_ptr, dead_key, dead_begin, dead_end, low, high, mask,
            FILTER: tl.constexpr):  # fmt: skip
    """Whether a leaf of ``low .. high`` is live, or there is no filter; ``mask``: where it matters."""
    ask = filtered & mask
    if FILTER == 2:
        has_words = row + low * 0 >= 0  # a block's comparison: see ``spread``
        bits = ask & has_words
        n_live = rank_live(filter_words, filter_before, row, high, bits)
        n_live -= rank_live(filter_words, filter_before, row, low, bits)
        first = count_less(dead_ptr, dead_begin, dead_end, dead_key + low, ask)
        n_dead = count_less(dead_ptr, dead_begin, dead_end, dead_key + high, ask) - first
        return ~filtered | (tl.where(has_words, n_live, high - low) > n_dead)
    before_low = rank_live(filter_words, filter_before, row, low, ask)
    return ~filtered | (rank_live(filter_words, filter_before, row, high, ask) > before_low)


@triton.jit
def filter_of(which_ptr, at, mask, filter_stride, rows_ptr, N_LEAVES, FILTER: tl.constexpr):
    """Of each request: whether it has a filter, ``filter_row`` and ``dead_key``."""
    which = tl.load(which_ptr + at, mask=mask, other=-1)
    filtered = which >= 0
    number = tl.where(filtered, which, 0)
    row = number
    if FILTER == 2:
        row = read(rows_ptr, number, filtered)
    return filtered, row * filter_stride, number * (N_LEAVES + 1)


@triton.jit
def state_leaves(states, level, mask, leaf_low_ptr, leaf_high_ptr, meta, N_LEAVES, N_LEVELS: tl.constexpr,
                 HAS_HIGH: tl.constexpr):  # fmt: skip
    low = read(leaf_low_ptr, states, mask)
    if HAS_HIGH:
        return low, read(leaf_high_ptr, states, mask)
    end = read(meta, 3 * (N_LEVELS + 2) + level, mask)
    last = states + 1 == end
    return low, tl.where(last, N_LEAVES, read(leaf_low_ptr, states + 1, mask & ~last))


@triton.jit
def node_fields(node, meta, starts_ptr, lengths_ptr, words_ptr, before_ptr, first_ptr, leaf_low_ptr, leaf_high_ptr,
                N_LEAVES, N_LEVELS: tl.constexpr, DEPTH: tl.constexpr, CSR: tl.constexpr, RAGGED: tl.constexpr,
                HAS_HIGH: tl.constexpr):  # fmt: skip
    """level (L for an ended one), kind, base, width, stop, number, low, high, own, ended: as NodeFields."""
    there = node >= 0
    level = (node >> 50) & 31
    ended = there & (level == ENDED)
    level = tl.where(there & (level < N_LEVELS), level, N_LEVELS)
    count = tl.where(there, (node >> 40) & 1023, 0)
    value = tl.where(there, node & VALUE_MASK, 0)
    leafy = there & (count > 0)
    head = there & ~leafy & (level < DEPTH)
    listed = there & ~leafy & ~head
    slot_offset = read(meta, level, there)
    size = read(meta, N_LEVELS + 2 + level, there)
    number = (value - slot_offset) * size
    head_base = read(meta, level + 1, head) + number
    if CSR:
        state_low, state_high = state_leaves(
            value, level, listed, leaf_low_ptr, leaf_high_ptr, meta, N_LEAVES, N_LEVELS, HAS_HIGH
        )
        low = tl.where(leafy, value, tl.where(head, read(starts_ptr, value, head), state_low))
        high = tl.where(leafy, value + count, tl.where(head, read(starts_ptr, value + 1, head), state_high))
        begin = read(first_ptr, value, listed)
        list_width = read(first_ptr, value + 1, listed) - begin
    else:
        low = tl.where(leafy, value, read(starts_ptr, value, head | listed))
        high = tl.where(leafy, value + count, read(starts_ptr, value + 1, head | listed))
        word = read(words_ptr, value >> 5, listed) & ((1 << (value & 31)) - 1)
        i = read(before_ptr, value >> 5, listed) + popcount(word)
        begin = read(first_ptr, i, listed)
        list_width = read(first_ptr, i + 1, listed) - 1 - begin
    own = level == N_LEVELS
    if RAGGED:
        own = own | (read(lengths_ptr, low, there) == level)
    own = there & own
    skip = tl.where(own & leafy, 1, 0)
    kind = tl.where(leafy, SMALL, tl.where(head, HEAD, tl.where(listed, LIST, NOTHING)))
    base = tl.where(leafy, value + skip, tl.where(head, head_base, begin))
    if CSR:
        leaf_width = tl.where(leafy, 0, 0)
    else:
        leaf_width = count - skip
    width = tl.where(leafy, leaf_width, tl.where(head, size, tl.where(listed, list_width, 0)))
    return level, kind, base, width, value + count, number, low, high, own, ended


@triton.jit
def first_leaf(kind, at, mask, starts_ptr):
    slots = read(starts_ptr, at, mask & (kind != SMALL))
    return tl.where(kind == SMALL, at, slots)


@triton.jit
def code_at(kind, base, column, i, mask, starts_ptr, codes_ptr, CODE_MASK: tl.constexpr, CSR: tl.constexpr):
    """Code of entry i."""
    at = base + i
    if not CSR:
        at = column + first_leaf(kind, at, mask & (kind != HEAD), starts_ptr)
    return tl.where(kind == HEAD, i, read(codes_ptr, at, mask & (kind != HEAD)) & CODE_MASK)


@triton.jit
def entry(kind, base, column, i, mask, starts_ptr, codes_ptr, CODE_MASK: tl.constexpr, CSR: tl.constexpr):
    """Code of entry i, and whether it is a child."""
    at = base + i
    if CSR:
        code = code_at(kind, base, column, i, mask, starts_ptr, codes_ptr, CODE_MASK, CSR)
        filled = read(starts_ptr, at + 1, mask & (kind == HEAD)) > read(starts_ptr, at, mask & (kind == HEAD))
        return code, mask & ((kind != HEAD) | filled)
    low = first_leaf(kind, at, mask, starts_ptr)
    code = tl.where(kind == HEAD, i, read(codes_ptr, column + low, mask & (kind != HEAD)) & CODE_MASK)
    small = mask & (kind == SMALL)
    before = read(codes_ptr, column + low - 1, small & (i > 0)) & CODE_MASK
    filled = read(starts_ptr, at + 1, mask & (kind == HEAD)) > low
    new = tl.where(kind == SMALL, (i == 0) | (before != code), (kind == LIST) | filled)
    return code, mask & new


@triton.jit
def child(kind, level, base, stop, column, number, i, mask, meta, starts_ptr, codes_ptr, head_state_ptr, leaf_low_ptr,
          leaf_high_ptr, N_LEAVES, N_HEAD, N_LEVELS: tl.constexpr, DEPTH: tl.constexpr, SMALL_LIMIT: tl.constexpr,
          SMALL_STEPS: tl.constexpr, CODE_MASK: tl.constexpr, CSR: tl.constexpr, HAS_HIGH: tl.constexpr):  # fmt: skip
    """Id, first leaf and end of leaves of the child at entry i."""
    at = base + i
    below = level + 1
    if CSR:
        head = mask & (kind == HEAD)
        state = tl.where(kind == HEAD, read(head_state_ptr, number + i, head & (below == DEPTH)), N_HEAD + at)
        # Above the head's last level a child is a slot and has no state; its leaves are the head's.
        tail_low, tail_high = state_leaves(
            state, below, mask & (kind == LIST), leaf_low_ptr, leaf_high_ptr, meta, N_LEAVES, N_LEVELS, HAS_HIGH
        )
        low = tl.where(kind == HEAD, read(starts_ptr, at, head), tail_low)
        high = tl.where(kind == HEAD, read(starts_ptr, at + 1, head), tail_high)
        inner = tl.where(below < DEPTH, at, state)
        return (below << 50) | tl.where(below == N_LEVELS, (1 << 40) | low, inner), low, high
    low = first_leaf(kind, at, mask, starts_ptr)
    small = mask & (kind == SMALL)
    code = read(codes_ptr, column + low, small) & CODE_MASK
    begin, end = low, tl.where(kind == SMALL, stop, low)
    for _ in tl.static_range(SMALL_STEPS):
        middle = (begin + end) >> 1
        open_ = begin < end
        right = open_ & ((read(codes_ptr, column + middle, small & open_) & CODE_MASK) <= code)
        begin = tl.where(right, middle + 1, begin)
        end = tl.where(open_ & ~right, middle, end)
    high = tl.where(kind == SMALL, begin, read(starts_ptr, at + 1, mask & (kind != SMALL)))
    size = high - low
    leafy = (size <= SMALL_LIMIT) & (below >= DEPTH)
    return (below << 50) | tl.where(leafy, (size << 40) | low, at), low, high


@triton.jit
def live_children(kind, level, base, stop, column, number, i, present, filtered, filter_words, filter_before,
                  filter_row, dead_ptr, dead_key, dead_begin, dead_end, meta, starts_ptr, codes_ptr, head_state_ptr,
                  leaf_low_ptr, leaf_high_ptr, N_LEAVES, N_HEAD, N_LEVELS: tl.constexpr, DEPTH: tl.constexpr,
                  SMALL_LIMIT: tl.constexpr, SMALL_STEPS: tl.constexpr, CODE_MASK: tl.constexpr, CSR: tl.constexpr,
                  HAS_HIGH: tl.constexpr, FILTER: tl.constexpr):  # fmt: skip
    """Those of the ``present`` entries i whose child has a live leaf below it, or all where there is no filter."""
    _child, low, high = child(
        kind, level, base, stop, column, number, i, present & filtered, meta, starts_ptr, codes_ptr, head_state_ptr,
        leaf_low_ptr, leaf_high_ptr, N_LEAVES, N_HEAD, N_LEVELS, DEPTH, SMALL_LIMIT, SMALL_STEPS, CODE_MASK, CSR,
        HAS_HIGH,
    )  # fmt: skip
    return present & is_live(
        filtered, filter_words, filter_before, filter_row, dead_ptr, dead_key, dead_begin, dead_end, low, high, present,
        FILTER,
    )  # fmt: skip


@triton.jit
def find(kind, base, width, column, code, mask, starts_ptr, codes_ptr, CODE_MASK: tl.constexpr, CSR: tl.constexpr,
         STEPS: tl.constexpr):  # fmt: skip
    """The entry with a code, and whether there is one."""
    low, high = width * 0, width
    for _ in tl.static_range(STEPS):
        middle = (low + high) >> 1
        open_ = mask & (low < high)
        here = code_at(kind, base, column, middle, open_, starts_ptr, codes_ptr, CODE_MASK, CSR)
        right = open_ & (here < code)
        low = tl.where(right, middle + 1, low)
        high = tl.where(open_ & ~right, middle, high)
    found, exists = entry(kind, base, column, low, mask & (low < width), starts_ptr, codes_ptr, CODE_MASK, CSR)
    return low, exists & (found == code)


@triton.jit
def make_keys(scores, rank, present):
    scores = tl.where(scores == 0.0, 0.0, scores)  # -0.0 is 0.0
    bits = scores.to(tl.int32, bitcast=True)
    ordered = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits).to(tl.int64)
    return tl.where(present & (scores > NEGATIVE), (ordered << 32) | (RANK_MASK - rank), NO_KEY)


@triton.jit
def best_of(best, more, K: tl.constexpr, COUNT: tl.constexpr):
    """The K largest of two blocks of K keys, falling. ``best`` falls already."""
    if COUNT:
        # The place of each key is how many are before it; equal ones can only be NO_KEY.
        n = tl.arange(0, K)
        ahead = (best[None, :] > best[:, None]) | ((best[None, :] == best[:, None]) & (n[None, :] < n[:, None]))
        other = more[None, :] > best[:, None]
        place = tl.sum(ahead.to(tl.int32), 1) + tl.sum(other.to(tl.int32), 1)
        more_ahead = (more[None, :] > more[:, None]) | ((more[None, :] == more[:, None]) & (n[None, :] < n[:, None]))
        more_place = tl.sum(more_ahead.to(tl.int32), 1) + tl.sum((best[None, :] >= more[:, None]).to(tl.int32), 1)
        kept = tl.sum(tl.where(place[:, None] == n[None, :], best[:, None], 0), 0)
        return kept + tl.sum(tl.where(more_place[:, None] == n[None, :], more[:, None], 0), 0)
    rising = tl.sort(more)
    return tl.sort(tl.where(rising > best, rising, best), descending=True)


@triton.jit
def last_steps(there, width, own, ended, low, high, filtered, filter_words, filter_before, filter_row, dead_ptr,
               dead_key, dead_begin, dead_end, HAS_END: tl.constexpr, FILTER: tl.constexpr):  # fmt: skip
    """Whether the end token may come, and whether the node is finished; of a live item."""
    closing = there & ~there
    finished = there & (width == 0)
    if HAS_END:
        finished = ended
        closing = own & ~ended
    if FILTER:
        finished = finished & is_live(
            filtered, filter_words, filter_before, filter_row, dead_ptr, dead_key, dead_begin, dead_end, low, high,
            there, FILTER,
        )  # fmt: skip
        closing = closing & is_live(
            filtered, filter_words, filter_before, filter_row, dead_ptr, dead_key, dead_begin, dead_end, low, low + 1,
            closing, FILTER,
        )  # fmt: skip
    return closing, finished


@triton.jit
def fold(top, total, x):
    """Running maximum and sum of exp(x - maximum) of each lane, with one more x. NaN counts as -inf."""
    new = tl.maximum(top, tl.where(x != x, NEGATIVE, x))
    safe = tl.where(new == NEGATIVE, 0.0, new)
    return new, total * tl.exp(top - safe) + tl.exp(x - safe)


@triton.jit
def is_bad(x):
    """1 where a logit is NaN or +inf."""
    return ((x != x) | (x == POSITIVE)).to(tl.int32)


@triton.jit
def dense_norm(logits_ptr, begin, end, wanted, END, WITH_END: tl.constexpr, BLOCK: tl.constexpr):
    """Log-sum-exp of the logits begin .. end, and of the end token's (WITH_END); and whether it is none to use.

    Reads nothing unless ``wanted``.
    """
    wide = tl.arange(0, BLOCK)
    end = tl.where(wanted, end, begin)
    top = tl.full([BLOCK], NEGATIVE, tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    poor = tl.zeros([BLOCK], tl.int32)
    at = begin
    while at < end:
        x = tl.load(logits_ptr + at + wide, mask=at + wide < end, other=NEGATIVE).to(tl.float32)
        poor = poor | is_bad(x)
        top, total = fold(top, total, x)
        at += BLOCK
    if WITH_END:
        one = (wide == 0) & spread(wanted, wide)
        x = tl.load(logits_ptr + END + wide, mask=one, other=NEGATIVE).to(tl.float32)
        poor = poor | is_bad(x)
        top, total = fold(top, total, x)
    most = tl.max(top, 0)
    safe_most = tl.where(most == NEGATIVE, 0.0, most)
    bad = tl.max(poor, 0) | (most == NEGATIVE).to(tl.int32)
    inner = tl.sum(total * tl.exp(top - safe_most), 0)
    return safe_most + tl.log(tl.where(bad == 0, inner, 1.0)), bad


@triton.jit
def entries_norm(logits_ptr, kind, level, base, width, stop, column, number, token_base, filtered, end_value,
                 filter_words, filter_before, filter_row, dead_ptr, dead_key, dead_begin, dead_end, meta, starts_ptr,
                 codes_ptr, head_state_ptr, leaf_low_ptr, leaf_high_ptr, N_LEAVES, N_HEAD, N_LEVELS: tl.constexpr,
                 DEPTH: tl.constexpr, SMALL_LIMIT: tl.constexpr, SMALL_STEPS: tl.constexpr, CODE_MASK: tl.constexpr,
                 CSR: tl.constexpr, HAS_HIGH: tl.constexpr, HAS_END: tl.constexpr, FILTER: tl.constexpr,
                 SUM: tl.constexpr, K: tl.constexpr):  # fmt: skip
    """Log-sum-exp of the logits of a node's children and of ``end_value`` (SUM; else 0), and whether one is bad."""
    lanes = tl.arange(0, K)
    top = tl.full([K], NEGATIVE, tl.float32)
    total = tl.zeros([K], tl.float32)
    poor = tl.zeros([K], tl.int32)
    at = width * 0
    while at < width:
        i = at + lanes
        code, present = entry(kind, base, column, i, i < width, starts_ptr, codes_ptr, CODE_MASK, CSR)
        if FILTER:
            present = live_children(
                kind, level, base, stop, column, number, i, present, filtered, filter_words, filter_before,
                filter_row, dead_ptr, dead_key, dead_begin, dead_end, meta, starts_ptr, codes_ptr, head_state_ptr,
                leaf_low_ptr, leaf_high_ptr, N_LEAVES, N_HEAD, N_LEVELS, DEPTH, SMALL_LIMIT, SMALL_STEPS, CODE_MASK,
                CSR, HAS_HIGH, FILTER,
            )  # fmt: skip
        x = tl.load(logits_ptr + token_base + code, mask=present, other=NEGATIVE).to(tl.float32)
        poor = poor | is_bad(x)
        if SUM:
            top, total = fold(top, total, x)
        at += K
    bad = tl.max(poor, 0)
    if HAS_END:
        bad = bad | is_bad(end_value)
    norm = tl.max(total, 0)  # 0, of the right type
    if SUM:
        most = tl.max(top, 0)
        if HAS_END:
            most = tl.maximum(most, tl.where(end_value != end_value, NEGATIVE, end_value))
        safe_most = tl.where(most == NEGATIVE, 0.0, most)
        bad = bad | (most == NEGATIVE).to(tl.int32)
        inner = tl.sum(total * tl.exp(top - safe_most), 0)
        if HAS_END:
            inner += tl.exp(end_value - safe_most)
        norm = safe_most + tl.log(tl.where(bad == 0, inner, 1.0))
    return norm, bad


@triton.jit
def candidates(nodes_ptr, scores_ptr, valid_ptr, logits_ptr, keys_ptr, which_ptr, filter_words, filter_before,
               filter_stride, rows_ptr, dead_ptr, N_DEAD, meta, starts_ptr, codes_ptr, lengths_ptr, words_ptr,
               before_ptr, first_ptr, head_state_ptr, leaf_low_ptr, leaf_high_ptr, N_BEAMS, V, N_LEAVES, N_HEAD, END,
               N_LEVELS: tl.constexpr, DEPTH: tl.constexpr, SMALL_LIMIT: tl.constexpr, SMALL_STEPS: tl.constexpr,
               CODE_MASK: tl.constexpr, CSR: tl.constexpr, RAGGED: tl.constexpr, HAS_HIGH: tl.constexpr,
               HAS_END: tl.constexpr, FILTER: tl.constexpr, NORM: tl.constexpr, K: tl.constexpr, COUNT: tl.constexpr,
               BLOCK: tl.constexpr):  # fmt: skip
    """The best K keys of each beam, falling where it has more than K; NORM: 0 full, 1 level, 2 valid, 3 none."""
    row = tl.program_id(0).to(tl.int64)
    request, beam = row // N_BEAMS, row % N_BEAMS
    lanes = tl.arange(0, K)
    node = tl.where(tl.load(valid_ptr + row) != 0, tl.load(nodes_ptr + row), -1)
    level, kind, base, width, stop, number, low, high, own, ended = node_fields(
        node, meta, starts_ptr, lengths_ptr, words_ptr, before_ptr, first_ptr, leaf_low_ptr, leaf_high_ptr, N_LEAVES,
        N_LEVELS, DEPTH, CSR, RAGGED, HAS_HIGH,
    )  # fmt: skip
    there = node >= 0
    column = tl.where(level < N_LEVELS, level - DEPTH, 0) * N_LEAVES
    token_base = tl.load(meta + 2 * (N_LEVELS + 2) + level)
    logits_ptr += row * V

    filter_row = row * 0
    dead_key, dead_begin, dead_end = filter_row, filter_row, filter_row
    filtered = node != node
    if FILTER:
        filtered, filter_row, dead_key = filter_of(
            which_ptr, request, node == node, filter_stride, rows_ptr, N_LEAVES, FILTER
        )
    if FILTER == 2:  # those below this node alone: most nodes have none
        dead_end += N_DEAD
        first = count_less(dead_ptr, dead_begin, dead_end, dead_key + low, filtered)
        dead_end = count_less(dead_ptr, dead_begin, dead_end, dead_key + high, filtered)
        dead_begin = first
    closing, finished = last_steps(
        there, width, own, ended, low, high, filtered, filter_words, filter_before, filter_row, dead_ptr,
        dead_key, dead_begin, dead_end, HAS_END, FILTER,
    )  # fmt: skip
    end_value = tl.load(logits_ptr + END, mask=closing, other=NEGATIVE).to(tl.float32)

    kinds, levels, some = kind + lanes * 0, level + lanes * 0, spread(filtered, lanes)
    if NORM < 2:
        begin, end = row * 0, row * 0 + V
        if NORM == 1:
            begin = tl.where(level < N_LEVELS, token_base, 0)
            end = begin + tl.where(level < N_LEVELS, tl.load(meta + N_LEVELS + 2 + level), 0)
        norm, bad = dense_norm(logits_ptr, begin, end, there & ~finished, END, NORM == 1 and HAS_END, BLOCK)
    else:
        norm, bad = entries_norm(
            logits_ptr, kinds, levels, base, width, stop, column, number, token_base, some, end_value, filter_words,
            filter_before, filter_row, dead_ptr, dead_key, dead_begin, dead_end, meta, starts_ptr, codes_ptr,
            head_state_ptr, leaf_low_ptr, leaf_high_ptr, N_LEAVES, N_HEAD, N_LEVELS, DEPTH, SMALL_LIMIT, SMALL_STEPS,
            CODE_MASK, CSR, HAS_HIGH, HAS_END, FILTER, NORM == 2, K,
        )  # fmt: skip
    fine = spread(bad == 0, lanes)

    # The candidates: the entries, and one more for the end token or a finished beam.
    score = tl.load(scores_ptr + row)
    shift = score - norm
    best = tl.full([K], NO_KEY, tl.int64)
    extra = closing | finished
    n = width + extra.to(tl.int64)
    at = width * 0
    while at < n:
        i = at + lanes
        code, present = entry(kinds, base, column, i, i < width, starts_ptr, codes_ptr, CODE_MASK, CSR)
        if FILTER:
            present = live_children(
                kinds, levels, base, stop, column, number, i, present, some, filter_words, filter_before,
                filter_row, dead_ptr, dead_key, dead_begin, dead_end, meta, starts_ptr, codes_ptr, head_state_ptr,
                leaf_low_ptr, leaf_high_ptr, N_LEAVES, N_HEAD, N_LEVELS, DEPTH, SMALL_LIMIT, SMALL_STEPS, CODE_MASK,
                CSR, HAS_HIGH, FILTER,
            )  # fmt: skip
        logit = tl.load(logits_ptr + token_base + code, mask=present, other=NEGATIVE).to(tl.float32)
        token = token_base + code
        value = shift + logit
        present = present & fine
        last = (i == width) & spread(extra, lanes)
        token = tl.where(last, tl.where(finished, -1, END), token)
        value = tl.where(last, tl.where(finished, score, shift + end_value), value)
        present = present | (last & (spread(finished, lanes) | fine))
        more = make_keys(value, beam * (V + 1) + token + 1, present)
        if n <= K:  # fewer than a block: the order does not matter
            best = more
        else:
            if tl.max(more, 0) > tl.min(best, 0):
                best = best_of(best, more, K, COUNT)
        at += K
    tl.store(keys_ptr + row * K + lanes, best)


@triton.jit
def select(keys_ptr, nodes_ptr, sequences_ptr, out_nodes, out_scores, out_valid, out_parents, out_tokens,
           out_sequences, meta, starts_ptr, codes_ptr, lengths_ptr, words_ptr, before_ptr, first_ptr, head_state_ptr,
           leaf_low_ptr, leaf_high_ptr, N_BEAMS, WIDTH, N_STEPS, V, N_LEAVES, N_HEAD, END, N_LEVELS: tl.constexpr,
           DEPTH: tl.constexpr, SMALL_LIMIT: tl.constexpr, SMALL_STEPS: tl.constexpr, CODE_MASK: tl.constexpr,
           CSR: tl.constexpr, RAGGED: tl.constexpr, HAS_HIGH: tl.constexpr, HAS_END: tl.constexpr, K: tl.constexpr,
           COUNT: tl.constexpr, STEPS: tl.constexpr):  # fmt: skip
    """The best WIDTH of a request's N_BEAMS lists of K keys, written as beams."""
    request = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, K)
    best = tl.full([K], NO_KEY, tl.int64)
    keys_ptr += request * N_BEAMS * K
    at = 0
    while at < N_BEAMS:
        more = tl.load(keys_ptr + at * K + lanes)
        if tl.max(more, 0) > tl.min(best, 0):
            best = best_of(best, more, K, COUNT)
        at += 1
    inside = lanes < WIDTH
    valid = inside & (best != NO_KEY)
    rank = RANK_MASK - (best & RANK_MASK)
    parent = tl.where(valid, rank // (V + 1), 0)
    token = tl.where(valid, rank % (V + 1) - 1, -1)
    ordered = (best >> 32).to(tl.int32)
    score = tl.where(ordered < 0, ordered ^ 0x7FFFFFFF, ordered).to(tl.float32, bitcast=True)

    node = tl.load(nodes_ptr + request * N_BEAMS + parent, mask=valid, other=-1)
    level, kind, base, width, stop, number, low, _, _, _ = node_fields(
        node, meta, starts_ptr, lengths_ptr, words_ptr, before_ptr, first_ptr, leaf_low_ptr, leaf_high_ptr, N_LEAVES,
        N_LEVELS, DEPTH, CSR, RAGGED, HAS_HIGH,
    )  # fmt: skip
    column = tl.where(level < N_LEVELS, level - DEPTH, 0) * N_LEAVES
    code = token - tl.load(meta + 2 * (N_LEVELS + 2) + level)
    moves = valid & (token >= 0)
    if HAS_END:
        moves = moves & (token != END)
    i, found = find(kind, base, width, column, code, moves, starts_ptr, codes_ptr, CODE_MASK, CSR, STEPS)
    after, _, _ = child(
        kind, level, base, stop, column, number, i, moves & found, meta, starts_ptr, codes_ptr, head_state_ptr,
        leaf_low_ptr, leaf_high_ptr, N_LEAVES, N_HEAD, N_LEVELS, DEPTH, SMALL_LIMIT, SMALL_STEPS, CODE_MASK, CSR,
        HAS_HIGH,
    )  # fmt: skip
    after = tl.where(moves, after, node)
    if HAS_END:
        after = tl.where(valid & (token == END), ENDED_LEAF | low, after)
    out = request * WIDTH + lanes
    tl.store(out_nodes + out, tl.where(valid, after, -1), mask=inside)
    tl.store(out_scores + out, tl.where(valid, score, NEGATIVE), mask=inside)
    tl.store(out_valid + out, valid.to(tl.int8), mask=inside)
    tl.store(out_parents + out, parent.to(tl.int32), mask=inside)
    tl.store(out_tokens + out, token.to(tl.int32), mask=inside)
    old = (request * N_BEAMS + parent) * N_STEPS
    step = 0
    while step < N_STEPS:
        past = tl.load(sequences_ptr + old + step, mask=valid, other=-1)
        tl.store(out_sequences + out * (N_STEPS + 1) + step, past, mask=inside)
        step += 1
    tl.store(out_sequences + out * (N_STEPS + 1) + N_STEPS, token.to(tl.int32), mask=inside)


@triton.jit
def scan(nodes_ptr, logits_ptr, out_ptr, which_ptr, filter_words, filter_before, filter_stride, rows_ptr, dead_ptr,
         N_DEAD, meta, starts_ptr, codes_ptr, lengths_ptr, words_ptr, before_ptr, first_ptr, head_state_ptr,
         leaf_low_ptr, leaf_high_ptr, V, N_LEAVES, N_HEAD, END, N_LEVELS: tl.constexpr, DEPTH: tl.constexpr,
         SMALL_LIMIT: tl.constexpr, SMALL_STEPS: tl.constexpr, CODE_MASK: tl.constexpr, CSR: tl.constexpr,
         RAGGED: tl.constexpr, HAS_HIGH: tl.constexpr, HAS_END: tl.constexpr, FILTER: tl.constexpr, BITS: tl.constexpr,
         BLOCK: tl.constexpr):  # fmt: skip
    """Of each node's allowed tokens: the bits into ``out`` int32[n, V] (BITS; V words) or the logits into [n, V]."""
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    node = tl.load(nodes_ptr + row)
    level, kind, base, width, stop, number, low, high, own, ended = node_fields(
        node, meta, starts_ptr, lengths_ptr, words_ptr, before_ptr, first_ptr, leaf_low_ptr, leaf_high_ptr, N_LEAVES,
        N_LEVELS, DEPTH, CSR, RAGGED, HAS_HIGH,
    )  # fmt: skip
    column = tl.where(level < N_LEVELS, level - DEPTH, 0) * N_LEAVES
    token_base = tl.load(meta + 2 * (N_LEVELS + 2) + level)
    filter_row = row * 0
    dead_key, dead_begin, dead_end = filter_row, filter_row, filter_row
    filtered = node != node
    if FILTER:
        filtered, filter_row, dead_key = filter_of(
            which_ptr, row, node == node, filter_stride, rows_ptr, N_LEAVES, FILTER
        )
    if FILTER == 2:  # those below this node alone: most nodes have none
        dead_end += N_DEAD
        first = count_less(dead_ptr, dead_begin, dead_end, dead_key + low, filtered)
        dead_end = count_less(dead_ptr, dead_begin, dead_end, dead_key + high, filtered)
        dead_begin = first
    closing = node != node
    if HAS_END:
        closing = own & ~ended
        if FILTER:
            closing = closing & is_live(
                filtered, filter_words, filter_before, filter_row, dead_ptr, dead_key, dead_begin, dead_end, low,
                low + 1, closing, FILTER,
            )  # fmt: skip
    kinds, levels, some = kind + lanes * 0, level + lanes * 0, spread(filtered, lanes)
    n = width + closing.to(tl.int64)
    at = width * 0
    while at < n:
        i = at + lanes
        code, present = entry(kinds, base, column, i, i < width, starts_ptr, codes_ptr, CODE_MASK, CSR)
        if FILTER:
            present = live_children(
                kinds, levels, base, stop, column, number, i, present, some, filter_words, filter_before,
                filter_row, dead_ptr, dead_key, dead_begin, dead_end, meta, starts_ptr, codes_ptr, head_state_ptr,
                leaf_low_ptr, leaf_high_ptr, N_LEAVES, N_HEAD, N_LEVELS, DEPTH, SMALL_LIMIT, SMALL_STEPS, CODE_MASK,
                CSR, HAS_HIGH, FILTER,
            )  # fmt: skip
        last = (i == width) & spread(closing, lanes)
        token = tl.where(last, END, token_base + code)
        present = present | last
        if BITS:
            bit = tl.full([BLOCK], 1, tl.int32) << (token & 31).to(tl.int32)
            tl.atomic_or(out_ptr + row * V + (token >> 5), bit, mask=present)
        else:
            x = tl.load(logits_ptr + row * V + token, mask=present)
            tl.store(out_ptr + row * V + token, x, mask=present)
        at += BLOCK


@triton.jit
def advance(nodes_ptr, tokens_ptr, out_ptr, which_ptr, filter_words, filter_before, filter_stride, rows_ptr, dead_ptr,
            N_DEAD, meta, starts_ptr, codes_ptr, lengths_ptr, words_ptr, before_ptr, first_ptr, head_state_ptr,
            leaf_low_ptr, leaf_high_ptr, N, N_LEAVES, N_HEAD, END, N_LEVELS: tl.constexpr, DEPTH: tl.constexpr,
            SMALL_LIMIT: tl.constexpr, SMALL_STEPS: tl.constexpr, CODE_MASK: tl.constexpr, CSR: tl.constexpr,
            RAGGED: tl.constexpr, HAS_HIGH: tl.constexpr, HAS_END: tl.constexpr, FILTER: tl.constexpr,
            STEPS: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """The node after each token, -1 where it is not allowed."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < N
    node = tl.load(nodes_ptr + at, mask=inside, other=-1)
    token = tl.load(tokens_ptr + at, mask=inside, other=-1).to(tl.int64)
    level, kind, base, width, stop, number, low, _end, own, ended = node_fields(
        node, meta, starts_ptr, lengths_ptr, words_ptr, before_ptr, first_ptr, leaf_low_ptr, leaf_high_ptr, N_LEAVES,
        N_LEVELS, DEPTH, CSR, RAGGED, HAS_HIGH,
    )  # fmt: skip
    column = tl.where(level < N_LEVELS, level - DEPTH, 0) * N_LEAVES
    code = token - tl.load(meta + 2 * (N_LEVELS + 2) + level)
    filter_row = at * 0
    dead_key, dead_begin = filter_row, tl.program_id(0).to(tl.int64) * 0
    dead_end = dead_begin + N_DEAD
    filtered = node != node
    if FILTER:
        filtered, filter_row, dead_key = filter_of(which_ptr, at, inside, filter_stride, rows_ptr, N_LEAVES, FILTER)
    i, found = find(kind, base, width, column, code, inside & (node >= 0), starts_ptr, codes_ptr, CODE_MASK, CSR, STEPS)
    after, child_low, child_high = child(
        kind, level, base, stop, column, number, i, found, meta, starts_ptr, codes_ptr, head_state_ptr, leaf_low_ptr,
        leaf_high_ptr, N_LEAVES, N_HEAD, N_LEVELS, DEPTH, SMALL_LIMIT, SMALL_STEPS, CODE_MASK, CSR, HAS_HIGH,
    )  # fmt: skip
    if FILTER:
        found = found & is_live(
            filtered, filter_words, filter_before, filter_row, dead_ptr, dead_key, dead_begin, dead_end, child_low,
            child_high, found, FILTER,
        )  # fmt: skip
    after = tl.where(found, after, -1)
    if HAS_END:
        closing = own & ~ended & (token == END)
        if FILTER:
            closing = closing & is_live(
                filtered, filter_words, filter_before, filter_row, dead_ptr, dead_key, dead_begin, dead_end, low,
                low + 1, closing, FILTER,
            )  # fmt: skip
        after = tl.where(closing, ENDED_LEAF | low, after)
    tl.store(out_ptr + at, after, mask=inside)
