"""Fleets: many logs of many robots, each reduced once to small factors, from which robots, models and faults follow."""
