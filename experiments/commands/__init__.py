"""The commands of `bcfl`, one file for each kind."""
