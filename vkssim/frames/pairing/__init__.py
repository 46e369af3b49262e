"""Two clips together: which frame goes with which, pictures that can be compared, and one reference for several pairs."""
