"""A campaign of odd inputs against every reader; how to run it, what it promises: docs/reliability.md."""
