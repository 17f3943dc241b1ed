"""What does this node hold now: load, verify, admit, commit, release."""
