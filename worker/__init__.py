"""How a job runs: the process and what it stands on."""
