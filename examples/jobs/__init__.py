"""Commands on CPUs of their own, from any number of shells over one directory."""
