"""The Task base class: a verdict becomes a countdown; the attempt record decides who runs."""
