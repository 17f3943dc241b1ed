"""Attach, mount, grow, unmount, detach."""
