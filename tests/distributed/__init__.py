"""Scoring on several devices."""
