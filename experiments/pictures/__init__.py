"""Pictures of a run: one file per picture, each a matplotlib figure made without global state."""
