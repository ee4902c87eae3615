"""Documents of many formats: text out, translated text back in. One file per format; `formats.FORMATS` lists them."""
