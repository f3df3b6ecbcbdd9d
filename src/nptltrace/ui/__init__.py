"""The viewer: a server for one page in a browser, and what it answers from."""
