"""The server behind the page: requests, access, jobs that take long."""
