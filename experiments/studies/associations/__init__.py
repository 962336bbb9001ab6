"""Studies of associations besides the posterior: predictions, new clients, many clusters."""
