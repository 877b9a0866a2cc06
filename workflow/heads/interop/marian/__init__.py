"""A Marian model in the format of transformers, such as OPUS-MT, and any translator of ours written as one."""
