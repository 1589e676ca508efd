"""Flower's configuration, for `sandferry flower`; or give it to `celery -A worker.app flower` as `--conf`.

Flower executes this file; every name below that is an option of Flower's sets it, and its command line wins. Who may
look is a file of `user:password` lines; without one Flower does not start.
"""

from worker.observability.flowerusers import users
from worker.observability.flowerwatch import install
from worker.settings import settings

install()

basic_auth = users(settings().flower_users_file)
address = "127.0.0.1"
port = 5555
# Looking is what it is for: no button ends, grows or sends anything.
read_only = True
tasks_columns = "name,uuid,state,exception,retries,received,runtime,worker,eta"
max_tasks = 10_000
# Events that were missed are no loss: the records are what counts, and Flower is told of them (flowerwatch.py).
persistent = False
