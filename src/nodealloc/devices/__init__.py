"""Which devices exactly: inventory, health, allocation."""
