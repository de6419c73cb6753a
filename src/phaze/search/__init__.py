"""Search: the space of chips, bounds over all of it, and the best with a certificate.

Internal: the way in is :func:`phaze.search.run.search`, a job that it takes is a
:class:`phaze.search.task.SearchJob`.
"""
