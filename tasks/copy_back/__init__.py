"""`workspace.copy_back`: what an agent did, out of its sandbox, whole or with its losses named."""
