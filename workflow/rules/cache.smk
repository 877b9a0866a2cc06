# Snakemake's cache between workflows: SNAKEMAKE_OUTPUT_CACHE=/shared/folder snakemake --cache
# On a cluster, name the rules, because Snakemake does not pass a bare --cache on to jobs that run elsewhere:
# --cache corpus bpe encode baseline gates pruned scratch selected gates_from_scratch pruned_from_scratch
#
# The key of a cached result is made of the command as written in the rule, the params, the conda environment if any,
# the same for all jobs before it, and the content of files that no job makes. Wildcards, threads, devices and the Python
# package are not part of it. So a cached rule passes everything but paths to its command through params, and each state
# of the code has its own folder in the cache.
import hashlib

# Nothing is cached as a module of another workflow, because its cache would depend on the state of this code.
CACHED = workflow.enable_cache and not IS_MODULE
LOCATION = "SNAKEMAKE_OUTPUT_CACHE"
# Packages that make no cached results.
READERS = ("figures", "tables")


def code_state():
    """A digest of the code and data that make cached results, and of the pinned packages."""
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
    # A job in its own process reads this file again.
    if location.name != code_state():
        os.environ[LOCATION] = str(location / code_state())
