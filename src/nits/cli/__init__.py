"""The command line: `main` parses, `commands` has a module per verb, `plots` the pictures. Nothing imports it."""
