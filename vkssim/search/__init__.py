"""Search the cheapest setting of an encoder whose scores meet targets.

`vkssim.search_setting`, `vkssim.search_shots` and `vkssim.search_ladder` are the ways in. The package imports vkssim's Python
API alone: `Scorer` to score, and `vkssim.clips` to read. Read `search` first, then `model`, which chooses the trials, and
`encode`.
"""
