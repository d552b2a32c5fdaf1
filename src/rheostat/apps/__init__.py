"""Reference applications, one folder each; `rheostat run` and the demo take their scripts."""
