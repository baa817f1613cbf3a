"""What each verb of the command line does; imported when it is used."""
