"""Files: one way of writing a file whole, and one way of writing arrays into it.

    atomic_write     a file appears whole or not at all
    array_file       arrays and a JSON head, with checksums of both; every format is one
    regular_file     opening what must be a regular file
    item_index_file  an index of semantic ids
    item_filter_file a set of its live items
    item_shard_file  a catalogue of semantic ids in several files
    places           where files lie: a folder, or a URL of fsspec
    ray_cluster      the way to a Ray cluster, on which several packages work

Each format is next to the class that it holds: `wfsa/constraint_file.py`, `wfsa/texts/text_file.py`,
`wfsa/vocab/vocab_file.py`.
"""
