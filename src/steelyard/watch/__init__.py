"""Live monitoring of a robot: contact, payload, health of the drives, and validity of the model."""
