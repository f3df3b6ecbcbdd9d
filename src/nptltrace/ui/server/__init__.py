"""The server behind the page: requests, access, long jobs."""
