"""Files of models that others wrote: what is in them, as numbers and facts, no model yet."""
