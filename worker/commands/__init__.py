"""The subcommands of `sandferry`."""
