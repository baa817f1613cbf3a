"""The explorer in the browser: a model's columns under conditions that one sets by hand.

`session` answers in plain dataclasses, `routes` and `guard` are the web's side of it, `server`
listens on this machine only, and `page/` is what the browser runs.
"""
