"""Attacks with a seed: every case can be repeated alone."""
