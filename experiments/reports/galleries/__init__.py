"""Which figures a page shows, each with its caption; how they are drawn is in `pictures`."""
