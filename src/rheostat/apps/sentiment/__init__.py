"""Sentiment of messages (P2, T2)."""
