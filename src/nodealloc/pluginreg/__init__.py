"""Which plugins are alive: socket discovery and registration."""
