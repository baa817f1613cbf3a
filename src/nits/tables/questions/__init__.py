"""Questions to a table's joint model: any columns given, any asked, the rest left out.

`conditions` says what can be given, `parser` reads it from text, `events` turns it into parts of a
column's distribution, `particles` walks the model under them, and `answer` is what users hold.
"""
