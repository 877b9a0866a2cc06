"""Models in Marian's own format, such as the translators of Firefox and the archives of OPUS-MT."""
