"""Where frames come from: raw YUV, Y4M, containers. Knows nothing of metrics or devices."""
