"""Model files of other toolkits: their tensors, options and sizes, without building a model."""
