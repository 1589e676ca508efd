"""One driver per provider; they know nothing of Celery, of Redis or of the jobs."""
