"""Models of other toolkits, a folder for each family: how its files are known, read, and written again."""
