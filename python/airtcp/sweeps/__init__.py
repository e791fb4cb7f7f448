"""Sweeps: one scenario over a grid of settings and seeds, as a table.

`sweep` runs the grid and makes the table, `plot` draws it, `command` is the command line. Runs are
kept and repeated as those of studies are (`airtcp.study.execute`).
"""
