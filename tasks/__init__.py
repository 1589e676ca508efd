"""What the jobs are; each folder holds its request and result models, its task and its steps."""
