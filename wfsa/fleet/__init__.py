"""Many servers that compile each schema once.

    store    compiled constraints that processes and machines share
    farm     thousands of schemas, compiled into a store by many processes or a cluster
    metrics  Prometheus metrics of a server
"""
