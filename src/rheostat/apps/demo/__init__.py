"""The demo's application."""
