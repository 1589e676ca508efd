"""A text that must be seen nowhere: the raw cause of a scripted failure, or an argument of a request."""

CANARY = "cnry-5e1f-raw-cause"
PLANTED = "cnry-77ab-argument"
