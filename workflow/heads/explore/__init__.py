"""A page to look around in: what tables and runs hold, as data, and the one HTML file that shows it."""
