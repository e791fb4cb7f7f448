"""Sweeps: one scenario over a grid of settings and seeds, as a table.

`sweep` runs the grid and makes the table, `files` writes it, `plot` draws it with the words of
`labels`, `command` is the command line. Runs are kept and repeated as `airtcp.runs` does it.
"""
