"""Slow, obviously correct twins of the engine's parts: what the property tests hold the engine against.

They share nothing with the engine but the IR.  Each says one definition, in the plainest way known to its author:

    regular_words   a terminal's words: a table per byte, by the textbook
    regular         the same by Brzozowski's derivatives, written independently
    earley          policy "cfg": the text is one flat context-free sentence
    longest         policy "longest": every cut judged by its definition
    mask            the mask, by trying every token
    derivation      all short sentences by naive derivation, which judges the oracles themselves
"""
