"""Drawings of a report's sections: small SVG pictures in the colours of the page.

They are written by hand, since they then follow light and dark, have the page's font, and take a
few kilobytes each.
"""
