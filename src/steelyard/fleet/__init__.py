"""Fleets: identifies many robots from many logs. Each log is reduced once to small factors; all results use these."""
