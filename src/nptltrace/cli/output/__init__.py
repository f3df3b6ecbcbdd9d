"""What commands print: text, screens, progress, the documents of other tools."""
