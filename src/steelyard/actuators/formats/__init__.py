"""Files that simulators read, written from a drive; one format a file."""
