"""Rivals side by side, on one machine, in one run: ``python -m benches --help``.

A number for one engine alone says little, and one against a rival says nothing if the two answer different questions.
So every program here takes the same path::

    recorded data ──► jobs (source, token ids, expected verdicts)      schemas/sample.py  grammars/cases.py  ──► jobs.py
                        │  one subprocess for each engine
                        ▼
                      worker.py  (adapters in engines/)  ◄── supervisor.py (deadlines, crashes)
                        │  one JSON line for each event
                        ▼
                      measurements.py ──► targets.py, markdown.py ──► results/*.md, results/*.jsonl

Rules that hold in all of them:

- Verdicts come before times: a table of times stands under the table that says which instances were judged rightly.
- A time is `time.perf_counter_ns` around one call from Python into the engine, with nothing of ours between the two
  readings; the garbage collector is off; one pass, nothing repeated, so the first use of anything is in the numbers.
  What the collector costs a server is counted by itself, over the whole way to a first mask (first_mask.py).
- Ratios are taken over the jobs that both engines compiled, never over two different sets.
- Peak memory is that of the engine's own process (VmHWM; `ru_maxrss` would inherit the parent's).
- Nothing here fails on a time. A target that is missed is printed as missed.
"""
