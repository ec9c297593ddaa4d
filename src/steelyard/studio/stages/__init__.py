"""The stages of the studio, one file each."""
