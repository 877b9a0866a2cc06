"""The interactive page: the contents of tables and runs as data, and the one HTML file that shows them."""
