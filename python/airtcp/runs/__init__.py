"""Running many simulations: what sweeps and studies have in common.

How the modules work together: a `job` is one run; `execute` does the jobs whose results are not
kept yet, in threads, or on a `cluster`; `testbed` measures some jobs on real hosts; `progress` and
`command` are what the commands show and how they end.
"""
