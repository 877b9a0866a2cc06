# Snakemake's cache between workflows: SNAKEMAKE_OUTPUT_CACHE=/shared/folder snakemake --cache
# On a cluster the rules must be named, for Snakemake hands a bare --cache to no job that runs elsewhere:
# --cache corpus bpe encode baseline gates pruned scratch selected penalty_gates penalty_scratch
#
# A cached result is found by the command as it is written in the rule, the params, the conda environment if one is used,
# the same of all jobs before it, and the content of files that no job makes. Wildcards, threads, devices and the Python
# package are no part of that. So whatever a cached rule tells its command besides paths goes through params, and each
# state of the code has a folder of its own in the cache.
import hashlib

# As a module of another workflow, whose cache would see the state of this code, nothing is cached.
CACHED = workflow.enable_cache and not IS_MODULE
LOCATION = "SNAKEMAKE_OUTPUT_CACHE"
# Packages that no cached result is made by.
READERS = ("figures", "tables")


def code_state():
    """A name for the code and data that cached results are made by, and for the packages pinned with it."""
    files = [path for path in (WORKFLOW / "heads").rglob("*") if path.suffix in (".py", ".tsv")]
    made_by = [path for path in files if path.relative_to(WORKFLOW / "heads").parts[0] not in READERS]
    state = hashlib.sha256()
    for path in sorted([*made_by, WORKFLOW.parent / "envs/requirements.txt"]):
        state.update(f"{path.relative_to(WORKFLOW.parent)} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return state.hexdigest()[:16]


if CACHED:
    if not os.environ.get(LOCATION):
        raise WorkflowError(f"--cache needs a folder that checkouts share: set {LOCATION} to its path.")
    location = Path(os.environ[LOCATION]).resolve()
    # A job in a process of its own reads this once more.
    if location.name != code_state():
        os.environ[LOCATION] = str(location / code_state())
