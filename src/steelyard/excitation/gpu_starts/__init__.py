"""The first round of a search with hundreds of motions in parallel on a GPU."""
