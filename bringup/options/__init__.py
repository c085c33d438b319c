"""Groups of options as values: a verb's signature names them, flow reads them."""
