"""Many motions at once, side by side on a GPU: the first round of a search from hundreds of starts."""
