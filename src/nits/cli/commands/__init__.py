"""One module per verb of the command line, imported when the verb is used."""
