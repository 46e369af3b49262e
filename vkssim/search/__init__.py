"""Search the cheapest setting of an encoder whose scores meet targets.

`vkssim.search_setting`, `vkssim.search_shots` and `vkssim.search_ladder` are the ways in. The package uses vkssim's Python
API and the files that survive a crash, and only the command line uses it. Read `search` first, then `model`, which chooses the
trials, and `encode`.
"""
