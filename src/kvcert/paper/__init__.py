"""Tables, figures and console output, rebuilt from the logs alone: nothing here imports torch."""
