"""One file per kind of picture, each a matplotlib figure made without global state.

Which pictures a report shows is decided in the galleries beside this folder.
"""
