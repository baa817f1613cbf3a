"""The command line: `main` parses, `commands` has a module per verb, `plots` draws figures.

Nothing imports this package.
"""
