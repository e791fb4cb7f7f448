"""Studies: a paper's experiments as data, run, measured, tested against its claims and drawn.

A study is a folder: `study.toml` (what is run, measured, drawn and claimed), `scenarios/*.toml`,
`paper.csv` (the paper's numbers), optionally `reference.csv` (others' numbers for the same set-up),
`README.md`. The format is documented in `docs/studies.md`.

How the modules work together: `folders` finds a study, `definition` reads it, `plan` expands its
grids into runs, `execute` simulates the missing ones, `measure` turns runs into numbers, `cells`
and `claims` turn these into means, intervals and verdicts (with `stats`), `figures` and `report`
into pictures and a page; `command` is the command line, and `listing` its `study list`.
"""
