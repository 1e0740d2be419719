"""Decoding methods on models: DISC, NEZHA, beam search on a trie."""
