"""A server's decoding loop: cached constraints, budgets, and drafts that one pass of the model verifies."""

import numpy as np

import wfsa.fleet.store

vocab = wfsa.Vocab([*(bytes([byte]) for byte in range(256)), b'{"', b'": ', b'", "', b'"}', b"</s>"], [], [260])
store = wfsa.fleet.store.ConstraintStore(None, vocab)  # compiles each schema once, for all threads of the server
large = np.random.default_rng(0).normal(size=(261, 261))  # the model: the logits after each token


def draft(state: wfsa.State, last: int, max_tokens: int, n_drafts: int = 4) -> list[int]:
    """Return the last token and the next ones of a cheaper model (rounded logits), under the same constraint."""
    tokens, state = [last], state.fork()
    while len(tokens) <= n_drafts and not state.is_finished():
        mask = state.get_mask(max_tokens=max_tokens - state.n_commits)
        tokens.append(int(np.where(mask.to_bool(), large[tokens[-1]].round(1), -np.inf).argmax()))
        state.commit(tokens[-1])
    return tokens + [-1] * (1 + n_drafts - len(tokens))  # -1: no token after the end


def serve(schemas: list[dict], max_tokens: int) -> list[str]:
    """Write one document per schema, complete within `max_tokens` tokens."""
    states = [store.get(schema, mode="background", max_seconds=5.0).start() for schema in schemas]
    last = dict.fromkeys(states, 0)  # the last token of each sequence, first of its prompt
    while active := [state for state in states if not state.is_finished()]:
        drafts = np.array([draft(state, last[state], max_tokens) for state in active])
        masks = wfsa.allocate_bitmask(drafts.size, vocab)  # one row for each drafted position
        wfsa.fill_draft_chain(active, drafts, masks, max_tokens=[max_tokens - state.n_commits for state in active])
        logits = large[drafts.ravel()]  # one pass of the model over all sequences and their drafts
        wfsa.apply_bitmask_inplace(logits, masks)
        for state, drafted, chosen in zip(active, drafts, logits.argmax(axis=1).reshape(drafts.shape), strict=True):
            n_agreed = int((chosen[:-1] == drafted[1:]).cumprod().sum())
            n = state.commit_tokens(chosen[: n_agreed + 1])  # the drafts that the model agrees with, and its next token
            last[state] = int(chosen[n - 1])
    return [state.output_bytes().decode() for state in states]


print(*serve([{"type": "array", "items": {"type": "integer"}}, {"enum": ["yes", "no"]}], max_tokens=40), sep="\n")
