"""Attacks with seeds: hostile tables, values and files, signals, full disks, many at once.

`PYTHONPATH=tests python -m campaign tables --cases 1000` counts cases and failures and prints each
failing one as a command that repeats it; `make attack` runs everything for an hour.
"""
