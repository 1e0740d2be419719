"""Files: one way of writing a file whole, one way of writing arrays into it, and a module for each format.

    atomic_write     a file appears whole or not at all
    array_file       arrays and a JSON head, with checksums of both; every format below is one
    constraint_file  the tables of a compiled grammar or schema
    text_file        a closed set of texts
    item_index_file  an index of semantic ids
    item_filter_file a set of its live items
    item_shard_file  a catalogue of semantic ids in several files
    vocab_file       a vocabulary
    places           where files lie: a folder, or a URL of fsspec
    ray_cluster      the way to a Ray cluster, on which several packages work

Nothing here knows what is done with what it reads: a format gives arrays and names, and the classes that hold them
(:class:`wfsa.Constraint` and its kinds, :class:`wfsa.items.ItemIndex`) call it.
"""
