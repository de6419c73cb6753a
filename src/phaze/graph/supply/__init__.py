"""Models as commands ask for them: a name, the user's own code, a configuration or a graph file, at
any point."""
