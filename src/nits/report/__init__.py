"""A report on a model: one HTML file that shows how far it can be trusted, and why.

Each section has a module that computes plain data, and a drawing in `charts`; `page` joins them.
"""
