"""The ground floor: arrays, scalars, files, documents. It knows nothing of robots."""
