"""The statistics of Poisson-sampled attention, as pure functions of tensors. Imports torch and nothing of ours."""
