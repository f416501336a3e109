"""iCARMA, from the world to the metrics: the method, for anybody's data.

Read in this order: world, scm, maps, networks, flow, limits, preferences, frames,
population, classifier, problem, icarma, training, grid, metrics, words, loan.
"""
