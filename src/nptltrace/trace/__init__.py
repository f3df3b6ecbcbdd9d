"""Reading traces: metadata, packets, processes, symbols, and the traceset above them."""
