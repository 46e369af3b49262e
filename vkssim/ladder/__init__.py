"""Many clips: scored from a manifest, compared with each other and with what people said of them."""
