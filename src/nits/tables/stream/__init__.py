"""Tables beyond memory: folders of files, read piece by piece.

`source` opens them, `tallies` and `scan` see what their columns are in one pass, `decide` decides
it, `fitting` trains from pieces that are read again and again.
"""
