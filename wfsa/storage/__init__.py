"""Files: one way of writing a file whole, and one way of writing arrays into it.

    atomic_write     a file appears whole or not at all
    array_file       arrays and a JSON head, with checksums of both; every format is one
    regular_file     opening what must be a regular file
    places           where files lie: a folder, or a URL of fsspec
    ray_cluster      the way to a Ray cluster, on which several packages work

Each format is next to the class that it holds: `wfsa/constraint_file.py`, `wfsa/texts/text_file.py`,
`wfsa/vocab/vocab_file.py`, `wfsa/items/index_file.py`, `filter_file.py` and `shard_file.py`.
"""
