"""Plants that are not Stribeck's own friction law, their sensors, controllers and rival compensations."""
