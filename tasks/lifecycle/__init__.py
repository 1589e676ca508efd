"""`sandbox.extend` and `sandbox.release`."""
