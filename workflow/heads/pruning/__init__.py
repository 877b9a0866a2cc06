"""Which heads stay: stochastic gates and their penalty, subset gates, and choices by measures."""
