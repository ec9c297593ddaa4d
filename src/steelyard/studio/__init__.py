"""The whole way in a browser: a server on this machine, six stages on one rail, jobs in processes of their own."""
