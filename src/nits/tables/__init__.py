"""From a user's table to numbers and back, and `NITSDensity`, which learns the table's density.

files ↔ frames ↔ columns ↔ numbers. Imports `nits.model` and `nits.training`; the command line
imports it.
"""
